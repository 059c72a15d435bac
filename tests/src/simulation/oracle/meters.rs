//! Limits, naively: every start is kept, and every interval that ends with one is added up.

use super::Oracle;
use super::calendar::window;
use crate::simulation::run::Checked;
use std::collections::BTreeSet;
use tollgate_core::{Align, Definition, LimitName, Now, Partition, RuleSpec, Span, Timestamp};

/// How long after the wall clock was set a calendar may take to notice.
const CALENDAR_LOOK: Span = Span::from_minutes(1);

#[derive(Debug)]
pub(super) struct LimitBook {
    pub(super) name: LimitName,
    pub(super) definition: Option<Definition>,
    /// Counts its changes: only what was paid since the last is added up.
    epoch: u64,
    pub(super) is_paused: bool,
}

#[derive(Debug)]
pub(super) struct MeterBook {
    pub(super) limit: usize,
    pub(super) partition: Option<Partition>,
    pub(super) closed_until: Timestamp,
    /// The calls that pay here and have not ended.
    pub(super) open: BTreeSet<usize>,
    payments: Vec<Payment>,
    /// A start cost more than it paid.
    was_in_debt: bool,
}

#[derive(Debug)]
struct Payment {
    epoch: u64,
    now: Now,
    token: u64,
    /// Less than was paid if it cost less.
    weight: u64,
    /// Its slots are its own until then.
    held_until: Timestamp,
}

impl Oracle {
    pub(super) fn define(&mut self, name: &LimitName, definition: Option<&Definition>) {
        let limit = self.limit(name);
        let book = &mut self.limits[limit];
        // What is said again changes nothing.
        if book.definition.as_ref() != definition {
            book.definition = definition.cloned();
            book.epoch += 1;
            self.told.clear();
        }
    }

    /// Whether a limit has noticed where the wall clock stands, if it follows it.
    pub(super) fn knows_wall(&self, limit: &LimitBook, now: Now) -> bool {
        let is_known = self.was_set.is_none_or(|set| set.plus(CALENDAR_LOOK) <= now.at);
        is_known || !limit.follows_wall()
    }
}

impl LimitBook {
    pub(super) fn new(name: LimitName) -> Self {
        Self { name, definition: None, epoch: 0, is_paused: false }
    }

    pub(super) fn has_rate(&self) -> bool {
        self.rules().iter().any(|rule| !matches!(rule, RuleSpec::Concurrency { .. }))
    }

    pub(super) fn is_defined(&self) -> bool {
        self.definition.is_some()
    }

    fn follows_wall(&self) -> bool {
        let is_on_calendar = |rule: &RuleSpec| {
            matches!(rule, RuleSpec::FixedWindow { align: Align::Calendar { .. }, .. })
        };
        self.rules().iter().any(is_on_calendar)
    }

    fn rules(&self) -> &[RuleSpec] {
        self.definition.as_ref().map_or(&[], |definition| definition.limit().rules())
    }

    /// Why nothing of this weight passes, however long it waits.
    pub(super) fn shut(&self, weight: u64) -> Option<&'static str> {
        match &self.definition {
            None => Some("its limit is missing"),
            Some(_) if self.is_paused => Some("its limit is paused"),
            Some(definition) if weight > definition.capacity() => Some("it can never pass"),
            Some(_) => None,
        }
    }
}

impl MeterBook {
    pub(super) fn new(limit: usize, partition: Option<Partition>) -> Self {
        let (closed_until, open) = (Timestamp::default(), BTreeSet::new());
        Self { limit, partition, closed_until, open, payments: vec![], was_in_debt: false }
    }

    /// A start pays, and no interval that ends with it holds more than the rules allow.
    pub(super) fn pay(
        &mut self,
        limit: &LimitBook,
        (weight, token): (u64, u64),
        (now, held_until): (Now, Timestamp),
    ) -> Checked {
        let fault = self.broken_by(limit, weight, now);
        self.payments.push(Payment { epoch: limit.epoch, now, token, weight, held_until });
        fault.map_or(Ok(()), |fault| Err(format!("never over any rule: {fault}")))
    }

