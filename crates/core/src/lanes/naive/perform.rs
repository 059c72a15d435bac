//! An act that was checked is done: define, settle, cancel, revive, write, enqueue, count down.

use super::ways::{Line, lines};
use super::{Call, Flight, MeterKey, Naive, State};
use crate::lanes::act::{Act, Acted, Door, Record, Revision, Settle, Settlement, Write};
use crate::lanes::call::{CallId, DeathCause, End};
use crate::lanes::event::What;
use crate::limit::Definition;
use crate::name::{LimitName, QueueName};
use crate::rule::Rule;
use crate::time::{Now, Span};

/// What an act did.
#[derive(Debug, Default)]
pub(super) struct Performed {
    pub(super) acted: Acted,
    /// The queue of each call that is neither a duplicate nor takes another's place.
    pub(super) deepened: Vec<QueueName>,
    /// The limits that came with it.
    pub(super) coming: Vec<(LimitName, Definition)>,
}

impl Naive {
    /// Does an act in which nothing is wrong.
    pub(super) fn perform(&mut self, act: &Act, now: Now) -> Performed {
        let mut done = Performed { coming: act.define.clone(), ..Performed::default() };
        let costs: Vec<_> = act.settle.iter().flat_map(|settle| self.costs(settle)).collect();
        if act.door == Door::Parks {
            self.let_go(act, now);
        }
        for (limit, definition) in &act.define {
            self.come(limit, definition, now);
        }
        for settle in &act.settle {
            self.settle(settle, now);
        }
        for id in &act.cancel {
            let was_there = self.cancel(*id);
            done.acted.cancelled.push(was_there);
        }
        for id in &act.delete {
            let was_dead = self.calls.get(id).is_some_and(Call::is_dead) && self.cancel(*id);
            done.acted.deleted.push(was_dead);
        }
        for revive in &act.revive {
            let was_dead = self.revive(revive, now);
            done.acted.revived.push(was_dead);
        }
        for write in &act.write {
            let revision = self.write(write);
            done.acted.written.push(revision);
        }
        for (at, new) in act.enqueue.iter().enumerate() {
            if self.duplicated(new).is_some() {
                done.acted.duplicates.push(at);
            }
            let id = self.enqueue(new, now, &mut done);
            done.acted.enqueued.push(id);
        }
        for count in &act.count_down {
            let counted = self.count(count, now, &mut done);
            done.acted.counted.push(counted);
        }
        for key in &act.forget {
            self.joins.remove(key);
        }
        // What the act enqueues was checked by what was known before.
        for (queue, (limit, partition), cost) in costs {
            self.learned.note(&queue, (&limit, partition.as_ref()), cost);
        }
        done
    }

    /// What a start cost at each meter where its queue estimates by that.
    fn costs(&self, settle: &Settle) -> Vec<(QueueName, MeterKey, u64)> {
        let Some(call) = self.calls.get(&settle.lease.call) else { return Vec::new() };
        let Some(queue) = self.queues.get(&call.new.queue) else { return Vec::new() };
        if matches!(settle.settlement, Settlement::Release | Settlement::Limited(_)) {
            return Vec::new();
        }
        let cost = |line: Line| {
            let told = settle.actual.iter().find(|(limit, _)| *limit == line.meter.0)?;
            let mut tolls = queue.spec.tolls.iter();
            let is_learned = tolls.any(|toll| toll.is_learned() && toll.limit == line.meter.0);
            is_learned.then(|| (call.new.queue.clone(), line.meter, told.1))
        };
        lines(&call.new.tolls).into_iter().filter_map(cost).collect()
    }

    /// A call ends for good.
    pub(super) fn end_call(&mut self, id: CallId, end: End) {
        let Some(attempts) = self.calls.get(&id).map(Call::tried) else { return };
        self.tell(id, self.latest, What::Ended { end, attempts });
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.state = State::Ended(end);
        self.ended.push((id, end));
    }

