//! A database as the home of a store that many nodes share.
//!
//! Every node has the whole scheduler in memory, and all of them have what happened from one log, which
//! whoever holds the lock writes: see [`writer`].

mod asks;
mod bodies;
mod clock;
mod copy;
mod frames;
mod inbox;
mod link;
mod listener;
mod load;
mod oldest;
mod past;
mod pooled;
mod report;
mod snapshot;
mod tickets;
mod writer;

pub use self::copy::{MoveError, copy_folder};

use self::bodies::{Bodies, within_runtime};
use self::clock::Clock;
use self::inbox::Inbox;
use self::link::{Connector, connector};
use self::load::Loaded;
use self::oldest::Oldest;
use self::past::History;
use self::snapshot::Growth;
use self::writer::{Means, Writer};
use super::hosts::Hosts;
use super::pool::Pool;
use super::schema::{self, SchemaName};
use super::script;
use super::{asks_for_tls, fault, read};
use crate::embedded::HistorySettings;
use crate::store::home::{Body, Commands, Doing, Home, Listeners, Past};
use crate::store::stream::Stream;
use crate::store::{Store, TimeSource};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{NoTls, Socket};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{CallId, Scheduler};
use tollgate_core::{Now, Span};

/// A system counts keepalives in whole seconds, and takes no zero.
const KEEPALIVE_MIN: Duration = Duration::from_secs(1);

/// How a store is kept in a database.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// The schema that everything is in; made if it is missing.
    pub schema: String,
    /// How long a statement may take, and how long a node that stands still keeps others waiting.
    pub deadline: Duration,
    /// How many connections there are besides the three that write, listen and keep history: for the bodies
    /// of calls, and up to half of them for who looks into history.
    pub connections: usize,
    /// After how many bytes in the log there is another snapshot, at least: a node that begins reads as much,
    /// or as much again as the snapshot has.
    pub snapshot_bytes: u64,
    /// How much history is kept: days go whole, by what the strictest node says. A node that keeps none
    /// leaves alone what others keep.
    pub history: HistorySettings,
    /// What to take for the time, in tests. `None`: the server's clock.
    pub time: Option<TimeSource>,
    /// Whether what is in memory is written into tables once a second, for views that people look at.
    pub report: bool,
}

impl Default for DatabaseSettings {
    fn default() -> Self {
        let (schema, deadline) = ("tollgate".to_owned(), Duration::from_secs(5));
        let (snapshot_bytes, history) = (64 << 20, HistorySettings::default());
        Self { schema, deadline, connections: 4, snapshot_bytes, history, time: None, report: true }
    }
}

impl Store {
    /// Opens the store in the database of a url, such as `postgres://user:password@host/database`; its
    /// schema is made if it is missing. Others may have it open, too.
    ///
    /// # Errors
    /// The database cannot be reached, or the schema can neither be used nor made.
    pub async fn connect(url: &str, settings: DatabaseSettings) -> Answer<Self> {
        let (pool, connector) = opening(url, &settings)?;
        Self::open_database(pool, connector, settings).await
    }

    /// As [`Self::connect`], with TLS as the url's `sslmode` asks for it.
    ///
    /// # Errors
    /// As [`Self::connect`].
    pub async fn connect_with_tls<T>(url: &str, tls: T, settings: DatabaseSettings) -> Answer<Self>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (pool, connector) = opening_with_tls(url, tls, &settings)?;
        Self::open_database(pool, connector, settings).await
    }

    async fn open_database(
        pool: Pool,
        connector: Connector,
        settings: DatabaseSettings,
    ) -> Answer<Self> {
        // It has threads of its own: a round is not to wait for whatever else a program does.
        let opening = thread::Builder::new().name("tollgate-opening".to_owned());
        let (opened, open) = tokio::sync::oneshot::channel();
        let opening = opening.spawn(move || {
            let _ = opened.send(Database::open(pool, connector, settings));
        });
        opening.map_err(unstarted)?;
        let database = open.await.map_err(|_| crate::store::closed())??;
        Ok(Self::at(database))
    }
}

/// How the database of a url is connected to, encrypted if the url asks for it.
fn opening(url: &str, settings: &DatabaseSettings) -> Answer<(Pool, Connector)> {
    if !asks_for_tls(url)? {
        return opening_with_tls(url, NoTls, settings);
    }
    #[cfg(feature = "tls")]
    return opening_with_tls(
        url,
        super::Rustls::new(&crate::shared::tls::Trust::system())?,
        settings,
    );
    #[cfg(not(feature = "tls"))]
    Err(fault::without_tls())
}

fn opening_with_tls<T>(url: &str, tls: T, settings: &DatabaseSettings) -> Answer<(Pool, Connector)>
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
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(settings.deadline);
    }
    // A network that loses everything is noticed, whatever is waited for.
    config.tcp_user_timeout(settings.deadline * 2);
    let idle = settings.deadline.max(KEEPALIVE_MIN);
    config.keepalives_idle(idle).keepalives_interval((idle / 2).max(KEEPALIVE_MIN));
    config.keepalives_retries(3);
    // What is waited for twice as long leaves the last of several hosts as long as all before it.
    let hosts = Arc::new(Hosts::new(&config, settings.deadline));
    let pool = Pool::own(hosts.clone(), tls.clone(), settings.connections);
    Ok((pool, connector(hosts, tls)))
}

