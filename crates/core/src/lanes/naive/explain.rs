//! Explaining: why a call waits, found out by looking at everything.

use super::heads::rank;
use super::ways::{Line, Serving, lines, stands_at};
use super::{Call, MeterKey, Naive, State};
use crate::lanes::call::CallId;
use crate::lanes::explain::{Explanation, Reason};
use crate::lanes::queue::Order;
use crate::limit::Definition;
use crate::meter::{Cause, Meter};
use crate::name::QueueName;
use crate::rule::Opening;
use crate::time::{Now, Timestamp};
use crate::turn::CALENDAR_LOOK;

impl Naive {
    /// Why a call waits, and until when; `None` if it ended or never was.
    pub fn explain(&self, id: CallId, now: Now) -> Option<Explanation> {
        let call = self.calls.get(&id)?;
        let ahead = match &call.state {
            State::Dead(_) | State::Ended(_) => return None,
            State::InFlight(_) => None,
            State::Waiting => call.arrival.map(|_| self.ahead(call)),
        };
        let mut reasons = self.lane_reasons(call, now);
        let position = ahead.as_ref().map(|ahead| ahead.len() as u64);
        if let Some(calls) = position.filter(|calls| *calls > 0) {
            reasons.push(Reason::Behind { calls });
        }
        if call.is_waiting() {
            reasons.extend(self.meter_reasons(call, now));
        }
        let told = |opening: Option<Opening>| match opening {
            Some(Opening::At(at)) => Some(at.max(now.at)),
            _ => None,
        };
        Some(Explanation {
            id,
            attempts: call.attempts,
            position,
            reasons,
            not_before: told(self.not_before(call, ahead.as_deref().unwrap_or_default(), now)),
            expected: told(ahead.and_then(|ahead| self.expected(call, &ahead, now))),
        })
    }

    /// When something may happen next.
    pub fn next_due(&self, now: Now) -> Option<Timestamp> {
        let walls = self.calls.values().filter(|call| call.may_expire()).flat_map(|call| {
            let joins = call.new.not_before.filter(|_| call.arrival.is_none());
            [joins, call.new.expires].into_iter().flatten()
        });
        let walls = walls.map(|wall| now.at.plus(wall.since(now.wall)));
        let leases = self.calls.values().filter_map(|call| call.flight());
        let leases = leases.map(|flight| flight.expires);
        let rests = self.calls.values().filter_map(|call| call.backoff);
        let opens = self.heads().filter_map(|(call, head)| {
            let lines = lines(&call.new.tolls);
            let line = lines.iter().find(|line| stands_at(head, &line.meter))?;
            let blocker = self.way(call, line, Serving { queue: &call.new.queue, now })?;
            let follows_wall = self.definition(&line.meter).is_some_and(Definition::follows_wall);
            match blocker.opening {
                _ if blocker.cause == Cause::Turn => self.next_end_of_asking(now),
                Opening::At(at) if follows_wall => Some(at.min(now.at.plus(CALENDAR_LOOK))),
                Opening::At(at) => Some(at),
                Opening::OnRelease => None,
            }
        });
        walls.chain(leases).chain(rests).chain(opens).min()
    }

    /// The queues that have something to try.
    pub fn take_woken(&mut self) -> Vec<QueueName> {
        let queues = self.queues.keys().cloned();
        let now = self.latest;
        let queues = queues.filter(|queue| !self.queues[queue].is_paused);
        queues.filter(|queue| self.candidate(Serving { queue, now }).is_some()).collect()
    }

    fn next_end_of_asking(&self, now: Now) -> Option<Timestamp> {
        let ends = self.queues.values().map(|queue| queue.asks_until);
        ends.filter(|until| *until > now.at).min()
    }

    fn lane_reasons(&self, call: &Call, now: Now) -> Vec<Reason> {
        if let Some(flight) = call.flight() {
            return vec![Reason::InFlight { expires: flight.expires }];
        }
        let mut reasons = Vec::new();
        let Some(queue) = self.queues.get(&call.new.queue) else { return reasons };
        let lane = self.lanes.get(&call.lane_key()).cloned().unwrap_or_default();
        let mut says = |is_so: bool, reason: Reason| reasons.extend(is_so.then_some(reason));
        says(queue.is_paused, Reason::QueuePaused);
        says(lane.is_paused, Reason::LanePaused);
        says(lane.is_held, Reason::LaneHeld);
        if let (None, Some(wall)) = (call.arrival, call.new.not_before) {
            says(true, Reason::NotDue { wall });
        }
        if let Some(until) = call.backoff {
            says(until > now.at, Reason::Resting { until });
        }
        let of_lane = self.calls.values().filter(|other| other.lane_key() == call.lane_key());
        let in_flight = of_lane.filter(|other| other.flight().is_some()).count();
        let in_flight = u32::try_from(in_flight).unwrap_or(u32::MAX);
        says(in_flight >= queue.spec.in_flight_max(), Reason::LaneBusy { in_flight });
        reasons
    }