    fn settle(&mut self, settle: &Settle, now: Now) {
        let id = settle.lease.call;
        let Some(call) = self.calls.get(&id).cloned() else { return };
        let Some(flight) = call.flight() else { return };
        self.settle_payments(flight, settle, now);
        let place = self.events.len();
        match settle.settlement {
            Settlement::Done => self.end_call(id, End::Done),
            Settlement::Dead => self.die(id, DeathCause::GivenUp, now),
            Settlement::Retry(after) => self.retry(id, after, now),
            Settlement::Release => self.come_back(id, None, now.at, now),
            Settlement::Limited(span) => self.limit(&call, span, now),
        }
        self.tell_settled(place, &call, Some(settle), now);
    }

    fn settle_payments(&mut self, flight: &Flight, settle: &Settle, now: Now) {
        for (key, payment) in &flight.payments {
            let told = settle.actual.iter().find(|(limit, _)| *limit == key.0);
            let actual = match settle.settlement {
                Settlement::Release => 0,
                _ => told.map_or(payment.weight, |(_, actual)| *actual),
            };
            self.settle_line(key, payment, actual, now);
        }
    }

    fn retry(&mut self, id: CallId, after: Option<Span>, now: Now) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.attempts.failures = call.attempts.failures.saturating_add(1);
        let failures = call.attempts.failures;
        let Some(queue) = self.queues.get(&call.new.queue) else { return };
        let delay = after.unwrap_or_else(|| queue.spec.backoff.delay(id, failures));
        let death = (failures >= queue.spec.failures_max).then_some(DeathCause::Failed);
        self.come_back(id, death, now.at.plus(delay), now);
    }

    fn limit(&mut self, call: &Call, span: Span, now: Now) {
        let was_closed = self.close_meters(call, span, now);
        let id = call.id;
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.attempts.limited = call.attempts.limited.saturating_add(1);
        let limited = call.attempts.limited;
        let Some(queue) = self.queues.get(&call.new.queue) else { return };
        let death = (limited >= queue.spec.limited_max).then_some(DeathCause::Limited);
        let eligible = if was_closed { now.at } else { now.at.plus(span) };
        self.come_back(id, death, eligible, now);
    }

    /// Closes what hears feedback, or else the first; says whether there was anything to close.
    fn close_meters(&mut self, call: &Call, span: Span, now: Now) -> bool {
        let lines = lines(&call.new.tolls);
        let hearing: Vec<&Line> = lines.iter().filter(|line| line.hears_feedback).collect();
        let is_said = !hearing.is_empty();
        let meant = if is_said { hearing } else { lines.iter().take(1).collect() };
        let mut was_closed = false;
        for line in meant {
            let definition = self.definition(&line.meter);
            let closes =
                definition.is_some_and(|it| is_said || it.rules().iter().any(Rule::is_rate));
            if let (true, Some(meter)) = (closes, self.meters.get_mut(&line.meter)) {
                meter.close(now.at.plus(span), "the upstream asked for a pause", now.at);
                was_closed = true;
            }
        }
        was_closed
    }

    fn cancel(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get_mut(&id) else { return false };
        match &mut call.state {
            State::Waiting => self.end_call(id, End::Cancelled),
            State::Dead(_) => {
                let lane = call.lane_key();
                self.end_call(id, End::Cancelled);
                let is_dead = |call: &&Call| matches!(call.state, State::Dead(_));
                let mut dead = self.calls.values().filter(is_dead);
                if dead.all(|call| call.lane_key() != lane) {
                    self.lanes.entry(lane).or_default().is_held = false;
                }
            }
            State::InFlight(flight) => flight.is_cancelled = true,
            State::Ended(_) => return false,
        }
        true
    }

    pub(super) fn write(&mut self, write: &Write) -> Revision {
        self.last_revision += 1;
        let revision = Revision(self.last_revision);
        match &write.bytes {
            Some(bytes) => {
                let record = Record { revision, bytes: bytes.clone() };
                self.records.insert(write.key.clone(), record);
            }
            None => {
                self.records.remove(&write.key);
            }
        }
        revision
    }
}
