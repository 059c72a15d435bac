//! Commands: what a store's home is asked to do.

use super::home::Commands;
use super::state::State;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::{Act, Lease, Settle, Settlement, Started};
use tollgate_core::{Now, Timestamp};

/// When a command is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// At once: it changes nothing.
    Look,
    /// When all that it saw and did lasts.
    Change,
    /// As [`Self::Change`], and by choice a moment later if it finds nothing.
    Claim,
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

    /// Does some of it, if it is long; says whether it did. What has changed may be written down before the rest
    /// is done, at the same instant.
    fn do_some(&mut self, _: &mut State, _: Now) -> bool {
        false
    }

    /// Does it, or the rest of it; the answer is sent later.
    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply;

    /// Does it, unless it would rather be done again in a moment: then it comes back.
    fn attempt(self: Box<Self>, state: &mut State, now: Now) -> Result<Reply, Box<dyn Command>> {
        Ok(self.perform(state, now))
    }

    /// Whether it is better done later than not at all.
    #[cfg(feature = "postgres")]
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
    pub(crate) starts: Vec<Unowned>,
}

/// A start that nobody has.
#[derive(Debug, Clone)]
pub(crate) struct Unowned {
    pub(crate) lease: Lease,
    pub(crate) at: Timestamp,
    /// Why nobody will ever read the body, if that is so: the call is given up. Handed back it would come again and
    /// again, and keep those behind it waiting.
    pub(crate) damage: Option<String>,
}

impl Unowned {
    pub(crate) fn of(started: &Started) -> Self {
        Self { lease: started.lease, at: started.at, damage: None }
    }

    fn settle(&self) -> Settle {
        match &self.damage {
            None => Settle::new(self.lease, Settlement::Release),
            Some(damage) => {
                let report = damage.as_bytes().into();
                Settle { report, ..Settle::new(self.lease, Settlement::Dead) }
            }
        }
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        if !self.starts.is_empty() {
            let (commands, starts) = (self.commands.clone(), std::mem::take(&mut self.starts));
            self.commands.take(Box::new(HandBack { commands, starts, tries: HAND_BACK_TRIES }));
        }
    }
}

/// How often it is tried to hand calls back. A store that is closed while its database takes nothing is not
/// to go on for ever.
const HAND_BACK_TRIES: u32 = 20;

/// A command that nobody waits for.
struct HandBack {
    commands: Arc<dyn Commands>,
    starts: Vec<Unowned>,
    tries: u32,
}

impl Command for HandBack {
    fn kind(&self) -> Kind {
        Kind::Change
    }

    fn perform(self: Box<Self>, state: &mut State, now: Now) -> Reply {
        let Self { commands, starts, tries } = *self;
        for start in &starts {
            // A start that did not last was never there, and another may have a lease of the same name.
            if state.scheduler.started_at(start.lease) != Some(start.at) {
                continue;
            }
            let settle = vec![start.settle()];
            // Lost in between, it waits already.
            let _ = state.scheduler.act(Act { settle, ..Act::default() }, now);
        }
        Box::new(move |outcome| {
            // It was undone with all that was done beside it: they are still held.
            if outcome.is_err() && tries > 1 {
                let again = HandBack { commands: commands.clone(), starts, tries: tries - 1 };
                commands.take(Box::new(again));
            }
        })
    }

    #[cfg(feature = "postgres")]
    fn may_wait(&self) -> bool {
        true
    }

    // Their leases run out.
    fn refuse(self: Box<Self>, _: StoreError) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tollgate_core::lanes::CallId;

    #[derive(Default)]
    struct Taken(Mutex<Vec<Box<dyn Command>>>);

    impl Commands for Taken {
        fn take(&self, command: Box<dyn Command>) {
            self.0.lock().unwrap().push(command);
        }

        fn announce(&self) {}
    }

    #[test]
    fn calls_are_handed_back_again_if_that_did_not_last_and_not_for_ever() {
        let (taken, mut state) = (Arc::<Taken>::default(), State::without_slices());
        let now = Now::both(Timestamp::default());
        let lost = || StoreError::Unreachable { reason: "it is gone".to_owned() };
        let lease = Lease { call: CallId(1), token: 1 };
        let starts = vec![Unowned { lease, at: now.at, damage: None }];
        drop(HandedOut { commands: taken.clone(), starts });
        let mut tries = 0;
        loop {
            let Some(command) = taken.0.lock().unwrap().pop() else { break };
            let reply = command.perform(&mut state, now);
            reply(Err(lost()));
            tries += 1;
        }
        assert_eq!(tries, HAND_BACK_TRIES);
    }
}
