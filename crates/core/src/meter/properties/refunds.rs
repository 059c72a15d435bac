//! Settling down never mints, and gives back what is due.

use super::acts::{Act, Pick, Wait, pick, settlements};
use super::rules::token_bucket;
use super::world::{World, now, start};
use crate::limit::{Definition, Limit, RuleSpec};
use crate::meter::model::{Book, Kind};
use crate::rule::Opening;
use crate::time::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// A bucket that paid the true cost of everything from the start, in exact fractions: what is
/// missing, in parts of which a unit has `per` and a nanosecond brings `limit`.
fn missing(book: &Book, rule: &RuleSpec, now: u64) -> u128 {
    let RuleSpec::TokenBucket { limit, per, .. } = rule else { panic!("a bucket") };
    let (limit, per) = (u128::from(*limit), u128::from(per.as_nanos()));
    let mut records: Vec<_> = book.records.iter().filter(|r| r.kind != Kind::Cancelled).collect();
    records.sort_by_key(|record| (record.start, record.decided));
    let (mut missing, mut last) = (0_u128, 0);
    for record in records {
        missing = missing.saturating_sub(limit * u128::from(record.start - last));
        missing += u128::from(record.weight) * per;
        last = record.start;
    }
    missing.saturating_sub(limit * u128::from(now - last))
}

fn is_reservation(act: &Act) -> bool {
    matches!(act, Act::Reserve { .. } | Act::ReserveBoth { .. })
}

/// A part of a nanosecond's worth is lost where the true cost is no more than that.
fn is_slow(rule: &RuleSpec) -> bool {
    matches!(rule, RuleSpec::TokenBucket { limit, per, .. } if per.as_nanos() >= *limit)
}

