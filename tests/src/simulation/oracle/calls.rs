//! What became of each call, as far as the answers tell.

use super::Oracle;
use crate::simulation::run::Checked;
use tollgate_core::lanes::{Attempts, CallId, End, Lease, NewCall, Revive, Settle, Settlement};
use tollgate_core::{Now, Span, Timestamp};

/// The longest time for which an upstream's answer closes a meter.
const CLOSED_MAX: Span = Span::from_days(1);

/// A call that was accepted.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) new: NewCall,
    pub(super) lane: usize,
    pub(super) lines: Vec<Line>,
    pub(super) attempts: Attempts,
    /// Its place among those of its priority in its lane, once it has joined it.
    pub(super) place: Option<u64>,
    pub(super) has_started: bool,
    pub(super) is_cancelled: bool,
    /// It must not start again before.
    pub(super) rests_until: Timestamp,
    pub(super) flight: Option<Flight>,
    pub(super) end: Option<End>,
}

/// All that a call owes at one meter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) meter: usize,
    pub(super) weight: u64,
    pub(super) hears_feedback: bool,
}

/// A start that was not settled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) token: u64,
    pub(super) expires: Timestamp,
}

impl Call {
    /// Of two that have joined: the higher priority, then who came first.
    pub(super) fn goes_before(&self, other: &Self) -> bool {
        let rank = |call: &Self| (std::cmp::Reverse(call.new.priority), call.place);
        rank(self) < rank(other)
    }

    /// It waits, no attempt of it counts, and its time is over.
    pub(super) fn is_too_old(&self, now: Now) -> bool {
        self.may_expire() && self.new.expires.is_some_and(|expires| expires <= now.wall)
    }

    fn may_expire(&self) -> bool {
        self.flight.is_none() && self.attempts == Attempts::default()
    }

    /// Whether something becomes of it by itself.
    pub(super) fn changes_by(&self, now: Now) -> bool {
        self.is_too_old(now) || self.flight.is_some_and(|flight| flight.expires <= now.at)
    }
}

impl Oracle {
    /// Calls whose time has come join their lanes, the first that was due first.
    pub(super) fn join(&mut self, now: Now) {
        let due = |id: &usize| {
            let call = &self.calls[*id];
            let due = call.new.not_before.filter(|_| call.place.is_none())?;
            (due <= now.wall).then_some((due, *id))
        };
        let mut joining: Vec<_> = self.restless.iter().filter_map(due).collect();
        joining.sort_unstable();
        for (_, id) in joining {
            self.calls[id].place = Some(self.places);
            self.places += 1;
        }
    }

    /// The call that a lease holds, if it still does.
    pub(super) fn held(&self, lease: Lease) -> Option<usize> {
        let id = usize::try_from(lease.call.0).ok()?;
        let flight = self.calls.get(id)?.flight?;
        (flight.token == lease.token).then_some(id)
    }

    pub(super) fn renewed(
        &mut self,
        (lease, span): (Lease, Span),
        is_held: bool,
        now: Now,
    ) -> Checked {
        let held = self.held(lease);
        if held.is_some() != is_held {
            return Err(format!("{lease:?} is renewed: {is_held}, and held: {}", held.is_some()));
        }
        let Some(id) = held else { return Ok(()) };
        let Some(flight) = &mut self.calls[id].flight else { return Ok(()) };
        flight.expires = flight.expires.max(now.at.plus(span));
        let expires = flight.expires;
        for line in &self.calls[id].lines {
            self.meters[line.meter].renew(lease.token, expires);
        }
        Ok(())
    }

    pub(super) fn crashed(&mut self, id: usize, now: Now) {
        let call = &mut self.calls[id];
        call.flight = None;
        call.attempts.crashes += 1;
        let is_dead = call.attempts.crashes >= self.spec_of(id).crashes_max;
        self.come_back(id, is_dead, now.at);
    }

    pub(super) fn settle(&mut self, id: usize, settle: &Settle, now: Now) {
        self.calls[id].flight = None;
        for Line { meter, weight, .. } in self.calls[id].lines.clone() {
            let limit = &self.limits[self.meters[meter].limit].name;
            let named = settle.actual.iter().find(|(name, _)| name == limit);
            let actual = match settle.settlement {
                Settlement::Release => 0,
                _ => named.map_or(weight, |(_, actual)| *actual),
            };
            if actual < weight {
                // What is given back lets others start before they were told.
                self.told.clear();
            }
            self.meters[meter].settle(settle.lease.token, actual, now.at);
        }
        let spec = self.spec_of(id).clone();
        let call = &mut self.calls[id];
        match settle.settlement {
            Settlement::Done => self.end(id, End::Done),
            Settlement::Dead => self.end(id, End::Dead),
            Settlement::Release => self.come_back(id, false, now.at),
            Settlement::Retry(after) => {
                call.attempts.failures += 1;
                let failures = call.attempts.failures;
                let after = after.unwrap_or_else(|| spec.backoff.delay(call.id, failures));
                self.come_back(id, failures >= spec.failures_max, now.at.plus(after));
            }
            Settlement::Limited(pause) => {
                call.attempts.limited += 1;
                let is_dead = call.attempts.limited >= spec.limited_max;
                let is_closed = self.close(id, pause, now);
                let rests = if is_closed { Span::ZERO } else { pause };
                self.come_back(id, is_dead, now.at.plus(rests));
            }
        }
    }

