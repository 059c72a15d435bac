//! Which queues have their calls pushed, so that a call that cannot be made is refused at the door.

use super::{Engine, Parts, queue_name};
use crate::envelope::{Delivery, Envelope};
use crate::error::{AskError, Error};
use parking_lot::RwLock;
use std::collections::HashMap;
use tollgate_core::QueueName;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{Act, NewCall, QueueSpec};

/// Who makes the calls of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// Whoever claims them.
    Workers,
    /// Push, to where the queue says unless the call does.
    Push,
    /// Push, to where each call says.
    PushWhereCallsSay,
}

/// Who makes the calls of which queue, as far as that was asked.
///
/// It is what the store has: changes of queues that are made here are forgotten here under the same lock
/// under which this is filled, and those of other nodes as soon as they are heard of. So nothing is kept
/// from before a change that is known here. A change that comes between this and the act that was checked is as one right after it:
/// calls that wait already outlive it, too, and whoever makes them finds what there is then.
// Invariant: it has no queue that the store does not have, and so no more of them.
#[derive(Default)]
pub(super) struct Pushed(RwLock<HashMap<QueueName, Maker>>);

impl Pushed {
    /// A queue was changed or removed, or may have been.
    pub(super) fn forget(&self, queue: &QueueName) {
        self.0.write().remove(queue);
    }

    /// Any queue may have been.
    pub(super) fn forget_all(&self) {
        self.0.write().clear();
    }

    /// The queues of an act that are to be looked up first: none, as a rule.
    fn unknown(&self, act: &Act) -> Vec<QueueName> {
        let known = self.0.read();
        let mut unknown: Vec<QueueName> = Vec::new();
        for NewCall { queue, .. } in act.new_calls() {
            if !known.contains_key(queue) && unknown.last() != Some(queue) {
                unknown.push(queue.clone());
            }
        }
        unknown
    }

    /// Looks at the calls of an act; those of a queue that is not there are for the store to refuse.
    fn check(&self, act: &Act) -> Result<(), AskError> {
        let known = self.0.read();
        let mut calls = act.new_calls().enumerate();
        calls.try_for_each(|(at, call)| match known.get(&call.queue) {
            Some(maker) => maker.check(call, at),
            None => Ok(()),
        })
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// Whether Tollgate delivers the calls of a queue itself; `None` if there is no such queue. It costs no
    /// look into the store once it was asked.
    pub async fn is_pushed(&self, queue: &str) -> Result<Option<bool>, Error> {
        let maker = self.parts.maker(&queue_name(queue)?).await?;
        Ok(maker.map(|maker| maker != Maker::Workers))
    }
}

impl<S: Lanes> Parts<S> {
    /// Refuses an act with calls that say where they go though nobody would look, or that do not though
    /// somebody would have to know.
    pub(super) async fn check_pushed(&self, act: &Act) -> Result<(), Error> {
        if act.new_calls().next().is_none() {
            return Ok(());
        }
        for queue in self.pushed.unknown(act) {
            // The store refuses the act for that: the others need not be looked up.
            if self.maker(&queue).await?.is_none() {
                return Ok(());
            }
        }
        Ok(self.pushed.check(act)?)
    }

    /// Who makes the calls of a queue; `None` if there is no such queue.
    async fn maker(&self, queue: &QueueName) -> Result<Option<Maker>, Error> {
        let known = self.pushed.0.read().get(queue).copied();
        if known.is_some() {
            return Ok(known);
        }
        let _alone = self.known.changing.lock().await;
        let Some(found) = self.queue_named(queue).await? else { return Ok(None) };
        let maker = Maker::of(&found.spec)?;
        self.pushed.0.write().insert(queue.clone(), maker);
        Ok(Some(maker))
    }
}

impl Maker {
    fn of(spec: &QueueSpec) -> Result<Self, Error> {
        let Some(delivery) = &spec.delivery else { return Ok(Self::Workers) };
        let delivery = Delivery::from_bytes(delivery)?;
        Ok(if delivery.destination.is_some() { Self::Push } else { Self::PushWhereCallsSay })
    }

    fn check(self, call: &NewCall, at: usize) -> Result<(), AskError> {
        // One that cannot be read says nothing.
        let own = || Envelope::of(&call.payload).unwrap_or_default().delivery;
        let queue = || call.queue.as_str().to_owned();
        match self {
            Self::Workers if call.payload.envelope().is_empty() => Ok(()),
            Self::Workers if own() != Delivery::default() => {
                Err(AskError::QueueNotPushed { at, queue: queue() })
            }
            Self::PushWhereCallsSay if own().destination.is_none() => {
                Err(AskError::DestinationMissing { at, queue: queue() })
            }
            _ => Ok(()),
        }
    }
}
