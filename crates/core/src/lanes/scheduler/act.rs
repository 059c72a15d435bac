//! Acts: done whole, once they are checked whole.

use super::Scheduler;
use super::calls::{CallSlot, Line};
use super::check::Checked;
use super::meters::QueueSlot;
use crate::lanes::act::{
    Act, ActError, Acted, Count, Door, Only, Revision, Settle, Settlement, Write,
};
use crate::lanes::call::{CallId, DeathCause, End, Lease, NewCall};
use crate::lanes::effect::Effect;
use crate::lanes::queue_toll::QueueToll;
use crate::name::Key;
use crate::rule::Rule;
use crate::time::{Now, Span};
use smallvec::SmallVec;

impl Scheduler {
    /// Changes all that an act says, or nothing.
    pub fn act(&mut self, mut act: Act, now: Now) -> Result<Acted, ActError> {
        self.make(&mut act, now)
    }

    /// Changes all that an act says, or nothing: then it is as it was.
    pub fn make(&mut self, act: &mut Act, now: Now) -> Result<Acted, ActError> {
        self.advance(now);
        match act.only() {
            Some(Only::Call) => self.make_call(act, now),
            Some(Only::Settlement) => self.make_settlement(act, now),
            None => self.make_any(act, now),
        }
    }

    /// Makes an act of whatever it has, once all is done that was due by `now`.
    pub(in crate::lanes) fn make_any(
        &mut self,
        act: &mut Act,
        now: Now,
    ) -> Result<Acted, ActError> {
        let Checked { owing, queues } = self.check(act)?;
        if !owing.is_empty() {
            act.owe(owing);
        }
        let mut acted = Acted::default();
        self.watching.enter(act.door);
        if act.door == Door::Parks {
            self.let_go(act, now);
        }
        for (limit, definition) in act.define.drain(..) {
            self.come(limit, definition, now);
        }
        // Their memory is left to whoever has the act: to give it back is cheapest where it is from.
        for settle in act.settle.drain(..) {
            self.settle(settle, now);
        }
        acted.cancelled = each(&mut act.cancel, |id| self.cancel(id));
        acted.deleted = each(&mut act.delete, |id| self.delete(id));
        acted.revived = each(&mut act.revive, |revive| self.revive(&revive, now));
        acted.written = each(&mut act.write, |write| self.write(write));
        acted.enqueued.reserve(act.enqueue.len());
        for (new, queue) in act.enqueue.drain(..).zip(queues) {
            self.enqueue(queue, new, now).tell(&mut acted);
        }
        acted.counted = each(&mut act.count_down, |count| self.count_down(count, now));
        self.forget_joins(&mut act.forget);
        self.rehead();
        Ok(acted)
    }

    fn forget_joins(&mut self, keys: &mut Vec<Key>) {
        for key in keys.drain(..) {
            if self.joins.contains_key(&key) {
                self.emit(Effect::Counted { key, left: 0 });
            }
        }
    }

    fn settle(&mut self, settle: Settle, now: Now) {
        if let Some(slot) = self.in_flight(settle.lease) {
            self.settle_at(slot, settle, now);
        }
    }

    /// Settles the start of a call that was found.
    pub(super) fn settle_at(&mut self, slot: CallSlot, settle: Settle, now: Now) {
        let (id, mut attempts) = (self.calls[slot].id, self.calls.attempts(&self.calls[slot]));
        let queue = self.lanes[self.calls[slot].lane].queue;
        let actual = self.actual(slot, &settle);
        self.learn(slot, &settle);
        let Settle { lease, settlement, report, .. } = settle;
        self.count_settled(slot, settlement);
        self.emit_of(slot, Effect::Settled { lease, actual, now, report });
        let spec = &self.lanes.queue(queue).spec;
        match settlement {
            Settlement::Done => self.emit_of(slot, Effect::Ended { id, end: End::Done }),
            Settlement::Dead => self.die(slot, attempts, DeathCause::GivenUp),
            Settlement::Release => self.come_back(slot, attempts, None, now.at),
            Settlement::Retry(after) => {
                attempts.failures += 1;
                let after = after.unwrap_or_else(|| spec.backoff.delay(id, attempts.failures));
                let is_dead = attempts.failures >= spec.failures_max;
                let death = is_dead.then_some(DeathCause::Failed);
                self.come_back(slot, attempts, death, now.at.plus(after));
            }
            Settlement::Limited(pause) => {
                attempts.limited += 1;
                let is_dead = attempts.limited >= spec.limited_max;
                let death = is_dead.then_some(DeathCause::Limited);
                let is_closed = self.close_for(slot, now, pause);
                let eligible = if is_closed { now.at } else { now.at.plus(pause) };
                self.come_back(slot, attempts, death, eligible);
            }
        }
    }

    /// Remembers what a call cost where its queue estimates by that.
    fn learn(&mut self, slot: CallSlot, settle: &Settle) {
        // What was not made, or was turned away, tells nothing of what it costs.
        let tells = !matches!(settle.settlement, Settlement::Release | Settlement::Limited(_));
        if settle.actual.is_empty() || !tells {
            return;
        }
        let queue = self.lanes.queue(self.lanes[self.calls[slot].lane].queue);
        for line in self.calls.lines_at(slot) {
            let (limit, partition) = self.meters.name(line.meter);
            let is_learned = |toll: &QueueToll| toll.is_learned() && toll.limit == limit;
            let told = settle.actual.iter().find(|(name, _)| *name == limit);
            if let Some((_, cost)) = told.filter(|_| queue.spec.tolls.iter().any(is_learned)) {
                self.learned.note(&queue.name, (&limit, partition.as_ref()), *cost);
            }
        }
    }