    fn come_back(&mut self, id: usize, is_dead: bool, rests_until: Timestamp) {
        let call = &mut self.calls[id];
        call.rests_until = rests_until;
        self.restless.remove(&id);
        match (call.is_cancelled, is_dead) {
            (true, _) => self.end(id, End::Cancelled),
            (false, true) => self.end(id, End::Dead),
            (false, false) if call.may_expire() && call.new.expires.is_some() => {
                self.restless.insert(id);
                self.advanced = None;
            }
            (false, false) => {}
        }
    }

    /// The upstream asked for a pause at the meters that hear of it, or at the first.
    fn close(&mut self, id: usize, pause: Span, now: Now) -> bool {
        let lines = self.calls[id].lines.clone();
        let anyone_hears = lines.iter().any(|line| line.hears_feedback);
        let until = now.at.plus(pause.min(CLOSED_MAX));
        let mut is_closed = false;
        for (at, line) in lines.iter().enumerate() {
            let limit = &self.limits[self.meters[line.meter].limit];
            let closes = match anyone_hears {
                true => line.hears_feedback && limit.is_defined(),
                false => at == 0 && limit.has_rate(),
            };
            if closes {
                let meter = &mut self.meters[line.meter];
                meter.closed_until = meter.closed_until.max(until);
                is_closed = true;
            }
        }
        is_closed
    }

    pub(super) fn cancelled(&mut self, id: CallId, was_there: bool) -> Checked {
        let found = usize::try_from(id.0).ok();
        let found = found.filter(|id| self.open.contains(id) || self.is_dead(*id));
        if found.is_some() != was_there {
            return Err(format!("call {} was there: {was_there}, and is not so", id.0));
        }
        match found {
            Some(id) if self.is_dead(id) => self.bury(id),
            Some(id) if self.calls[id].flight.is_some() => self.calls[id].is_cancelled = true,
            Some(id) => self.end(id, End::Cancelled),
            None => {}
        }
        Ok(())
    }

    pub(super) fn deleted(&mut self, id: CallId, was_dead: bool) -> Checked {
        let found = usize::try_from(id.0).ok().filter(|id| self.is_dead(*id));
        if found.is_some() != was_dead {
            return Err(format!("call {} was dead: {was_dead}, and is not so", id.0));
        }
        found.into_iter().for_each(|id| self.bury(id));
        Ok(())
    }

    /// A dead call ends for good.
    fn bury(&mut self, id: usize) {
        self.calls[id].end = Some(End::Cancelled);
        self.ends.push((self.calls[id].id, End::Cancelled));
        let lane = self.calls[id].lane;
        let mut dead = (0..self.calls.len()).filter(|id| self.is_dead(*id));
        if dead.all(|id| self.calls[id].lane != lane) {
            // Nothing holds the lane any more: those in it may start before they were told.
            self.lanes[lane].is_held = false;
            self.told.clear();
        }
    }

    /// A dead call waits again, as a new one at the end of its lane, or where it was if that was held.
    pub(super) fn revived(&mut self, revive: &Revive, was_dead: bool, now: Now) -> Checked {
        let found = usize::try_from(revive.call.0).ok().filter(|id| self.is_dead(*id));
        if found.is_some() != was_dead {
            return Err(format!("call {} was dead: {was_dead}, and is not so", revive.call.0));
        }
        let Some(id) = found else { return Ok(()) };
        let lane = self.calls[id].lane;
        let was_held = std::mem::take(&mut self.lanes[lane].is_held);
        let is_due = revive.not_before.is_none_or(|due| due <= now.wall);
        let (call, places) = (&mut self.calls[id], self.places);
        call.place = is_due.then(|| call.place.filter(|_| was_held).unwrap_or(places));
        (call.end, call.attempts, call.has_started) = (None, Attempts::default(), false);
        (call.is_cancelled, call.rests_until) = (false, Timestamp::default());
        (call.new.not_before, call.new.expires) = (revive.not_before, None);
        call.new.supersedes = None;
        self.places += 1;
        for line in &self.calls[id].lines {
            self.meters[line.meter].open.insert(id);
        }
        self.open.insert(id);
        self.lanes[lane].open.insert(id);
        if !is_due {
            self.restless.insert(id);
        }
        let queue = self.lanes[lane].queue.clone();
        if let Some(queue) = self.queues.get_mut(&queue) {
            queue.depth += 1;
        }
        // With its old place it may start before others that were told their time.
        self.told.clear();
        Ok(())
    }

    pub(super) fn is_dead(&self, id: usize) -> bool {
        self.calls.get(id).is_some_and(|call| call.end == Some(End::Dead))
    }
}
