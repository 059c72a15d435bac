//! The settings of the server itself, from several places: what one leaves out the next may say.

use super::{
    Config, ConfigError, Desired, Environment, LogFormat, Place, StoreUrl, VARIABLE_PREFIX,
};
use crate::access::TokenSpec;
use crate::tls::Tls;
use serde::Deserialize;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tollgate::Span;
use tollgate::push::PushSettings;

/// The section `[server]`, or as much of it as someone said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerWire {
    pub(crate) listen: Option<String>,
    pub(crate) data: Option<PathBuf>,
    pub(crate) memory: Option<bool>,
    pub(crate) store: Option<StoreUrl>,
    pub(crate) prefix: Option<String>,
    pub(crate) log: Option<String>,
    pub(crate) log_format: Option<LogFormat>,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) redact_bodies: Option<bool>,
    pub(crate) leave: Option<String>,
    pub(crate) history_age: Option<String>,
    pub(crate) history_bytes: Option<u64>,
}

impl ServerWire {
    /// What the variables say.
    pub(super) fn of_environment(environment: &Environment) -> Result<Self, ConfigError> {
        let text = |name: &str| {
            let value = environment.get(name).map(|value| value.to_str().ok_or("it is not UTF-8"));
            value.transpose().map_err(|error| invalid(name, error)).map(|it| it.map(str::to_owned))
        };
        let path = |name: &str| environment.get(name).map(PathBuf::from);
        let log_format = text("LOG_FORMAT")?.map(|format| match format.as_str() {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(invalid("LOG_FORMAT", "it is text or json")),
        });
        let said = Self {
            listen: text("LISTEN")?,
            data: path("DATA"),
            memory: parsed("MEMORY", text("MEMORY")?)?,
            store: parsed("STORE", text("STORE")?)?,
            prefix: text("PREFIX")?,
            log: text("LOG")?,
            log_format: log_format.transpose()?,
            tls_cert: path("TLS_CERT"),
            tls_key: path("TLS_KEY"),
            redact_bodies: parsed("REDACT_BODIES", text("REDACT_BODIES")?)?,
            leave: text("LEAVE")?,
            history_age: text("HISTORY_AGE")?,
            history_bytes: parsed("HISTORY_BYTES", text("HISTORY_BYTES")?)?,
        };
        Ok(said.with_place_meant())
    }

    /// Whoever names a folder or a store, and does not say more, means it.
    pub(crate) fn with_place_meant(mut self) -> Self {
        if (self.data.is_some() || self.store.is_some()) && self.memory.is_none() {
            self.memory = Some(false);
        }
        self
    }

    /// Whoever names a store names no other place with it. `called` is how settings are called there.
    pub(super) fn check_place(&self, called: impl Fn(&str) -> String) -> Result<(), ConfigError> {
        let other = match (&self.store, &self.data, self.memory) {
            (None, ..) | (Some(_), None, None | Some(false)) => return Ok(()),
            (Some(_), Some(_), _) => "data",
            (Some(_), None, Some(true)) => "memory",
        };
        let place = format!("{}, {}", called("store"), called(other));
        Err(ConfigError::new(place, "limits are in one place: leave the one or the other out"))
    }

    /// These settings, and where they say nothing, those.
    pub(super) fn over(self, below: Self) -> Self {
        // Who names a folder, or wants memory, wants no store that was named below.
        let is_elsewhere = self.data.is_some() || self.memory == Some(true);
        let store = self.store.or(below.store.filter(|_| !is_elsewhere));
        Self {
            listen: self.listen.or(below.listen),
            data: self.data.or(below.data),
            memory: self.memory.or(below.memory),
            store,
            prefix: self.prefix.or(below.prefix),
            log: self.log.or(below.log),
            log_format: self.log_format.or(below.log_format),
            tls_cert: self.tls_cert.or(below.tls_cert),
            tls_key: self.tls_key.or(below.tls_key),
            redact_bodies: self.redact_bodies.or(below.redact_bodies),
            leave: self.leave.or(below.leave),
            history_age: self.history_age.or(below.history_age),
            history_bytes: self.history_bytes.or(below.history_bytes),
        }
    }

    pub(super) fn config(
        self,
        tokens: Vec<TokenSpec>,
        desired: Desired,
        push: PushSettings,
    ) -> Result<Config, ConfigError> {
        let age: Span = needed("history_age", parsed_setting("history_age", self.history_age)?)?;
        let leave: Span = needed("leave", parsed_setting("leave", self.leave)?)?;
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                let tls = Tls::read(certificate, key);
                Some(tls.map_err(|error| ConfigError::new("tls_cert, tls_key", error))?)
            }
            (None, None) => None,
            _ => {
                let what = "the one takes the other: give both or neither";
                return Err(ConfigError::new("tls_cert, tls_key", what));
            }
        };
        let place = match (self.memory, self.store) {
            (Some(true), _) => Place::Memory,
            (_, Some(url)) => Place::Shared(url, self.prefix),
            (_, None) => Place::Folder(needed("data", self.data)?),
        };
        check_queues(&place, &desired)?;
        Ok(Config {
            listen: address(&needed("listen", self.listen)?)?,
            place,
            log: needed("log", self.log)?,
            log_format: needed("log_format", self.log_format)?,
            tls,
            redact_bodies: needed("redact_bodies", self.redact_bodies)?,
            leave: Duration::from_nanos(leave.as_nanos()),
            history: (age, needed("history_bytes", self.history_bytes)?),
            tokens,
            desired,
            push,
        })
    }
}

/// Calls are kept in folders and in databases alone.
fn check_queues(place: &Place, desired: &Desired) -> Result<(), ConfigError> {
    let what = match place {
        Place::Memory => "in memory there are limits alone: name a folder, or leave the queues out",
        Place::Shared(url, _) if !url.keeps_calls() => {
            "in Redis and NATS there are limits alone: name a folder or postgres://… in its place, or leave the queues out"
        }
        Place::Folder(_) | Place::Shared(..) => return Ok(()),
    };
    if desired.has_queues() { Err(ConfigError::new("queues", what)) } else { Ok(()) }
}

fn address(text: &str) -> Result<SocketAddr, ConfigError> {
    let what = "give an address and a port, as in 127.0.0.1:8655, 0.0.0.0:8655 or [::1]:8655";
    text.parse().map_err(|_| ConfigError::new(format!("listen {text:?}"), what))
}

fn invalid(name: &str, what: impl Display) -> ConfigError {
    ConfigError::new(format!("{VARIABLE_PREFIX}{name}"), what)
}

fn parsed<T: FromStr<Err: Display>>(
    name: &str,
    text: Option<String>,
) -> Result<Option<T>, ConfigError> {
    text.map(|text| text.parse()).transpose().map_err(|error| invalid(name, error))
}

pub(super) fn parsed_setting<T: FromStr<Err: Display>>(
    name: &str,
    text: Option<String>,
) -> Result<Option<T>, ConfigError> {
    let parsed = text.map(|text| text.parse()).transpose();
    parsed.map_err(|error| ConfigError::new(name, error))
}

/// What the defaults have, so that it is never missing.
pub(super) fn needed<T>(name: &str, setting: Option<T>) -> Result<T, ConfigError> {
    setting.ok_or_else(|| ConfigError::new(name, "it has no default"))
}
