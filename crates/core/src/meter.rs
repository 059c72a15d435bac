//! A meter: a limit's state for one partition. Says when a weight passes, takes payment, settles.

mod carry;
mod ledger;
#[cfg(test)]
mod model;
pub mod plain;
#[cfg(test)]
mod properties;
mod settle;
mod step;
mod words;

use crate::limit::Definition;
use crate::rule::slots::HoldId;
use crate::rule::{Opening, Rule, RuleState};
use crate::time::{Now, Span, Timestamp};
use ledger::Ledger;
use smallvec::SmallVec;
pub(crate) use step::earlier;
pub(crate) use words::Words;

/// Longest time an upstream's answer may close a meter.
pub const CLOSED_MAX: Span = Span::from_days(1);

/// How long a meter on a calendar is kept after it was paid: further back a clock is not set.
const CALENDAR_KEPT: Span = Span::from_days(7);

/// How long slots may be held by someone of whom nothing is known: what a pass of a process that is gone
/// holds is free by then.
const LOST_HELD: Span = Span::from_secs(60);

/// State of one limit for one partition.
// Invariant: one ledger for each rule of the definition that the meter is used with, of its kind.
#[derive(Debug, Clone)]
pub struct Meter {
    ledgers: SmallVec<[Ledger; 1]>,
    closed: Option<Closed>,
    /// The latest payment: a receipt remembers its place among them.
    sequence: u64,
    /// A receipt from before belongs to a meter that was as good as new since.
    born: Timestamp,
    /// When it was paid last.
    paid: Timestamp,
    /// Payments up to this one were made under other rules, or forgotten.
    changed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Closed {
    until: Timestamp,
    reason: Box<str>,
}

/// Why a weight does not pass a meter now, and when it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocker {
    /// What is in the way.
    pub cause: Cause,
    /// Which of the limit's rules opens last.
    pub rule: usize,
    /// When it opens.
    pub opening: Opening,
}

/// What is in the way of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The rate is used up; the wait is computed.
    Spent,
    /// All slots are held.
    Slots,
    /// The upstream asked for a pause, or an operator closed it.
    Closed,
    /// Another call has the turn.
    Turn,
    /// The limit was changed so that this weight can never pass.
    Impossible,
    /// The limit was removed.
    Missing,
    /// An operator holds the limit back.
    Paused,
}

impl Cause {
    /// In words, after the name of the limit: "… refuses: …".
    pub fn reason(self) -> &'static str {
        match self {
            Self::Spent => "its rate is used up",
            Self::Slots => "all its slots are held",
            Self::Closed => "it is closed",
            Self::Turn => "calls that came before are waiting",
            Self::Paused => "it is paused",
            Self::Missing => "it was removed",
            Self::Impossible => "it lets no such weight pass",
        }
    }
}

/// How a meter stands: its tightest rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The number in that rule: per period, or at a time.
    pub limit: u64,
    /// The period of that rule; none for concurrency.
    pub per: Option<Span>,
    /// Units that would pass now; negative under debt.
    pub remaining: i64,
    /// How long until the meter is as new, slots aside.
    pub reset_after: Span,
}

impl Standing {
    /// Of no meter at all.
    pub const NOTHING: Self = Self { limit: 0, per: None, remaining: 0, reset_after: Span::ZERO };
}

/// What counts at one rule of a meter now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleUse {
    /// The number in the rule: per period, or at a time.
    pub limit: u64,
    /// The period; none for concurrency.
    pub per: Option<Span>,
    /// Slots that are held; of a fixed window what was spent in it, of other rates what is missing.
    pub used: u64,
    /// When the window that counts opened, in limit time; `None` if none does, and of rules whose
    /// windows do not open with a call.
    pub opened: Option<Timestamp>,
}

/// Proof that a weight was paid at one meter: what settling needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payment {
    /// What was paid.
    pub weight: u64,
    /// When it was recorded.
    pub paid_at: Timestamp,
    /// When the call may start: later than `paid_at` if it was reserved.
    pub starts: Now,
    /// The slots it holds, if the limit has any.
    pub hold: Option<HoldId>,
    /// Its place among the meter's payments.
    pub sequence: u64,
    /// Bit i: rule i keeps it as a promise until it starts.
    pub promised: u8,
}

/// How a call takes slots: under which name, and until when at the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holding {
    /// A name higher than any that was used before.
    pub id: HoldId,
    /// `Timestamp::MAX`: until it is let go.
    pub expires: Timestamp,
}

impl Meter {
    /// A meter from which nothing is missing.
    pub fn new(definition: &Definition, now: Timestamp) -> Self {
        let ledgers = definition.rules().iter().map(|rule| Ledger::new(rule.fresh())).collect();
        Self {
            ledgers,
            closed: None,
            sequence: 0,
            born: now,
            paid: Timestamp::default(),
            changed: 0,
        }
    }

