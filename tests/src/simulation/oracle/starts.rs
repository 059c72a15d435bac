//! Starts: that each was allowed, was the next of its lane, and that none was left out.

use super::Oracle;
use super::calls::{Call, Flight};
use crate::simulation::record::Expected;
use crate::simulation::run::Checked;
use tollgate_core::lanes::{Order, Started};
use tollgate_core::{Now, QueueName};

impl Oracle {
    pub(super) fn claimed(&mut self, started: &[Started], expected: Expected, now: Now) -> Checked {
        if let (Expected::Nothing, Some(first)) = (expected, started.first()) {
            let call = first.lease.call.0;
            return Err(format!("nothing idles: call {call} could have started before"));
        }
        for started in started {
            let id = usize::try_from(started.lease.call.0).unwrap();
            let fault = self.wrong_start(id, started, now);
            if let Some(fault) = fault.or_else(|| self.out_of_order(id)) {
                return Err(format!("call {id} starts although {fault}"));
            }
            self.start(id, started, now)?;
        }
        Ok(())
    }

    /// What holds a call back, whatever its lane does.
    fn wrong_start(&self, id: usize, started: &Started, now: Now) -> Option<String> {
        let Some(call) = self.calls.get(id) else { return Some("nobody sent it".to_owned()) };
        let lane = &self.lanes[call.lane];
        let fault = match () {
            () if call.end.is_some() => "it ended",
            () if call.flight.is_some() => "it is in flight",
            () if !call.has_joined => "it is not due",
            () if call.rests_until > now.at => "it backs off",
            () if self.queues[&lane.queue].is_paused => "its queue is paused",
            () if lane.is_paused => "its lane is paused",
            () if lane.is_held => "its lane is held",
            () if started.lease.token <= self.token => "its token does not rise",
            () if started.attempts != call.attempts => "its attempts are wrong",
            () if started.expires <= now.at => "its lease is over",
            () if started.lane != lane.name => "it is of another lane",
            () => "",
        };
        if !fault.is_empty() {
            return Some(fault.to_owned());
        }
        let shut = call.lines.iter().find_map(|line| {
            let meter = &self.meters[line.meter];
            let limit = &self.limits[meter.limit];
            let is_closed = meter.closed_until > now.at;
            limit.shut(line.weight).or(is_closed.then_some("the upstream asked for a pause"))
        });
        shut.map(str::to_owned)
    }

    /// Who of its lane should have started instead.
    fn out_of_order(&self, id: usize) -> Option<String> {
        let call = &self.calls[id];
        let others = || self.of_lane(call.lane).filter(|other| other.id != call.id);
        let in_flight = others().filter(|other| other.flight.is_some()).count();
        let order = self.spec_of(id).order;
        let most = match order {
            Order::Strict => 1,
            Order::Parallel(most) => most as usize,
        };
        if in_flight >= most {
            return Some(format!("{in_flight} of its lane are in flight"));
        }
        if order == Order::Strict {
            if let Some(current) = others().find(|other| other.has_started) {
                return Some(format!("call {} of its strict lane is not settled", current.id.0));
            }
            if call.has_started {
                return None;
            }
        }
        let mut waiting = others().filter(|other| !other.has_started && other.is_plain());
        let first = waiting.find(|other| call.is_plain() && other.goes_before(call));
        first.map(|first| format!("call {} of its lane comes first", first.id.0))
    }

    fn of_lane(&self, lane: usize) -> impl Iterator<Item = &Call> {
        let open = self.open.iter().map(|id| &self.calls[*id]);
        open.filter(move |call| call.lane == lane)
    }

    fn start(&mut self, id: usize, started: &Started, now: Now) -> Checked {
        let (token, expires) = (started.lease.token, started.expires);
        self.token = token;
        let call = &mut self.calls[id];
        call.flight = Some(Flight { token, expires });
        call.has_started = true;
        for line in call.lines.clone() {
            let meter = &mut self.meters[line.meter];
            let limit = &self.limits[meter.limit];
            meter.pay(limit, (line.weight, token), (now.at, expires))?;
        }
        Ok(())
    }

    /// A claim that got fewer than it asked for left nobody out who obviously could have started:
    /// the head of a lane that owes nothing, or only where nobody was and nobody else wants to.
    pub(super) fn nothing_idles(&self, queue: &QueueName, now: Now) -> Checked {
        if self.queues[queue].is_paused {
            return Ok(());
        }
        for (at, lane) in self.lanes.iter().enumerate() {
            if lane.queue != *queue || lane.is_paused || lane.is_held {
                continue;
            }
            if let Some(head) = self.head(at, now).filter(|head| self.is_free(head, now)) {
                return Err(format!("nothing idles: call {} could have started", head.id.0));
            }
        }
        Ok(())
    }

    /// The next call of a lane, if that is plain to see.
    fn head(&self, lane: usize, now: Now) -> Option<&Call> {
        let calls = || self.of_lane(lane);
        if calls().any(|call| call.flight.is_some() || !call.is_plain()) {
            return None;
        }
        let rests = |call: &&Call| call.rests_until <= now.at;
        if let Some(back) = calls().find(|call| call.has_started) {
            return Some(back).filter(|_| calls().count() == 1).filter(rests);
        }
        calls().min_by_key(|call| (std::cmp::Reverse(call.new.priority), call.id))
    }

    fn is_free(&self, head: &Call, now: Now) -> bool {
        head.lines.iter().all(|line| {
            let meter = &self.meters[line.meter];
            let limit = &self.limits[meter.limit];
            let pays_here = |call: &Call| call.lines.iter().any(|l| l.meter == line.meter);
            let mut others = self.open.iter().map(|id| &self.calls[*id]);
            limit.shut(line.weight).is_none()
                && meter.closed_until <= now.at
                && meter.is_rested(limit, now.at)
                && !others.any(|other| other.lane != head.lane && pays_here(other))
        })
    }
}
