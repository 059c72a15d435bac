//! The server: a socket, its connections, and an end that loses no answer.

mod connection;
mod exporting;

use crate::access::{KnownTokens, TokenSpec, Tokens, TokensError};
use crate::clock;
use crate::http::body::Room;
use crate::http::figures::Figures;
use crate::http::forecast::Seers;
use crate::http::guard::Door;
use crate::http::history::Readers;
use crate::http::overview::Looks;
use crate::http::series::{self, Series};
use crate::http::{App, routes};
use crate::qstash::{self, Face, QstashManner};
use crate::seal::{SealError, SealOnce};
use crate::shutdown::{Shutdown, ShutdownBell, shutdown};
use crate::tls::Tls;
use crate::traces::tracer;
#[cfg(feature = "otel")]
use crate::traces::{TraceSettings, TracesError};
use exporting::Exporting;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tollgate::push::{PushError, PushSettings};
use tollgate::{Pusher, Tollgate};

/// Most connections at once; one more waits in the system's queue until another ends.
const CONNECTIONS_MAX: usize = 50_000;
/// Longest time that answers under way get to finish once the server is asked to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after the system could not hand over a connection: it may be out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens; port 0 takes any free one.
    pub listen: SocketAddr,
    /// What callers must show one of; needed beyond loopback.
    pub tokens: Vec<TokenSpec>,
    /// The certificate, if it talks TLS.
    pub tls: Option<Tls>,
    /// Keeps the bodies of calls from those who look at them.
    pub redact_bodies: bool,
    /// Where traces are exported to, if anywhere.
    #[cfg(feature = "otel")]
    pub traces: Option<TraceSettings>,
    /// How long it goes on as ever once it is told to end, but says that it is not ready: load balancers
    /// look only now and then.
    pub leave: Duration,
    /// How calls are delivered that it makes itself.
    pub push: PushSettings,
    /// The keys, current and next, that QStash messages of no namespace are signed with while it runs, in
    /// place of those that are kept.
    pub lent_keys: Option<(&'static str, &'static str)>,
}

