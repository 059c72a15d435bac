//! Reservations over several meters: what is promised is kept, and holds nobody who leaves it enough.

use super::acts::{Act, Pick, payments, pick};
use super::rules::{fixed_window, sliding_window, token_bucket};
use super::world::{World, start};
use crate::limit::{Definition, Limit, RuleSpec};
use crate::time::{Span, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// A limit of one rule whose book is exact to the nanosecond.
fn exact() -> impl Strategy<Value = Definition> {
    let is_fine = |rule: &RuleSpec| match rule {
        RuleSpec::SlidingWindow { limit, .. } => *limit <= 256,
        _ => true,
    };
    prop_oneof![token_bucket(), sliding_window(), fixed_window()]
        .prop_filter("counted in cells", is_fine)
        .prop_map(|rule| Definition::new(Limit::of(vec![rule])).unwrap())
}

/// Whether a reservation of both meters waits for the second alone: a promise at the first.
fn is_promise(world: &World, weights: &[Pick; 2]) -> bool {
    let weight = |meter: usize| weights[meter].of(world.accounts[meter].definition.capacity());
    let opening = |meter| world.opening(meter, weight(meter));
    opening(0) == world.now.at && opening(1) > world.now.at
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn a_promise_holds_only_who_would_break_it(
        definitions in [exact(), exact()],
        start in start(),
        acts in vec(payments(), 1..30),
        weight in pick(),
        between in 0..=u64::MAX,
    ) {
        let mut world = World::new(definitions, start);
        for act in &acts {
            match act {
                Act::Reserve { meter: 0, .. } => {}
                Act::ReserveBoth { weights } if !is_promise(&world, weights) => {}
                act => world.act(act),
            }
        }
        let weight = weight.of(world.accounts[0].definition.capacity());
        let wait = world.opening(0, weight).since(world.now.at).as_nanos();
        if wait > 0 {
            let sooner = world.now.at.plus(Span::from_nanos(between % wait));
            for at in [world.now.at, sooner, Timestamp::from_nanos(world.now.at.as_nanos() + wait - 1)] {
                let mut early = world.clone();
                early.pay(0, weight, at);
                prop_assert!(early.breach().is_some(), "{} could start at {:?}", weight, at);
            }
        }
    }
}

#[test]
fn a_promise_far_ahead_holds_nobody_until_then() {
    let definition = Definition::new(Limit::per(10, Span::from_secs(10))).unwrap();
    let mut world = World::new([definition.clone(), definition], super::world::now(0));
    let midnight = Timestamp::default().plus(Span::from_hours(10));
    world.pay(0, 10, midnight);
    assert_eq!(world.opening(0, 10), world.now.at);
    let before = |seconds| midnight.as_nanos() - Span::from_secs(seconds).as_nanos();
    world.now = super::world::now(before(10));
    assert_eq!(world.opening(0, 10), world.now.at);
    world.now = super::world::now(before(4));
    assert_eq!(world.opening(0, 4), world.now.at);
    assert_eq!(world.opening(0, 5), midnight.plus(Span::from_secs(5)));
    assert_eq!(
        world.accounts[0].meter.standing(&world.accounts[0].definition, world.now).remaining,
        4
    );
}
