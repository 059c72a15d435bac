//! Explanations: everything that is told is so, and nothing that is in the way is left out.

use super::Oracle;
use super::calls::{Call, Line};
use crate::simulation::run::Checked;
use tollgate_core::lanes::{CallId, Explanation, Reason};
use tollgate_core::{Blocker, Cause, Now, Opening, QueueName, Timestamp};

impl Oracle {
    /// The calls of a queue that have not ended.
    pub(in crate::simulation) fn open_of(&self, queue: &QueueName) -> Vec<CallId> {
        let open = self.open.iter().map(|id| &self.calls[*id]);
        open.filter(|call| call.new.queue == *queue).map(|call| call.id).collect()
    }

    /// The waiting calls that share neither lane nor meters with any other, that nothing holds back
    /// but time, and that do not end by themselves: each starts at the very instant it is told.
    pub(in crate::simulation) fn alone(&self, now: Now) -> Vec<(QueueName, CallId)> {
        let is_alone = |call: &&Call| {
            call.flight.is_none()
                && call.new.expires.is_none()
                && !self.is_held_back(call.lane)
                && self.lanes[call.lane].open.len() == 1
                && call.lines.iter().all(|line| {
                    let meter = &self.meters[line.meter];
                    let limit = &self.limits[meter.limit];
                    let is_shut = limit.shut(line.weight).is_some();
                    meter.open.len() == 1 && !is_shut && self.knows_wall(limit, now)
                })
        };
        let alone = self.open.iter().map(|id| &self.calls[*id]).filter(is_alone);
        alone.map(|call| (call.new.queue.clone(), call.id)).collect()
    }

    /// Judges what is told of a call that has not ended.
    pub(in crate::simulation) fn explained(
        &mut self,
        id: CallId,
        told: &Explanation,
        now: Now,
    ) -> Checked {
        let call = &self.calls[usize::try_from(id.0).unwrap()];
        let fault = self.lane_fault(call, told, now);
        let fault =
            fault.or_else(|| call.lines.iter().find_map(|l| self.meter_fault(l, told, now)));
        if let Some(fault) = fault.or_else(|| self.time_fault(call, told, now)) {
            return Err(format!("call {} is told wrongly: {fault}: {told:?}", id.0));
        }
        let is_unhindered = told.reasons.is_empty() && !self.may_be_preceded(call, now);
        self.unhindered.extend(is_unhindered.then_some(id));
        if let Some(not_before) = told.not_before {
            self.told.insert(id, (not_before, now.at));
        }
        Ok(())
    }

    /// Calls with no reason to wait have started: `queue` was asked with hands enough.
    pub(super) fn all_started(&self, unhindered: &[CallId], queue: &QueueName) -> Checked {
        for id in unhindered {
            let call = &self.calls[usize::try_from(id.0).unwrap()];
            if call.new.queue == *queue && call.flight.is_none() && call.end.is_none() {
                return Err(format!("call {} had no reason to wait and did not start", id.0));
            }
        }
        Ok(())
    }

    /// Whether a call without a reason to wait may yet be kept from starting. A claim tries the
    /// calls of its queue: one of no lower priority that pays at one of its meters may take what is
    /// there, or come to stand there first, if its lane was served less. Nobody else may; but a wall
    /// clock that was set is noticed within a minute only.
    fn may_be_preceded(&self, call: &Call, now: Now) -> bool {
        let limit_of = |line: &Line| &self.limits[self.meters[line.meter].limit];
        if call.lines.iter().any(|line| !self.knows_wall(limit_of(line), now)) {
            return true;
        }
        let at_its_meters = call.lines.iter().flat_map(|line| &self.meters[line.meter].open);
        at_its_meters.map(|id| &self.calls[*id]).any(|other| {
            other.lane != call.lane
                && other.new.queue == call.new.queue
                && other.flight.is_none()
                && other.place.is_some()
                && !self.is_held_back(other.lane)
                && other.new.priority >= call.new.priority
        })
    }

