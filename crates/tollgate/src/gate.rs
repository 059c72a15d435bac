//! The door Rust users come through.

#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod backends;
mod busiest;
mod calls;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
mod connect;
mod consume;
mod events;
mod flows;
mod forecast;
mod limits;
mod meters;
mod operate;
#[cfg(feature = "push")]
mod push;
#[cfg(feature = "test-kit")]
mod test_kit;

pub use calls::Worker;
#[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
use connect::Sharing;
pub use events::Events;
pub use flows::{Flows, MachineWorker, TaskWorker};
pub use forecast::Outlook;
pub use meters::Load;
#[cfg(feature = "push")]
pub use push::Pusher;
#[cfg(feature = "test-kit")]
pub use test_kit::TestKit;

use crate::embedded::{Disk, HistorySettings, OpenError, RealDisk, StoreSettings};
use crate::shared::{Cells, Shared};
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;
use tollgate_core::Span;
use tollgate_core::contract::StoreError as KeptError;
use tollgate_engine::{
    Ahead, Clock, Engine, Error, Limiter, LimitsSettings, OutOfReach, Settings, StoreError,
};

/// One set of limits, and the calls that wait for them. Clones share it.
#[derive(Debug, Clone)]
pub struct Tollgate {
    backend: Backend,
    /// Other processes may have the same calls.
    has_nodes: bool,
}

/// Where limits and calls are.
#[derive(Debug, Clone)]
enum Backend {
    /// In this process: limits alone, at memory speed.
    Memory(Limiter),
    /// In a folder, or in a database that many nodes share.
    Kept(Engine<Store>),
    /// In a store that other processes share: limits alone.
    Shared(Engine<Shared>),
}

/// Asks the limiter in memory, or the engine of whichever store there is.
macro_rules! on_store {
    ($backend:expr, $limiter:ident => $in_memory:expr, $engine:ident => $kept:expr $(,)?) => {
        match $backend {
            $crate::gate::Backend::Memory($limiter) => $in_memory,
            $crate::gate::Backend::Kept($engine) => $kept,
            $crate::gate::Backend::Shared($engine) => $kept,
        }
    };
}
use on_store;

/// How a gate is made, where the defaults do not do.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Builder {
    settings: Settings,
    store: StoreSettings,
    out_of_reach: OutOfReach,
    #[cfg(any(feature = "nats", feature = "postgres", feature = "redis"))]
    sharing: Sharing,
}

impl Builder {
    /// Another clock: coarse for speed, manual for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Most meters that are kept in memory; a new partition beyond is refused.
    pub fn meters_max(mut self, meters: usize) -> Self {
        self.settings.meters_max = meters;
        self
    }

    /// Most calls that may wait at once in memory; one more is refused.
    pub fn waiting_max(mut self, calls: usize) -> Self {
        self.settings.waiting_max = calls;
        self
    }

    /// How much history is kept in a folder: what is older goes, and the oldest when there is more than
    /// so many bytes. A week and 1 GiB by default; with 0 bytes there is none.
    pub fn history(mut self, age: impl Into<Span>, bytes: u64) -> Self {
        self.store.history = HistorySettings { age: age.into(), bytes };
        self
    }

    /// What becomes of asks while a store that processes share is out of reach or full: they fail unless
    /// something else is chosen. One that has failed in another way is always told, for somebody must
    /// mend it.
    pub fn when_out_of_reach(mut self, choice: OutOfReach) -> Self {
        self.out_of_reach = choice;
        self
    }

    /// A gate in memory.
    pub fn memory(self) -> Tollgate {
        Tollgate { backend: Backend::Memory(Limiter::new(self.settings)), has_nodes: false }
    }

    /// A gate in a folder, made if there is none.
    pub async fn open(self, folder: impl AsRef<Path>) -> Result<Tollgate, GateError> {
        let folder = folder.as_ref().to_owned();
        self.open_disk(move || Ok(Arc::new(RealDisk::open(&folder)?))).await
    }

    /// A gate in a folder of your own making: a disk that fails on purpose, say.
    pub async fn open_on(self, disk: Arc<dyn Disk>) -> Result<Tollgate, GateError> {
        self.open_disk(move || Ok(disk)).await
    }

