//! Limits that processes share, in PostgreSQL: cells are rows of one table, and a change is one short
//! transaction of two round trips.
//!
//! A payment is safe once the server says so, as its `synchronous_commit` has it. Who would rather
//! lose the last half second of payments in a crash than wait for the disk says so in the url:
//! `?options=-c%20synchronous_commit%3Doff`.

mod act;
mod fault;
mod home;
mod hosts;
mod pool;
mod row;
mod schema;
mod script;
mod sweeper;
#[cfg(feature = "tls")]
mod tls;

pub use home::{DatabaseSettings, MoveError, copy_folder};
pub use pool::{Lend, Lent};
#[cfg(feature = "tls")]
pub use tls::{Encrypted, Handshake, Rustls};

use crate::shared::cells::{Cells, Decide, Doing, Kind, Wanted};
#[cfg(feature = "tls")]
use crate::shared::tls::Trust;
use hosts::Hosts;
use pool::Pool;
use schema::SchemaName;
use script::Scripts;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sweeper::Sweeper;
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, NoTls, Socket};
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};

/// How a [`PostgresCells`] is kept.
#[derive(Clone)]
pub struct Settings {
    /// The schema that everything is in; made if it is missing.
    pub schema: String,
    /// How long one operation may take, connecting included.
    pub deadline: Duration,
    /// How many connections are kept. Of connections that are lent, how many are asked for at a time.
    pub connections: usize,
    /// What to take for the time, in tests. `None`: the server's clock.
    pub time: Option<Arc<dyn Fn() -> Now + Send + Sync>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            schema: "tollgate".to_owned(),
            deadline: Duration::from_secs(1),
            connections: 2,
            time: None,
        }
    }
}

/// Cells in a PostgreSQL database.
pub struct PostgresCells {
    pool: Pool,
    schema: SchemaName,
    scripts: Scripts,
    sweeper: Mutex<Sweeper>,
    settings: Settings,
}

impl PostgresCells {
    /// Connects to the database of a url, such as `postgres://user:password@host/database`, and makes
    /// the schema if it is missing. With `sslmode=require` or `verify-full` the connection is encrypted,
    /// and the server's certificate checked against those that the system trusts; for others, see
    /// [`Self::connect_with_tls`]. Otherwise it is not.
    ///
    /// # Errors
    /// The database cannot be reached, or the schema can neither be used nor made.
    pub async fn connect(url: &str, settings: Settings) -> Answer<Self> {
        if !asks_for_tls(url)? {
            return Self::connect_with_tls(url, NoTls, settings).await;
        }
        #[cfg(feature = "tls")]
        return Self::connect_with_tls(url, Rustls::new(&Trust::system())?, settings).await;
        #[cfg(not(feature = "tls"))]
        Err(fault::without_tls())
    }

    /// As [`Self::connect`], with TLS as the url's `sslmode` asks for it.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_with_tls<T>(url: &str, tls: T, settings: Settings) -> Answer<Self>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut config = read(url)?;
        if config.get_application_name().is_none() {
            config.application_name("tollgate");
        }
        // The last of several hosts has as long as all before it.
        let hosts = Arc::new(Hosts::new(&config, settings.deadline / 2));
        Self::open(Pool::own(hosts, tls, settings.connections), settings).await
    }

    /// Uses connections of the caller's, from any pool: each is asked for when it is needed, has no
    /// transaction open, and comes back so. A server before it must keep a connection to one client
    /// for as long as a transaction lasts.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn with_clients(lend: Lend, settings: Settings) -> Answer<Self> {
        Self::open(Pool::lent(lend, settings.connections), settings).await
    }

    async fn open(pool: Pool, settings: Settings) -> Answer<Self> {
        let schema = SchemaName::new(&settings.schema)?;
        let scripts = Scripts::new(&schema, settings.deadline);
        let cells = Self { pool, schema, scripts, sweeper: Mutex::default(), settings };
        cells.within_deadline(cells.prepare()).await?;
        Ok(cells)
    }

    /// Makes the schema if it is missing.
    async fn prepare(&self) -> Answer<()> {
        schema::prepare(&self.pool, &self.scripts.begin, &self.schema).await
    }

    async fn within_deadline<T>(&self, doing: impl Future<Output = Answer<T>>) -> Answer<T> {
        let deadline = self.settings.deadline;
        tokio::time::timeout(deadline, doing).await.unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                reason: format!("PostgreSQL did not answer within {deadline:?}"),
            })
        })
    }
}

/// What a url says. A certificate is always checked in full.
fn read(url: &str) -> Answer<Config> {
    url.replace("sslmode=verify-full", "sslmode=require").parse().map_err(fault::of_url)
}

/// Whether a url asks for encryption, and does not only take it.
///
/// # Errors
/// It is none.
pub fn asks_for_tls(url: &str) -> Answer<bool> {
    Ok(read(url)?.get_ssl_mode() == SslMode::Require)
}

impl Cells for PostgresCells {
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
        Box::pin(self.within_deadline(self.names_until_read(kind, after, most)))
    }

    fn writes_together(&self) -> bool {
        true
    }

    fn spreads(&self) -> bool {
        false
    }

    fn changes_max(&self) -> usize {
        self.settings.connections.max(1)
    }

    fn shares(&self) -> usize {
        1
    }

    fn decides_itself(&self) -> bool {
        false
    }
}