    /// What is told of its lane is exactly what is in its way there.
    fn lane_fault(&self, call: &Call, told: &Explanation, now: Now) -> Option<String> {
        let lane = &self.lanes[call.lane];
        let mut due = vec![];
        let ahead = self.ahead_of(call, now).count() as u64;
        if let Some(flight) = call.flight {
            due.push(Reason::InFlight { expires: flight.expires });
        } else {
            let (in_flight, most) = self.flights(call.lane);
            let wall = call.new.not_before.filter(|_| call.place.is_none());
            let until = Some(call.rests_until).filter(|until| *until > now.at);
            due.extend(self.queues[&lane.queue].is_paused.then_some(Reason::QueuePaused));
            due.extend(lane.is_paused.then_some(Reason::LanePaused));
            due.extend(lane.is_held.then_some(Reason::LaneHeld));
            due.extend(wall.map(|wall| Reason::NotDue { wall }));
            due.extend(until.map(|until| Reason::Resting { until }));
            let in_flight = u32::try_from(in_flight).unwrap();
            due.extend((in_flight as usize >= most).then_some(Reason::LaneBusy { in_flight }));
            let is_behind = ahead > 0 && call.place.is_some();
            due.extend(is_behind.then_some(Reason::Behind { calls: ahead }));
        }
        let of_lane = told.reasons.iter().filter(|reason| !matches!(reason, Reason::Meter { .. }));
        let of_lane: Vec<_> = of_lane.filter(|_| call.flight.is_none()).cloned().collect();
        let position = call.place.map(|_| ahead);
        match () {
            () if told.attempts != call.attempts => Some("its attempts".to_owned()),
            () if call.flight.is_some() => {
                (!told.reasons.contains(&due[0])).then(|| format!("{due:?} is in its way"))
            }
            () if of_lane.len() != due.len() || due.iter().any(|due| !of_lane.contains(due)) => {
                Some(format!("{due:?} is in its way"))
            }
            () if told.position != position => Some(format!("its position is {position:?}")),
            () => None,
        }
    }

    /// What is told of a meter is so, and whatever is in its way there is told.
    fn meter_fault(&self, line: &Line, told: &Explanation, now: Now) -> Option<String> {
        let meter = &self.meters[line.meter];
        let limit = &self.limits[meter.limit];
        let call = &self.calls[usize::try_from(told.id.0).unwrap()];
        let is_here = |reason: &&Reason| match reason {
            Reason::Meter { limit: name, partition, .. } => {
                *name == limit.name && *partition == meter.partition
            }
            _ => false,
        };
        let here = told.reasons.iter().find(is_here);
        let blocker = here.and_then(|reason| match reason {
            Reason::Meter { blocker, .. } => Some(*blocker),
            _ => None,
        });
        if call.flight.is_some() {
            return blocker.map(|_| "it is in flight and waits for a meter".to_owned());
        }
        let shut = limit.shut(line.weight);
        let closed = Opening::At(meter.closed_until);
        let Some(Blocker { cause, opening, .. }) = blocker else {
            let broken = meter.broken_by(limit, line.weight, now);
            let is_closed = meter.closed_until > now.at;
            let closed = is_closed.then(|| "a meter is closed".to_owned());
            return shut.map(str::to_owned).or(broken).or(closed);
        };
        let is_told = match cause {
            Cause::Missing => shut == Some("its limit is missing"),
            Cause::Paused => shut == Some("its limit is paused"),
            Cause::Impossible => shut == Some("it can never pass"),
            _ if shut.is_some() => false,
            Cause::Closed => meter.closed_until > now.at && opening == closed,
            // While it is closed, nothing that opens earlier is what is in the way.
            _ if meter.closed_until > now.at && opening < closed => false,
            Cause::Spent => opening > Opening::At(now.at) && !meter.is_rested(limit, now),
            Cause::Slots => meter.is_held(now),
            Cause::Turn => meter.open.iter().any(|id| {
                let other = &self.calls[*id];
                other.lane != call.lane && other.flight.is_none() && other.place.is_some()
            }),
            _ => false,
        };
        (!is_told).then(|| format!("{cause:?} is not what is in its way at a meter"))
    }

    /// When it starts at the earliest is told unless nobody can know, and is no earlier than what is
    /// known to hold it back.
    fn time_fault(&self, call: &Call, told: &Explanation, now: Now) -> Option<String> {
        let mut lines = call.lines.iter();
        let is_unknown = call.flight.is_some()
            || self.is_held_back(call.lane)
            || lines.any(|l| self.limits[self.meters[l.meter].limit].shut(l.weight).is_some());
        let Some(not_before) = told.not_before else {
            return (!is_unknown).then(|| "its time can be known".to_owned());
        };
        let wall = call.new.not_before.filter(|_| call.place.is_none());
        let joins = wall.map(|wall| now.at.plus(wall.since(now.wall)));
        let closures = call.lines.iter().map(|line| self.meters[line.meter].closed_until);
        let least = closures.chain(joins).fold(now.at.max(call.rests_until), Timestamp::max);
        match () {
            () if is_unknown => Some("nobody can know its time".to_owned()),
            () if not_before < least => Some(format!("it waits until {}", least.as_nanos())),
            () if told.expected.is_some_and(|expected| expected < not_before) => {
                Some("it is expected before it may start".to_owned())
            }
            () => None,
        }
    }
}
