//! Logs: structured lines on the error output, for people or for programs.

use anyhow::Context;
use clap::ValueEnum;
use std::ffi::OsStr;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;

/// What is logged unless the environment says otherwise.
const DEFAULT_FILTER: &str = "info";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs from here on, in this process. A logger that was there before stays.
pub(super) fn start(format: LogFormat, filter: Option<&OsStr>) -> anyhow::Result<()> {
    let filter = match filter {
        None => DEFAULT_FILTER,
        Some(filter) => filter.to_str().context("TOLLGATE_LOG is not UTF-8")?,
    };
    let filter = EnvFilter::try_new(filter).context(
        "TOLLGATE_LOG is not a filter: write a level, as in `info`, or `tollgate_engine=debug`",
    )?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let subscriber = subscriber.with_ansi(stderr().is_terminal());
    // Refused only where a host of this library logs already: then its way is the right one.
    let _ = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    Ok(())
}
