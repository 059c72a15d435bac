//! Whatever numbers come: taken or refused, without a panic.

use crate::limit::{Align, Definition, Limit, RuleSpec};
use crate::meter::plain::Plain;
use crate::meter::{Holding, Meter};
use crate::rule::slots::HoldId;
use crate::rule::{Opening, PERIOD_MAX, Rule, UNITS_MAX};
use crate::time::{Now, Span, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Any number, the edges more often.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..=3_u64,
        1..=10_000_000_000_u64,
        (0..=64_u32, 0..=2_u64).prop_map(|(bit, off)| {
            1_u64.checked_shl(bit).unwrap_or(0).wrapping_add(off).wrapping_sub(1)
        }),
        Just(UNITS_MAX),
        Just(Span::from_days(366).as_nanos()),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![3 => Just(Span::ZERO), 2 => number().prop_map(Span::from_nanos)]
}

/// A calendar's periods are few, so they are asked for by name.
fn any_rule() -> impl Strategy<Value = RuleSpec> {
    let per = || number().prop_map(Span::from_nanos);
    let calendar = (number(), prop::sample::select(vec![1, 3_600, 86_400, 604_800]));
    prop_oneof![
        3 => (number(), per(), number(), span())
            .prop_map(|(limit, per, burst, guard)| RuleSpec::TokenBucket { limit, per, burst, guard }),
        2 => (number(), per(), span()).prop_map(|(limit, per, guard)| {
            RuleSpec::FixedWindow { limit, per, align: Align::FirstCall, guard }
        }),
        2 => (number(), per(), span())
            .prop_map(|(limit, per, guard)| RuleSpec::SlidingWindow { limit, per, guard }),
        1 => number().prop_map(|limit| RuleSpec::Concurrency { limit }),
        1 => calendar.prop_map(|(limit, seconds)| {
            let align = Align::Calendar { zone: "Europe/Berlin".to_owned() };
            RuleSpec::FixedWindow { limit, per: Span::from_secs(seconds), align, guard: Span::ZERO }
        }),
    ]
}

/// The same with its numbers brought into range.
fn rule() -> impl Strategy<Value = RuleSpec> {
    let units = |number: u64| 1 + number % UNITS_MAX;
    let period = |per: Span| Span::from_nanos(1 + per.as_nanos() % PERIOD_MAX.as_nanos());
    let rules = any_rule().prop_map(move |rule| match rule {
        RuleSpec::TokenBucket { limit, per, burst, .. } => {
            let (limit, per, burst) = (units(limit), period(per), units(burst));
            RuleSpec::TokenBucket { limit, per, burst, guard: Span::ZERO }
        }
        RuleSpec::FixedWindow { limit, per, align: Align::FirstCall, .. } => {
            let (limit, per, align) = (units(limit), period(per), Align::FirstCall);
            RuleSpec::FixedWindow { limit, per, align, guard: Span::ZERO }
        }
        RuleSpec::FixedWindow { limit, per, align, guard } => {
            RuleSpec::FixedWindow { limit: units(limit), per, align, guard }
        }
        RuleSpec::SlidingWindow { limit, per, .. } => {
            RuleSpec::SlidingWindow { limit: units(limit), per: period(per), guard: Span::ZERO }
        }
        RuleSpec::Concurrency { limit } => RuleSpec::Concurrency { limit: units(limit) },
    });
    rules.prop_filter("fills too slowly", |rule| Rule::new(rule).is_ok())
}

fn definition() -> impl Strategy<Value = Definition> {
    vec(rule(), 1..=3)
        .prop_filter_map("two concurrencies", |rules| Definition::new(Limit::of(rules)).ok())
}

/// Near the first instant, about now, or near the last.
fn base() -> impl Strategy<Value = u64> {
    let latest = (0..=5_u64).prop_map(|off| u64::MAX - off);
    prop_oneof![0..=5_u64, Just(1_790_000_000_000_000_000), latest, any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_limit_is_taken_or_refused(rules in vec(any_rule(), 0..=6)) {
        if let Ok(definition) = Definition::new(Limit::of(rules)) {
            let capacity = definition.capacity();
            prop_assert!((1..=UNITS_MAX).contains(&capacity));
            let meter = Meter::new(&definition, Timestamp::default());
            let now = Now::both(Timestamp::default());
            prop_assert_eq!(meter.blocker(&definition, capacity, now), None);
            prop_assert!(meter.is_fresh(&definition, now));
        }
    }

    #[test]
    fn any_numbers_pass_without_panic(
        definition in definition(),
        other in definition(),
        base in base(),
        acts in vec((0..=8_u8, number(), number()), 1..80),
    ) {
        let mut now = Now::both(Timestamp::from_nanos(base));
        let mut meter = Meter::new(&definition, now.at);
        let (mut current, mut next) = (&definition, &other);
        let mut payments = vec![];
        for (name, (act, number, other)) in acts.into_iter().enumerate() {
            let weight = 1 + number % current.capacity();
            match act {
                0 | 1 => {
                    let blocker = meter.blocker(current, weight, now);
                    let start = match blocker.map(|blocker| blocker.opening) {
                        Some(Opening::At(opens)) => opens,
                        _ => now.at,
                    };
                    let id = HoldId(name as u64);
                    let holding = Holding { id, expires: Timestamp::from_nanos(other) };
                    payments.push(meter.pay(current, weight, (now, start), Some(holding)));
                }
                2 | 3 => {
                    if let Some(payment) = payments.pop() {
                        meter.settle(current, &payment, number.min(UNITS_MAX), now);
                    }
                }
                4 => meter.close(Timestamp::from_nanos(number), "", now.at),
                5 => {
                    meter.carry(current, next, now);
                    (current, next) = (next, current);
                }
                6 => now = now.moved_to(now.at.plus(Span::from_nanos(number))),
                7 => now = Now { wall: Timestamp::from_nanos(number), ..now },
                _ => {
                    let _ = meter.renew(HoldId(number), Timestamp::from_nanos(other), now.at);
                    let _ = meter.opens_behind(current, (number, weight), now);
                }
            }
            let _ = meter.blocker(current, weight, now);
            let _ = meter.standing(current, now);
            let _ = meter.in_flight(current, now);
            let _ = meter.is_fresh(current, now);
        }
    }

    #[test]
    fn any_plain_meter_passes_without_panic(
        definition in rule().prop_filter_map("is not plain", |rule| {
            Definition::new(Limit::of(vec![rule])).ok().filter(|d| d.plain().is_some())
        }),
        asks in vec((number(), base()), 1..40),
    ) {
        let rule = definition.plain().unwrap();
        let mut plain = Plain::default();
        for (number, at) in asks {
            let now = Timestamp::from_nanos(at);
            let _ = rule.admit(&mut plain, 1 + number % definition.capacity(), now);
            let _ = rule.standing(plain, now);
        }
    }
}
