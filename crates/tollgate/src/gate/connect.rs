//! A store that other processes share: with lanes in PostgreSQL, limits alone elsewhere.

#[cfg(feature = "postgres")]
use super::Backend;
use super::{Builder, GateError, Tollgate, backends};
use crate::shared::{Connect, LaterCells, Nature};
use std::sync::Arc;
use tollgate_core::Span;
use tollgate_core::contract::StoreError as KeptError;
use tollgate_engine::StoreError;
#[cfg(feature = "postgres")]
use tollgate_engine::{Clock, Elsewhere, Engine, StoreClock};
#[cfg(feature = "postgres")]
use tollgate_stores::store::Changed;

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
    #[cfg(feature = "postgres")]
    pub(super) time: Option<StoreTime>,
    #[cfg(feature = "tls")]
    pub(super) trust: crate::shared::tls::Trust,
}

/// What a store of many nodes takes for the time, in tests.
#[cfg(feature = "postgres")]
#[derive(Clone)]
pub(super) struct StoreTime(pub(super) Arc<dyn Clock>);

#[cfg(feature = "postgres")]
impl std::fmt::Debug for StoreTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreTime")
    }
}

impl Sharing {
    pub(super) fn prefix(&self) -> String {
        let named = self.prefix.clone().or_else(|| std::env::var(PREFIX_VARIABLE).ok());
        named.unwrap_or_else(|| PREFIX.to_owned())
    }

    /// How long it may take, if that was said.
    #[cfg(feature = "postgres")]
    pub(super) fn deadline_said(&self) -> Option<std::time::Duration> {
        self.deadline.map(std::time::Duration::from)
    }

    /// A request may wait for the one before: both end within the deadline.
    pub(super) fn deadline(&self) -> std::time::Duration {
        std::time::Duration::from(self.deadline.unwrap_or(DEADLINE)) / 2
    }
}

impl Tollgate {
    /// Limits and calls in the database of a url, which many nodes share: `postgres://…`; or limits alone,
    /// in `redis://…` or `nats://…`. Each is behind the feature of that name; encrypted with the feature
    /// `tls`.
    ///
    /// # Errors
    /// As [`Builder::connect`].
    pub async fn connect(url: &str) -> Result<Self, GateError> {
        Self::builder().connect(url).await
    }

    /// Limits alone in the store of a url, whichever it is: as [`Builder::connect_limits`].
    ///
    /// # Errors
    /// As [`Builder::connect_limits`].
    pub async fn connect_limits(url: &str) -> Result<Self, GateError> {
        Self::builder().connect_limits(url).await
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
    /// A second by default where there are limits alone; five where there are calls, for each statement.
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

    /// Has a store with calls that many nodes share count by this clock in place of the database's: for
    /// tests, in which all of its nodes have the same.
    #[cfg(feature = "postgres")]
    pub fn store_time(mut self, clock: impl Clock) -> Self {
        self.sharing.time = Some(StoreTime(Arc::new(clock)));
        self
    }

    /// Limits and calls in the database of a url, which many nodes share: `postgres://…`. Its clock rules,
    /// and not this machine's. Or limits alone, in `redis://…` or `nats://…`: as [`Self::connect_limits`].
    /// Each is behind the feature of that name; with the feature `tls` encrypted: `rediss://…`,
    /// `postgres://…?sslmode=require`, `tls://…`.
    ///
    /// # Errors
    /// The url is none; the store is there and lets us not in; or a database is not there: nothing is known
    /// then of what it holds.
    pub async fn connect(self, url: &str) -> Result<Tollgate, GateError> {
        if is_postgres(url) {
            self.connect_lanes(url).await
        } else {
            self.connect_limits(url).await
        }
    }

    #[cfg(feature = "postgres")]
    async fn connect_lanes(self, url: &str) -> Result<Tollgate, GateError> {
        let store = backends::postgres_lanes(url, &self.sharing, self.store.history).await?;
        let clock: Arc<dyn Clock> = match self.sharing.time {
            Some(StoreTime(clock)) => clock,
            None => Arc::new(StoreClock::new(store.time())),
        };
        let heeded = store.clone();
        let changed = move || {
            let store = heeded.clone();
            async move {
                let Changed { queues, records, is_all } = store.changed_elsewhere().await;
                let (queues, records) = (Vec::from_iter(queues), Vec::from_iter(records));
                Elsewhere { queues, records, is_all }
            }
        };
        let engine = Engine::start_among(store, clock, changed).await?;
        Ok(Tollgate { backend: Backend::Kept(engine), has_nodes: true })
    }

    #[cfg(not(feature = "postgres"))]
    async fn connect_lanes(self, _: &str) -> Result<Tollgate, GateError> {
        Err(GateError::NotBuilt { feature: "postgres" })
    }

    /// Limits alone in the store of a url: `redis://…`, `postgres://…` or `nats://…`. In a database they are
    /// apart from those of [`Self::connect`], which are counted with calls. One that is not there yet is
    /// connected to as soon as it is.
    ///
    /// # Errors
    /// The url is none, or the store is there and lets us not in.
    pub async fn connect_limits(self, url: &str) -> Result<Tollgate, GateError> {
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

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
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
