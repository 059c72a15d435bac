//! Commands: what a store's home is asked to do.

use super::home::Commands;
use super::state::State;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{Act, Lease, Settle, Settlement};
use tollgate_core::{Now, Timestamp};

/// When a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// At once: it changes nothing.
    Look,
    /// When all that it saw and did lasts.
    Change,
    /// As [`Self::Change`] if something is due that changes what lasts, and as [`Self::Look`] if not.
    Advance,
    /// As [`Self::Change`], or at once if a slice covers it.
    Consume,
    /// As [`Self::Change`], and done at once while the disk is full: if it is lost in a crash, a lease
    /// ends sooner.
    Renew,
}

/// Sends an answer, or the reason why there is none.
pub(crate) type Reply = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Something to be done by the home, for whoever waits for the answer.
pub(crate) trait Command: Send {
    fn kind(&self) -> Kind;

    /// Does it; the answer is sent later.
    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply;

    /// Whether it is better done later than not at all.
    fn may_wait(&self) -> bool {
        false
    }

    /// Answers without doing it.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// A command that is a function of the state.
pub(crate) struct Task<T, F> {
    pub(crate) kind: Kind,
    pub(crate) act: F,
    pub(crate) reply: oneshot::Sender<Answer<T>>,
    /// Its place among the commands that may wait, held until it is answered.
    pub(crate) permit: OwnedSemaphorePermit,
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
pub(crate) struct HandedOut {
    pub(crate) commands: Arc<dyn Commands>,
    /// With when each was started.
    pub(crate) leases: Vec<(Lease, Timestamp)>,
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        if !self.leases.is_empty() {
            self.commands.take(Box::new(HandBack(std::mem::take(&mut self.leases))));
        }
    }
}

/// A command that nobody waits for.
struct HandBack(Vec<(Lease, Timestamp)>);

impl Command for HandBack {
    fn kind(&self) -> Kind {
        Kind::Change
    }

    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply {
        for (lease, at) in self.0 {
            // A start that did not last was never there, and another may have a lease of the same name.
            if state.scheduler.started_at(lease) != Some(at) {
                continue;
            }
            let settle = vec![Settle::new(lease, Settlement::Release)];
            // Lost in between, it waits already.
            let _ = state.scheduler.act(Act { settle, ..Act::default() }, now);
        }
        Box::new(|_| ())
    }

    fn may_wait(&self) -> bool {
        true
    }

    // Their leases run out.
    fn refuse(self: Box<Self>, _: StoreError) {}
}