/// The home.
struct Database {
    inbox: Arc<Inbox>,
    clock: Arc<Clock>,
    listeners: Listeners,
    bodies: Bodies,
    oldest: Arc<Oldest>,
    /// These are taken only by `drop`.
    history: Option<History>,
    thread: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Database {
    fn open(pool: Pool, connector: Connector, settings: DatabaseSettings) -> Answer<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tollgate-postgres")
            .enable_all()
            .build()
            .map_err(unstarted)?;
        let schema = SchemaName::new(&settings.schema)?;
        let begin = script::begin(settings.deadline);
        let loading = load::Sql::new(&schema);
        // What the server gives up is over by then.
        let (node, patience) = (Arc::new(AtomicI64::new(node())), settings.deadline * 2);
        let (loaded, clock) = runtime.block_on(async {
            pooled::check(&connector, patience).await?;
            schema::prepare(&pool, &begin, &schema).await?;
            loaded(&connector, &loading, settings.time.clone()).await
        })?;
        let inbox = Arc::<Inbox>::default();
        let listeners = Listeners {
            condition: Arc::default(),
            woken: Arc::default(),
            stream: Arc::new(Stream::new(clock.now().at)),
            elsewhere: Arc::default(),
        };
        let pool = Arc::new(pool);
        let history = (settings.history.bytes > 0).then(|| {
            let means = past::Means {
                connector: connector.clone(),
                clock: clock.clone(),
                settings: settings.history,
                begin: begin.clone(),
                deadline: settings.deadline,
                readers: settings.connections / 2,
            };
            History::start(means, &schema, pool.clone(), runtime.handle())
        });
        let listening = (connector.clone(), schema.name(), node.clone());
        runtime.spawn(listener::listen(listening.0, listening.1, listening.2, inbox.clone()));
        let growth = Arc::new(Growth::new(settings.snapshot_bytes));
        let keeping = (connector.clone(), loading.clone(), snapshot::Sql::new(&schema));
        runtime.spawn(snapshot::keep(keeping.0, keeping.1, keeping.2, growth.clone()));
        if settings.report {
            let means = report::Means {
                node: self::node(),
                connector: connector.clone(),
                begin: begin.clone(),
                inbox: Arc::downgrade(&inbox),
                clock: clock.clone(),
            };
            runtime.spawn(report::report(means, report::Sql::new(&schema)));
        }
        let means = Means {
            node,
            connector,
            sql: link::Sql::new(&schema, begin),
            loading,
            inbox: inbox.clone(),
            clock: clock.clone(),
            listeners: listeners.clone(),
            past: history.as_ref().map(History::backlog),
            gather: Scheduler::GATHER,
            growth,
            patience,
        };
        let thread = start(means, loaded, &runtime)?;
        let oldest = Arc::<Oldest>::default();
        runtime.spawn(oldest::watch(pool.clone(), oldest.clone()));
        let bodies = Bodies::new(pool, &schema, patience);
        let (thread, runtime) = (Some(thread), Some(runtime));
        Ok(Self { inbox, clock, listeners, bodies, oldest, history, thread, runtime })
    }
}

/// All there is, and a clock that goes on from there.
async fn loaded(
    connector: &Connector,
    loading: &load::Sql,
    time: Option<TimeSource>,
) -> Answer<(Loaded, Arc<Clock>)> {
    let connected = connector().await.map_err(fault::of)?;
    let loaded = load::load(&connected.client, loading).await.map_err(fault::of)??;
    let server = connected.client.query_one("SELECT clock_timestamp()", &[]).await;
    let server = server.and_then(|row| row.try_get(0)).map_err(fault::of)?;
    let clock = Clock::new(time, loaded.written, server);
    Ok((loaded, Arc::new(clock)))
}

fn start(means: Means, loaded: Loaded, runtime: &Runtime) -> Answer<JoinHandle<()>> {
    let handle = runtime.handle().clone();
    let run = move || handle.block_on(Writer::new(means, loaded).run());
    thread::Builder::new().name("tollgate-writer".to_owned()).spawn(run).map_err(unstarted)
}

/// A name that no other node has.
fn node() -> i64 {
    let random = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
    // Zero has written the first entry of every log.
    i64::from_ne_bytes(random.to_ne_bytes()) | 1
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err hands over")]
fn unstarted(error: std::io::Error) -> StoreError {
    StoreError::Failed { reason: format!("a thread cannot be started: {error}") }
}

impl Home for Database {
    fn commands(&self) -> Arc<dyn Commands> {
        self.inbox.clone()
    }

    fn now(&self) -> Now {
        self.clock.now()
    }

    fn time(&self) -> TimeSource {
        let clock = self.clock.clone();
        Arc::new(move || clock.now())
    }

    fn listeners(&self) -> &Listeners {
        &self.listeners
    }

    fn read<'a>(
        &'a self,
        wanted: &'a [(CallId, u64)],
        bytes_max: usize,
    ) -> Doing<'a, Vec<Answer<Body>>> {
        let reading = self.bodies.read(wanted, bytes_max);
        match &self.runtime {
            Some(runtime) => Box::pin(within_runtime(runtime.handle(), reading)),
            None => Box::pin(reading),
        }
    }

    fn past(&self) -> Option<&dyn Past> {
        self.history.as_ref().map(|history| history as &dyn Past)
    }

    fn undoes(&self) -> bool {
        true
    }

    fn oldest_transaction(&self) -> Option<Span> {
        Some(self.oldest.open_for())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // It ends when all is written; if it panicked, there is nothing left to wait for.
            let _ = thread.join();
        }
        // Of all that the writer told it.
        self.history = None;
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
