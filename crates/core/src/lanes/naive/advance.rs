//! What is due happens: joins, expiries, lost leases, ends of backoffs, forgotten keys.

use super::ways::stands_at;
use super::{Call, Naive, State};
use crate::lanes::call::{CallId, DeathCause, End};
use crate::time::{Now, Timestamp};

impl Naive {
    /// Does what is due by now.
    pub fn advance(&mut self, now: Now) {
        self.latest = now;
        self.level();
        self.join_what_is_due(now);
        self.expire(now);
        self.expire_leases(now);
        self.end_backoffs(now);
        self.dedupes.retain(|_, (_, until)| *until > now.at);
        self.settled.retain(|_, until| *until > now.at);
        self.refresh_heads();
    }

    /// A meter at which nobody stands counts from where its lanes were served farthest.
    fn level(&mut self) {
        for ((_, meter), finish) in &self.finishes {
            if !self.heads.values().any(|head| stands_at(head, meter)) {
                let vtime = self.vtimes.entry(meter.clone()).or_default();
                *vtime = (*finish).max(*vtime);
            }
        }
    }

    fn join_what_is_due(&mut self, now: Now) {
        let apart = self.calls.values().filter(|call| call.is_waiting() && call.arrival.is_none());
        let due = apart.filter_map(|call| {
            let not_before = call.new.not_before?;
            (not_before <= now.wall).then_some((not_before, call.id))
        });
        let mut due: Vec<(Timestamp, CallId)> = due.collect();
        due.sort_unstable();
        for (_, id) in due {
            let arrival = self.take_arrival();
            if let Some(call) = self.calls.get_mut(&id) {
                call.arrival = Some(arrival);
            }
        }
    }

    fn expire(&mut self, now: Now) {
        let is_old = |call: &&Call| call.new.expires.is_some_and(|expires| expires <= now.wall);
        let unmade = self.calls.values().filter(|call| call.may_expire());
        let expired: Vec<CallId> = unmade.filter(is_old).map(|call| call.id).collect();
        for id in expired {
            self.end_call(id, End::Expired);
        }
    }

    fn expire_leases(&mut self, now: Now) {
        let lost = self.calls.values().filter_map(|call| {
            let flight = call.flight()?;
            (flight.expires <= now.at).then_some((flight.expires, flight.token, call.id))
        });
        let mut lost: Vec<(Timestamp, u64, CallId)> = lost.collect();
        lost.sort_unstable();
        for (_, _, id) in lost {
            self.crash(id, now);
        }
    }

    fn crash(&mut self, id: CallId, now: Now) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let (before, place) = (call.clone(), self.events.len());
        call.attempts.crashes = call.attempts.crashes.saturating_add(1);
        let crashes = call.attempts.crashes;
        let Some(queue) = self.queues.get(&call.new.queue) else { return };
        let death = (crashes >= queue.spec.crashes_max).then_some(DeathCause::Crashed);
        self.come_back(id, death, now.at, now);
        self.tell_settled(place, &before, None, now);
    }

    fn end_backoffs(&mut self, now: Now) {
        for call in self.calls.values_mut() {
            call.backoff = call.backoff.filter(|until| *until > now.at);
        }
    }

    /// The number of the next call that joins its lane.
    pub(super) fn take_arrival(&mut self) -> u64 {
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        arrival
    }

    /// A start is over and the call is to be tried again from `eligible` on, unless it was taken
    /// back or dies of having been tried too often.
    pub(super) fn come_back(
        &mut self,
        id: CallId,
        death: Option<DeathCause>,
        eligible: Timestamp,
        now: Now,
    ) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        if call.flight().is_some_and(|flight| flight.is_cancelled) {
            self.end_call(id, End::Cancelled);
        } else if let Some(cause) = death {
            self.die(id, cause, now);
        } else {
            call.state = State::Waiting;
            call.came_back = true;
            call.backoff = Some(eligible).filter(|until| *until > now.at);
        }
    }
}