    /// The true cost of a start at each of its meters.
    fn actual(&self, slot: CallSlot, settle: &Settle) -> SmallVec<[u64; 1]> {
        let of_line = |line: &Line| {
            let limit = self.meters[line.meter].limit;
            let named =
                settle.actual.iter().find(|(name, _)| self.meters.limit(name) == Some(limit));
            match settle.settlement {
                Settlement::Release => 0,
                _ => named.map_or(line.weight, |(_, actual)| *actual),
            }
        };
        let mut actual = SmallVec::new();
        for line in self.calls.lines_at(slot) {
            actual.push(of_line(line));
        }
        actual
    }

    /// Closes the meters that hear feedback, or the first if it has a rate; says whether there was one.
    fn close_for(&mut self, slot: CallSlot, now: Now, pause: Span) -> bool {
        let id = self.calls[slot].id;
        let lines = self.calls.lines_at(slot);
        let anyone_hears = lines.iter().any(|line| line.hears_feedback);
        let closes = |(at, line): (usize, &Line)| {
            let definition = self.meters.definition(line.meter);
            let has_rate = || definition.is_some_and(|d| d.rules().iter().any(Rule::is_rate));
            let hears = match anyone_hears {
                true => line.hears_feedback && definition.is_some(),
                false => at == 0 && has_rate(),
            };
            hears.then_some(at)
        };
        let closed: Vec<_> = lines.iter().enumerate().filter_map(closes).collect();
        for line in &closed {
            self.emit(Effect::Closed { id, line: *line, until: now.at.plus(pause), now });
        }
        !closed.is_empty()
    }

    fn cancel(&mut self, id: CallId) -> bool {
        let Some(slot) = self.calls.find(id) else { return false };
        self.emit(match self.calls.flight(&self.calls[slot]) {
            Some(_) => Effect::CancelAsked(id),
            None => Effect::Ended { id, end: End::Cancelled },
        });
        true
    }

    pub(super) fn write(&mut self, Write { key, bytes, .. }: Write) -> Revision {
        let revision = Revision(self.revisions + 1);
        self.emit(Effect::Written { key, revision, bytes });
        revision
    }

    /// The new call, or the one that it repeats.
    pub(super) fn enqueue(&mut self, queue: QueueSlot, new: NewCall, now: Now) -> Enqueued {
        if let Some(first) = self.duplicate(queue, &new) {
            return Enqueued::Known(first);
        }
        let inherited = self.supersede(queue, &new);
        let remembered = now.at.plus(self.lanes.queue(queue).spec.dedupe);
        let arrival = match new.not_before {
            Some(due) if due > now.wall => None,
            _ => Some(inherited.unwrap_or(self.arrivals)),
        };
        let id = self.emit_accepted(queue, Box::new(new), arrival, remembered);
        self.count_accepted(queue, id, now);
        Enqueued::New(id)
    }

    #[inline]
    pub(super) fn duplicate(&self, queue: QueueSlot, new: &NewCall) -> Option<CallId> {
        let key = new.dedupe.clone()?;
        self.dedupes.get(&(queue, key)).map(|(first, _)| *first)
    }

    /// Ends the call that a new one replaces; says which arrival it had.
    fn supersede(&mut self, queue: QueueSlot, new: &NewCall) -> Option<u64> {
        let old = self.replaced(queue, new)?;
        let call = &self.calls[old];
        let (id, arrival) = (call.id, Some(call.arrival).filter(|_| call.has_joined));
        self.emit(Effect::Ended { id, end: End::Superseded });
        arrival
    }

    #[inline]
    pub(super) fn replaced(&self, queue: QueueSlot, new: &NewCall) -> Option<CallSlot> {
        let key = new.supersedes.as_ref()?;
        let lane = self.lanes.lane_named(queue, &new.lane)?;
        let old = self.newest.find(lane, key)?;
        self.calls[old].progress.is_none().then_some(old)
    }

    fn count_down(&mut self, count: Count, now: Now) -> (u64, Option<CallId>) {
        let left = self.joins.get(&count.key).copied().unwrap_or(count.from).saturating_sub(1);
        self.emit(Effect::Counted { key: count.key, left });
        let opens = (left == 0).then(|| self.lanes.find(&count.then.queue)).flatten();
        let then = opens.map(|queue| self.enqueue(queue, count.then, now));
        (left, then.map(Enqueued::id))
    }

    pub(super) fn in_flight(&self, lease: Lease) -> Option<CallSlot> {
        let slot = self.calls.find(lease.call)?;
        let flight = self.calls.flight(&self.calls[slot])?;
        (flight.token == lease.token).then_some(slot)
    }
}

/// What became of a call that was to be enqueued.
#[derive(Debug, Clone, Copy)]
pub(super) enum Enqueued {
    New(CallId),
    /// It repeats this one.
    Known(CallId),
}

impl Enqueued {
    fn id(self) -> CallId {
        match self {
            Self::New(id) | Self::Known(id) => id,
        }
    }

    /// Says so, as the next of an act's calls.
    pub(super) fn tell(self, acted: &mut Acted) {
        if matches!(self, Self::Known(_)) {
            acted.duplicates.push(acted.enqueued.len());
        }
        acted.enqueued.push(self.id());
    }
}

/// What came of each; most lists of an act are empty.
fn each<T, R>(items: &mut Vec<T>, make: impl FnMut(T) -> R) -> Vec<R> {
    if items.is_empty() { Vec::new() } else { items.drain(..).map(make).collect() }
}
