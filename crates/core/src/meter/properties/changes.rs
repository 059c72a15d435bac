//! Plain meters, changes of the definition and closures.

use super::acts::{Act, Wait, acts, pick, settlements};
use super::rules::{fixed_window, rate, rates, token_bucket};
use super::world::{World, now, start};
use crate::limit::{Definition, Limit, RuleSpec};
use crate::meter::plain::Plain;
use crate::meter::{CLOSED_MAX, Cause, Meter};
use crate::rule::{Opening, Rule};
use crate::time::{Now, Span};
use proptest::collection::vec;
use proptest::prelude::*;

fn alone(rule: RuleSpec) -> Definition {
    Definition::new(Limit::of(vec![rule])).unwrap()
}

fn specs(definition: &Definition) -> RuleSpec {
    definition.limit().rules()[0].clone()
}

/// Whether so many units flow in before the end of time: a debt of centuries is not kept to the unit.
fn flows_in(units: u64, rule: &RuleSpec) -> bool {
    let RuleSpec::TokenBucket { limit, per, .. } = rule else { return true };
    u128::from(units) * u128::from(per.as_nanos()) / u128::from(*limit) < 1 << 60
}

fn each_fills_the_other(rules: &[RuleSpec; 2]) -> bool {
    let capacity = rules.iter().map(|rule| alone(rule.clone()).capacity()).max().unwrap();
    rules.iter().all(|rule| flows_in(capacity, rule))
}

/// What is missing from each rule, as the standing of each alone would say.
fn missing(meter: &Meter, definition: &Definition, now: Now) -> i64 {
    definition.capacity().cast_signed() - meter.standing(definition, now).remaining
}