    /// The rule that a start of this weight breaks now.
    pub(super) fn broken_by(&self, limit: &LimitBook, weight: u64, now: Now) -> Option<String> {
        limit.rules().iter().find_map(|rule| {
            let (found, most) = self.found(rule, limit.epoch, (weight, now));
            (found > most).then(|| format!("{found} instead of {most} at {rule:?}"))
        })
    }

    /// How much there is with one more start, and how much there may be.
    fn found(&self, rule: &RuleSpec, epoch: u64, (weight, now): (u64, Now)) -> (u128, u128) {
        let paid = || self.payments.iter().rev().filter(move |payment| payment.epoch == epoch);
        let sum = |payments: &mut dyn Iterator<Item = &Payment>| {
            u128::from(payments.map(|payment| payment.weight).sum::<u64>() + weight)
        };
        let within = |length: Span| {
            sum(&mut paid().take_while(|payment| payment.now.at.plus(length) > now.at))
        };
        match rule {
            RuleSpec::TokenBucket { limit, per, burst, .. } => {
                let per = u128::from(per.as_nanos());
                let (limit, burst) = (u128::from(*limit), u128::from(*burst));
                let (mut total, most) = (u128::from(weight) * per, burst * per);
                let mut worst = total;
                for payment in paid() {
                    total += u128::from(payment.weight) * per;
                    let length = u128::from(now.at.since(payment.now.at).as_nanos());
                    worst = worst.max(total.saturating_sub(limit * length));
                }
                (worst, most)
            }
            RuleSpec::SlidingWindow { limit, per, guard } => {
                (within(per.plus(*guard)), u128::from(*limit))
            }
            RuleSpec::FixedWindow { limit, per, align: Align::Calendar { zone }, .. } => {
                let (start, end) = window(zone, *per, now.wall);
                let is_in = |payment: &&Payment| (start..end).contains(&payment.now.wall);
                (sum(&mut paid().filter(is_in)), u128::from(*limit))
            }
            // The seam between two windows may see twice the limit.
            RuleSpec::FixedWindow { limit, per, guard, .. } => {
                (within(per.plus(*guard)), u128::from(*limit) * 2)
            }
            RuleSpec::Concurrency { limit } => {
                let held = |payment: &&Payment| payment.held_until > now.at;
                (sum(&mut paid().filter(held)), u128::from(*limit))
            }
            _ => panic!("a rule that is not known here: {rule:?}"),
        }
    }

    pub(super) fn renew(&mut self, token: u64, until: Timestamp) {
        for payment in self.payments.iter_mut().filter(|payment| payment.token == token) {
            payment.held_until = until;
        }
    }

    /// A start that cost less counts as so much from the beginning; its slots are free.
    pub(super) fn settle(&mut self, token: u64, actual: u64, now: Timestamp) {
        for payment in self.payments.iter_mut().filter(|payment| payment.token == token) {
            self.was_in_debt |= actual > payment.weight;
            payment.weight = payment.weight.min(actual);
            payment.held_until = now;
        }
    }

    /// Whether anyone holds slots here.
    pub(super) fn is_held(&self, now: Now) -> bool {
        self.payments.iter().any(|payment| payment.held_until > now.at)
    }

    /// Whether it is as good as new beyond doubt: everything that was paid is long over, and the
    /// limit never changed.
    pub(super) fn is_rested(&self, limit: &LimitBook, now: Now) -> bool {
        let is_over = |payment: &Payment| {
            let is_past = limit.rules().iter().all(|rule| is_past(rule, payment.now, now));
            payment.held_until <= now.at && is_past
        };
        limit.epoch == 1 && !self.was_in_debt && self.payments.iter().all(is_over)
    }
}

/// Whether a rule has forgotten what was paid `then`.
fn is_past(rule: &RuleSpec, then: Now, now: Now) -> bool {
    let rest = match rule {
        RuleSpec::TokenBucket { limit, per, burst, .. } => {
            Span::from_nanos(per.as_nanos().saturating_mul(*burst) / *limit + 1)
        }
        RuleSpec::FixedWindow { per, align: Align::Calendar { zone }, .. } => {
            return window(zone, *per, then.wall).1 <= now.wall;
        }
        RuleSpec::FixedWindow { per, guard, .. } | RuleSpec::SlidingWindow { per, guard, .. } => {
            per.plus(*guard)
        }
        _ => Span::ZERO,
    };
    then.at.plus(rest) <= now.at
}
