//! Settings: what the server was told by its file, the environment and flags, in that order.

mod desired;
mod diff;
mod file;
mod layers;
mod place;
mod push;

pub(crate) use desired::Desired;
pub(crate) use diff::{Actual, Difference, differences};
pub(crate) use layers::ServerWire;
pub(crate) use place::{Place, StoreUrl};

use crate::access::{TokenSpec, Tokens};
use crate::tls::Tls;
use crate::token::Token;
use file::FileWire;
use push::PushWire;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tollgate::Span;
use tollgate::push::PushSettings;

/// Every setting, with its default and what it means.
pub(crate) const DEFAULTS: &str = include_str!("defaults.toml");
/// What the variables of all settings begin with.
pub(crate) const VARIABLE_PREFIX: &str = "TOLLGATE_";

/// What is wrong with a setting, and where it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub(crate) struct ConfigError {
    place: String,
    what: String,
}

impl ConfigError {
    fn new(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { place: place.to_string(), what: what.to_string() }
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// What the server was told.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) place: Place,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
    pub(crate) tls: Option<Tls>,
    pub(crate) redact_bodies: bool,
    /// How long it says that it is not ready before it ends.
    pub(crate) leave: Duration,
    pub(crate) history: (Span, u64),
    pub(crate) tokens: Vec<TokenSpec>,
    pub(crate) desired: Desired,
    pub(crate) push: PushSettings,
}

/// The variables that are for Tollgate, by their names without what all begin with.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl Environment {
    /// Reads the variables of this process.
    pub fn read() -> Self {
        let named = |(name, value): (OsString, OsString)| {
            Some((name.to_str()?.strip_prefix(VARIABLE_PREFIX)?.to_owned(), value))
        };
        Self(std::env::vars_os().filter_map(named).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str)
    }
}

impl Config {
    /// Reads all that there is. A flag wins over a variable, a variable over the file, the file over
    /// the defaults.
    pub(crate) fn read(
        flags: ServerWire,
        environment: &Environment,
        path: Option<&Path>,
    ) -> Result<Self, ConfigError> {
        let file = path.map(FileWire::read).transpose()?.unwrap_or_default();
        let tokens = tokens(&file, environment)?;
        let desired = file.desired()?;
        let defaults = FileWire::parse("defaults.toml", DEFAULTS)?;
        let variables = ServerWire::of_environment(environment)?;
        variables.check_place(|name| format!("{VARIABLE_PREFIX}{}", name.to_uppercase()))?;
        file.server.check_place(str::to_owned)?;
        let server = flags.over(variables).over(file.server).over(defaults.server);
        let push = PushWire::of_environment(environment)?.over(file.push).over(defaults.push);
        server.config(tokens, desired, push.settings()?)
    }
}

/// The tokens of the file, and that of the environment.
fn tokens(file: &FileWire, environment: &Environment) -> Result<Vec<TokenSpec>, ConfigError> {
    let mut tokens = file.tokens()?;
    if let Some(text) = environment.get("TOKEN") {
        let token = Token::new(&text.to_string_lossy());
        let token = token.map_err(|error| ConfigError::new("TOLLGATE_TOKEN", error))?;
        tokens.push(TokenSpec::admin(&token));
    }
    match Tokens::new(tokens.clone()) {
        Ok(_) => Ok(tokens),
        Err(error) => Err(ConfigError::new("tokens", error)),
    }
}

#[cfg(test)]
mod tests;
