//! Never over, never longer than told, and all that is allowed.

use super::acts::{acts, pick};
use super::rules::{fixed_window, rates, sliding_window, token_bucket};
use super::world::{Account, World, start};
use crate::limit::{Definition, Limit, RuleSpec};
use crate::meter::Meter;
use crate::rule::Opening;
use crate::time::{Now, Span, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn never_over_any_interval(
        definitions in [rates(), rates()],
        start in start(),
        acts in vec(acts(), 1..60),
    ) {
        let mut world = World::new(definitions, start);
        world.run(&acts);
        prop_assert_eq!(world.breach(), None);
    }

    #[test]
    fn waits_exactly_as_long_as_it_says(
        definitions in [rates(), rates()],
        start in start(),
        acts in vec(acts(), 1..40),
        weight in pick(),
    ) {
        let mut world = World::new(definitions, start);
        world.run(&acts);
        let (account, now) = (&world.accounts[0], world.now);
        let weight = weight.of(account.definition.capacity());
        let blocker = |at: Timestamp| {
            account.meter.blocker(&account.definition, weight, now.moved_to(at))
        };
        if let Some(blocked) = blocker(now.at) {
            let Opening::At(opens) = blocked.opening else { panic!("no slots here") };
            prop_assert!(opens > now.at);
            prop_assert_eq!(blocker(opens), None, "at {:?}", opens);
            let before = Timestamp::from_nanos(opens.as_nanos() - 1);
            prop_assert!(blocker(before).is_some(), "before {:?}", opens);
        }
    }

    #[test]
    fn what_remains_is_what_passes(
        definitions in [rates(), rates()],
        start in start(),
        acts in vec(acts(), 1..40),
    ) {
        let mut world = World::new(definitions, start);
        world.run(&acts);
        let Account { definition, meter, .. } = &world.accounts[0];
        let remaining = meter.standing(definition, world.now).remaining;
        let passes = |weight| meter.blocker(definition, weight, world.now).is_none();
        if meter.closed(world.now.at).is_none() {
            let remaining = u64::try_from(remaining.max(0)).unwrap();
            prop_assert!(remaining <= definition.capacity());
            prop_assert!(remaining == 0 || passes(remaining), "{} do not pass", remaining);
            prop_assert!(!passes(remaining + 1), "{} pass too", remaining + 1);
        }
    }

    #[test]
    fn a_meter_is_as_new_when_it_says_so(
        definitions in [rates(), rates()],
        start in start(),
        acts in vec(acts(), 1..40),
    ) {
        let mut world = World::new(definitions, start);
        world.run(&acts);
        let Account { definition, meter, .. } = &mut world.accounts[0];
        meter.reopen();
        let reset = meter.standing(definition, world.now).reset_after;
        let then = world.now.moved_to(world.now.at.plus(reset));
        prop_assert!(meter.is_fresh(definition, then));
        prop_assert_eq!(meter.blocker(definition, definition.capacity(), then), None);
        prop_assert_eq!(meter.standing(definition, then).reset_after, Span::ZERO);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_saturated_bucket_admits_all_that_the_rule_allows(
        rule in token_bucket(),
        start in start(),
        weight in pick(),
    ) {
        let RuleSpec::TokenBucket { limit, per, .. } = rule else { panic!("a bucket") };
        let definition = Definition::new(Limit::of(vec![rule])).unwrap();
        let burst = definition.capacity();
        let weight = weight.of(burst);
        let calls = (burst / weight).min(200) + 200;
        let starts = saturate(&definition, weight, start, calls);
        let (limit, per) = (u128::from(limit), u128::from(per.as_nanos()));
        // A whole bucket overflows for the part of a nanosecond before the next whole one.
        let overflows = u128::from(burst - weight) * per < limit;
        for (call, at) in starts.iter().enumerate() {
            let sum = (call as u128 + 1) * u128::from(weight);
            let needed = (sum.saturating_sub(u128::from(burst)) * per).div_ceil(limit);
            let waited = u128::from(at - start.at.as_nanos());
            prop_assert!(waited >= needed, "call {} after {}, not {}", call, waited, needed);
            let late = if overflows { call as u128 } else { 0 };
            prop_assert!(waited <= needed + late, "call {} after {}, not {}", call, waited, needed);
        }
    }

    #[test]
    fn a_saturated_sliding_window_admits_all_but_its_sliver(
        rule in sliding_window(),
        start in start(),
        divisor in 1..=20_u64,
    ) {
        let RuleSpec::SlidingWindow { limit, per, guard } = rule else { panic!("sliding") };
        let definition = Definition::new(Limit::of(vec![rule])).unwrap();
        let weight = limit / divisor.min(limit);
        let calls = limit / weight;
        let starts = saturate(&definition, weight, start, calls * 20);
        let length = per.as_nanos() + guard.as_nanos();
        let cell = if limit > 256 { length.div_ceil(256) } else { 1 };
        for (round, starts) in starts.chunks(usize::try_from(calls).unwrap()).enumerate() {
            let waited = starts[0] - start.at.as_nanos();
            prop_assert!(waited >= length * round as u64);
            prop_assert!(waited <= (length + cell - 1) * round as u64, "round {}", round);
        }
    }

    #[test]
    fn a_saturated_fixed_window_admits_its_limit_each_time(
        rule in fixed_window(),
        start in start(),
    ) {
        let RuleSpec::FixedWindow { limit, per, guard, .. } = rule else { panic!("fixed") };
        let definition = Definition::new(Limit::of(vec![rule])).unwrap();
        let starts = saturate(&definition, 1, start, limit * 10);
        let length = per.as_nanos() + guard.as_nanos();
        for (call, at) in starts.iter().enumerate() {
            let window = call as u64 / limit;
            prop_assert_eq!(at - start.at.as_nanos(), window * length);
        }
    }
}

/// Starts so many calls, each at the first possible instant.
fn saturate(definition: &Definition, weight: u64, start: Now, calls: u64) -> Vec<u64> {
    let (mut meter, mut now, mut starts) = (Meter::new(definition, start.at), start, vec![]);
    let mut asked = 0;
    while (starts.len() as u64) < calls {
        asked += 1;
        assert!(asked <= 2 * calls, "passes when it said it would");
        match meter.blocker(definition, weight, now).map(|blocker| blocker.opening) {
            None => {
                let _ = meter.pay(definition, weight, (now, now.at), None);
                starts.push(now.at.as_nanos());
            }
            Some(Opening::At(opens)) => now = now.moved_to(opens),
            Some(Opening::OnRelease) => panic!("no slots here"),
        }
    }
    starts
}
