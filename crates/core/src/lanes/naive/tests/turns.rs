//! Turns at meters: shares of lanes, fat calls, several tolls, seniors, parked heads.

use super::*;

fn one_in(seconds: u64) -> Limit {
    Limit::per(1, Span::from_secs(seconds))
}

#[test]
fn a_limit_shared_by_two_lanes_alternates_between_them() {
    let mut world = World::new();
    world.limit("l", one_in(1));
    let a = [0; 3].map(|_| world.enqueue(paying("parallel", "a", [("l", 1)])));
    let b = [0; 3].map(|_| world.enqueue(paying("parallel", "b", [("l", 1)])));
    let mut order = Vec::new();
    for _ in 0..6 {
        order.extend(world.claim("parallel", 10));
        world.wait(1);
    }
    assert_eq!(order, [a[0], b[0], a[1], b[1], a[2], b[2]]);
}

#[test]
fn two_queues_that_ask_share_a_limit() {
    let mut world = World::new();
    world.limit("l", one_in(1));
    let a = [0; 2].map(|_| world.enqueue(paying("strict", "a", [("l", 1)])));
    let b = world.enqueue(paying("parallel", "b", [("l", 1)]));
    assert_eq!(world.claim("strict", 1), [a[0]]);
    world.settle(a[0], Settlement::Done);
    assert_eq!(world.claim("parallel", 1), []);
    assert_eq!(world.claim("strict", 1), []);
    world.wait(1);
    assert_eq!(world.claim("strict", 1), []);
    assert_eq!(world.claim("parallel", 1), [b]);
}

#[test]
fn a_queue_that_asks_no_more_has_no_turn() {
    let mut world = World::new();
    world.limit("l", one_in(10));
    let _ = world.enqueue(paying("strict", "a", [("l", 1)]));
    let _ = world.enqueue(paying("strict", "b", [("l", 1)]));
    let other = world.enqueue(paying("parallel", "c", [("l", 1)]));
    let (asks_until, now) = (world.after(5), world.now);
    let claim = Claim { queue: queue("strict"), most: 2, lease: None, asks_until };
    assert_eq!(world.both.claim(&claim, now).len(), 1);
    world.wait(10);
    assert_eq!(world.claim("parallel", 1), [other]);
}

#[test]
fn a_fat_call_waits_for_its_whole_weight_and_is_not_overtaken_at_its_meter() {
    let mut world = World::new();
    world.limit("l", Limit::per(10, Span::from_secs(10)));
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)]));
    let fat = world.enqueue(paying("strict", "fat", [("l", 8)]));
    let thin = world.enqueue(paying("strict", "thin", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), [spender]);
    world.wait(3);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10), [fat]);
    world.wait(1);
    assert_eq!(world.claim("strict", 10), [thin]);
}

#[test]
fn strangers_of_a_fat_call_go_on() {
    let mut world = World::new();
    world.limit("l", Limit::per(10, Span::from_secs(10)));
    world.limit("other", one_in(1));
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)]));
    let _fat = world.enqueue(paying("strict", "fat", [("l", 8)]));
    let stranger = world.enqueue(paying("strict", "stranger", [("other", 1)]));
    let free = world.enqueue(call("strict", "free"));
    assert_eq!(world.claim("strict", 10), [spender, stranger, free]);
}

#[test]
fn a_call_of_higher_priority_passes_a_fat_one() {
    let mut world = World::new();
    world.limit("l", Limit::per(10, Span::from_secs(10)));
    let spender = world.enqueue(paying("strict", "spender", [("l", 6)]));
    let _fat = world.enqueue(paying("strict", "fat", [("l", 8)]));
    assert_eq!(world.claim("strict", 10), [spender]);
    let urgent = paying("strict", "urgent", [("l", 1)]);
    let urgent = world.enqueue(NewCall { priority: priority(1), ..urgent });
    assert_eq!(world.claim("strict", 10), [urgent]);
}

#[test]
fn two_tolls_are_paid_both_or_not_at_all() {
    let mut world = World::new();
    world.limit("x", Limit::concurrency(1));
    world.limit("y", one_in(10));
    let spender = world.enqueue(paying("strict", "spender", [("y", 1)]));
    let both = world.enqueue(paying("strict", "both", [("x", 1), ("y", 1)]));
    let only_x = world.enqueue(paying("strict", "x", [("x", 1)]));
    assert_eq!(world.claim("strict", 10), [spender, only_x]);
    world.settle(only_x, Settlement::Done);
    world.wait(10);
    assert_eq!(world.claim("strict", 10), [both]);
}