impl Settings {
    /// Listens there, wants no token and talks plainly.
    pub fn new(listen: SocketAddr) -> Self {
        let (tokens, tls, push) = (Vec::new(), None, PushSettings::default());
        Self {
            listen,
            tokens,
            tls,
            redact_bodies: false,
            #[cfg(feature = "otel")]
            traces: None,
            leave: Duration::ZERO,
            push,
            lent_keys: None,
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Others could reach it, and nothing would keep them out.
    #[error(
        "{listen} can be reached from other machines, and no token keeps them out: set TOLLGATE_TOKEN, give the configuration tokens, or listen on 127.0.0.1"
    )]
    TokenMissing {
        /// Where it was to listen.
        listen: SocketAddr,
    },
    /// The system does not let it listen there.
    #[error("cannot listen on {listen}: {source}; is another server running there?")]
    Listen {
        /// Where it was to listen.
        listen: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The tokens do not do.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// There is no key.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The keys that messages are signed with cannot be read.
    #[error("the signing keys of the QStash API cannot be read: {0}")]
    Qstash(String),
    /// Calls cannot be delivered.
    #[error(transparent)]
    Push(#[from] PushError),
    /// Traces cannot be exported as it was said.
    #[cfg(feature = "otel")]
    #[error(transparent)]
    Traces(#[from] TracesError),
}

/// A server that listens, and answers once it is told to.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    leave: Duration,
    pusher: Option<Pusher>,
    qstash: Arc<qstash::Shared>,
    app: Arc<App>,
    door: Arc<Door>,
    bell: ShutdownBell,
    shutdown: Shutdown,
    exporting: Exporting,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Takes the address. Connections wait until [`Server::serve`] runs.
    pub async fn bind(gate: Tollgate, settings: Settings) -> Result<Self, StartError> {
        let (traces, exporting) = exporting::prepare(&settings)?;
        let Settings { listen, tokens, tls, redact_bodies, leave, mut push, lent_keys, .. } =
            settings;
        let traces = Arc::new(traces);
        push.tracer = tracer(&traces).or(push.tracer);
        let qstash = Arc::new(qstash::Shared::new(push.addresses.clone()));
        qstash.load(&gate, lent_keys).await?;
        push.manner = Some(Arc::new(QstashManner::new(qstash.clone(), gate.clone())));
        let tokens = Tokens::new(tokens)?;
        check_reach(&tokens, listen)?;
        let tokens = KnownTokens::new(tokens);
        let seal = SealOnce::early(&gate).await?;
        let failed = |source| StartError::Listen { listen, source };
        let listener = TcpListener::bind(listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (bell, shutdown) = shutdown();
        // Where there are limits alone, there is nothing to deliver.
        let pusher = gate.keeps_calls().then(|| gate.pusher(push)).transpose()?;
        let app = App {
            gate,
            seal,
            tokens,
            shutdown: shutdown.clone(),
            room: Room::default(),
            figures: Figures::new(),
            looks: Looks::default(),
            series: Series::default(),
            history: Readers::default(),
            seers: Seers::default(),
            redact_bodies,
            traces,
        };
        let app = Arc::new(app);
        let face = Face::new(app.clone(), qstash.clone());
        let door = Arc::new(routes::door(app.clone(), face));
        Ok(Self {
            listener,
            address,
            tls,
            leave,
            pusher,
            qstash,
            app,
            door,
            bell,
            shutdown,
            exporting,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// What changes it while it runs.
    pub fn reloader(&self) -> Reloader {
        Reloader { app: self.app.clone(), address: self.address }
    }

    /// Answers until `stop` ends, and for as long after as [`Settings::leave`] says. Then takes no more
    /// connections, tells those who wait that the server goes, and lets answers under way finish, for ten
    /// seconds at most. Calls that a worker was not told of by then are handed back:
    /// [`Tollgate::shut_down`] waits until they are.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) {
        self.exporting.begin();
        if self.tls.is_none() && !self.address.ip().to_canonical().is_loopback() {
            let address = self.address;
            tracing::warn!(%address, "tokens travel in the clear: give the server a certificate, or put it behind a proxy that has one");
        }
        let (mut connections, mut pushing) = (JoinSet::new(), JoinSet::new());
        let (stop_pushing, stopped) = oneshot::channel::<()>();
        pushing.spawn(series::sample(self.app.clone(), self.shutdown.clone()));
        if let Some(pusher) = self.pusher.take() {
            pushing.spawn(async move {
                if let Err(error) = pusher.run(async move { drop(stopped.await) }).await {
                    tracing::error!(%error, "calls are not delivered any more");
                }
            });
            let (flows, shutdown) = (self.app.gate.flows(), self.shutdown.clone());
            pushing.spawn(async move {
                let keeper = flows.keeper(async move { shutdown.begun().await });
                if let Err(error) = keeper.await {
                    tracing::error!(%error, "runs of workflows that need no worker do not go on any more");
                }
            });
            let (gate, shared) = (self.app.gate.clone(), self.qstash.clone());
            let shutdown = self.shutdown.clone();
            pushing.spawn(qstash::tick::run(gate.clone(), shared.clone(), shutdown.clone()));
            pushing.spawn(async move { shared.learn_keys(&gate, shutdown).await });
        }
        self.accept_until(stop, &mut connections).await;
        self.bell.leave();
        if !self.leave.is_zero() {
            tracing::info!(seconds = self.leave.as_secs(), "not ready any more");
            self.accept_until(clock::rest(self.leave), &mut connections).await;
        }
        drop(self.listener);
        tracing::info!(connections = connections.len(), "shutting down");
        self.bell.ring();
        drop(stop_pushing);
        let drained = timeout(DRAIN_TIMEOUT, async {
            while connections.join_next().await.is_some() {}
            while pushing.join_next().await.is_some() {}
        });
        match drained.await {
            Ok(()) => tracing::info!("stopped"),
            Err(_) => {
                tracing::warn!(connections = connections.len(), "stopped before the end");
                // What their answers were to hand out is handed back as they go.
                connections.shutdown().await;
                // Nobody knows what came of these: their calls are tried again once their leases end.
                pushing.shutdown().await;
            }
        }
        self.exporting.end().await;
    }

    async fn accept_until(&self, stop: impl Future<Output = ()>, connections: &mut JoinSet<()>) {
        let mut stop = pin!(stop);
        loop {
            self.app.figures.connections.store(connections.len(), Ordering::Relaxed);
            let has_room = connections.len() < CONNECTIONS_MAX;
            tokio::select! {
                () = &mut stop => return,
                // Takes note of connections that ended, so that there is room for others.
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if has_room => match accepted {
                    Ok((stream, peer)) => {
                        let (door, shutdown) = (self.door.clone(), self.shutdown.clone());
                        let tls = self.tls.clone();
                        let accepted = (stream, peer.ip());
                        connections.spawn(connection::answer(accepted, tls, door, shutdown));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "connection not accepted");
                        if timeout(ACCEPT_PAUSE, &mut stop).await.is_ok() {
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// Changes a server while it runs.
#[derive(Clone)]
pub struct Reloader {
    app: Arc<App>,
    address: SocketAddr,
}

impl Reloader {
    /// Knows these tokens from now on, and no others. If they do not do, nothing is changed.
    pub fn replace_tokens(&self, tokens: Vec<TokenSpec>) -> Result<(), StartError> {
        let tokens = Tokens::new(tokens)?;
        check_reach(&tokens, self.address)?;
        self.app.tokens.replace(tokens);
        Ok(())
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Who can be reached from other machines needs something that keeps them out.
fn check_reach(tokens: &Tokens, listen: SocketAddr) -> Result<(), StartError> {
    if tokens.is_empty() && !listen.ip().to_canonical().is_loopback() {
        return Err(StartError::TokenMissing { listen });
    }
    Ok(())
}
