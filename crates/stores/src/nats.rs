//! Limits that processes share, in NATS JetStream: cells are keys of one bucket, each changed only if
//! nobody else was faster.
//!
//! Cells are not written together. If somebody else was faster in the middle of a change, what was
//! written is taken back and the whole is tried again. Who dies in the middle leaves payments behind
//! that nobody made: too much was paid for a while, never too little.

mod act;
mod bucket;
mod clock;
mod fault;
mod key;
mod sweeper;
mod value;

use crate::shared::cells::{Cells, Decide, Doing, Kind, Wanted};
#[cfg(feature = "tls")]
use crate::shared::tls::Trust;
use bucket::Bucket;
use clock::ServerClock;
use std::sync::Arc;
use std::time::Duration;
use sweeper::Sweeper;
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};

/// Most changes under way at a time: each waits for the server, cell by cell, and little more.
pub const CHANGES_MAX: usize = 32;

/// Longest name of a bucket: it is part of every subject.
const BUCKET_BYTES_MAX: usize = 128;

/// How a [`NatsCells`] is kept.
#[derive(Clone)]
pub struct Settings {
    /// The bucket that everything is in; made if it is missing, with one copy. For more, make it
    /// beforehand, with a history of one.
    pub bucket: String,
    /// How long one operation may take.
    pub deadline: Duration,
    /// What to take for the time, in tests. `None`: the server's clock.
    pub time: Option<Arc<dyn Fn() -> Now + Send + Sync>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { bucket: "tollgate".to_owned(), deadline: Duration::from_secs(1), time: None }
    }
}

/// Cells in a bucket of NATS.
pub struct NatsCells {
    inside: Arc<Inside>,
    sweeper: Sweeper,
}

/// What the sweeper uses, too.
struct Inside {
    bucket: Bucket,
    clock: ServerClock,
    settings: Settings,
}

impl NatsCells {
    /// Connects to the server of a url, such as `nats://user:password@host:4222`, and makes the bucket
    /// if it is missing.
    ///
    /// # Errors
    /// The server cannot be reached, it has no JetStream, or the bucket can neither be used nor made.
    pub async fn connect(url: &str, settings: Settings) -> Answer<Self> {
        Self::connect_by(async_nats::ConnectOptions::new(), url, settings).await
    }

    /// As [`Self::connect`], with whom to trust at a url such as `tls://host:4222`.
    ///
    /// # Errors
    /// As [`Self::connect`], or there is nobody to trust.
    #[cfg(feature = "tls")]
    pub async fn connect_with_tls(url: &str, trust: &Trust, settings: Settings) -> Answer<Self> {
        let mut options = async_nats::ConnectOptions::new();
        if trust.is_given() || url.starts_with("tls://") {
            options = options.tls_client_config(trust.config()?);
        }
        Self::connect_by(options, url, settings).await
    }

    async fn connect_by(
        options: async_nats::ConnectOptions,
        url: &str,
        settings: Settings,
    ) -> Answer<Self> {
        let options = options.name("tollgate");
        let connected = tokio::time::timeout(settings.deadline, options.connect(url)).await;
        let client = connected.map_err(|_| too_late(&settings))?.map_err(fault::of_connecting)?;
        Self::with_client(client, settings).await
    }

    /// Uses a client of the caller's.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn with_client(client: async_nats::Client, settings: Settings) -> Answer<Self> {
        let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name = &settings.bucket;
        if name.is_empty() || name.len() > BUCKET_BYTES_MAX || !name.chars().all(is_sound) {
            return Err(fault::of_name(name));
        }
        let opened = Bucket::open(client.clone(), name, settings.deadline);
        let opened = tokio::time::timeout(settings.deadline, opened).await;
        let bucket = opened.map_err(|_| too_late(&settings))??;
        let clock = ServerClock::new(&client, settings.time.clone());
        let inside = Arc::new(Inside { bucket, clock, settings });
        Ok(Self { sweeper: Sweeper::start(&inside), inside })
    }

    async fn within_deadline<T>(&self, doing: impl Future<Output = Answer<T>>) -> Answer<T> {
        let settings = &self.inside.settings;
        let done = tokio::time::timeout(settings.deadline, doing).await;
        done.unwrap_or_else(|_| Err(too_late(settings)))
    }
}

impl Cells for NatsCells {
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>> {
        Box::pin(self.within_deadline(self.change_until_done(wanted, decide)))
    }

    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>> {
        Box::pin(self.within_deadline(self.inside.names(kind, after, most)))
    }

    fn writes_together(&self) -> bool {
        false
    }

    fn spreads(&self) -> bool {
        false
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }

    fn shares(&self) -> usize {
        1
    }

    fn decides_itself(&self) -> bool {
        false
    }
}

fn too_late(settings: &Settings) -> StoreError {
    let deadline = settings.deadline;
    StoreError::Unreachable {
        reason: format!("NATS did not answer within {deadline:?}, or others were always faster"),
    }
}
