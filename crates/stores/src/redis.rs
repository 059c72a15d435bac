//! Limits that processes share, in Redis: a cell is a key, and a change is a script that compares what
//! was read with what is there, and writes.
//!
//! All keys begin with one prefix in braces, so that a cluster keeps them together: one server decides.
//! Needs Redis 6 or newer, or what speaks as it does. Whatever evicts keys under a full memory forgets
//! what was spent: `maxmemory-policy noeviction` keeps it.

mod fault;
mod key;
mod pack;
mod quick;
mod request;
mod scripts;
mod slow;

pub use quick::{Taken, Tried};

use crate::shared::cells::{Cells, Decide, Doing, Kind, Wanted};
use key::Keys;
use redis::aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, ProtocolVersion};
use scripts::Scripts;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};

/// Changes of one process that are worth having under way: while Redis makes one, the next is on its
/// way there, and another on its way back.
pub const CHANGES_MAX: usize = 4;

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
pub struct RedisCells<C = ConnectionManager> {
    connection: C,
    keys: Keys,
    scripts: Scripts,
    settings: Settings,
    /// A change of this process has ended: who waits for its cells looks again.
    ended: Notify,
}

impl RedisCells {
    /// Connects to the server of a url, such as `redis://user:password@host:6379/0`, and again by
    /// itself whenever the connection is lost. For TLS, a cluster or sentinels, see
    /// [`Self::with_connection`].
    ///
    /// # Errors
    /// The url or the prefix is none, the server cannot be reached, or lets us not in.
    pub async fn connect(url: &str, settings: Settings) -> Answer<Self> {
        let deadline = settings.deadline;
        let config = ConnectionManagerConfig::new()
            // Who asks is told at once that there is no connection; the next who asks tries again.
            .set_number_of_retries(0)
            .set_connection_timeout(Some(deadline / 2))
            .set_response_timeout(Some(deadline));
        let client = Client::open(connection_info(url, deadline)?).map_err(fault::of_url)?;
        let connecting = ConnectionManager::new_with_config(client, config);
        let connected = tokio::time::timeout(deadline, connecting).await;
        let connection = connected.map_err(|_| fault::late(deadline))?.map_err(fault::of)?;
        Self::with_connection(connection, settings)
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

    fn changes_max(&self) -> usize {
        CHANGES_MAX
    }
}

impl<C> fmt::Debug for RedisCells<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCells").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What a url says, and how to find out that nobody is at the other end any more.
fn connection_info(url: &str, deadline: Duration) -> Result<ConnectionInfo, StoreError> {
    let info = url.into_connection_info().map_err(fault::of_url)?;
    let mut server = info.redis_settings().clone();
    // Under it the connection is made anew once it is cut, and not when it is needed next.
    if !url.contains("protocol=") {
        server = server.set_protocol(ProtocolVersion::RESP3);
    }
    #[cfg(target_os = "linux")]
    let socket = TcpSettings::default().set_nodelay(true).set_user_timeout(deadline * 5);
    #[cfg(not(target_os = "linux"))]
    let socket = TcpSettings::default().set_nodelay(true);
    Ok(info.set_redis_settings(server).set_tcp_settings(socket))
}
