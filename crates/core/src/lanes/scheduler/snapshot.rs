//! What lasts, as a list of facts that make the same state when they are applied.

use super::Scheduler;
use super::calls::{Call, CallSlot, Flight, Progress};
use crate::lanes::call::NewCall;
use crate::lanes::claim::Scope;
use crate::lanes::effect::Effect;
use crate::lanes::event::LineWaits;
use crate::lanes::kept::{Kept, KeptFlight};
use crate::lanes::payload::Payload;
use crate::meter::Meter;
use crate::time::{Now, Timestamp};

impl Scheduler {
    /// All that lasts, each fact after those it builds on. Bodies are empty: the store knows where
    /// they are. How far lanes were served at meters is not among it: that is fair for an hour, not
    /// for good.
    pub fn snapshot(&self, now: Now, mut each: impl FnMut(Effect)) {
        each(Effect::Kept(Kept::Counters {
            ids: self.ids,
            tokens: self.tokens,
            arrivals: self.arrivals,
            revisions: self.revisions,
            now: self.now,
        }));
        self.meters.snapshot(now, &mut each);
        self.lanes.snapshot(&mut each);
        let mut calls: Vec<_> = self.calls.iter().map(|(slot, call)| (call.id, slot)).collect();
        calls.sort_unstable();
        for (id, slot) in calls {
            each(self.kept_call(slot, self.timers.expiries.of(id)));
            if let Some(Flight { started, waits, .. }) = self.calls.flight(&self.calls[slot]) {
                let (started, waits) = (*started, waits.clone());
                each(Effect::Kept(Kept::Start { id, started, waits }));
            }
        }
        // What is over by now no later command can see.
        for ((queue, key), (id, until)) in &self.dedupes {
            if *until <= self.now {
                continue;
            }
            let (queue, key) = (self.lanes.queue(*queue).name.clone(), key.clone());
            each(Effect::Kept(Kept::Dedupe { queue, key, id: *id, until: *until }));
        }
        for (until, id) in self.timers.receipts.iter().filter(|(until, _)| *until > self.now) {
            each(Effect::Kept(Kept::Receipt { id: *id, until: *until }));
        }
        for (meter, units) in &self.allowed {
            each(Effect::Allowed { meter: meter.clone(), units: *units });
        }
        for (key, record) in self.records.iter() {
            let (key, bytes) = (key.clone(), Some(record.bytes.clone()));
            each(Effect::Written { key, revision: record.revision, bytes });
        }
        for (key, left) in &self.joins {
            each(Effect::Counted { key: key.clone(), left: *left });
        }
    }

    fn kept_call(&self, slot: CallSlot, expires: Option<Timestamp>) -> Effect {
        let call = &self.calls[slot];
        let lane = &self.lanes[call.lane];
        let new = NewCall {
            queue: self.lanes.queue(lane.queue).name.clone(),
            lane: lane.name.clone(),
            tolls: self.calls.lines(call).iter().map(|line| self.toll(line)).collect(),
            priority: call.priority,
            not_before: call.due(),
            expires: expires.filter(|_| call.may_expire),
            dedupe: None,
            supersedes: self.newest.keys.get(&slot).map(|(_, key)| key.clone()),
            payload: Payload::default(),
        };
        let progress = self.calls.progress(call);
        Effect::Kept(Kept::Call {
            id: call.id,
            call: Box::new(new),
            arrival: call.has_joined.then_some(call.arrival),
            attempts: progress.map(|progress| progress.attempts),
            rests_until: progress.map_or(Timestamp::default(), |progress| progress.rests_until),
            is_cancelled: progress.is_some_and(|progress| progress.is_cancelled),
            flight: self.calls.flight(call).map(Flight::kept),
            death: self.calls.death(call),
        })
    }