#[test]
fn tolls_at_one_meter_add_up() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(3));
    let twice = world.enqueue(paying("strict", "a", [("l", 1), ("l", 1)]));
    let once = world.enqueue(paying("strict", "b", [("l", 1)]));
    let late = world.enqueue(paying("strict", "c", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), [twice, once]);
    assert!(world.both.is_waiting(late));
}

/// A call that owes at `x` and `y` was admitted where it stood and refused elsewhere, twice, and
/// stands at `x`, which opens in six seconds. `y` is open.
fn world_with_a_senior() -> (World, CallId) {
    let mut world = World::new();
    world.limit("x", one_in(10));
    world.limit("y", one_in(10));
    let start = |world: &mut World, lane: &str, limit: &str| {
        let id = world.enqueue(paying("strict", lane, [(limit, 1)]));
        assert_eq!(world.claim("strict", 10), [id]);
        world.settle(id, Settlement::Done);
    };
    start(&mut world, "x1", "x");
    let both = world.enqueue(paying("strict", "both", [("x", 1), ("y", 1)]));
    assert_eq!(world.claim("strict", 10), []);
    world.wait(5);
    start(&mut world, "y1", "y");
    world.wait(5);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(2);
    start(&mut world, "x2", "x");
    world.wait(3);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1);
    (world, both)
}

#[test]
fn a_call_refused_elsewhere_twice_is_senior_and_has_the_turn_where_it_does_not_stand() {
    let (mut world, both) = world_with_a_senior();
    let stranger = world.enqueue(paying("strict", "y2", [("y", 1)]));
    assert_eq!(world.claim("strict", 10), []);
    world.wait(6);
    assert_eq!(world.claim("strict", 10), [both]);
    world.wait(10);
    assert_eq!(world.claim("strict", 10), [stranger]);
}

#[test]
fn a_call_of_higher_priority_does_not_yield_to_a_senior() {
    let (mut world, _) = world_with_a_senior();
    let urgent = paying("strict", "y2", [("y", 1)]);
    let urgent = world.enqueue(NewCall { priority: priority(1), ..urgent });
    assert_eq!(world.claim("strict", 10), [urgent]);
}

#[test]
fn a_head_that_was_paused_is_senior_no_more() {
    let (mut world, _) = world_with_a_senior();
    let stranger = world.enqueue(paying("strict", "y2", [("y", 1)]));
    let both = crate::lanes::Scope::Lane(queue("strict"), lane_name("both"));
    world.both.pause(&both, world.now);
    world.both.resume(&both, world.now);
    assert_eq!(world.claim("strict", 10), [stranger]);
}

#[test]
fn a_limit_that_is_removed_parks_and_a_new_definition_wakes() {
    let mut world = World::new();
    world.limit("l", one_in(10));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.remove_limit("l");
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1_000);
    assert_eq!(world.claim("strict", 10), []);
    world.limit("l", one_in(10));
    assert_eq!(world.claim("strict", 10), [id]);
}

#[test]
fn a_weight_that_became_impossible_waits_for_a_larger_limit() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(5));
    let id = world.enqueue(paying("strict", "a", [("l", 5)]));
    world.limit("l", Limit::per_second(4));
    assert_eq!(world.claim("strict", 10), []);
    world.limit("l", Limit::per_second(6));
    assert_eq!(world.claim("strict", 10), [id]);
}

#[test]
fn what_was_spent_is_still_spent_when_a_removed_limit_comes_back() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(1));
    let first = world.enqueue(paying("strict", "a", [("l", 1)]));
    let second = world.enqueue(paying("strict", "b", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), [first]);
    world.remove_limit("l");
    world.limit("l", Limit::per_hour(2));
    assert_eq!(world.claim("strict", 10), [second]);
    let _third = world.enqueue(paying("strict", "c", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), []);
}

#[test]
fn slots_are_held_until_the_call_is_settled() {
    let mut world = World::new();
    world.limit("l", Limit::concurrency(1));
    let first = world.enqueue(paying("strict", "a", [("l", 1)]));
    let second = world.enqueue(paying("strict", "b", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), [first]);
    assert_eq!(world.claim("strict", 10), []);
    world.settle(first, Settlement::Done);
    assert_eq!(world.claim("strict", 10), [second]);
}
