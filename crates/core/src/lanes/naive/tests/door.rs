//! What is refused at the door: unknown names, impossible weights, full queues.

use super::*;
use crate::lanes::act::{ACT_CHANGES_MAX, Count};

#[test]
fn an_unknown_queue_is_refused() {
    let refused = World::new().try_enqueue(call("none", "a"));
    assert_eq!(refused, Err(ActError::UnknownQueue { at: 0, queue: queue("none") }));
}

#[test]
fn an_unknown_limit_is_refused() {
    let refused = World::new().try_enqueue(paying("strict", "a", [("none", 1)]));
    assert_eq!(refused, Err(ActError::UnknownLimit { at: 0, limit: limit_name("none") }));
}

#[test]
fn a_removed_limit_is_unknown() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(1));
    world.remove_limit("l");
    let refused = world.try_enqueue(paying("strict", "a", [("l", 1)]));
    assert_eq!(refused, Err(ActError::UnknownLimit { at: 0, limit: limit_name("l") }));
}

#[test]
fn a_weight_over_capacity_is_refused() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(5));
    let refused = world.try_enqueue(paying("strict", "a", [("l", 3), ("l", 3)]));
    let (limit, weight, capacity) = (limit_name("l"), 6, 5);
    assert_eq!(refused, Err(ActError::WeightOverCapacity { at: 0, limit, weight, capacity }));
}

#[test]
fn a_toll_of_nothing_is_refused() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(5));
    let refused = world.try_enqueue(paying("strict", "a", [("l", 0)]));
    assert_eq!(refused, Err(ActError::WeightZero { at: 0, limit: limit_name("l") }));
}

#[test]
fn more_tolls_than_a_call_may_owe_are_refused() {
    let refused = World::new().try_enqueue(paying("strict", "a", [("l", 1); 9]));
    assert_eq!(refused, Err(ActError::TooManyTolls { at: 0, count: 9 }));
}

#[test]
fn more_changes_than_an_act_may_hold_are_refused() {
    let given = ACT_CHANGES_MAX + 1;
    let act = Act { cancel: vec![CallId(0); given], ..Act::default() };
    assert_eq!(World::new().act(&act), Err(ActError::TooManyChanges { given }));
}

#[test]
fn the_call_of_a_join_is_checked_at_every_count() {
    let count = Count { key: key("join"), from: 2, then: call("none", "a") };
    let refused = World::new().act(&Act { count_down: vec![count], ..Act::default() });
    assert_eq!(refused, Err(ActError::UnknownQueue { at: 0, queue: queue("none") }));
}

/// A queue `shallow` that holds two calls and has room for one more.
fn shallow() -> World {
    let mut world = World::new();
    world.queue("shallow", QueueSpec { depth_max: 3, ..QueueSpec::default() });
    for name in ["first", "second"] {
        let (dedupe, supersedes) = (Some(key(name)), Some(key(name)));
        world.enqueue(NewCall { dedupe, supersedes, ..call("shallow", "a") });
    }
    world
}

fn full() -> ActError {
    ActError::QueueFull { queue: queue("shallow"), depth: 3 }
}

#[test]
fn a_queue_takes_all_calls_of_an_act_or_none() {
    let mut world = shallow();
    let enqueue = vec![call("shallow", "b"), call("shallow", "c")];
    assert_eq!(world.act(&Act { enqueue, ..Act::default() }), Err(full()));
    assert_eq!(world.enqueue(call("shallow", "b")), CallId(2));
    assert_eq!(world.try_enqueue(call("shallow", "c")), Err(full()));
}

#[test]
fn duplicates_and_superseding_calls_need_no_room() {
    let mut world = shallow();
    world.enqueue(call("shallow", "b"));
    let duplicate = NewCall { dedupe: Some(key("first")), ..call("shallow", "a") };
    let superseding = NewCall { supersedes: Some(key("second")), ..call("shallow", "a") };
    let act = Act { enqueue: vec![duplicate, superseding], ..Act::default() };
    assert_eq!(world.act(&act).unwrap().enqueued, [CallId(0), CallId(3)]);
}

#[test]
fn a_call_that_ends_in_the_act_makes_no_room_in_it() {
    let mut world = shallow();
    world.enqueue(call("shallow", "b"));
    let act =
        Act { cancel: vec![CallId(0)], enqueue: vec![call("shallow", "c")], ..Act::default() };
    assert_eq!(world.act(&act), Err(full()));
    assert!(world.both.is_waiting(CallId(0)));
}

#[test]
fn the_call_of_a_join_needs_room_only_when_it_is_enqueued() {
    let mut world = shallow();
    world.enqueue(call("shallow", "b"));
    let count = Count { key: key("join"), from: 2, then: call("shallow", "a") };
    let act = Act { count_down: vec![count], ..Act::default() };
    assert_eq!(world.act(&act).unwrap().counted, [(1, None)]);
    assert_eq!(world.act(&act), Err(full()));
}