fn bucket_world(rule: &RuleSpec, start: u64) -> World {
    let definition = Definition::new(Limit::of(vec![rule.clone()])).unwrap();
    World::new([definition.clone(), definition], now(start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_refund_is_never_more_than_the_true_cost_would_have_left(
        rule in token_bucket(),
        start in start(),
        acts in vec(settlements(), 1..60),
        weight in pick(),
    ) {
        let mut world = bucket_world(&rule, start.at.as_nanos());
        let acts: Vec<_> = acts.into_iter().filter(|act| !is_reservation(act)).collect();
        world.run(&acts);
        for account in &world.accounts {
            let RuleSpec::TokenBucket { limit, per, .. } = rule else { panic!("a bucket") };
            let due = missing(&account.book, &rule, world.now.at.as_nanos());
            let definition = &account.definition;
            let capacity = i128::from(definition.capacity());
            let left = capacity - i128::try_from(due.div_ceil(per.as_nanos().into())).unwrap();
            let remaining = account.meter.standing(definition, world.now).remaining;
            prop_assert!(i128::from(remaining) <= left, "{} remain, not {}", remaining, left);
            let weight = weight.of(definition.capacity());
            let after = due + u128::from(weight) * u128::from(per.as_nanos());
            let over = after.saturating_sub(
                u128::from(definition.capacity()) * u128::from(per.as_nanos()));
            let wait = over.div_ceil(u128::from(limit));
            let told = match account.meter.blocker(definition, weight, world.now) {
                None => 0,
                Some(blocker) => match blocker.opening {
                    Opening::At(opens) => opens.since(world.now.at).as_nanos(),
                    Opening::OnRelease => panic!("no slots here"),
                },
            };
            prop_assert!(u128::from(told) >= wait, "passes after {}, not {}", told, wait);
        }
    }

    /// Up to a nanosecond of refill for each refund: low points are noted in whole ones.
    #[test]
    fn a_refund_is_all_that_the_true_cost_would_have_left(
        rule in token_bucket(),
        start in start(),
        calls in vec((pick(), 0..=3_u64, 0..=8_u64), 1..12),
        turns in vec(any::<Index>(), 12),
        pause in 0..=24_u64,
    ) {
        let mut world = bucket_world(&rule, start.at.as_nanos());
        for (weight, wait, _) in &calls {
            let pay = Act::Pay { meter: 0, weight: weight.clone() };
            world.run(&[Act::Wait(Wait::Sixteenths(*wait)), pay]);
        }
        world.run(&[Act::Wait(Wait::Sixteenths(pause))]);
        let mut refunds = 0;
        for ((_, _, eighths), turn) in calls.iter().zip(turns) {
            world.run(&[Act::Settle { receipt: turn, eighths: *eighths }]);
            refunds += 1;
        }
        let RuleSpec::TokenBucket { limit, per, .. } = rule else { panic!("a bucket") };
        let account = &world.accounts[0];
        let due = missing(&account.book, &rule, world.now.at.as_nanos());
        let most = due + u128::from(limit) * refunds;
        let remaining = account.meter.standing(&account.definition, world.now).remaining;
        let left = |missing: u128| {
            i128::from(account.definition.capacity())
                - i128::try_from(missing.div_ceil(per.as_nanos().into())).unwrap()
        };
        prop_assert!(i128::from(remaining) <= left(due), "{} remain, not {}", remaining, left(due));
        prop_assert!(i128::from(remaining) >= left(most), "{} remain, not {}", remaining, left(most));
    }

    #[test]
    fn a_call_settled_at_once_leaves_exactly_what_its_true_cost_would(
        rule in token_bucket().prop_filter("a unit takes a nanosecond", is_slow),
        before in vec((0..=16_u64, pick()), 0..10),
        (weight, probe) in (pick(), pick()),
        eighths in 1..=7_u64,
    ) {
        let mut world = bucket_world(&rule, 1_000);
        for (parts, weight) in before {
            world.run(&[Act::Wait(Wait::Sixteenths(parts)), Act::Pay { meter: 0, weight }]);
        }
        let capacity = world.accounts[0].definition.capacity();
        let weight = weight.of(capacity);
        let actual = (weight * eighths / 8).max(1);
        let now = world.now.at;
        let mut truth = world.clone();
        world.pay(0, weight, now);
        let receipt = world.receipts.pop().unwrap();
        world.settle(&receipt, actual);
        truth.pay(0, actual, now);
        let probe = probe.of(capacity);
        let seen = [world, truth].map(|world| {
            let account = &world.accounts[0];
            let standing = account.meter.standing(&account.definition, world.now);
            (standing, world.opening(0, probe))
        });
        prop_assert_eq!(seen[0], seen[1]);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// With more calls under way than low points are kept, a refund loses a part of the burst at most.
    #[test]
    fn a_hundred_open_receipts_get_nearly_all_back(
        rule in token_bucket(),
        calls in vec((0..=3_u64, 0..=3_u64, 0..=8_u64, any::<Index>()), 100),
    ) {
        let mut world = bucket_world(&rule, 1_000);
        let capacity = world.accounts[0].definition.capacity();
        for (weight, wait, _, _) in &calls {
            let weight = Pick::Small((weight * capacity / 128).max(1));
            world.run(&[Act::Pay { meter: 0, weight }, Act::Wait(Wait::Fine(*wait))]);
        }
        for (_, _, eighths, receipt) in &calls {
            world.run(&[Act::Settle { receipt: *receipt, eighths: *eighths }]);
        }
        let RuleSpec::TokenBucket { limit, per, .. } = rule else { panic!("a bucket") };
        let account = &world.accounts[0];
        let due = missing(&account.book, &rule, world.now.at.as_nanos());
        let due = i64::try_from(due.div_ceil(per.as_nanos().into())).unwrap();
        let left = capacity.cast_signed() - due;
        let remaining = account.meter.standing(&account.definition, world.now).remaining;
        prop_assert!(remaining <= left, "{} remain, not {}", remaining, left);
        let rounding = limit * 100 / per.as_nanos() + 1;
        let least = left - (capacity / 4 + rounding).cast_signed();
        prop_assert!(remaining >= least, "{} remain, not {}", remaining, least);
    }

    /// A start that was promised where another meter held it up settles like any other.
    #[test]
    fn a_promise_that_has_started_settles_like_a_payment(
        rule in token_bucket(),
        weight in pick(),
        ahead in 1..=40_u64,
        eighths in 0..=7_u64,
    ) {
        let mut promised = bucket_world(&rule, 1_000);
        let mut paid = promised.clone();
        let RuleSpec::TokenBucket { per, .. } = rule else { panic!("a bucket") };
        let weight = weight.of(promised.accounts[0].definition.capacity());
        let start = 1_000 + ahead * (per.as_nanos() / 16);
        promised.pay(0, weight, Timestamp::from_nanos(start));
        for world in [&mut promised, &mut paid] {
            world.now = now(start);
        }
        paid.pay(0, weight, Timestamp::from_nanos(start));
        let remaining = [promised, paid].map(|mut world| {
            let receipt = world.receipts.remove(0);
            world.settle(&receipt, weight * eighths / 8);
            let account = &world.accounts[0];
            account.meter.standing(&account.definition, world.now).remaining
        });
        prop_assert_eq!(remaining[0], remaining[1]);
    }
}
