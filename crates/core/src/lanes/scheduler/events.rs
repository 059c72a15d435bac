//! Events, made from effects as they are applied: what is told live is what is told when the same
//! effects are applied again.

use super::Scheduler;
use super::calls::{CallSlot, MeterSlot};
use super::throttled::Throttles;
use crate::lanes::act::Door;
use crate::lanes::call::{Attempts, CallId, DeathCause, End, NewCall};
use crate::lanes::effect::Effect;
use crate::lanes::event::{BEGINS_BYTES_MAX, Event, LineWaits, Outcome, Waits, Watch, What};
use crate::lanes::payload::Payload;
use crate::name::LimitName;
use crate::time::{Now, Span, Timestamp};
use crate::toll::Toll;

/// What is known of the events to be made.
#[derive(Debug, Clone, Default)]
pub(super) struct Watching {
    watch: Watch,
    /// When what is being applied happened, as far as effects told.
    told: Option<Now>,
    /// Calls that are accepted may wait for limits that nobody defined.
    may_park: bool,
    /// A start that was settled; what becomes of its call follows.
    settling: Option<Settling>,
    /// Where it was told that calls wait.
    pub(super) throttles: Throttles,
    events: Vec<Event>,
}

#[derive(Debug, Clone)]
struct Settling {
    call: CallId,
    token: u64,
    attempt: u32,
    started: Now,
    waits: Waits,
    at: Now,
    /// Its lease ran out.
    is_crash: bool,
    /// Until when meters were closed for it.
    closed: Option<Timestamp>,
    report: Box<[u8]>,
}

impl Watching {
    /// What is taken apart is applied apart: it must tell its time itself.
    pub(super) fn forget_time(&mut self) {
        self.told = None;
    }

    /// An act begins.
    pub(super) fn enter(&mut self, door: Door) {
        self.may_park = door == Door::Parks;
    }

    /// Whether all events are made.
    pub(super) fn is_all(&self) -> bool {
        self.watch == Watch::Everything
    }

    /// Whether calls that are accepted may wait for limits that nobody defined.
    pub(super) fn may_park(&self) -> bool {
        self.may_park
    }
}

impl Scheduler {
    /// Says which events are made from now on.
    pub fn watch(&mut self, watch: Watch) {
        self.watching.watch = watch;
    }

    /// The events since this was asked last, in order. Kept until someone takes them: who watches
    /// takes them.
    pub fn take_events(&mut self) -> Vec<Event> {
        // Their room is kept for those that follow.
        if self.watching.events.is_empty() {
            return Vec::new();
        }
        // As many are likely to follow.
        let room = Vec::with_capacity(self.watching.events.len());
        std::mem::replace(&mut self.watching.events, room)
    }

    /// As [`Self::take_events`], behind those of a list.
    pub fn move_events(&mut self, events: &mut Vec<Event>) {
        if events.is_empty() {
            std::mem::swap(events, &mut self.watching.events);
        } else {
            events.append(&mut self.watching.events);
        }
    }

    /// Whether an event is made of an effect and nothing says when it happened.
    pub(super) fn lacks_time(&self, effect: &Effect) -> bool {
        let is_watched = match effect {
            Effect::Accepted { call, .. } => match self.watching.watch {
                Watch::Nothing => false,
                Watch::History => self.tells_accepted(call) || self.awaits_limit(call),
                Watch::Everything => true,
            },
            Effect::Ended { .. } | Effect::Revived { .. } => self.watching.watch != Watch::Nothing,
            _ => false,
        };
        is_watched && self.watching.told != Some(self.present)
    }

    /// Makes the events of an effect that is about to be applied.
    #[inline]
    pub(super) fn observe(&mut self, effect: &Effect, found: Option<CallSlot>) {
        if self.watching.watch != Watch::Nothing {
            self.make_events(effect, found);
        }
    }

