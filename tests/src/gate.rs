//! A gate that is opened, as Rust users have it, on a clock that the test moves.

mod audit;
mod coming;
mod dead;
mod events;
mod gathering;
mod passes;
mod pushed;
mod restarts;
mod schedules;
mod totals;
mod uses;
mod workers;

use crate::kept::opened;
use std::future::Future;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tollgate::lanes::{CallId, Explanation, Order, QueueSpec, Reason};
use tollgate::{Call, Limit, ManualClock, Timestamp, Tollgate, toll};

/// Longest real time that a test waits for something that happens at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gate, the clock it goes by, and the folder that it is in, or that its schema is named after.
pub(crate) struct Opened {
    gate: Option<Tollgate>,
    pub(crate) clock: ManualClock,
    folder: TempDir,
}

impl Opened {
    pub(crate) async fn new() -> Self {
        let (clock, folder) = (ManualClock::new(), tempfile::tempdir().unwrap());
        let gate = opened(&folder, &clock).await;
        Self { gate: Some(gate), clock, folder }
    }

    /// With a strict queue `q`, and a limit `l`.
    async fn with(limit: Limit) -> Self {
        let opened = Self::new().await;
        opened.gate().queue("q", QueueSpec::default()).await.unwrap();
        opened.gate().limit("l", limit).await.unwrap();
        opened
    }

    pub(crate) fn gate(&self) -> &Tollgate {
        self.gate.as_ref().unwrap()
    }

    /// Closes the gate and opens it again.
    pub(crate) async fn reopen(mut self) -> Self {
        if let Some(gate) = self.gate.take() {
            patiently(gate.shut_down()).await;
        }
        let gate = opened(&self.folder, &self.clock).await;
        Self { gate: Some(gate), ..self }
    }

    async fn explain(&self, call: CallId) -> Option<Explanation> {
        self.gate().explain(call).await.unwrap()
    }

    /// Waits until a call is no more.
    async fn ends(&self, call: CallId) {
        patiently(async {
            while self.explain(call).await.is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Waits until a call is as it should be.
    async fn is_so(&self, call: CallId, mut is_so: impl FnMut(&Explanation) -> bool) {
        patiently(async {
            while !self.explain(call).await.is_some_and(|found| is_so(&found)) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Gives up, loudly, on what takes too long.
pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it happens at once")
}

/// A call of a lane, with a body.
fn call(lane: &str, body: &str) -> Call {
    Call::new(lane).body(body)
}

/// A call that pays one unit.
fn paying(lane: &str, body: &str) -> Call {
    call(lane, body).pays(toll("l", "p"))
}

/// Never ends at the first attempt, and says when it is dropped there.
pub(crate) fn hang_at_first(
    attempt: u32,
    told: mpsc::UnboundedSender<()>,
) -> impl Future<Output = ()> + Send {
    let guard = Dropped(told);
    async move {
        if attempt == 1 {
            std::future::pending::<()>().await;
        }
        std::mem::forget(guard);
    }
}

/// Says that it was dropped.
struct Dropped(mpsc::UnboundedSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

fn is_in_flight(found: &Explanation) -> bool {
    found.reasons.iter().any(|reason| matches!(reason, Reason::InFlight { .. }))
}

/// When the lease of a call in flight ends.
fn expires(found: &Explanation) -> Timestamp {
    let expiry = found.reasons.iter().find_map(|reason| match reason {
        Reason::InFlight { expires } => Some(*expires),
        _ => None,
    });
    expiry.expect("in flight")
}

fn parallel(count: u32) -> QueueSpec {
    QueueSpec { order: Order::Parallel(count), ..QueueSpec::default() }
}

/// A worker that can be told to stop.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<tollgate::Worked, tollgate::Error>>,
}

impl Running {
    async fn stop(self) -> tollgate::Worked {
        drop(self.stop);
        patiently(self.task).await.unwrap().unwrap()
    }
}