    /// Why a fact cannot be made true, if it cannot: what it builds on is missing, or it does not go
    /// together. Applied all the same it would be left out, and what is left out of a meter would be
    /// there to be spent again.
    pub fn objection(&self, kept: &Kept) -> Option<&'static str> {
        match kept {
            Kept::Counters { .. } | Kept::Receipt { .. } => None,
            Kept::Meter { name: (limit, partition), words, closed: _ } => {
                let book = self.meters.limit(limit).map(|limit| self.meters.book(limit));
                match book.and_then(|book| book.definition_of(partition.as_ref())) {
                    None => Some("a meter of a limit that is not defined"),
                    Some(definition) => match Meter::from_words(definition, words, None) {
                        None => Some("a meter whose numbers are not those of its limit's rules"),
                        Some(_) => None,
                    },
                }
            }
            Kept::Start { id, .. } => {
                let call = self.calls.find(*id).map(|slot| &self.calls[slot]);
                match call.and_then(|call| self.calls.flight(call)) {
                    None => Some("a start of a call that is not in flight"),
                    Some(_) => None,
                }
            }
            Kept::Lane { queue, .. } | Kept::Dedupe { queue, .. } => match self.lanes.find(queue) {
                None => Some("something of a queue that is not defined"),
                Some(_) => None,
            },
            Kept::Call { id, call, arrival, attempts, flight, .. } => {
                if self.lanes.find(&call.queue).is_none() {
                    Some("a call of a queue that is not defined")
                } else if self.calls.find(*id).is_some() {
                    Some("a call that is there already")
                } else if attempts.is_some() && arrival.is_none() {
                    Some("a call that was started and has not joined its lane")
                } else {
                    let is_whole = flight.as_ref().is_none_or(|flight| {
                        attempts.is_some() && flight.payments.len() == call.tolls.len()
                    });
                    (!is_whole).then_some("a call in flight without what it paid")
                }
            }
        }
    }

    /// Makes something as it was.
    pub(super) fn restore(&mut self, kept: &Kept) {
        match kept {
            Kept::Counters { ids, tokens, arrivals, revisions, now } => {
                (self.ids, self.tokens) = (*ids, *tokens);
                (self.arrivals, self.revisions, self.now) = (*arrivals, *revisions, *now);
            }
            Kept::Meter { name: (limit, partition), words, closed } => {
                let closed = closed.as_ref().map(|(until, reason)| (*until, &**reason));
                let Some(limit) = self.meters.limit(limit) else { return };
                let definition = self.meters.book(limit).definition_of(partition.as_ref());
                let kept = definition.and_then(|it| Meter::from_words(it, words, closed));
                let slot = self.meters.at(limit, partition.as_ref());
                self.meters[slot].meter = kept.map(Box::new);
                self.used(slot);
            }
            Kept::Lane { queue, lane, is_paused, is_held, weight } => {
                let Some(queue) = self.lanes.find(queue) else { return };
                let slot = self.lanes.at(queue, lane);
                let lane = &mut self.lanes[slot];
                (lane.is_paused, lane.is_held, lane.weight) = (*is_paused, *is_held, *weight);
            }
            Kept::Call { .. } => self.restore_call(kept),
            Kept::Start { id, started, waits } => {
                let found = self.calls.find(*id).and_then(|slot| self.calls.flight_mut(slot));
                if let Some(flight) = found.and_then(Option::as_mut) {
                    (flight.started, flight.waits) = (*started, waits.clone());
                }
            }
            Kept::Dedupe { queue, key, id, until } => {
                if let Some(queue) = self.lanes.find(queue) {
                    self.remember(queue, key, *id, *until);
                }
            }
            Kept::Receipt { id, until } => {
                self.settled.insert(*id);
                self.timers.receipts.insert((*until, *id));
            }
        }
    }

    fn restore_call(&mut self, kept: &Kept) {
        let Kept::Call { id, call, arrival, attempts, rests_until, is_cancelled, flight, death } =
            kept
        else {
            return;
        };
        let Some(queue) = self.lanes.find(&call.queue) else { return };
        let lane = self.lanes.at(queue, &call.lane);
        let slot = self.take_in(*id, lane, call);
        let Some(arrival) = arrival else { return self.join_later(slot) };
        let Some(attempts) = attempts else { return self.line_up(slot, *arrival) };
        let (is_cancelled, rests_until, death) = (*is_cancelled, *rests_until, *death);
        let (attempts, kept) =
            (*attempts, flight.as_ref().map(|kept| Flight::restored(kept, self.now)));
        let progress = Progress { attempts, is_cancelled, flight: kept, rests_until, death };
        let call: &mut Call = &mut self.calls[slot];
        (call.arrival, call.has_joined) = (*arrival, true);
        *self.calls.progress_mut(slot) = progress;
        match flight {
            _ if death.is_some() => {
                self.lanes.queue_mut(queue).depth -= 1;
                self.count_dead(slot);
            }
            Some(KeptFlight { token, expires, .. }) => {
                self.timers.leases.insert((*expires, *token, slot));
                self.timers.expiries.suspend(*id);
                self.lanes.count_flight(lane);
            }
            None => self.line_up_again(slot),
        }
        self.touch(lane);
    }
}

impl Flight {
    fn kept(&self) -> KeptFlight {
        let Self { token, expires, payments, .. } = self;
        KeptFlight {
            token: *token,
            expires: *expires,
            payments: payments.iter().copied().collect(),
        }
    }

    /// When it was started is known from what it paid, or else as no later than the latest instant
    /// that was seen. More is told by what follows.
    fn restored(kept: &KeptFlight, latest: Timestamp) -> Self {
        let KeptFlight { token, expires, payments } = kept;
        let started = Now::both(payments.first().map_or(latest, |payment| payment.paid_at));
        Self {
            token: *token,
            expires: *expires,
            started,
            waits: LineWaits::default(),
            payments: payments.iter().copied().collect(),
        }
    }
}

