//! The naive model that meters are held against: a list of what started when, and loops over it.

use crate::limit::RuleSpec;

/// One entry of a meter's book.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// The instant at which the call starts, or the debt was charged.
    pub(super) start: u64,
    /// The true weight, as far as it is known.
    pub(super) weight: u64,
    /// When it was decided, by number of the act.
    pub(super) decided: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call that was admitted.
    Call,
    /// What a call cost beyond its estimate.
    Debt,
    /// A call that was taken back before its start.
    Cancelled,
}

/// All that happened at one meter.
#[derive(Debug, Clone, Default)]
pub(super) struct Book {
    pub(super) records: Vec<Record>,
    /// A call was settled for less than it had paid.
    pub(super) has_refunds: bool,
    /// Something was carried over from before the first record.
    pub(super) is_continued: bool,
}

impl Book {
    /// Says which record breaks the rule, if any does.
    pub(super) fn breach(&self, rule: &RuleSpec) -> Option<String> {
        let calls = self.records.iter().filter(|record| record.kind == Kind::Call);
        match rule {
            RuleSpec::TokenBucket { limit, per, burst, guard } => {
                let (limit, per, guard) =
                    (u128::from(*limit), u128::from(per.as_nanos()), u128::from(guard.as_nanos()));
                let burst = u128::from(*burst) - (limit * guard).div_ceil(per);
                calls.flat_map(|call| self.records.iter().map(move |from| (from, call))).find_map(
                    |(from, call)| {
                        let length = u128::from(call.start.checked_sub(from.start)?);
                        let sum = self.sum(from.start, call);
                        let is_over = sum > burst && (sum - burst) * per > limit * length;
                        is_over.then(|| format!("{sum} in {length}ns up to {call:?}"))
                    },
                )
            }
            RuleSpec::SlidingWindow { limit, per, guard } => {
                let length = per.as_nanos() + guard.as_nanos();
                calls.into_iter().find_map(|call| {
                    let from = (call.start + 1).saturating_sub(length);
                    let sum = self.sum(from, call);
                    (sum > u128::from(*limit))
                        .then(|| format!("{sum} in {length}ns up to {call:?}"))
                })
            }
            RuleSpec::FixedWindow { limit, per, guard, .. } => {
                let length = per.as_nanos() + guard.as_nanos();
                self.windows_breach(*limit, length).or_else(|| self.seam_breach(*limit, length))
            }
            RuleSpec::Concurrency { .. } => None,
        }
    }

    /// All calls that start from `from` up to the instant of `call`, and the debts it knew of.
    fn sum(&self, from: u64, call: &Record) -> u128 {
        let within = self.records.iter().filter(|r| r.start >= from && r.start <= call.start);
        let counted = within.filter(|record| match record.kind {
            Kind::Call => true,
            Kind::Debt => record.decided < call.decided,
            Kind::Cancelled => false,
        });
        counted.map(|record| u128::from(record.weight)).sum()
    }

    /// Windows open at the first start after the last one. Which call opens one, and what it finds
    /// spent, is certain only as long as no call was taken back and debts came alone.
    fn windows_breach(&self, limit: u64, length: u64) -> Option<String> {
        let has = |kind| self.records.iter().any(|record| record.kind == kind);
        if self.is_continued || has(Kind::Cancelled) || (has(Kind::Debt) && self.is_mixed()) {
            return None;
        }
        let mut records = self.records.clone();
        records.sort_by_key(|record| (record.start, record.decided));
        let (mut ends, mut spent) = (0, 0);
        for record in records {
            while record.start >= ends && spent > limit {
                spent -= limit;
                ends += length;
            }
            if record.start >= ends {
                (ends, spent) = (record.start + length, 0);
            }
            spent += record.weight;
            if record.kind == Kind::Call && spent > limit {
                return Some(format!("{spent} in the window up to {ends}, with {record:?}"));
            }
        }
        None
    }

    /// Whether there were refunds, or a debt came before a start that was reserved already.
    fn is_mixed(&self) -> bool {
        let reserved_over = |debt: &Record| {
            self.records.iter().any(|r| r.decided < debt.decided && r.start > debt.start)
        };
        self.has_refunds || self.records.iter().any(|r| r.kind == Kind::Debt && reserved_over(r))
    }

    /// Whatever the windows were: no interval of their length meets more than two.
    fn seam_breach(&self, limit: u64, length: u64) -> Option<String> {
        let calls = self.records.iter().filter(|record| record.kind == Kind::Call);
        calls.into_iter().find_map(|call| {
            let from = (call.start + 1).saturating_sub(length);
            let within = self.records.iter().filter(|r| r.start >= from && r.start <= call.start);
            let calls = within.filter(|record| record.kind == Kind::Call);
            let sum: u64 = calls.map(|record| record.weight).sum();
            (sum > 2 * limit).then(|| format!("{sum} in {length}ns up to {call:?}"))
        })
    }
}
