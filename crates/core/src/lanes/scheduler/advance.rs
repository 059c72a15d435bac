//! The passage of time: what is due happens, in a fixed order.

use super::ascending::Ascending;
use super::calls::CallSlot;
use super::meters::QueueSlot;
use super::wakes::Wakes;
use super::{Hashing, Scheduler};
use crate::lanes::call::{Attempts, CallId, DeathCause, End, Lease};
use crate::lanes::effect::Effect;
use crate::name::Key;
use crate::time::{Now, Timestamp};
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap};

/// What happens at which instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Timers {
    /// On the wall clock: calls that join their lanes.
    pub(super) joins: BTreeSet<(Timestamp, CallId)>,
    /// On the wall clock: calls that end unstarted.
    pub(super) expiries: Expiries,
    /// Leases, by token.
    pub(super) leases: Ascending<(Timestamp, u64, CallSlot)>,
    /// Calls that have rested.
    pub(super) rests: BTreeSet<(Timestamp, CallId)>,
    pub(super) dedupes: BTreeSet<(Timestamp, QueueSlot, Key)>,
    /// Receipts that were settled and would have expired.
    pub(super) receipts: BTreeSet<(Timestamp, u64)>,
    /// Meters that a queue looks at again.
    pub(super) wakes: Wakes,
}

/// Calls that end unstarted, and when; forgotten when they end or an attempt of them counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Expiries {
    by_time: BTreeSet<(Timestamp, CallId)>,
    by_call: HashMap<CallId, Timestamp, Hashing>,
}

impl Expiries {
    pub(super) fn insert(&mut self, id: CallId, expires: Timestamp) {
        self.by_time.insert((expires, id));
        self.by_call.insert(id, expires);
    }

    /// It was started: it does not end so, unless it is handed back as one that was not.
    pub(super) fn suspend(&mut self, id: CallId) {
        if let Some(expires) = self.by_call.get(&id) {
            self.by_time.remove(&(*expires, id));
        }
    }

    pub(super) fn resume(&mut self, id: CallId) {
        if let Some(expires) = self.by_call.get(&id) {
            self.by_time.insert((*expires, id));
        }
    }

    pub(super) fn remove(&mut self, id: CallId) {
        if let Some(expires) = self.by_call.remove(&id) {
            self.by_time.remove(&(expires, id));
        }
    }

    pub(super) fn of(&self, id: CallId) -> Option<Timestamp> {
        self.by_call.get(&id).copied()
    }

    fn first(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(expires, _)| *expires)
    }

    fn pop_due(&mut self, wall: Timestamp) -> Option<CallId> {
        let (_, id) = pop_due(&mut self.by_time, |(expires, _)| *expires <= wall)?;
        self.by_call.remove(&id);
        Some(id)
    }
}

impl Timers {
    /// Whether any is due, of those that are not a meter's.
    fn are_due(&self, now: Now) -> bool {
        let Self { joins, expiries, leases, rests, dedupes, receipts, wakes: _ } = self;
        joins.first().is_some_and(|entry| entry.0 <= now.wall)
            || expiries.first().is_some_and(|expires| expires <= now.wall)
            || leases.first().is_some_and(|entry| entry.0 <= now.at)
            || rests.first().is_some_and(|entry| entry.0 <= now.at)
            || dedupes.first().is_some_and(|entry| entry.0 <= now.at)
            || receipts.first().is_some_and(|entry| entry.0 <= now.at)
    }
}

impl Scheduler {
    /// Everything that is due by now happens.
    pub fn advance(&mut self, now: Now) {
        self.now = self.now.max(now.at);
        self.present = now;
        if !self.served.is_empty() && self.level() && self.shares_asks {
            self.levelled.push(self.effects.len());
        }
        if self.timers.are_due(now) {
            self.let_happen(now);
        }
        self.rehead();
        if !self.expected.is_empty() {
            self.end_expecting(now);
        }
        if self.timers.wakes.next().is_some_and(|next| next <= now.at) {
            self.end_sleeping(now);
        }
        self.forget(now);
    }

    /// All timers but those of meters, in a fixed order.
    #[cold]
    fn let_happen(&mut self, now: Now) {
        while let Some(id) = pop_due(&mut self.timers.joins, |entry| entry.0 <= now.wall) {
            self.join(id.1, id.0);
        }
        while let Some(id) = self.timers.expiries.pop_due(now.wall) {
            self.expire(id);
        }
        while let Some(lease) = self.timers.leases.pop_if(|entry| entry.0 <= now.at) {
            self.crash(lease.2, lease.1, now);
        }
        while let Some(rest) = pop_due(&mut self.timers.rests, |entry| entry.0 <= now.at) {
            self.rested(rest.1, rest.0);
        }
        while let Some(dedupe) = pop_due(&mut self.timers.dedupes, |entry| entry.0 <= now.at) {
            let (until, queue, key) = dedupe;
            let key = (queue, key);
            // Remembered again since, it is remembered for longer.
            if self.dedupes.get(&key).is_some_and(|(_, last)| *last == until) {
                self.dedupes.remove(&key);
            }
        }
        while let Some(receipt) = pop_due(&mut self.timers.receipts, |entry| entry.0 <= now.at) {
            self.settled.remove(&receipt.1);
        }
    }