impl super::meters::Meters {
    fn snapshot(&self, now: Now, each: &mut impl FnMut(Effect)) {
        for limit in self.limits() {
            if self.has_gone(limit, now) {
                continue;
            }
            let (name, last) = (limit.to_name(), limit.last().cloned().map(Box::new));
            each(match last {
                Some(definition) if limit.is_transient() => {
                    Effect::LimitCame { name: name.clone(), definition, now }
                }
                definition => Effect::LimitDefined { name: name.clone(), definition, now },
            });
            for (partition, definition) in limit.overrides().into_iter().flat_map(|all| all.iter())
            {
                let (limit, partition) = (name.clone(), partition.clone());
                let definition = Some(Box::new(definition.clone()));
                each(Effect::PartitionDefined { limit, partition, definition, now });
            }
            for slot in limit.meters() {
                let (meter, last) = (self[slot].meter.as_ref(), self.last(slot));
                let (Some(meter), Some(last)) = (meter, last) else { continue };
                if !meter.is_forgettable(last, now) {
                    let name = self.name(slot);
                    let closed = meter.closed(now.at);
                    let closed = closed.map(|(until, reason)| (until, reason.into()));
                    let words = meter.to_words().into();
                    each(Effect::Kept(Kept::Meter { name, words, closed }));
                }
            }
            // One that calls wait for and nobody ever defined was said to be so already.
            if limit.definition().is_none() && limit.last().is_some() {
                each(Effect::LimitDefined { name: name.clone(), definition: None, now });
            }
            if limit.is_paused() {
                each(Effect::Paused(Scope::Limit(name)));
            }
        }
    }
}

impl super::lanes::Lanes {
    fn snapshot(&self, each: &mut impl FnMut(Effect)) {
        for queue in self.queues() {
            let (name, spec) = (queue.name.clone(), Box::new(queue.spec.clone()));
            each(Effect::QueueDefined { name: name.clone(), spec });
            if queue.is_paused {
                each(Effect::Paused(Scope::Queue(name.clone())));
            }
            for slot in &queue.lanes {
                let lane = &self[*slot];
                let (is_paused, is_held, weight) = (lane.is_paused, lane.is_held, lane.weight);
                if is_paused || is_held || weight != 1 {
                    let (queue, lane) = (name.clone(), lane.name.clone());
                    each(Effect::Kept(Kept::Lane { queue, lane, is_paused, is_held, weight }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Act, Claim, Door, QueueSpec};
    use crate::limit::{Definition, Limit};
    use crate::name::{Key, LaneName, LimitName, QueueName};
    use crate::time::Span;
    use crate::toll::Toll;

    #[test]
    fn what_is_over_is_not_kept_by_one_who_only_replays() {
        let (queue, start) = (QueueName::new("q").unwrap(), Now::both(Timestamp::default()));
        let mut live = Scheduler::new();
        live.define_queue(&queue, QueueSpec::default(), start).unwrap();
        let call = NewCall::new(queue, LaneName::new("a").unwrap());
        let call = NewCall { dedupe: Some(Key::new("k").unwrap()), ..call };
        let _ = live.act(Act { enqueue: vec![call], ..Act::default() }, start).unwrap();
        let later = start.moved_to(start.at.plus(Span::from_hours(1)));
        let limit = Some(Definition::new(Limit::per_second(1)).unwrap());
        live.define_limit(&LimitName::new("l").unwrap(), limit, later);
        let mut replayed = Scheduler::new();
        live.take_effects().iter().for_each(|effect| replayed.replay(effect));
        let mut keys = 0;
        replayed.snapshot(later, |fact| {
            keys += usize::from(matches!(fact, Effect::Kept(Kept::Dedupe { .. })));
        });
        assert_eq!(keys, 0);
    }

    #[test]
    fn a_limit_that_calls_wait_for_is_kept_once() {
        let (queue, now) = (QueueName::new("q").unwrap(), Now::both(Timestamp::default()));
        let mut scheduler = Scheduler::new();
        scheduler.define_queue(&queue, QueueSpec::default(), now).unwrap();
        let limit = LimitName::new("nobody defined it").unwrap();
        let toll = Toll { limit, partition: None, weight: 1, hears_feedback: false };
        let call =
            NewCall { tolls: [toll].into(), ..NewCall::new(queue, LaneName::new("a").unwrap()) };
        let act = Act { enqueue: vec![call], door: Door::Parks, ..Act::default() };
        let _ = scheduler.act(act, now).unwrap();
        let mut limits = 0;
        scheduler.snapshot(now, |fact| {
            limits += usize::from(matches!(fact, Effect::LimitDefined { .. }));
        });
        assert_eq!(limits, 1);
    }

    #[test]
    fn a_start_of_a_call_that_is_not_in_flight_is_objected_to() {
        let (queue, now) = (QueueName::new("q").unwrap(), Now::both(Timestamp::default()));
        let mut scheduler = Scheduler::new();
        scheduler.define_queue(&queue, QueueSpec::default(), now).unwrap();
        let call = NewCall::new(queue.clone(), LaneName::new("a").unwrap());
        let act = Act { enqueue: vec![call], ..Act::default() };
        let id = scheduler.act(act, now).unwrap().enqueued[0];
        let start = Kept::Start { id, started: now, waits: LineWaits::default() };
        assert!(scheduler.objection(&start).is_some());
        let claim = Claim { queue, most: 1, lease: None, asks: Span::ZERO };
        assert_eq!(scheduler.claim(&claim, now).len(), 1);
        assert_eq!(scheduler.objection(&start), None);
    }
}
