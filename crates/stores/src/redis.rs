//! Limits that processes share, in Redis: a cell is a key, and a change is a script that compares what
//! was read with what is there, and writes.
//!
//! All keys begin with one prefix in braces, so that a cluster keeps them together: one server decides.
//! Meters of limits that are spread lie apart, each on its own.
//! Needs Redis 7 or newer, or what speaks as it does. Whatever evicts keys under a full memory forgets
//! what was spent: `maxmemory-policy noeviction` keeps it.

mod fault;
mod key;
mod link;
mod pack;
mod quick;
mod request;
mod scripts;
mod slow;
mod spread;

pub use link::Link;
pub use quick::{Taken, Tried};

use crate::shared::cells::{Cells, Decide, Doing, Kind, Wanted};
#[cfg(feature = "tls")]
use crate::shared::tls::Trust;
use key::Keys;
use link::Trusted;
use redis::aio::ConnectionLike;
use scripts::Scripts;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tollgate_core::Now;
use tollgate_core::contract::Answer;

/// Changes of one process that are worth having under way: while Redis makes one, the next is on its
/// way there, and another on its way back.
pub const CHANGES_MAX: usize = 4;
/// While Redis sees to one half of those who ask, the other half is answered and asks again. If all were there at once,
/// they would come back at once, too, for Redis answers together what it got together: then one idles, then the other.
pub const SHARES: usize = 2;

/// How [`RedisCells`] are kept.
#[derive(Clone)]
pub struct Settings {
    /// What all keys begin with, in braces: 1 to 64 letters, digits, and `-_.:`.
    pub prefix: String,
    /// How long one operation may take, connecting included.
    pub deadline: Duration,
    /// What to take for the time, in tests. `None`: the server's clock.
    pub time: Option<Arc<dyn Fn() -> Now + Send + Sync>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { prefix: "tollgate".to_owned(), deadline: Duration::from_secs(1), time: None }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prefix, deadline, time } = self;
        let has_time = time.is_some();
        let mut told = f.debug_struct("Settings");
        told.field("prefix", prefix).field("deadline", deadline).field("has_time", &has_time);
        told.finish()
    }
}

/// Cells in Redis.
pub struct RedisCells<C = Link> {
    connection: C,
    keys: Keys,
    scripts: Scripts,
    settings: Settings,
    /// A change of this process has ended: who waits for its cells looks again.
    ended: Notify,
}

impl RedisCells {
    /// Connects to the server of a url, such as `redis://user:password@host:6379/0`, and again by
    /// itself whenever the connection is lost. If it is one of a cluster, or the url names several
    /// (`redis://a:6379,b:6379`), to all of the cluster. For sentinels, see [`Self::with_connection`].
    ///
    /// # Errors
    /// The url or the prefix is none, the server cannot be reached, or lets us not in.
    pub async fn connect(url: &str, settings: Settings) -> Answer<Self> {
        #[cfg(feature = "tls")]
        return Self::connect_with_tls(url, &Trust::system(), settings).await;
        #[cfg(not(feature = "tls"))]
        Self::connect_trusting(url, &Trusted::default(), settings).await
    }

    /// As [`Self::connect`], with whom to trust at a url such as `rediss://host:6380`.
    ///
    /// # Errors
    /// As [`Self::connect`], or there is nobody to trust.
    #[cfg(feature = "tls")]
    pub async fn connect_with_tls(url: &str, trust: &Trust, settings: Settings) -> Answer<Self> {
        let trusted = Trusted { authorities: trust.pem()? };
        Self::connect_trusting(url, &trusted, settings).await
    }

    async fn connect_trusting(url: &str, trusted: &Trusted, settings: Settings) -> Answer<Self> {
        let deadline = settings.deadline;
        let connected = tokio::time::timeout(deadline, Link::to(url, trusted, deadline)).await;
        Self::with_connection(connected.map_err(|_| fault::late(deadline))??, settings)
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> RedisCells<C> {
    /// Uses a connection of the caller's, which sees to it that it stays connected. It must not be one
    /// that is blocked or subscribed.
    ///
    /// # Errors
    /// The prefix is none.
    pub fn with_connection(connection: C, settings: Settings) -> Answer<Self> {
        let keys = Keys::new(&settings.prefix)?;
        let (scripts, ended) = (Scripts::new(), Notify::new());
        Ok(Self { connection, keys, scripts, settings, ended })
    }

    /// By the script that takes asks, if it has a port for all that it meets, else here.
    async fn change_until_done(&self, wanted: Wanted<'_>, decide: &mut dyn Decide) -> Answer<()> {
        if wanted.read.iter().chain(wanted.change).any(|cell| cell.kind.is_spread()) {
            return self.change_apart(wanted, decide).await;
        }
        match self.change_quickly(wanted, decide).await? {
            true => Ok(()),
            false => self.change_slowly(wanted, decide).await,
        }
    }

    async fn within_deadline<T>(&self, doing: impl Future<Output = Answer<T>>) -> Answer<T> {
        let deadline = self.settings.deadline;
        let done = tokio::time::timeout(deadline, doing).await;
        done.unwrap_or_else(|_| Err(fault::late(deadline)))
    }
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Cells for RedisCells<C> {
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>> {
        Box::pin(self.within_deadline(self.change_until_done(wanted, decide)))
    }

    /// Of what comes and goes by itself, meters and settled receipts, Redis keeps no list: asked for
    /// these, it fails.
    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>> {
        Box::pin(self.within_deadline(self.names_listed(kind, after, most)))
    }

    fn writes_together(&self) -> bool {
        true
    }

    fn spreads(&self) -> bool {
        true
    }

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }

    fn shares(&self) -> usize {
        SHARES
    }

    fn decides_itself(&self) -> bool {
        true
    }
}

impl<C> fmt::Debug for RedisCells<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCells").field("settings", &self.settings).finish_non_exhaustive()
    }
}