    fn meter_reasons(&self, call: &Call, now: Now) -> Vec<Reason> {
        let serving = Serving { queue: &call.new.queue, now };
        let ways = lines(&call.new.tolls).into_iter().filter_map(|line| {
            let blocker = self.way(call, &line, serving)?;
            let (limit, partition) = line.meter;
            Some(Reason::Meter { limit, partition, blocker })
        });
        ways.collect()
    }

    /// The calls of its lane that go before a call.
    fn ahead(&self, call: &Call) -> Vec<&Call> {
        let order = self.queues.get(&call.new.queue).map(|queue| queue.spec.order);
        let is_strict = order == Some(Order::Strict);
        let goes_first = |other: &&Call| match is_strict {
            true => (!other.came_back, rank(other)) < (!call.came_back, rank(call)),
            // Whoever rests steps aside.
            false => rank(other) < rank(call) && other.backoff.is_none(),
        };
        let of_lane = self.calls.values().filter(|other| other.lane_key() == call.lane_key());
        let joined = of_lane.filter(|other| other.is_waiting() && other.arrival.is_some());
        joined.filter(goes_first).collect()
    }

    fn not_before(&self, call: &Call, ahead: &[&Call], now: Now) -> Option<Opening> {
        let may_expire = |other: &&Call| other.new.expires.is_some() && other.may_expire();
        let sure: Vec<&Call> = ahead.iter().copied().filter(|other| !may_expire(other)).collect();
        let each = lines(&call.new.tolls).into_iter().map(|line| {
            let before = weight_at(&sure, &line.meter);
            let told = |meter: &Meter, definition: &Definition| {
                meter.not_before(definition, (before, line.weight), now)
            };
            self.opening(&line, told, now)
        });
        Some(each.fold(self.earliest(call, now)?, Opening::max))
    }

    fn expected(&self, call: &Call, ahead: &[&Call], now: Now) -> Option<Opening> {
        let each = lines(&call.new.tolls).into_iter().map(|line| {
            let place = self.place(call, &line.meter);
            let others = self.heads().filter(|(other, head)| {
                stands_at(head, &line.meter)
                    && other.lane_key() != call.lane_key()
                    && self.place(other, &line.meter) < place
            });
            let others: Vec<&Call> = others.map(|(other, _)| other).collect();
            let before =
                weight_at(ahead, &line.meter).saturating_add(weight_at(&others, &line.meter));
            let told = |meter: &Meter, definition: &Definition| {
                meter.opens_behind(definition, (before, line.weight), now)
            };
            self.opening(&line, told, now)
        });
        Some(each.fold(self.earliest(call, now)?, Opening::max))
    }

    /// When a call may be the head at the earliest, with nobody before it.
    fn earliest(&self, call: &Call, now: Now) -> Option<Opening> {
        let is_paused = self.queues.get(&call.new.queue).is_none_or(|queue| queue.is_paused);
        let lane = self.lanes.get(&call.lane_key()).cloned().unwrap_or_default();
        if is_paused || lane.is_paused || lane.is_held || !call.is_waiting() {
            return None;
        }
        let due = call.new.not_before.filter(|_| call.arrival.is_none());
        let joins = due.map_or(now.at, |wall| now.at.plus(wall.since(now.wall)));
        Some(Opening::At(call.backoff.unwrap_or(now.at).max(joins)))
    }

    fn opening(
        &self,
        line: &Line,
        told: impl FnOnce(&Meter, &Definition) -> Opening,
        now: Now,
    ) -> Opening {
        match self.definition(&line.meter).filter(|_| self.shut(line).is_none()) {
            None => Opening::OnRelease,
            Some(definition) => match self.meters.get(&line.meter) {
                Some(meter) => told(meter, definition),
                None => told(&Meter::new(definition, now.at), definition),
            },
        }
    }
}

/// What calls weigh at one meter.
fn weight_at(calls: &[&Call], meter: &MeterKey) -> u64 {
    let owed = calls.iter().flat_map(|call| lines(&call.new.tolls));
    owed.filter(|line| line.meter == *meter).fold(0, |sum, line| sum.saturating_add(line.weight))
}
