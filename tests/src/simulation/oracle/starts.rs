//! Starts: that each was allowed, was the next of its lane, and that none was left out.

use super::Oracle;
use super::calls::{Call, Flight};
use crate::simulation::record::Expected;
use crate::simulation::run::Checked;
use tollgate_core::lanes::{Order, Started};
use tollgate_core::{Now, QueueName, Span};

impl Oracle {
    pub(super) fn claimed(
        &mut self,
        started: &[Started],
        expected: Expected,
        lease: Option<Span>,
        now: Now,
    ) -> Checked {
        if let (Expected::Nothing, Some(first)) = (expected, started.first()) {
            let call = first.lease.call.0;
            return Err(format!("nothing idles: call {call} could have started before"));
        }
        if let Expected::Start(id) = expected
            && !started.iter().any(|started| started.lease.call == id)
        {
            return Err(format!("nothing idles: call {} was told to start now", id.0));
        }
        for started in started {
            let id = usize::try_from(started.lease.call.0).unwrap();
            let fault = self.wrong_start(id, started, now);
            if let Some(fault) = fault.or_else(|| self.out_of_order(id, now)) {
                return Err(format!("call {id} starts although {fault}"));
            }
            let lease = lease.unwrap_or(self.spec_of(id).lease);
            if started.expires != now.at.plus(lease) {
                return Err(format!("call {id} is leased until {:?}, not for {lease}", started));
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
            () if call.place.is_none() => "it is not due",
            () if call.rests_until > now.at => "it backs off",
            () if self.queues[&lane.queue].is_paused => "its queue is paused",
            () if lane.is_paused => "its lane is paused",
            () if lane.is_held => "its lane is held",
            () if started.lease.token <= self.token => "its token does not rise",
            () if started.attempts != call.attempts => "its attempts are wrong",
            () if started.lane != lane.name => "it is of another lane",
            () => "",
        };
        if !fault.is_empty() {
            return Some(fault.to_owned());
        }
        if let Some((until, when)) = self.told.get(&call.id).filter(|told| told.0 > now.at) {
            let (until, when) = (until.as_nanos(), when.as_nanos());
            return Some(format!("it was told at {when} not to start before {until}"));
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
    fn out_of_order(&self, id: usize, now: Now) -> Option<String> {
        let call = &self.calls[id];
        let (in_flight, most) = self.flights(call.lane);
        if in_flight >= most {
            return Some(format!("{in_flight} of its lane are in flight, and {most} may be"));
        }
        let first = self.ahead_of(call, now).next()?;
        let why = match self.spec_of(id).order {
            Order::Strict if first.has_started => "is not settled and comes first",
            _ => "comes first",
        };
        Some(format!("call {} of its lane {why}", first.id.0))
    }

    fn start(&mut self, id: usize, started: &Started, now: Now) -> Checked {
        let (token, expires) = (started.lease.token, started.expires);
        self.token = token;
        self.told.remove(&started.lease.call);
        self.restless.insert(id);
        let call = &mut self.calls[id];
        call.flight = Some(Flight { token, expires });
        call.has_started = true;
        for line in call.lines.clone() {
            let meter = &mut self.meters[line.meter];
            let limit = &self.limits[meter.limit];
            meter.pay(limit, (line.weight, token), (now, expires))?;
        }
        Ok(())
    }

    /// A claim that got fewer than it asked for left nobody out who obviously could have started:
    /// the head of a lane that owes nothing, or only where nobody was and nobody else wants to.
    pub(super) fn nothing_idles(&self, queue: &QueueName, now: Now) -> Checked {
        let lanes = self.lanes.iter().enumerate().filter(|(_, lane)| lane.queue == *queue);
        for (at, _) in lanes.filter(|(_, lane)| !lane.open.is_empty()) {
            if let Some(head) = self.head(at, now).filter(|head| self.is_free(head, now)) {
                return Err(format!("nothing idles: call {} could have started", head.id.0));
            }
        }
        Ok(())
    }

    fn is_free(&self, head: &Call, now: Now) -> bool {
        head.lines.iter().all(|line| {
            let meter = &self.meters[line.meter];
            let limit = &self.limits[meter.limit];
            let mut others = meter.open.iter().map(|id| &self.calls[*id]);
            limit.shut(line.weight).is_none()
                && meter.closed_until <= now.at
                && self.knows_wall(limit, now)
                && !others.any(|other| other.lane != head.lane)
                && meter.is_rested(limit, now)
        })
    }
}