    /// Of a call in this place, if it was found.
    fn make_events(&mut self, effect: &Effect, found: Option<CallSlot>) {
        self.watching.told = effect.now().or(self.watching.told);
        let is_all = self.watching.is_all();
        match effect {
            Effect::Accepted { id, call, .. } => {
                let tells = self.tells_accepted(call);
                if is_all || tells {
                    let payload = if tells { call.payload.told() } else { Payload::default() };
                    let what = What::Enqueued { payload };
                    let (queue, lane) = (call.queue.clone(), call.lane.clone());
                    let at = self.watching.told.unwrap_or_default();
                    self.watching.events.push(Event { at, call: *id, queue, lane, what });
                }
            }
            Effect::Started { lease, now, waits, .. } if is_all || self.lanes.anyone_tells() => {
                let Some(slot) = found.or_else(|| self.calls.find(lease.call)) else { return };
                let queue = self.lanes[self.calls[slot].lane].queue;
                let is_told = self.lanes.queue(queue).spec.tells_accepted;
                if is_all || is_told {
                    let (attempt, waits) = (self.next_attempt(slot), self.named(slot, waits));
                    let what = What::Started { token: lease.token, attempt, waits, is_told };
                    self.tell(slot, *now, what);
                }
            }
            Effect::Settled { lease, now, report, .. } => {
                let Some(slot) = found.or_else(|| self.in_flight(*lease)) else { return };
                let Some(flight) = self.calls.flight(&self.calls[slot]) else { return };
                self.watching.settling = Some(Settling {
                    call: lease.call,
                    token: lease.token,
                    attempt: self.next_attempt(slot),
                    started: flight.started,
                    waits: self.named(slot, &flight.waits),
                    at: *now,
                    // What is settled in time is settled before its lease ends.
                    is_crash: flight.expires <= now.at,
                    closed: None,
                    report: report.clone(),
                });
            }
            Effect::Closed { id, until, .. } => {
                let settling = self.watching.settling.as_mut();
                if let Some(settling) = settling.filter(|settling| settling.call == *id) {
                    settling.closed = Some(*until);
                }
            }
            Effect::CameBack { id, attempts, eligible } => {
                self.watch_return(*id, *attempts, *eligible);
            }
            Effect::Ended { id, end } => self.watch_end(*id, found, *end),
            Effect::Revived { id, .. } => {
                let Some(slot) = self.calls.find(*id) else { return };
                self.tell(slot, self.watching.told.unwrap_or_default(), What::Revived);
            }
            _ => {}
        }
    }

    /// Whether anything may be told when a call is accepted. Of most calls nothing is, and nothing is looked up.
    #[inline]
    pub(super) fn may_tell_accepted(&self, call: &NewCall) -> bool {
        let is_special = self.watching.may_park || !call.payload.envelope().is_empty();
        self.watching.is_all() || is_special
    }

    /// Whether a call has an envelope, and its queue tells which calls were accepted.
    fn tells_accepted(&self, call: &NewCall) -> bool {
        // Most calls have none, and need not look for their queue.
        let queue = || self.lanes.find(&call.queue);
        let tells = |queue| self.lanes.queue(queue).spec.tells_accepted;
        let has_envelope = !call.payload.envelope().is_empty();
        has_envelope && self.lanes.anyone_tells() && queue().is_some_and(tells)
    }

    /// Whether a call that is about to be accepted owes at a limit that nobody defined.
    fn awaits_limit(&self, call: &NewCall) -> bool {
        // Most acts let none of them in, and need not look for limits.
        let definition = |limit| self.meters.book(limit).definition();
        let is_unknown =
            |toll: &Toll| self.meters.limit(&toll.limit).and_then(definition).is_none();
        self.watching.may_park && call.tolls.iter().any(is_unknown)
    }

    /// The meters of a call whose limits nobody defined.
    pub(super) fn unknown_meters(&self, slot: CallSlot) -> Vec<MeterSlot> {
        let meters = self.calls.lines_at(slot).iter().map(|line| line.meter);
        meters.filter(|meter| self.meters.is_unknown(*meter)).collect()
    }

    /// Tells at which limits that nobody defined a call owes that was just accepted.
    #[inline]
    pub(super) fn watch_unknown(&mut self, slot: CallSlot, call: &NewCall) {
        let lines = self.calls.lines_at(slot);
        let is_unknown = lines.iter().any(|line| self.meters.is_unknown(line.meter));
        if is_unknown && self.watching.watch != Watch::Nothing {
            self.tell_unknown(slot, call);
        }
    }