    fn end_sleeping(&mut self, now: Now) {
        for wake in self.timers.wakes.take_due(now.at) {
            if let Some(crowd) = self.meters[wake.1].crowd_mut(wake.2) {
                crowd.try_again(wake.0);
                crowd.wake_at(None);
            }
            self.offer(wake.1, wake.2);
        }
    }

    /// Whether something is due by now that changes what lasts: else [`Self::advance`] changes nothing of it.
    pub fn is_due(&self, now: Now) -> bool {
        let Timers { joins, expiries, leases, rests, dedupes: _, receipts: _, wakes: _ } =
            &self.timers;
        let walls = [joins.first().map(|entry| entry.0), expiries.first()];
        let limits = [leases.first().map(|entry| entry.0), rests.first().map(|entry| entry.0)];
        walls.into_iter().flatten().any(|wall| wall <= now.wall)
            || limits.into_iter().flatten().any(|at| at <= now.at)
    }

    /// When something is due next, on limit time, as the wall clock stands now.
    pub fn next_due(&self, now: Now) -> Option<Timestamp> {
        let Timers { joins, expiries, leases, rests, dedupes: _, receipts: _, wakes } =
            &self.timers;
        let walls = [joins.first().map(|entry| entry.0), expiries.first()];
        let walls = walls.into_iter().flatten().map(|wall| now.at.plus(wall.since(now.wall)));
        let (leases, rests) =
            (leases.first().map(|entry| entry.0), rests.first().map(|entry| entry.0));
        let limits = [leases, rests, wakes.next(), self.next_unexpected()];
        walls.chain(limits.into_iter().flatten()).min()
    }

    fn join(&mut self, id: CallId, due: Timestamp) {
        let found = self.calls.find(id);
        // One that joined, died and was revived may be due at another time.
        if found.is_some_and(|slot| self.calls[slot].due() == Some(due)) {
            self.emit(Effect::Joined { id, arrival: self.arrivals });
        }
    }

    fn expire(&mut self, id: CallId) {
        let found = self.calls.find(id);
        let waits = |slot| self.calls.flight(&self.calls[slot]).is_none();
        if found.is_some_and(|slot| self.calls[slot].may_expire && waits(slot)) {
            self.emit(Effect::Ended { id, end: End::Expired });
        }
    }

    fn crash(&mut self, slot: CallSlot, token: u64, now: Now) {
        let call = &self.calls[slot];
        let lease = Lease { call: call.id, token };
        let mut attempts = self.calls.attempts(call);
        attempts.crashes += 1;
        let crashes_max = self.lanes.queue(self.lanes[call.lane].queue).spec.crashes_max;
        self.count_crashed(slot);
        self.emit(Effect::Settled { lease, actual: SmallVec::new(), now, report: [].into() });
        let death = (attempts.crashes >= crashes_max).then_some(DeathCause::Crashed);
        self.come_back(slot, attempts, death, now.at);
    }

    fn rested(&mut self, id: CallId, until: Timestamp) {
        let Some(slot) = self.calls.find(id) else { return };
        let progress = self.calls.progress(&self.calls[slot]);
        if progress.is_none_or(|progress| progress.rests_until != until) {
            return;
        }
        let (rank, lane) = (self.calls[slot].rank(), self.calls[slot].lane);
        if self.lanes[lane].take(slot, &self.calls) {
            self.lanes[lane].come_back((rank, slot), false);
            self.touch(lane);
        }
    }

    /// A start is over and the call is not: it waits again, or ends, or dies of something.
    pub(super) fn come_back(
        &mut self,
        slot: CallSlot,
        attempts: Attempts,
        death: Option<DeathCause>,
        eligible: Timestamp,
    ) {
        let call = &self.calls[slot];
        let id = call.id;
        let progress = self.calls.progress(call);
        let is_cancelled = progress.is_some_and(|progress| progress.is_cancelled);
        match (is_cancelled, death) {
            (true, _) => self.emit(Effect::Ended { id, end: End::Cancelled }),
            (false, Some(cause)) => self.die(slot, attempts, cause),
            (false, None) => self.emit(Effect::CameBack { id, attempts, eligible }),
        }
    }
}

fn pop_due<T: Ord>(timers: &mut BTreeSet<T>, is_due: impl FnOnce(&T) -> bool) -> Option<T> {
    if is_due(timers.first()?) { timers.pop_first() } else { None }
}