    /// A meter of which it is not known what was spent before `lost`: as if that were all. Slots are
    /// taken to be held for as long as a holder that is gone could have held them.
    pub fn spent(definition: &Definition, lost: Now, now: Now) -> Self {
        let mut meter = Self::new(definition, now.at);
        for (rule, ledger) in pairs_mut(&mut meter.ledgers, definition) {
            match &mut ledger.state {
                RuleState::Slots(slots) => {
                    slots.hold(HoldId(0), rule.capacity(), lost.at.plus(LOST_HELD));
                    slots.expire(now.at);
                }
                state => rule.pay(state, rule.capacity(), lost),
            }
        }
        meter
    }

    /// The place of its latest payment.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// When it was paid last.
    pub fn latest(&self) -> Timestamp {
        self.paid
    }

    /// For how long it must be kept: after that nobody would notice if it were forgotten.
    pub fn kept_for(&self, definition: &Definition, now: Now) -> Span {
        let fresh = self.pairs(definition).map(|(rule, ledger)| match ledger.fresh_at(rule, now) {
            Opening::At(at) => at,
            Opening::OnRelease => Timestamp::MAX,
        });
        let closed = self.closed.as_ref().map_or(now.at, |closed| closed.until);
        let kept = if definition.follows_wall() { CALENDAR_KEPT } else { Span::from_nanos(1) };
        fresh.fold(closed.max(self.paid.plus(kept)), Timestamp::max).since(now.at)
    }

    /// Why `weight` does not pass now; `None` if it does.
    pub fn blocker(&self, definition: &Definition, weight: u64, now: Now) -> Option<Blocker> {
        if weight > definition.capacity() {
            let (cause, opening) = (Cause::Impossible, Opening::OnRelease);
            return Some(Blocker { cause, rule: 0, opening });
        }
        let mut last = self.last_blocker(definition, weight, now)?;
        // What passes ahead of a promise may not pass behind it: where one rule opens, another may
        // have closed, and each such step leaves a promise behind.
        for _ in 0..self.ledgers.iter().map(Ledger::promised).sum() {
            let Opening::At(opens) = last.opening else { break };
            let next = self.last_blocker(definition, weight, now.moved_to(opens));
            let Some(next) = next else { break };
            last = next;
        }
        Some(last)
    }

    /// What opens last of all that is in the way at this instant.
    fn last_blocker(&self, definition: &Definition, weight: u64, now: Now) -> Option<Blocker> {
        let mut last = self.closed_blocker(now);
        for (index, (rule, ledger)) in self.pairs(definition).enumerate() {
            let opening = ledger.opens(rule, weight, now);
            let opens_later = last.is_none_or(|last| last.opening < opening);
            if opening > Opening::At(now.at) && opens_later {
                let cause = if rule.is_rate() { Cause::Spent } else { Cause::Slots };
                last = Some(Blocker { cause, rule: index, opening });
            }
        }
        last
    }

    /// The first instant at which `weight` passes once `ahead` has passed before it, packed
    /// without waste: the wait told to who may not overtake.
    pub fn opens_behind(
        &self,
        definition: &Definition,
        (ahead, weight): (u64, u64),
        now: Now,
    ) -> Opening {
        let slots = self.pairs(definition).filter(|(rule, _)| !rule.is_rate());
        let slots = slots.map(|(rule, ledger)| ledger.opens(rule, weight, now));
        slots.fold(self.not_before(definition, (ahead, weight), now), Opening::max)
    }

    /// As [`Meter::opens_behind`] by the rates and closures alone: slots may be let go at any time,
    /// and before this instant nothing helps.
    pub fn not_before(
        &self,
        definition: &Definition,
        (ahead, weight): (u64, u64),
        now: Now,
    ) -> Opening {
        let total = ahead.saturating_add(weight);
        let closed = self.closed_blocker(now).map_or(Opening::At(now.at), |b| b.opening);
        let rates = self.pairs(definition).filter(|(rule, _)| rule.is_rate());
        let rates = rates.map(|(rule, ledger)| {
            ledger.opens(rule, weight, now).max(rule.opens(&ledger.state, total, now))
        });
        rates.fold(closed, Opening::max)
    }

