//! Events, told as things happen. The reference tells no waits: they are measured by the scheduler
//! alone.

use super::{Call, Naive, State};
use crate::lanes::act::{Settle, Settlement};
use crate::lanes::call::{Attempts, CallId, Death, DeathCause, End};
use crate::lanes::event::{Event, Outcome, What};
use crate::time::Now;

impl Naive {
    /// The events since this was asked last, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn tell(&mut self, id: CallId, at: Now, what: What) {
        let Some(call) = self.calls.get(&id) else { return };
        let (queue, lane) = (call.new.queue.clone(), call.new.lane.clone());
        self.count_event(&queue, call.attempts, &what);
        self.events.push(Event { at, call: id, queue, lane, what });
    }

    /// A start was settled, or its lease ran out (`None`): told before what came of the call, which
    /// was told at `place`.
    pub(super) fn tell_settled(
        &mut self,
        place: usize,
        before: &Call,
        settle: Option<&Settle>,
        now: Now,
    ) {
        let (Some(flight), Some(after)) = (before.flight(), self.calls.get(&before.id)) else {
            return;
        };
        let outcome = match (settle.map(|settle| settle.settlement), &after.state) {
            (None, _) => Outcome::Crashed,
            (Some(_), State::Ended(End::Done)) => Outcome::Done,
            (Some(_), State::Ended(End::Cancelled)) => Outcome::Cancelled,
            (Some(_), State::Dead(_) | State::Ended(_)) => Outcome::Dead,
            (Some(Settlement::Release), _) => Outcome::Released,
            (Some(Settlement::Limited(pause)), _) => Outcome::Limited { until: now.at.plus(pause) },
            (Some(_), _) => Outcome::Failed { again_at: after.backoff.unwrap_or(now.at) },
        };
        let report = settle.map(|settle| settle.report.clone()).unwrap_or_default();
        let (token, attempt, started) = (flight.token, flight.attempt, flight.started);
        let what = What::Settled { token, attempt, started, waits: [].into(), outcome, report };
        let (queue, lane) = (before.new.queue.clone(), before.new.lane.clone());
        self.count_event(&queue, before.attempts, &what);
        self.events.insert(place, Event { at: now, call: before.id, queue, lane, what });
    }
}

impl Call {
    /// How often it was tried.
    pub(super) fn tried(&self) -> u32 {
        let Attempts { failures, crashes, limited } = self.attempts;
        match &self.state {
            State::InFlight(flight) => flight.attempt,
            // To give up is an attempt, too, and counted nowhere.
            State::Dead(Death { cause: DeathCause::GivenUp, .. }) => {
                failures + crashes + limited + 1
            }
            _ => failures + crashes + limited,
        }
    }
}