fn is_sliding(definition: &Definition) -> bool {
    matches!(definition.rules(), [Rule::Sliding(_)])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_plain_meter_decides_as_a_whole_one(
        definition in prop_oneof![token_bucket(), fixed_window()].prop_map(alone),
        start in start(),
        asks in vec((0..=40_u64, 0..=3_u64, pick()), 1..60),
    ) {
        let rule = definition.plain().unwrap();
        let (mut plain, mut meter) = (Plain::default(), Meter::new(&definition, start.at));
        let per = definition.rules()[0].per().unwrap().as_nanos();
        let mut now = start;
        for (sixteenths, nanos, weight) in asks {
            now = now.moved_to(now.at.plus(Span::from_nanos(per * sixteenths / 160 + nanos)));
            let weight = weight.of(definition.capacity());
            let blocker = meter.blocker(&definition, weight, now);
            let whole = blocker.map_or(Ok(()), |blocker| Err(blocker.opening));
            prop_assert_eq!(rule.admit(&mut plain, weight, now.at).map_err(Opening::At), whole);
            if whole.is_ok() {
                let _ = meter.pay(&definition, weight, (now, now.at), None);
            }
            let standing = meter.standing(&definition, now);
            prop_assert_eq!(rule.standing(plain, now.at), standing);
            let made_whole = Meter::from_plain(&definition, plain, now.at);
            prop_assert_eq!(made_whole.standing(&definition, now), standing);
            let later = now.moved_to(now.at.plus(standing.reset_after));
            prop_assert!(meter.is_fresh(&definition, later));
            prop_assert!(!plain.is_fresh(now.at) || meter.is_fresh(&definition, now));
        }
    }

    #[test]
    fn a_change_of_rule_neither_forgets_nor_multiplies(
        definitions in [rate(), rate()],
        other in rate(),
        start in start(),
        acts in vec(settlements(), 1..40),
    ) {
        let mut world = World::new(definitions, start);
        // What is promised stays promised and counts when it starts.
        let is_reservation =
            |act: &&Act| matches!(act, Act::Reserve { .. } | Act::ReserveBoth { .. });
        acts.iter().filter(|act| !is_reservation(act)).for_each(|act| world.act(act));
        let (now, account) = (world.now, &mut world.accounts[0]);
        let (meter, definition) = (&mut account.meter, &account.definition);
        let before = missing(meter, definition, now);
        prop_assume!(flows_in(before.cast_unsigned(), &specs(&other)));
        meter.carry(definition, &other, now);
        let between = missing(meter, &other, now);
        // What was admitted in a window keeps its date, whatever the window's length.
        let is_kept = is_sliding(definition) && is_sliding(&other);
        prop_assert!(is_kept || before == between, "{} became {}", before, between);
        meter.carry(&other, definition, now);
        let after = missing(meter, definition, now);
        prop_assert!(before <= after, "{} became {}", before, after);
        prop_assert!(is_kept || before == after, "{} became {}", before, after);
    }

    #[test]
    fn changing_to_and_fro_mints_nothing(
        rules in [token_bucket(), token_bucket()].prop_filter("in time", each_fills_the_other),
        acts in vec(prop_oneof![
            2 => pick().prop_map(|weight| Act::Pay { meter: 0, weight }),
            1 => (0..=20_u64).prop_map(|parts| Act::Wait(Wait::Sixteenths(parts))),
            1 => Just(Act::Purge),
        ], 1..60),
    ) {
        let mut world = World::new(rules.clone().map(alone), now(1_000));
        let mut book = vec![];
        for (turn, act) in acts.iter().enumerate() {
            let before = world.accounts[0].book.records.len();
            world.run(std::slice::from_ref(act));
            book.extend(world.accounts[0].book.records.drain(before..));
            let definition = alone(rules[turn % 2].clone());
            world.run(&[Act::Change { meter: 0, definition }]);
        }
        // No more than the larger burst and the faster of the two rates allow together.
        let both = rules.map(|rule| match rule {
            RuleSpec::TokenBucket { limit, per, .. } => {
                (alone(rule).capacity(), u128::from(limit), u128::from(per.as_nanos()))
            }
            _ => panic!("buckets"),
        });
        let burst = u128::from(both[0].0.max(both[1].0));
        for (first, from) in book.iter().enumerate() {
            let mut sum = 0;
            for to in &book[first..] {
                sum += u128::from(to.weight);
                let length = u128::from(to.start - from.start);
                let allowed = both.iter().any(|(_, limit, per)| {
                    sum <= burst || (sum - burst) * per <= limit * length
                });
                prop_assert!(allowed, "{} in {}ns", sum, length);
            }
        }
    }

    #[test]
    fn a_closed_meter_admits_nothing_before_its_time(
        definitions in [rates(), rates()],
        start in start(),
        acts in vec(acts(), 0..20),
        ahead in prop_oneof![0..=10_u64, any::<u64>()],
        again in prop_oneof![0..=10_u64, any::<u64>()],
        weight in pick(),
    ) {
        let mut world = World::new(definitions, start);
        world.run(&acts);
        let (now, account) = (world.now, &mut world.accounts[0]);
        let (meter, definition) = (&mut account.meter, &account.definition);
        meter.reopen();
        let weight = weight.of(definition.capacity());
        let longest = Span::from_nanos(ahead.max(again)).min(CLOSED_MAX);
        let until = now.moved_to(now.at.plus(longest));
        let [own, own_then] = [now, until].map(|at| meter.blocker(definition, weight, at));
        for ahead in [ahead, again] {
            meter.close(now.at.plus(Span::from_nanos(ahead)), "too many requests", now.at);
        }
        let blocker = meter.blocker(definition, weight, now);
        match own_then.map(|blocker| blocker.opening) {
            None if longest.is_zero() => prop_assert_eq!(blocker, None),
            None => {
                prop_assert_eq!(blocker.unwrap().opening, Opening::At(until.at));
                prop_assert_eq!(blocker.unwrap().cause, Cause::Closed);
            }
            later => prop_assert_eq!(blocker.map(|blocker| blocker.opening), later),
        }
        prop_assert_eq!(meter.reopen(), true);
        prop_assert_eq!(meter.blocker(definition, weight, now), own);
    }
}