    /// Limits in cells of your own making: a store with a connection or a pool that your program has
    /// anyway, say.
    pub fn share(self, cells: Arc<dyn Cells>) -> Result<Tollgate, GateError> {
        let (clock, waiting_max) = (self.settings.clock, self.settings.waiting_max);
        let settings = LimitsSettings { waiting_max, out_of_reach: self.out_of_reach };
        let store = Shared::new(cells);
        let engine = Engine::of_limits_with(store.clone(), clock, settings)?;
        engine.heed(move || {
            let store = store.clone();
            async move { store.changed().await }
        });
        Ok(Tollgate { backend: Backend::Shared(engine), has_nodes: false })
    }

    async fn open_disk(
        self,
        disk: impl FnOnce() -> Result<Arc<dyn Disk>, OpenError> + Send + 'static,
    ) -> Result<Tollgate, GateError> {
        let (clock, settings) = (self.settings.clock, self.store);
        let source = clock.clone();
        // Reading it may take seconds: not on a thread that others need.
        let open = move || Store::on(disk()?, settings, Arc::new(move || source.both()));
        let opened = on_a_thread(open).await.map_err(StoreError::from)??;
        if let Some(torn) = &opened.report.torn {
            tracing::info!(?torn, "a commit that a crash interrupted was cut off");
        }
        let clock: Arc<dyn Clock> =
            if opened.ahead.is_zero() { clock } else { Arc::new(Ahead::new(clock, opened.ahead)) };
        let engine = Engine::start(opened.store, clock).await?;
        Ok(Tollgate { backend: Backend::Kept(engine), has_nodes: false })
    }
}

/// Runs what takes long on a thread of its own.
async fn on_a_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> Result<T, KeptError> {
    let (reply, answer) = tokio::sync::oneshot::channel();
    let failed = |reason: String| KeptError::Failed { reason };
    let spawned = std::thread::Builder::new().name("tollgate-aside".to_owned()).spawn(move || {
        // Nobody need wait for it.
        let _ = reply.send(run());
    });
    spawned.map_err(|error| failed(format!("no thread could be started: {error}")))?;
    answer.await.map_err(|_| failed("it panicked".to_owned()))
}

/// Why a gate could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// The folder cannot be had or read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What is in it cannot be used.
    #[error(transparent)]
    Use(#[from] Error),
    /// The url is of no store.
    #[error(
        "no store has urls of {scheme:?}: give one of redis://…, postgres://… or nats://…, or open a folder"
    )]
    NoStore {
        /// What it begins with.
        scheme: String,
    },
    /// The store is one that this program was built without.
    #[error(
        "this program was built without {feature}: enable that feature of the crate `tollgate`"
    )]
    NotBuilt {
        /// Which feature.
        feature: &'static str,
    },
}

impl GateError {
    /// Whether the store is out of reach or full, and may be there later.
    pub fn is_for_now(&self) -> bool {
        let Self::Use(Error::Store(StoreError::Kept(error))) = self else { return false };
        matches!(error, KeptError::Unreachable { .. } | KeptError::Full { .. })
    }
}

impl From<StoreError> for GateError {
    fn from(error: StoreError) -> Self {
        Self::Use(error.into())
    }
}

impl Tollgate {
    /// Limits in the memory of this process: exact, fast, and gone when it ends.
    pub fn memory() -> Self {
        Self::builder().memory()
    }

    /// Limits and calls in a folder, made if there is none: what was accepted lasts. One process at a
    /// time may have it.
    pub async fn open(folder: impl AsRef<Path>) -> Result<Self, GateError> {
        Self::builder().open(folder).await
    }

    /// Starts from the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Lets go of the folder, once all is settled that passes have let go of. Another handle, or a worker
    /// that runs, keeps it open until it is dropped, too.
    pub async fn shut_down(self) {
        let engine = match self.backend {
            Backend::Memory(_) => return,
            Backend::Shared(engine) => return engine.quiet().await,
            Backend::Kept(engine) => engine,
        };
        engine.quiet().await;
        // The last handle waits for the disk: not on a thread that others need.
        let (done, closed) = tokio::sync::oneshot::channel::<()>();
        let closing = move || drop((engine, done));
        if std::thread::Builder::new().name("tollgate-close".to_owned()).spawn(closing).is_ok() {
            // It is dropped unsent when the engine is.
            let _ = closed.await;
        }
    }

    /// The limiter underneath, for code that cannot await: the same limits, the same meters. `None` if
    /// they are kept elsewhere.
    pub fn limiter(&self) -> Option<&Limiter> {
        match &self.backend {
            Backend::Memory(limiter) => Some(limiter),
            Backend::Kept(_) | Backend::Shared(_) => None,
        }
    }
}
