//! The store: the contracts of meters and lanes, kept in memory by one thread and in a folder by its
//! log. An answer of success is sent after the sync.

mod backup;
mod bodies;
mod check;
mod checkpoint;
mod condition;
mod contract;
mod events;
mod export;
mod inbox;
mod open;
mod records;
mod replay;
mod segments;
mod slices;
mod state;
#[cfg(test)]
mod tests;
mod totals;
mod upkeep;
mod writer;

pub use backup::{Copied, CopyError, backup, restore};
pub use check::{CheckError, Checked, CheckedCheckpoint, Contents, check, contents};
pub use export::{ExportError, Exported, ImportError, Imported, export, import};
pub use open::{OpenError, Opened, StoreSettings};

use self::events::Listeners;
use self::inbox::{Inbox, Kind, Task};
use self::state::{BodyAt, State};
use super::history::History;
use super::log::{LogError, Reader};
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use tokio::sync::{Semaphore, oneshot};
use tollgate_core::contract::{Answer, StoreError, Woken};
use tollgate_core::lanes::{CallId, Payload};
use tollgate_core::{Now, QueueName, Timestamp};

/// Where the time comes from: the machine's clocks, or a test's.
pub type TimeSource = Arc<dyn Fn() -> Now + Send + Sync>;

/// Most commands that wait for an answer, of up to [`COMMAND_BYTES`] each; a larger one counts for
/// several. Whoever comes then waits to be let in.
const COMMANDS_MAX: usize = 65_536;
const COMMAND_BYTES: usize = 16 << 10;

/// A folder of calls, limits and meters. Clones are the same store; when the last one is dropped,
/// what was asked for is finished and the folder let go.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
}

struct Shared {
    inbox: Arc<Inbox>,
    listeners: Listeners,
    reader: Reader,
    now: TimeSource,
    room: Arc<Semaphore>,
    /// Taken only by `drop`.
    thread: Option<JoinHandle<()>>,
    /// After the thread, which tells it what happens.
    history: Option<History>,
}

impl Embedded {
    /// Lets the writer do something, and waits for the answer.
    async fn tell<T: Send + 'static>(
        &self,
        kind: Kind,
        act: impl FnOnce(&mut State, Now) -> T + Send + 'static,
    ) -> Answer<T> {
        self.tell_of(kind, 0, act).await
    }

    /// As [`Self::tell`], with a command that holds so many bytes.
    async fn tell_of<T: Send + 'static>(
        &self,
        kind: Kind,
        bytes: usize,
        act: impl FnOnce(&mut State, Now) -> T + Send + 'static,
    ) -> Answer<T> {
        let counts_for = (1 + bytes / COMMAND_BYTES).min(COMMANDS_MAX);
        let counts_for = u32::try_from(counts_for).unwrap_or(1);
        let room = self.shared.room.clone().acquire_many_owned(counts_for).await;
        let permit = room.map_err(|_| closed())?;
        let (reply, answer) = oneshot::channel();
        self.shared.inbox.command(Box::new(Task { kind, act, reply, permit }));
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// How many events history has dropped since the store was opened: those that came faster than the
    /// disk took them, or that it refused.
    pub fn history_dropped(&self) -> u64 {
        self.shared.history.as_ref().map_or(0, History::dropped)
    }

    /// Whether it takes writes: what the last one found. One that finds no room is tried again every
    /// quarter of a second, so that this is soon true again once there is some. Costs no write.
    pub fn takes_writes(&self) -> Answer<()> {
        self.shared.listeners.condition.told()
    }

    /// History, with all in it that was answered before.
    async fn history_now(&self) -> Answer<Option<&History>> {
        let Some(history) = &self.shared.history else { return Ok(None) };
        self.tell(Kind::Change, |state, now| state.scheduler.advance(now)).await?;
        history.flushed().await;
        Ok(Some(history))
    }

    /// The body of a call in flight; `None` if it ended meanwhile.
    async fn body(&self, id: CallId, mut at: BodyAt) -> Answer<Option<Payload>> {
        loop {
            let position = match at {
                BodyAt::Here(body) => return Ok(Some(body)),
                BodyAt::Gone => return Ok(None),
                BodyAt::Log(position) => position,
            };
            match records::payload(&self.shared.reader, position) {
                Ok(body) => return Ok(Some(body)),
                // It moved, and the segment it was in is gone.
                Err(LogError::Absent { .. }) => {}
                Err(error) => return Err(StoreError::Failed { reason: error.to_string() }),
            }
            at = self.tell(Kind::Look, move |state, _| state.body(id)).await?;
            if matches!(at, BodyAt::Log(again) if again == position) {
                let reason = format!("the body of call {} is not where it should be", id.0);
                return Err(StoreError::Failed { reason });
            }
        }
    }
}

fn closed() -> StoreError {
    StoreError::Failed { reason: "it failed, or is closed".to_owned() }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // It ends when all is written; if it panicked, there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

/// What whoever drives the store is to be told, and who waits to hear of it.
#[derive(Default)]
struct Wakes {
    waiting: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    queues: BTreeSet<QueueName>,
    due: Option<Timestamp>,
    wakers: Vec<Waker>,
    /// Nobody will be woken any more.
    has_ended: bool,
}

impl Wakes {
    fn add(&self, queues: Vec<QueueName>, due: Option<Timestamp>) {
        if queues.is_empty() && due.is_none() {
            return;
        }
        let mut waiting = self.lock();
        waiting.queues.extend(queues);
        // The newest is the soonest, or all before it have passed.
        waiting.due = due.or(waiting.due);
        let wakers = std::mem::take(&mut waiting.wakers);
        // Whoever is woken would wait for the lock.
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.wakers.drain(..).for_each(Waker::wake);
    }

    async fn take(&self) -> Answer<Woken> {
        poll_fn(|context| {
            let mut waiting = self.lock();
            if !waiting.queues.is_empty() || waiting.due.is_some() {
                let queues = std::mem::take(&mut waiting.queues).into_iter().collect();
                return Poll::Ready(Ok(Woken { queues, due: waiting.due.take() }));
            }
            if waiting.has_ended {
                return Poll::Ready(Err(closed()));
            }
            waiting.wakers.retain(|waker| !waker.will_wake(context.waker()));
            waiting.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
