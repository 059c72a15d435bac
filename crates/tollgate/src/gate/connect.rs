//! Limits in a store that other processes share.

use super::{Builder, GateError, Tollgate, backends};
use crate::shared::{Connect, LaterCells, Nature};
use std::sync::Arc;
use tollgate_core::Span;
use tollgate_core::contract::StoreError as KeptError;
use tollgate_engine::StoreError;

/// The variable that names the prefix, schema or bucket where a program does not.
const PREFIX_VARIABLE: &str = "TOLLGATE_PREFIX";
/// What everything is under unless something else is said.
const PREFIX: &str = "tollgate";
/// How long a store may take to answer unless something else is said.
const DEADLINE: Span = Span::from_secs(1);

/// How limits are shared.
#[derive(Debug, Clone, Default)]
pub(super) struct Sharing {
    prefix: Option<String>,
    deadline: Option<Span>,
    #[cfg(feature = "tls")]
    pub(super) trust: crate::shared::tls::Trust,
}

impl Sharing {
    pub(super) fn prefix(&self) -> String {
        let named = self.prefix.clone().or_else(|| std::env::var(PREFIX_VARIABLE).ok());
        named.unwrap_or_else(|| PREFIX.to_owned())
    }

    /// A request may wait for the one before: both end within the deadline.
    pub(super) fn deadline(&self) -> std::time::Duration {
        std::time::Duration::from(self.deadline.unwrap_or(DEADLINE)) / 2
    }
}

impl Tollgate {
    /// Limits in the store of a url, which other processes share: `redis://…`, `postgres://…` or
    /// `nats://…`, each behind the feature of that name; encrypted with the feature `tls`.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, GateError> {
        Self::builder().connect(url).await
    }
}

impl Builder {
    /// What all keys begin with in Redis, the schema in PostgreSQL, the bucket in NATS. Otherwise what the
    /// environment says as `TOLLGATE_PREFIX`, or `tollgate`. Processes share limits that share it.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.sharing.prefix = Some(prefix.to_owned());
        self
    }

    /// How long a shared store may take: who asks is told within it that the store is out of reach.
    /// A second by default.
    pub fn deadline(mut self, span: impl Into<Span>) -> Self {
        self.sharing.deadline = Some(span.into());
        self
    }

    /// Trusts stores whose certificates were signed by an authority in this PEM file, in place of those
    /// that the system trusts, at urls that ask for encryption.
    #[cfg(feature = "tls")]
    pub fn authorities(mut self, file: impl Into<std::path::PathBuf>) -> Self {
        self.sharing.trust = crate::shared::tls::Trust::authorities(file);
        self
    }

    /// Limits in the store of a url: `redis://…`, `postgres://…` or `nats://…`, each behind the feature of
    /// that name. With the feature `tls` encrypted: `rediss://…`, `postgres://…?sslmode=require`, `tls://…`. One that is not there yet is connected to as soon as it is.
    ///
    /// # Errors
    /// The url is none, or the store is there and lets us not in.
    pub async fn connect(self, url: &str) -> Result<Tollgate, GateError> {
        let (nature, connect) = connecting(url, &self.sharing)?;
        let cells = Arc::new(LaterCells::new(nature, connect));
        if let Err(error) = cells.connected().await {
            if !matches!(error, KeptError::Unreachable { .. }) {
                return Err(StoreError::from(error).into());
            }
            tracing::warn!(%error, "the store is not there yet: it is asked for again when it is needed");
        }
        self.share(cells)
    }
}

/// How the store of a url is connected to.
fn connecting(url: &str, sharing: &Sharing) -> Result<(Nature, Connect), GateError> {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        "rediss" | "tls" if cfg!(not(feature = "tls")) => {
            Err(GateError::NotBuilt { feature: "tls" })
        }
        "redis" | "rediss" => backends::redis(url, sharing),
        "postgres" | "postgresql" => backends::postgres(url, sharing),
        "nats" | "tls" => backends::nats(url, sharing),
        // A url may hold a password: no more of it is shown than what it begins with.
        _ => Err(GateError::NoStore { scheme: scheme.chars().take(32).collect() }),
    }
}
