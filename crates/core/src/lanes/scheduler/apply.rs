//! Applying effects: the one way in which what lasts is changed.

use super::Scheduler;
use super::calls::{Call, CallSlot, Flight, LaneSlot, Line, Start};
use super::lanes::Head;
use super::meters::QueueSlot;
use crate::lanes::act::{Record, Revision};
use crate::lanes::call::{Attempts, CallId, End, Lease, NewCall};
use crate::lanes::claim::Scope;
use crate::lanes::effect::Effect;
use crate::meter::{Holding, Payment};
use crate::name::Key;
use crate::rule::slots::HoldId;
use crate::time::{Now, Timestamp};
use crate::turn;
use smallvec::SmallVec;

impl Scheduler {
    /// A scheduler to which all this has happened.
    pub fn recovered<'a>(effects: impl IntoIterator<Item = &'a Effect>) -> Self {
        let mut scheduler = Self::default();
        for effect in effects {
            scheduler.apply(effect);
        }
        scheduler.present = Now::both(scheduler.now);
        scheduler.rehead();
        scheduler
    }

    /// Lets something happen that was decided before. Once all of it has, [`Self::advance`] brings
    /// the lanes up to date.
    pub fn replay(&mut self, effect: &Effect) {
        self.apply(effect);
    }

    pub(super) fn apply(&mut self, effect: &Effect) {
        self.observe(effect, None);
        self.happen(effect);
    }

    pub(super) fn happen(&mut self, effect: &Effect) {
        self.now = effect.now().map_or(self.now, |now| self.now.max(now.at));
        match effect {
            Effect::LimitDefined { name, definition, now } => {
                if let Some(limit) = self.meters.define(name, definition.as_deref(), *now) {
                    self.limit_changed(limit, true);
                }
            }
            Effect::LimitCame { name, definition, now } => self.came(name, definition, *now),
            Effect::LimitWent(name) => self.meters.forget_rules(name),
            Effect::PartitionDefined { limit, partition, definition, now } => {
                self.partition_defined(limit, partition, definition.as_deref(), *now);
            }
            Effect::ClosedBy { meter, until, reason, now } => {
                self.closed_by(meter, *until, reason, *now);
            }
            Effect::Reset { meter, now } => self.was_reset(meter, *now),
            Effect::QueueDefined { name, spec } => {
                let queue = self.lanes.define(name, (**spec).clone());
                self.touched.extend(self.lanes.with_starts(queue));
            }
            Effect::QueueRemoved(name) => self.queue_removed(name),
            Effect::LaneWeighed { queue, lane, weight } => {
                if let Some(queue) = self.lanes.find(queue) {
                    let lane = self.lanes.at(queue, lane);
                    self.lanes[lane].weight = *weight;
                    self.touch(lane);
                }
            }
            Effect::Paused(scope) => self.set_paused(scope, true),
            Effect::Resumed(scope) => self.set_paused(scope, false),
            Effect::Reopened { limit, partition } => self.reopened(limit, partition.as_ref()),
            Effect::Accepted { id, call, arrival, remembered } => {
                self.accepted(*id, call, *arrival, *remembered);
            }
            Effect::Joined { id, arrival } => self.joined(*id, *arrival),
            Effect::Started { lease, now, expires, waits } => {
                let start = Start { now: *now, expires: *expires, waits: waits.clone() };
                self.started(*lease, start);
            }
            Effect::Renewed { lease, now, expires } => self.renewed(*lease, *now, *expires),
            Effect::Settled { lease, actual, now, report: _ } => self.settled(*lease, actual, *now),
            Effect::Closed { id, line, until, now } => self.closed(*id, *line, *until, *now),
            Effect::CameBack { id, attempts, eligible } => {
                self.came_back(*id, *attempts, *eligible);
            }
            Effect::CancelAsked(id) => self.cancel_asked(*id),
            Effect::Died { id, attempts, cause } => self.died(*id, *attempts, *cause),
            Effect::Ended { id, end } => self.ended(*id, *end),
            Effect::Revived { id, arrival, not_before } => {
                self.revived(*id, *arrival, *not_before);
            }
            Effect::Paid { id, owed, now, starts, expires } => {
                self.paid(*id, owed, *now, (*starts, *expires));
            }
            Effect::Allowed { meter, units } => self.allowed(meter, *units),
            Effect::ReceiptRenewed { id, meters, now, expires } => {
                self.receipt_renewed(*id, meters, *now, *expires);
            }
            Effect::ReceiptSettled { receipt, actual, now, remembered } => {
                self.receipt_settled(receipt, actual, *now, *remembered);
            }
            Effect::Timed(_) => {}
            Effect::Kept(kept) => self.restore(kept),
            Effect::Written { key, revision, bytes } => {
                self.written(key, *revision, bytes.as_deref());
            }
            Effect::Counted { key, left } => self.counted(key, *left),
        }
    }

    fn counted(&mut self, key: &Key, left: u64) {
        if left == 0 {
            self.joins.remove(key);
        } else {
            self.joins.insert(key.clone(), left);
        }
    }

    fn written(&mut self, key: &Key, revision: Revision, bytes: Option<&[u8]>) {
        self.revisions = self.revisions.max(revision.0);
        match bytes {
            Some(bytes) => self.records.write(key, Record { revision, bytes: bytes.into() }),
            None => self.records.remove(key),
        }
    }

    fn set_paused(&mut self, scope: &Scope, is_paused: bool) {
        match scope {
            Scope::Queue(name) => {
                let Some(queue) = self.lanes.find(name) else { return };
                self.lanes.queue_mut(queue).is_paused = is_paused;
                if is_paused {
                    self.stop_yielding();
                } else {
                    self.woken.insert(queue);
                }
            }
            Scope::Lane(name, lane) => {
                let Some(queue) = self.lanes.find(name) else { return };
                let slot = self.lanes.at(queue, lane);
                let lane = &mut self.lanes[slot];
                lane.is_paused = is_paused;
                lane.is_held &= is_paused;
                self.touch(slot);
            }
            Scope::Limit(name) => {
                let Some(limit) = self.meters.limit(name) else { return };
                let limit = self.meters.set_paused(limit, is_paused);
                self.look_later(limit);
                self.limit_changed(limit, !is_paused);
            }
        }
    }

    fn accepted(&mut self, id: CallId, new: &NewCall, arrival: Option<u64>, remembered: Timestamp) {
        match self.lanes.find(&new.queue) {
            Some(queue) => self.accepted_by(queue, (id, new), arrival, remembered),
            None => self.ids = id.0 + 1,
        }
    }

    pub(super) fn accepted_by(
        &mut self,
        queue: QueueSlot,
        (id, new): (CallId, &NewCall),
        arrival: Option<u64>,
        remembered: Timestamp,
    ) {
        self.ids = id.0 + 1;
        let lane = self.lanes.at(queue, &new.lane);
        let slot = self.take_in(id, lane, new);
        self.watch_unknown(slot, new);
        if let Some(key) = &new.dedupe {
            self.remember(queue, key, id, remembered);
        }
        match arrival {
            Some(arrival) => self.line_up(slot, arrival),
            None => self.join_later(slot),
        }
    }

    /// Notes a call that is in no order yet.
    pub(super) fn take_in(&mut self, id: CallId, lane: LaneSlot, new: &NewCall) -> CallSlot {
        let lines = self.resolve(&new.tolls);
        let (tolls, is_first) = self.calls.intern(&lines);
        for line in lines.iter().filter(|_| is_first) {
            self.meters[line.meter].owed += 1;
        }
        let slot = self.calls.insert(Call {
            id,
            arrival: new.not_before.unwrap_or_default().as_nanos(),
            body: 0,
            lane,
            tolls,
            priority: new.priority,
            has_joined: false,
            may_expire: new.expires.is_some(),
            progress: None,
        });
        let queue = self.lanes[lane].queue;
        self.lanes.queue_mut(queue).depth += 1;
        self.lanes[lane].calls += 1;
        if let Some(key) = &new.supersedes {
            self.newest.insert(lane, key, slot);
        }
        if let Some(expires) = new.expires {
            self.timers.expiries.insert(id, expires);
        }
        slot
    }

    pub(super) fn remember(&mut self, queue: QueueSlot, key: &Key, id: CallId, until: Timestamp) {
        self.dedupes.insert((queue, key.clone()), (id, until));
        self.timers.dedupes.insert((until, queue, key.clone()));
    }

    pub(super) fn join_later(&mut self, slot: CallSlot) {
        let call = &self.calls[slot];
        self.timers.joins.extend(call.due().map(|due| (due, call.id)));
    }

    fn joined(&mut self, id: CallId, arrival: u64) {
        let Some(slot) = self.calls.find(id) else { return };
        self.line_up(slot, arrival);
    }

    /// Puts a call that never started into its lane's order.
    pub(super) fn line_up(&mut self, slot: CallSlot, arrival: u64) {
        // While it is made anew the present is not known, and one that takes over a place came into line with it.
        if arrival >= self.arrivals && self.present != Now::default() {
            self.lined_up.note(arrival, self.present.at);
        }
        self.arrivals = self.arrivals.max(arrival + 1);
        let call = &mut self.calls[slot];
        (call.arrival, call.has_joined) = (arrival, true);
        let lane = call.lane;
        self.lanes[lane].waiting.insert(slot, &self.calls);
        self.touch(lane);
    }

    fn started(&mut self, lease: Lease, start: Start) {
        if let Some(slot) = self.calls.find(lease.call) {
            self.start_at(slot, lease.token, start);
        }
    }

    /// Starts a call, wherever it was found: among millions, finding it is what costs most.
    pub(super) fn start_at(&mut self, slot: CallSlot, token: u64, start: Start) {
        let Start { now, expires, waits } = start;
        self.tokens = self.tokens.max(token);
        let lane = self.calls[slot].lane;
        let holding = Holding { id: HoldId(token), expires };
        let payments = self.pay(lane, slot, now, holding);
        if self.lanes[lane].head.is_some_and(|head| head.call == slot) {
            self.dismiss(lane);
        }
        self.take_from_lane(lane, slot);
        if self.calls[slot].may_expire {
            self.timers.expiries.suspend(self.calls[slot].id);
        }
        self.timers.leases.insert((expires, token, slot));
        let progress = self.calls.progress_mut(slot);
        progress.flight = Some(Flight { token, expires, started: now, waits, payments });
        self.lanes.count_flight(lane);
        self.touch(lane);
    }

    /// Takes the tolls of a call that starts, and counts what its lane was served.
    fn pay(
        &mut self,
        lane: LaneSlot,
        call: CallSlot,
        now: Now,
        holding: Holding,
    ) -> SmallVec<[Payment; 1]> {
        let count = self.calls.lines_at(call).len();
        let head = self.lanes[lane].head.filter(|head| head.call == call);
        let head = head.unwrap_or(Head::new(call));
        let mut tags = SmallVec::<[u64; 2]>::new();
        for at in 0..count {
            tags.push(self.place(lane, head, at).tag());
        }
        let mut payments = SmallVec::new();
        for (at, tag) in tags.into_iter().enumerate() {
            let Line { meter, weight, .. } = self.calls.lines_at(call)[at];
            let paid = self.meters.change(meter, now, |meter, definition| {
                meter.pay(definition, weight, (now, now.at), Some(holding))
            });
            if let Some(paid) = paid {
                payments.push(paid);
            }
            let finish = turn::finish(tag, weight, self.lanes[lane].weight);
            let book = &mut self.meters[meter];
            book.vtime = book.vtime.max(tag);
            book.farthest = book.farthest.max(finish);
            book.round = turn::round(book.round.max(tag), finish - tag, book.standing());
            book.round = book.round.min(book.farthest);
            self.lanes[lane].set_finish(meter, book.birth, finish);
            self.served.push(meter);
        }
        payments
    }

    /// Takes a joined call that is not in flight from its lane's order.
    fn take_from_lane(&mut self, lane: LaneSlot, call: CallSlot) {
        self.lanes[lane].take(call, &self.calls);
    }

    fn renewed(&mut self, lease: Lease, now: Now, expires: Timestamp) {
        let Some(slot) = self.in_flight(lease) else { return };
        let flight = self.calls.flight_mut(slot).and_then(Option::as_mut);
        let Some(flight) = flight else { return };
        self.timers.leases.remove((flight.expires, flight.token, slot));
        self.timers.leases.insert((expires, flight.token, slot));
        flight.expires = expires;
        let holds: Vec<_> = flight.payments.iter().map(|payment| payment.hold).collect();
        for (at, hold) in holds.into_iter().enumerate() {
            let meter = self.calls.lines_at(slot)[at].meter;
            if let Some(hold) = hold {
                self.meters.change(meter, now, |meter, _| meter.renew(hold, expires, now.at));
            }
            self.refresh(meter);
        }
    }

    fn settled(&mut self, lease: Lease, actual: &[u64], now: Now) {
        if let Some(slot) = self.in_flight(lease) {
            self.settled_at(slot, actual, now);
        }
    }

    pub(super) fn settled_at(&mut self, slot: CallSlot, actual: &[u64], now: Now) {
        self.now = self.now.max(now.at);
        let lane = self.calls[slot].lane;
        let flight = self.calls.flight_mut(slot).and_then(Option::take);
        let Some(flight) = flight else { return };
        self.timers.leases.remove((flight.expires, flight.token, slot));
        self.lanes.discount_flight(lane);
        self.touch(lane);
        for (at, payment) in flight.payments.iter().enumerate() {
            let meter = self.calls.lines_at(slot)[at].meter;
            let actual = actual.get(at).copied();
            if let Some(actual) = actual {
                self.settle_payment(meter, payment, actual, now);
            }
            // Slots end with the lease in any case. What cost as much as was paid opens nothing.
            if payment.hold.is_some() || actual.is_some_and(|actual| actual != payment.weight) {
                self.refresh(meter);
            }
        }
    }

    pub(super) fn settle_payment(&mut self, meter: u32, payment: &Payment, actual: u64, now: Now) {
        let is_defined = self.meters.definition(meter).is_some();
        self.meters.change(meter, now, |meter, definition| {
            if is_defined {
                meter.settle(definition, payment, actual, now);
            } else if let Some(hold) = payment.hold {
                meter.release(hold);
            }
        });
    }

    fn closed(&mut self, id: CallId, line: usize, until: Timestamp, now: Now) {
        let Some(slot) = self.calls.find(id) else { return };
        let meter = self.calls.lines_at(slot)[line].meter;
        self.meters.change(meter, now, |meter, _| {
            meter.close(until, "the upstream asked for a pause", now.at);
        });
    }

    fn came_back(&mut self, id: CallId, attempts: Attempts, eligible: Timestamp) {
        let Some(slot) = self.calls.find(id) else { return };
        // Handed back before any attempt counts, it may end unstarted again.
        if attempts == Attempts::default() {
            self.timers.expiries.resume(id);
        } else if std::mem::take(&mut self.calls[slot].may_expire) {
            self.timers.expiries.remove(id);
        }
        let progress = self.calls.progress_mut(slot);
        (progress.attempts, progress.rests_until) = (attempts, eligible);
        self.line_up_again(slot);
    }

    /// Puts a call that was started into its lane's order.
    pub(super) fn line_up_again(&mut self, slot: CallSlot) {
        let call = &self.calls[slot];
        let (rank, lane, id) = (call.rank(), call.lane, call.id);
        let progress = self.calls.progress(call);
        let eligible = progress.map_or(self.now, |progress| progress.rests_until);
        let rests = eligible > self.now;
        if rests {
            self.timers.rests.insert((eligible, id));
        }
        self.lanes[lane].come_back((rank, slot), rests);
        self.touch(lane);
    }

    fn cancel_asked(&mut self, id: CallId) {
        let Some(slot) = self.calls.find(id) else { return };
        self.calls.progress_mut(slot).is_cancelled = true;
    }

    fn ended(&mut self, id: CallId, end: End) {
        if let Some(slot) = self.calls.find(id) {
            self.ended_at(slot, end);
        }
    }

    pub(super) fn ended_at(&mut self, slot: CallSlot, end: End) {
        let (lane, id) = (self.calls[slot].lane, self.calls[slot].id);
        let was_dead = self.take_from_dead(slot);
        if !was_dead {
            self.take_from_orders(slot);
        }
        if end == End::Dead {
            return self.lay_among_dead(slot);
        }
        if was_dead && end == End::Cancelled && self.lanes[lane].dead == 0 {
            self.lanes[lane].is_held = false;
        }
        if self.calls[slot].may_expire {
            self.timers.expiries.remove(id);
        }
        self.lanes[lane].calls -= 1;
        self.touch(lane);
        self.newest.remove(slot);
        if self.calls[slot].body != 0 {
            self.freed.push(self.calls[slot].body);
        }
        if let Some(lines) = self.calls.remove(slot) {
            for line in lines {
                self.meters[line.meter].owed -= 1;
                self.used(line.meter);
            }
        }
    }

    /// Takes a call that ends from its lane and its queue.
    fn take_from_orders(&mut self, slot: CallSlot) {
        let (id, lane) = (self.calls[slot].id, self.calls[slot].lane);
        match self.calls[slot].due() {
            None => self.take_from_lane(lane, slot),
            Some(due) => {
                self.timers.joins.remove(&(due, id));
            }
        }
        if !self.timers.rests.is_empty()
            && let Some(progress) = self.calls.progress(&self.calls[slot])
        {
            self.timers.rests.remove(&(progress.rests_until, id));
        }
        // Before the call is gone, for the head's place is read from it.
        if self.lanes[lane].head.is_some_and(|head| head.call == slot) {
            self.dismiss(lane);
        }
        let queue = self.lanes[lane].queue;
        self.lanes.queue_mut(queue).depth -= 1;
    }
}
