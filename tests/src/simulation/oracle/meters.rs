//! Limits, naively: every start is kept, and every interval that ends with one is added up.

use super::Oracle;
use crate::simulation::run::Checked;
use tollgate_core::{Definition, LimitName, Partition, RuleSpec, Span, Timestamp};

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
    payments: Vec<Payment>,
    /// A start cost more than it paid.
    was_in_debt: bool,
}

#[derive(Debug)]
struct Payment {
    epoch: u64,
    at: Timestamp,
    token: u64,
    /// Less than was paid if it cost less.
    weight: u64,
    /// Its slots are its own until then.
    held_until: Timestamp,
}

impl Oracle {
    pub(super) fn define(&mut self, name: &LimitName, definition: Option<&Definition>) {
        let limit = self.limit(name);
        self.limits[limit].definition = definition.cloned();
        self.limits[limit].epoch += 1;
    }
}

impl LimitBook {
    pub(super) fn new(name: LimitName) -> Self {
        Self { name, definition: None, epoch: 0, is_paused: false }
    }

    pub(super) fn has_rate(&self) -> bool {
        self.rules().iter().any(|rule| !matches!(rule, RuleSpec::Concurrency { .. }))
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
        let closed_until = Timestamp::default();
        Self { limit, partition, closed_until, payments: vec![], was_in_debt: false }
    }

    /// A start pays, and no interval that ends with it holds more than the rules allow.
    pub(super) fn pay(
        &mut self,
        limit: &LimitBook,
        (weight, token): (u64, u64),
        (at, held_until): (Timestamp, Timestamp),
    ) -> Checked {
        self.payments.push(Payment { epoch: limit.epoch, at, token, weight, held_until });
        for rule in limit.rules() {
            if let Some(fault) = self.over(rule, limit.epoch, at) {
                return Err(format!("never over any rule: {fault} at {rule:?}"));
            }
        }
        Ok(())
    }

    fn over(&self, rule: &RuleSpec, epoch: u64, end: Timestamp) -> Option<String> {
        let paid = || self.payments.iter().rev().filter(move |payment| payment.epoch == epoch);
        let within = |length: Span| {
            let recent = paid().take_while(move |payment| payment.at.plus(length) > end);
            recent.map(|payment| payment.weight).sum::<u64>()
        };
        let (found, most) = match *rule {
            RuleSpec::TokenBucket { limit, per, burst, .. } => {
                let mut total = 0_u128;
                let is_over = |payment: &Payment| {
                    total += u128::from(payment.weight);
                    let length = u128::from(end.since(payment.at).as_nanos());
                    let per = u128::from(per.as_nanos());
                    total * per > u128::from(burst) * per + u128::from(limit) * length
                };
                let first = paid().find({
                    let mut is_over = is_over;
                    move |payment| is_over(payment)
                });
                return first.map(|first| format!("too much since {}", first.at.as_nanos()));
            }
            RuleSpec::SlidingWindow { limit, per, guard } => (within(per.plus(guard)), limit),
            // The seam between two windows may see twice the limit.
            RuleSpec::FixedWindow { limit, per, guard, .. } => {
                (within(per.plus(guard)), limit.saturating_mul(2))
            }
            RuleSpec::Concurrency { limit } => {
                let held = paid().filter(|payment| payment.held_until > end);
                (held.map(|payment| payment.weight).sum(), limit)
            }
            _ => return Some("a rule that is not known here".to_owned()),
        };
        (found > most).then(|| format!("{found} instead of {most}"))
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

    /// Whether it is as good as new beyond doubt: everything that was paid is long over, and the
    /// limit never changed.
    pub(super) fn is_rested(&self, limit: &LimitBook, now: Timestamp) -> bool {
        let rest = limit.rules().iter().fold(0, |rest, rule| {
            rest.max(match *rule {
                RuleSpec::TokenBucket { limit, per, burst, .. } => {
                    per.as_nanos().saturating_mul(burst) / limit + 1
                }
                RuleSpec::FixedWindow { per, guard, .. }
                | RuleSpec::SlidingWindow { per, guard, .. } => per.plus(guard).as_nanos(),
                _ => 0,
            })
        });
        let is_over = |payment: &Payment| {
            payment.held_until <= now && payment.at.plus(Span::from_nanos(rest)) <= now
        };
        limit.epoch == 1 && !self.was_in_debt && self.payments.iter().all(is_over)
    }
}
