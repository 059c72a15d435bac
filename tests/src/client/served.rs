//! A server on any free port that can be stopped and started again, and clients of it.

use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tollgate::{ManualClock, Tollgate};
use tollgate_client::{Client, ClientError};
use tollgate_server::{Server, Settings, Token, TokenSpec};

/// Longest wait for something that happens at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A server that runs, and what is behind it.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) gate: Tollgate,
    pub(crate) clock: ManualClock,
    running: Option<Running>,
    _folder: tempfile::TempDir,
}

struct Running {
    stop: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Served {
    /// With a clock that is moved by hand.
    pub(crate) async fn new() -> Self {
        let clock = ManualClock::new();
        let (folder, builder) = (tempfile::tempdir().unwrap(), Tollgate::builder());
        let gate = builder.clock(clock.clone()).open(folder.path()).await.unwrap();
        Self::of(gate, clock, folder).await
    }

    /// With the system's clock.
    pub(crate) async fn in_real_time() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gate = Tollgate::open(folder.path()).await.unwrap();
        Self::of(gate, ManualClock::new(), folder).await
    }

    async fn of(gate: Tollgate, clock: ManualClock, folder: tempfile::TempDir) -> Self {
        let address = ([127, 0, 0, 1], 0).into();
        let mut it = Self { address, gate, clock, running: None, _folder: folder };
        it.start(None).await;
        it
    }

    /// Starts it again, where it was.
    pub(crate) async fn start(&mut self, token: Option<&str>) {
        let tokens = token.map(|token| TokenSpec::admin(&Token::new(token).unwrap()));
        let settings =
            Settings { tokens: tokens.into_iter().collect(), ..Settings::new(self.address) };
        self.start_with(settings).await;
    }

    pub(crate) async fn start_with(&mut self, settings: Settings) {
        let server = Server::bind(self.gate.clone(), settings).await.unwrap();
        self.address = server.address();
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(server.serve(async {
            let _ = stopped.await;
        }));
        self.running = Some(Running { stop, served });
    }

    /// Stops it: who waits is told so.
    pub(crate) async fn stop(&mut self) {
        let Running { stop, served } = self.running.take().unwrap();
        stop.send(()).unwrap();
        timeout(PATIENCE, served).await.expect("the server did not end").unwrap();
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.url()).unwrap()
    }

    /// Returns when calls of that weight wait at a limit's global meter.
    pub(crate) async fn until_waiting(&self, limit: &str, weight: u64) {
        self.until(async || self.gate.meter(limit, None).await.unwrap().waiting == weight).await;
    }

    /// Returns when so many slots are held at a limit's global meter.
    pub(crate) async fn until_held(&self, limit: &str, slots: u64) {
        self.until(async || self.gate.meter(limit, None).await.unwrap().in_flight == slots).await;
    }

    /// Returns when something is so.
    pub(crate) async fn until(&self, is_so: impl AsyncFn() -> bool) {
        let wait = async {
            while !is_so().await {
                yield_now().await;
            }
        };
        timeout(PATIENCE, wait).await.expect("it did not come to be so");
    }
}

/// Whether a server said that a limit refuses.
pub(crate) fn refused(error: &ClientError) -> Option<&str> {
    error.problem().filter(|_| error.is_refused())?.limit()
}