    /// Takes `weight` for a call that starts at `start`, now or later; the caller has checked that
    /// it passes then. A limit with slots needs a holding.
    pub fn pay(
        &mut self,
        definition: &Definition,
        weight: u64,
        (now, start): (Now, Timestamp),
        holding: Option<Holding>,
    ) -> Payment {
        let starts = now.moved_to(start.max(now.at));
        // Holds are named in ascending order, across all meters: so a payment's place says the same
        // whether or not the meter was forgotten before.
        let sequence = holding.map_or(self.sequence + 1, |holding| holding.id.0);
        self.sequence = self.sequence.max(sequence);
        self.paid = self.paid.max(now.at);
        let mut promised = 0;
        for (index, (rule, ledger)) in pairs_mut(&mut self.ledgers, definition).enumerate() {
            if let (RuleState::Slots(slots), Some(holding)) = (&mut ledger.state, holding) {
                slots.expire(now.at);
                slots.hold(holding.id, weight, holding.expires);
            } else if ledger.pay(rule, weight, (now, starts)) {
                promised |= 1 << index;
            }
        }
        let hold = holding.filter(|_| definition.has_slots()).map(|holding| holding.id);
        Payment { weight, paid_at: now.at, starts, hold, sequence, promised }
    }

    /// Lets nothing pass before `until`, at most a day from now. A meter already closed for longer
    /// stays so.
    pub fn close(&mut self, until: Timestamp, reason: &str, now: Timestamp) {
        let until = until.min(now.plus(CLOSED_MAX));
        if self.closed.as_ref().is_none_or(|closed| closed.until < until) {
            self.closed = Some(Closed { until, reason: reason.into() });
        }
    }

    /// Ends a closure. Says whether there was one.
    pub fn reopen(&mut self) -> bool {
        self.closed.take().is_some()
    }

    /// Until when and why the meter is closed.
    pub fn closed(&self, now: Timestamp) -> Option<(Timestamp, &str)> {
        let closed = self.closed.as_ref().filter(|closed| closed.until > now)?;
        Some((closed.until, &closed.reason))
    }

    /// Whether it could be forgotten without anyone noticing: it is as new, and not at the instant
    /// of a payment, which would be taken for one to the meter that comes after.
    ///
    /// One that follows a calendar is kept longer: the wall clock may be set back into a window that
    /// was paid in.
    pub fn is_forgettable(&self, definition: &Definition, now: Now) -> bool {
        let kept = if definition.follows_wall() { CALENDAR_KEPT } else { Span::from_nanos(1) };
        let is_past = self.sequence == 0 || self.paid.plus(kept) <= now.at;
        is_past && self.is_fresh(definition, now)
    }

    /// Whether nothing is missing from it.
    pub fn is_fresh(&self, definition: &Definition, now: Now) -> bool {
        self.closed(now.at).is_none()
            && self.pairs(definition).all(|(rule, ledger)| ledger.is_fresh(rule, now))
    }

    /// How the meter stands: its tightest rule.
    pub fn standing(&self, definition: &Definition, now: Now) -> Standing {
        let mut tightest =
            Standing { limit: 0, per: None, remaining: i64::MAX, reset_after: Span::ZERO };
        let mut reset_at = now.at;
        for (rule, ledger) in self.pairs(definition) {
            let remaining = ledger.remaining(rule, now);
            if remaining < tightest.remaining {
                tightest = Standing { limit: rule.limit(), per: rule.per(), remaining, ..tightest };
            }
            if let (true, Opening::At(fresh)) = (rule.is_rate(), ledger.fresh_at(rule, now)) {
                reset_at = reset_at.max(fresh);
            }
        }
        tightest.reset_after = reset_at.since(now.at);
        tightest
    }

    /// What counts at each of its rules, in the order of the definition's.
    pub fn rules(&self, definition: &Definition, now: Now) -> Vec<RuleUse> {
        self.pairs(definition).map(|(rule, ledger)| ledger.usage(rule, now)).collect()
    }

    /// Units held at the limit's concurrency rule.
    pub fn in_flight(&self, definition: &Definition, now: Now) -> u64 {
        let slots = self.pairs(definition).find(|(rule, _)| !rule.is_rate());
        slots.map_or(0, |(rule, ledger)| rule.missing(&ledger.state, now))
    }

    fn closed_blocker(&self, now: Now) -> Option<Blocker> {
        let (until, _) = self.closed(now.at)?;
        Some(Blocker { cause: Cause::Closed, rule: 0, opening: Opening::At(until) })
    }

    fn pairs<'a>(
        &'a self,
        definition: &'a Definition,
    ) -> impl Iterator<Item = (&'a Rule, &'a Ledger)> {
        definition.rules().iter().zip(&self.ledgers)
    }
}

fn pairs_mut<'a>(
    ledgers: &'a mut [Ledger],
    definition: &'a Definition,
) -> impl Iterator<Item = (&'a Rule, &'a mut Ledger)> {
    definition.rules().iter().zip(ledgers)
}
