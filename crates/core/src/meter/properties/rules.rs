//! Random limits, from the common to the odd.

use crate::limit::{Align, Definition, Limit, RuleSpec};
use crate::time::Span;
use proptest::prelude::*;
use proptest::sample::select;

/// Periods with and without a common divisor with the limits.
fn period() -> impl Strategy<Value = Span> {
    select(vec![10, 997, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000, 604_800_000_000_000])
        .prop_map(Span::from_nanos)
}

/// No guard mostly, else a part of the period.
fn guard(per: Span) -> impl Strategy<Value = Span> {
    prop_oneof![
        3 => Just(Span::ZERO),
        1 => (0..per.as_nanos() / 4 + 1).prop_map(Span::from_nanos),
    ]
}

pub(super) fn token_bucket() -> impl Strategy<Value = RuleSpec> {
    let limits = select(vec![1, 2, 3, 7, 10, 97, 1_000, 1_000_003]);
    let rules = (limits, period()).prop_flat_map(|(limit, per)| {
        let burst = prop_oneof![1..=3_u64, 1..=limit * 2];
        (Just(limit), Just(per), burst, guard(per))
    });
    rules
        .prop_map(|(limit, per, burst, guard)| {
            // A guard that would take the burst makes it larger instead.
            let shrink = u128::from(limit) * u128::from(guard.as_nanos());
            let shrink = shrink.div_ceil(u128::from(per.as_nanos()));
            let burst = burst + u64::try_from(shrink).unwrap();
            RuleSpec::TokenBucket { limit, per, burst, guard }
        })
        .prop_filter("fills within ten years", |rule| {
            Definition::new(Limit::of(vec![rule.clone()])).is_ok()
        })
}

pub(super) fn fixed_window() -> impl Strategy<Value = RuleSpec> {
    (1..=20_u64, period())
        .prop_flat_map(|(limit, per)| (Just(limit), Just(per), guard(per)))
        .prop_map(|(limit, per, guard)| {
            let align = Align::FirstCall;
            RuleSpec::FixedWindow { limit, per, align, guard }
        })
}

pub(super) fn sliding_window() -> impl Strategy<Value = RuleSpec> {
    let limits = prop_oneof![3 => 1..=20_u64, 1 => 250..=2_000_u64];
    (limits, period())
        .prop_flat_map(|(limit, per)| (Just(limit), Just(per), guard(per)))
        .prop_map(|(limit, per, guard)| RuleSpec::SlidingWindow { limit, per, guard })
}

pub(super) fn rate_rule() -> impl Strategy<Value = RuleSpec> {
    prop_oneof![3 => token_bucket(), 2 => fixed_window(), 2 => sliding_window()]
}

/// One to three rate rules under one limit.
pub(super) fn rates() -> impl Strategy<Value = Definition> {
    let rules = prop_oneof![
        3 => prop::collection::vec(rate_rule(), 1),
        2 => prop::collection::vec(rate_rule(), 2..=3),
    ];
    rules.prop_map(|rules| Definition::new(Limit::of(rules)).unwrap())
}

/// One rate rule alone.
pub(super) fn rate() -> impl Strategy<Value = Definition> {
    rate_rule().prop_map(|rule| Definition::new(Limit::of(vec![rule])).unwrap())
}
