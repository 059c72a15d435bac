//! Logs: structured lines on the error output, for people or for programs.

use crate::config::LogFormat;
use anyhow::Context;
use std::io::{IsTerminal, stderr};
use tracing_subscriber::EnvFilter;

/// Logs from here on, in this process. A logger that was there before stays.
pub(super) fn start(format: LogFormat, filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).context(
        "`log` (TOLLGATE_LOG) is not a filter: write a level, as in `info`, or `tollgate_engine=debug`",
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
