//! Explaining, from the same books that decide.

use super::Scheduler;
use super::calls::{Call, CallSlot, LaneSlot, Line, Rank};
use super::lanes::Head;
use crate::lanes::call::CallId;
use crate::lanes::explain::{Explanation, Reason};
use crate::lanes::queue::Order;
use crate::limit::Definition;
use crate::meter::Meter;
use crate::rule::Opening;
use crate::time::Now;
use crate::turn::Place;

/// Most calls that are looked at for one explanation: beyond, when it starts cannot be said.
const LOOKED_AT_MAX: usize = 10_000;

impl Scheduler {
    /// Why a call waits, and until when; `None` if there is no such call.
    pub fn explain(&self, id: CallId, now: Now) -> Option<Explanation> {
        let slot = self.calls.find(id).filter(|slot| !self.is_dead(*slot))?;
        let call = &self.calls[slot];
        let ahead =
            (call.has_joined && self.calls.flight(call).is_none()).then(|| self.ahead(call));
        let mut reasons = self.lane_reasons(slot, now);
        let in_lane = ahead.as_ref().map_or(0, |ahead| ahead.calls);
        if in_lane > 0 {
            reasons.push(Reason::Behind { calls: in_lane });
        }
        let not_before = self.not_before(slot, ahead.as_ref(), now);
        let expected = self.expected(slot, ahead.as_ref(), now);
        if self.calls.flight(call).is_none() {
            reasons.extend(self.meter_reasons(slot, now));
        }
        let opening = |opening: Option<Opening>| match opening {
            Some(Opening::At(at)) => Some(at.max(now.at)),
            _ => None,
        };
        Some(Explanation {
            id,
            attempts: self.calls.attempts(call),
            position: ahead.map(|ahead| ahead.calls),
            reasons,
            not_before: opening(not_before),
            expected: opening(expected),
        })
    }

    /// What is in the way in the queue and the lane.
    fn lane_reasons(&self, slot: CallSlot, now: Now) -> Vec<Reason> {
        let call = &self.calls[slot];
        if let Some(flight) = self.calls.flight(call) {
            return vec![Reason::InFlight { expires: flight.expires }];
        }
        let lane = &self.lanes[call.lane];
        let queue = self.lanes.queue(lane.queue);
        let mut reasons = Vec::new();
        reasons.extend(queue.is_paused.then_some(Reason::QueuePaused));
        reasons.extend(lane.is_paused.then_some(Reason::LanePaused));
        reasons.extend(lane.is_held.then_some(Reason::LaneHeld));
        reasons.extend(call.due().map(|wall| Reason::NotDue { wall }));
        let progress = self.calls.progress(call);
        let until = progress.map_or(now.at, |progress| progress.rests_until);
        reasons.extend((until > now.at).then_some(Reason::Resting { until }));
        let in_flight = lane.in_flight;
        let is_busy = in_flight >= queue.spec.in_flight_max();
        reasons.extend(is_busy.then_some(Reason::LaneBusy { in_flight }));
        reasons
    }

    /// What is in the way at its meters, as if it were the head.
    fn meter_reasons(&self, slot: CallSlot, now: Now) -> Vec<Reason> {
        let lane = self.calls[slot].lane;
        let head = self.as_head(lane, slot);
        let ways = (0..self.calls.lines_at(slot).len()).filter_map(|at| {
            let blocker = self.line((lane, head), at, now).way(head.is_senior, now)?;
            let (limit, partition) = self.meters.name(self.calls.lines_at(slot)[at].meter);
            Some(Reason::Meter { limit, partition, blocker })
        });
        ways.collect()
    }

    /// The first instant at which all its meters let it pass, with those of its lane who go before
    /// it, and before which it rests or is not due.
    fn not_before(&self, slot: CallSlot, ahead: Option<&Before>, now: Now) -> Option<Opening> {
        let call = &self.calls[slot];
        let start = self.earliest(call, now)?;
        let each = self.calls.lines(call).iter().map(|line| {
            // Who may end unstarted need not pay before it.
            let pays = |call: &Call| !call.may_expire;
            let before = ahead.map_or(0, |ahead| ahead.weight_at(self, line, pays));
            self.opening(
                line,
                |meter, definition| meter.not_before(definition, (before, line.weight), now),
                now,
            )
        });
        Some(each.fold(start, Opening::max))
    }

    /// As [`Self::not_before`], with those of other lanes who go before it, too.
    fn expected(&self, slot: CallSlot, ahead: Option<&Before>, now: Now) -> Option<Opening> {
        let call = &self.calls[slot];
        let start = self.earliest(call, now)?;
        let ahead = ahead?;
        let mut latest = start;
        for line in self.calls.lines(call) {
            let others = self.standing_before(slot, line)?;
            let before = ahead.weight_at(self, line, |_| true).saturating_add(others);
            let opens = self.opening(
                line,
                |meter, definition| meter.opens_behind(definition, (before, line.weight), now),
                now,
            );
            latest = latest.max(opens);
        }
        Some(latest)
    }

