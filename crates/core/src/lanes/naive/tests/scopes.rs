//! What an operator holds back: queues, lanes, limits.

use super::*;
use crate::lanes::claim::Scope;

/// Nothing starts while the scope is paused, and the call does afterwards.
fn assert_holds_back(scope: &Scope) {
    let mut world = World::new();
    world.limit("l", Limit::per_second(10));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.both.pause(scope, world.now);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1_000);
    assert_eq!(world.claim("strict", 10), []);
    world.both.resume(scope, world.now);
    assert_eq!(world.claim("strict", 10), [id]);
}

#[test]
fn a_paused_queue_starts_nothing() {
    assert_holds_back(&Scope::Queue(queue("strict")));
}

#[test]
fn a_paused_lane_starts_nothing() {
    assert_holds_back(&Scope::Lane(queue("strict"), lane_name("a")));
}

#[test]
fn a_paused_limit_lets_nothing_pass() {
    assert_holds_back(&Scope::Limit(limit_name("l")));
}

#[test]
fn a_paused_lane_does_not_hold_its_neighbour() {
    let mut world = World::new();
    let _held = world.enqueue(call("strict", "a"));
    let neighbour = world.enqueue(call("strict", "b"));
    world.both.pause(&Scope::Lane(queue("strict"), lane_name("a")), world.now);
    assert_eq!(world.claim("strict", 10), [neighbour]);
}

#[test]
fn pausing_what_is_unknown_does_nothing() {
    let mut world = World::new();
    world.both.pause(&Scope::Queue(queue("later")), world.now);
    world.both.pause(&Scope::Lane(queue("later"), lane_name("a")), world.now);
    world.both.pause(&Scope::Limit(limit_name("later")), world.now);
    world.queue("later", QueueSpec::default());
    world.limit("later", Limit::per_second(1));
    let id = world.enqueue(paying("later", "a", [("later", 1)]));
    assert_eq!(world.claim("later", 10), [id]);
}

#[test]
fn a_claim_of_an_unknown_queue_starts_nothing() {
    assert_eq!(World::new().claim("unknown", 10), []);
}

#[test]
fn a_queue_that_could_start_nothing_is_refused() {
    let mut world = World::new();
    let spec = QueueSpec { depth_max: 0, ..QueueSpec::default() };
    assert!(world.both.define_queue(&queue("strict"), spec, world.now).is_err());
    assert!(world.try_enqueue(call("strict", "a")).is_ok());
}