    #[cold]
    fn tell_unknown(&mut self, slot: CallSlot, call: &NewCall) {
        for meter in self.unknown_meters(slot) {
            let (limit, partition) = self.meters.name(meter);
            let body = call.payload.body();
            let begins = body[..body.len().min(BEGINS_BYTES_MAX)].into();
            let at = self.watching.told.unwrap_or_default();
            self.tell(slot, at, What::Unknown { limit, partition, begins });
        }
    }

    fn watch_return(&mut self, id: CallId, after: Attempts, eligible: Timestamp) {
        let (Some(slot), Some(settling)) = (self.calls.find(id), self.settling_of(id)) else {
            return;
        };
        let before = self.calls.attempts(&self.calls[slot]);
        let outcome = if after.crashes > before.crashes {
            Outcome::Crashed
        } else if after.failures > before.failures {
            Outcome::Failed { again_at: eligible }
        } else if after.limited > before.limited {
            Outcome::Limited { until: settling.closed.unwrap_or(eligible) }
        } else {
            Outcome::Released
        };
        self.tell_settled(slot, settling, outcome);
    }

    fn watch_end(&mut self, id: CallId, found: Option<CallSlot>, end: End) {
        let Some(slot) = found.or_else(|| self.calls.find(id)) else { return };
        let settling = self.settling_of(id);
        let at = settling.as_ref().map(|settling| settling.at).or(self.watching.told);
        let attempts = match &settling {
            Some(settling) => settling.attempt,
            None => self.tried(slot),
        };
        if let Some(settling) = settling {
            let outcome = match end {
                _ if settling.is_crash => Outcome::Crashed,
                End::Done => Outcome::Done,
                End::Cancelled => Outcome::Cancelled,
                End::Dead | End::Expired | End::Superseded | End::Dropped => Outcome::Dead,
            };
            self.tell_settled(slot, settling, outcome);
        }
        self.tell(slot, at.unwrap_or_default(), What::Ended { end, attempts });
    }

    /// The start of a call that was settled just before.
    fn settling_of(&mut self, id: CallId) -> Option<Settling> {
        self.watching.settling.take().filter(|settling| settling.call == id)
    }

    fn tell_settled(&mut self, slot: CallSlot, settling: Settling, outcome: Outcome) {
        let Settling { token, attempt, started, waits, at, report, .. } = settling;
        self.tell(slot, at, What::Settled { token, attempt, started, waits, outcome, report });
    }

    pub(super) fn tell(&mut self, slot: CallSlot, at: Now, what: What) {
        let call = &self.calls[slot];
        let lane = &self.lanes[call.lane];
        let (queue, lane) = (self.lanes.queue(lane.queue).name.clone(), lane.name.clone());
        self.watching.events.push(Event { at, call: call.id, queue, lane, what });
    }

    /// The number of a call's next attempt, or of the one in flight.
    fn next_attempt(&self, slot: CallSlot) -> u32 {
        let Attempts { failures, crashes, limited } = self.calls.attempts(&self.calls[slot]);
        failures.saturating_add(crashes).saturating_add(limited).saturating_add(1)
    }

    /// How often a call that is not in flight was tried. Who gave up a dead one is in no count of its
    /// attempts.
    fn tried(&self, slot: CallSlot) -> u32 {
        let death = self.calls.death(&self.calls[slot]);
        let was_given_up = death.is_some_and(|death| death.cause == DeathCause::GivenUp);
        self.next_attempt(slot) - u32::from(!was_given_up)
    }

    /// Waits by the limits' names; those at two meters of a limit add up.
    fn named(&self, slot: CallSlot, waits: &LineWaits) -> Waits {
        let mut named: Vec<(LimitName, Span)> = Vec::with_capacity(waits.len());
        for (line, span) in waits.iter() {
            let Some(line) = self.calls.lines_at(slot).get(*line) else { continue };
            let (limit, _) = self.meters.name(line.meter);
            match named.iter_mut().find(|(known, _)| *known == limit) {
                Some((_, known)) => *known = known.plus(*span),
                None => named.push((limit, *span)),
            }
        }
        named.into()
    }
}