    /// When a call may be the head at the earliest, with nobody before it; `None` if it is in flight
    /// or held back.
    fn earliest(&self, call: &Call, now: Now) -> Option<Opening> {
        let lane = &self.lanes[call.lane];
        let is_held = self.lanes.queue(lane.queue).is_paused || lane.is_paused || lane.is_held;
        if is_held || self.calls.flight(call).is_some() {
            return None;
        }
        let progress = self.calls.progress(call);
        let rests = progress.map_or(now.at, |progress| progress.rests_until);
        let joins = call.due().map_or(now.at, |wall| now.at.plus(wall.since(now.wall)));
        Some(Opening::At(rests.max(joins)))
    }

    /// When a line opens, as its meter tells.
    fn opening(
        &self,
        line: &Line,
        told: impl FnOnce(&Meter, &Definition) -> Opening,
        now: Now,
    ) -> Opening {
        let Some(definition) = self.meters.definition(line.meter) else {
            return Opening::OnRelease;
        };
        if self.meters.is_paused(line.meter) || line.weight > definition.capacity() {
            return Opening::OnRelease;
        }
        match self.meters[line.meter].meter.as_deref() {
            Some(meter) => told(meter, definition),
            None => told(&Meter::new(definition, now.at), definition),
        }
    }

    /// What the heads of other lanes weigh that go before a call at one of its meters.
    fn standing_before(&self, slot: CallSlot, line: &Line) -> Option<u64> {
        let lane = self.calls[slot].lane;
        let place = self.place_at(lane, slot, line);
        let crowds = self.meters[line.meter].crowds.iter();
        let before = crowds
            .flat_map(|crowd| crowd.standing.iter().take_while(move |(other, _)| *other < place));
        let mut weight = 0_u64;
        for (count, (_, other)) in before.enumerate() {
            if count >= LOOKED_AT_MAX {
                return None;
            }
            let head = self.lanes[other].head.filter(|_| other != lane);
            let lines = head.map(|head| self.calls.lines_at(head.call));
            let owed = lines.and_then(|lines| lines.iter().find(|one| one.meter == line.meter));
            weight = weight.saturating_add(owed.map_or(0, |owed| owed.weight));
        }
        Some(weight)
    }

    fn place_at(&self, lane: LaneSlot, slot: CallSlot, line: &Line) -> Place {
        let head = self.as_head(lane, slot);
        let at = self.calls.lines_at(slot).iter().position(|one| one.meter == line.meter);
        self.place(lane, head, at.unwrap_or(0))
    }

    /// The head that a call is, or would be.
    fn as_head(&self, lane: LaneSlot, slot: CallSlot) -> Head {
        let head = self.lanes[lane].head.filter(|head| head.call == slot);
        head.unwrap_or(Head::new(slot))
    }

    /// The calls of its lane that go before a call.
    fn ahead(&self, call: &Call) -> Before {
        let lane = &self.lanes[call.lane];
        let is_strict = self.lanes.queue(lane.queue).spec.order == Order::Strict;
        let own = call.rank();
        let came_back = call.progress.is_some();
        // In a strict lane whoever came back goes first; in a parallel one whoever rests steps aside.
        let goes_first = |rank: &Rank, is_back: bool| match is_strict {
            true => (!is_back, *rank) < (!came_back, own),
            false => *rank < own,
        };
        let returned = || lane.returned().into_iter();
        let back = returned().flat_map(|returned| returned.back.iter());
        let resting = returned().flat_map(|returned| returned.resting.iter());
        let returned = back.chain(resting.filter(|_| is_strict));
        let returned = returned.filter(|(rank, _)| goes_first(rank, true));
        let waiting = lane.waiting.iter();
        let waiting = waiting.take_while(|call| goes_first(&self.calls[*call].rank(), false));
        let first: Vec<_> = returned.map(|(_, call)| call).chain(waiting).collect();
        Before { calls: first.len() as u64, first }
    }
}

/// The calls that go before another in its lane.
struct Before {
    calls: u64,
    first: Vec<CallSlot>,
}

impl Before {
    /// What those of them that pay weigh at one meter.
    fn weight_at(&self, scheduler: &Scheduler, line: &Line, pays: impl Fn(&Call) -> bool) -> u64 {
        let owed = self.first.iter().filter_map(|call| {
            let call = Some(&scheduler.calls[*call]).filter(|call| pays(call))?;
            scheduler.calls.lines(call).iter().find(|one| one.meter == line.meter)
        });
        owed.fold(0, |sum, owed| sum.saturating_add(owed.weight))
    }
}
