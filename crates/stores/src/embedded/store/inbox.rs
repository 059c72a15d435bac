//! What waits for the writer: commands from anywhere, and news from the committer.

use super::slices::Ahead;
use super::state::State;
use super::upkeep::UpkeepNews;
use crate::embedded::committer::Refused;
use crate::embedded::log::BatchPlace;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{Act, CallId, Event, Lease, Settle, Settlement};

/// When a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// At once: it changes nothing.
    Look,
    /// When all that it saw and did lasts.
    Change,
    /// As [`Self::Change`], or at once if a slice covers it.
    Consume,
    /// As [`Self::Change`], and done at once while the disk is full: if it is lost in a crash, a lease
    /// ends sooner.
    Renew,
}

/// Sends an answer, or the reason why there is none.
pub(super) type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Something to be done by the writer, for whoever waits for the answer.
pub(super) trait Command: Send {
    fn kind(&self) -> Kind;

    /// Does it; the answer is sent later.
    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply;

    /// Answers without doing it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A command that is a function of the state.
pub(super) struct Task<T, F> {
    pub(super) kind: Kind,
    pub(super) act: F,
    pub(super) reply: oneshot::Sender<Answer<T>>,
    /// Its place among the commands that may wait, held until it is answered.
    pub(super) permit: OwnedSemaphorePermit,
}

impl<T, F> Command for Task<T, F>
where
    T: Send + 'static,
    F: FnOnce(&mut State, Now) -> T + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply {
        let Self { act, reply, permit, .. } = *self;
        let answer = act(state, now);
        Box::new(move |outcome| {
            // Whoever asked may have gone.
            let _ = reply.send(outcome.map(|()| answer));
            drop(permit);
        })
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

/// Calls that were started for someone, until that one has them. Whatever becomes of the answer
/// before (nobody waits for it, or it is dropped unread), they are handed back as if they had never
/// started: nobody will settle them.
pub(super) struct HandedOut {
    pub(super) inbox: Arc<Inbox>,
    pub(super) leases: Vec<Lease>,
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        if !self.leases.is_empty() {
            self.inbox.command(Box::new(HandBack(std::mem::take(&mut self.leases))));
        }
    }
}

/// A command that nobody waits for.
struct HandBack(Vec<Lease>);

impl Command for HandBack {
    fn kind(&self) -> Kind {
        Kind::Change
    }

    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply {
        for lease in self.0 {
            let settle = vec![Settle::new(lease, Settlement::Release)];
            // Lost in between, it waits already.
            let _ = state.scheduler.act(Act { settle, ..Act::default() }, now);
        }
        Box::new(|_| ())
    }

    // Their leases run out.
    fn refuse(self: Box<Self>, _: StoreError) {}
}

/// What went into one batch, besides its records.
#[derive(Default)]
pub(super) struct Cargo {
    pub(super) replies: Vec<Reply>,
    /// Calls whose bodies are in the batch, with the offsets of their records.
    pub(super) bodies: Vec<(CallId, usize)>,
    /// Where bodies were that are needed no more once the batch lasts.
    pub(super) freed: Vec<u64>,
    /// What was consumed and answered already.
    pub(super) ahead: Ahead,
    /// What happened, to be told once the batch lasts.
    pub(super) events: Vec<Event>,
}

/// What the committer has to say.
pub(super) enum News {
    /// A batch of so many bytes lasts, so long after it was handed over, and is being answered.
    Committed { place: BatchPlace, bytes: usize, took: Duration, cargo: Cargo },
    /// A batch was not committed.
    Refused(Refused, Cargo),
    /// From the upkeep.
    Upkeep(UpkeepNews),
}

impl News {
    /// It does not wait for the next command.
    fn is_urgent(&self) -> bool {
        !matches!(self, Self::Committed { .. })
    }
}

/// What the writer expects of the committer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    /// Nothing hangs on it.
    Sometime,
    /// Someone waits for it.
    Soon,
}

/// Where commands and news wait.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) commands: VecDeque<Box<dyn Command>>,
    pub(super) news: VecDeque<News>,
    /// Nobody is left who could send commands.
    pub(super) is_closed: bool,
    /// Nobody is left who could do them.
    has_ended: bool,
    /// Nothing hangs on what was committed: the writer hears of it with the next command.
    is_patient: bool,
}

impl Inbox {
    pub(super) fn command(&self, command: Box<dyn Command>) {
        let mut waiting = self.lock();
        // Dropped, it tells whoever waits that there is no answer.
        if waiting.has_ended {
            return;
        }
        waiting.commands.push_back(command);
        // The writer would wait for the lock.
        drop(waiting);
        self.arrived.notify_one();
    }

    /// The writer has ended: whoever waits for an answer is told that there is none.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.commands.clear();
    }

    pub(super) fn news(&self, news: News) {
        let mut waiting = self.lock();
        let is_urgent = !waiting.is_patient || news.is_urgent();
        waiting.news.push_back(news);
        drop(waiting);
        if is_urgent {
            self.arrived.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Takes all there is; waits until there is something, or for `at_most`. Once it is closed, that
    /// is something, unless news are expected.
    pub(super) fn take(&self, at_most: Option<Duration>, expected: Expected) -> Waiting {
        let is_patient = expected == Expected::Sometime;
        let is_empty = |waiting: &mut Waiting| {
            // Whoever closes waits for the end.
            let is_patient = is_patient && !waiting.is_closed;
            waiting.is_patient = is_patient;
            let is_open = !waiting.is_closed || expected != Expected::Nothing;
            let has_news = waiting.news.iter().any(|news| !is_patient || news.is_urgent());
            waiting.commands.is_empty() && !has_news && is_open
        };
        let waiting = self.lock();
        let mut waiting = match at_most {
            None => {
                self.arrived.wait_while(waiting, is_empty).unwrap_or_else(PoisonError::into_inner)
            }
            Some(at_most) => {
                let woken = self.arrived.wait_timeout_while(waiting, at_most, is_empty);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        let Waiting { is_closed, has_ended, .. } = *waiting;
        let empty = Waiting { is_closed, has_ended, ..Waiting::default() };
        std::mem::replace(&mut *waiting, empty)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
