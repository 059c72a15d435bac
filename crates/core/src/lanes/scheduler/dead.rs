//! The dead: calls that are not tried again, kept until they are revived, cancelled or too many.
//!
//! A dead call keeps its slot, its tolls and its body. It is in no order, does not count for the depth
//! of its queue, and keeps its lane from being forgotten.

use super::Scheduler;
use super::calls::CallSlot;
use super::meters::QueueSlot;
use crate::lanes::act::Revive;
use crate::lanes::call::{Attempts, CallId, Death, DeathCause, End};
use crate::lanes::effect::Effect;
use crate::lanes::queue::OnDead;
use crate::time::{Now, Timestamp};

impl Scheduler {
    /// Lets a call die whose start is settled. If its queue keeps no more, the one that died first is
    /// dropped.
    pub(super) fn die(&mut self, slot: CallSlot, attempts: Attempts, cause: DeathCause) {
        let (id, lane) = (self.calls[slot].id, self.calls[slot].lane);
        let queue = self.lanes[lane].queue;
        self.emit(Effect::Died { id, attempts, cause });
        self.emit(Effect::Ended { id, end: End::Dead });
        self.drop_dead(queue);
    }

    /// Drops those that died first until there are no more than the queue keeps.
    pub(super) fn drop_dead(&mut self, queue: QueueSlot) {
        while let Some(id) = self.lanes.queue(queue).first_beyond_bound() {
            self.emit(Effect::Ended { id, end: End::Dropped });
        }
    }

    /// Lets a dead call wait again; says whether it was one.
    pub(super) fn revive(&mut self, revive: &Revive, now: Now) -> bool {
        let found = self.calls.find(revive.call).filter(|slot| self.is_dead(*slot));
        let Some(slot) = found else { return false };
        let call = &self.calls[slot];
        let (arrival, not_before) = match revive.not_before {
            Some(due) if due > now.wall => (None, Some(due)),
            _ if self.lanes[call.lane].is_held => (Some(call.arrival), None),
            _ => (Some(self.arrivals), None),
        };
        self.emit(Effect::Revived { id: revive.call, arrival, not_before });
        true
    }

    /// Ends a dead call for good; says whether it was one.
    pub(super) fn delete(&mut self, id: CallId) -> bool {
        let is_dead = self.calls.find(id).is_some_and(|slot| self.is_dead(slot));
        if is_dead {
            self.emit(Effect::Ended { id, end: End::Cancelled });
        }
        is_dead
    }

    /// Whether a call is among the dead.
    pub(super) fn is_dead(&self, slot: CallSlot) -> bool {
        self.calls.death(&self.calls[slot]).is_some()
    }

    pub(super) fn died(&mut self, id: CallId, attempts: Attempts, cause: DeathCause) {
        let Some(slot) = self.calls.find(id) else { return };
        let at = self.now;
        let progress = self.calls.progress_mut(slot);
        (progress.attempts, progress.death) = (attempts, Some(Death { cause, at }));
    }

    /// Puts a call that is in no order any more among the dead.
    pub(super) fn lay_among_dead(&mut self, slot: CallSlot) {
        self.newest.remove(slot);
        let (lane, at) = (self.calls[slot].lane, self.now);
        if std::mem::take(&mut self.calls[slot].may_expire) {
            self.timers.expiries.remove(self.calls[slot].id);
        }
        let progress = self.calls.progress_mut(slot);
        progress.is_cancelled = false;
        progress.death.get_or_insert(Death { cause: DeathCause::GivenUp, at });
        let queue = self.lanes[lane].queue;
        let holds = self.lanes.queue(queue).spec.on_dead == OnDead::Hold;
        self.lanes[lane].is_held |= holds;
        self.count_dead(slot);
        self.touch(lane);
    }

    /// Notes a call among the dead of its queue and its lane.
    pub(super) fn count_dead(&mut self, slot: CallSlot) {
        let call = &self.calls[slot];
        let Some(death) = self.calls.death(call) else { return };
        let (id, lane) = (call.id, call.lane);
        self.lanes[lane].dead += 1;
        let queue = self.lanes[lane].queue;
        self.lanes.queue_mut(queue).dead.insert((death.at, id));
    }

    /// Takes a call from among the dead; says whether it was there.
    pub(super) fn take_from_dead(&mut self, slot: CallSlot) -> bool {
        let call = &self.calls[slot];
        let Some(death) = self.calls.death(call) else { return false };
        let (id, lane) = (call.id, call.lane);
        let queue = self.lanes[lane].queue;
        let was_there = self.lanes.queue_mut(queue).dead.remove(&(death.at, id));
        self.lanes[lane].dead -= u32::from(was_there);
        was_there
    }

    pub(super) fn revived(
        &mut self,
        id: CallId,
        arrival: Option<u64>,
        not_before: Option<Timestamp>,
    ) {
        let Some(slot) = self.calls.find(id) else { return };
        if !self.take_from_dead(slot) {
            return;
        }
        self.calls.forget_progress(slot);
        let lane = self.calls[slot].lane;
        let queue = self.lanes[lane].queue;
        self.lanes.queue_mut(queue).depth += 1;
        self.lanes[lane].is_held = false;
        self.touch(lane);
        if let Some(arrival) = arrival {
            return self.line_up(slot, arrival);
        }
        let call = &mut self.calls[slot];
        (call.arrival, call.has_joined) = (not_before.unwrap_or_default().as_nanos(), false);
        self.join_later(slot);
    }
}
