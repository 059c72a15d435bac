//! Why a call waits, and until when.

use super::world::{Owing, World, call, parallel};
use tollgate_core::lanes::{CallId, Reason, Settlement};
use tollgate_core::{Cause, Limit, Span, Timestamp};

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

fn at(span: Span) -> Option<Timestamp> {
    Some(Timestamp::default().plus(span))
}

#[test]
fn a_call_with_nothing_in_its_way_has_no_reason_to_wait() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    let id = world.enqueue(call("a").owes("api", "", 1));
    let told = world.scheduler.explain(id, world.now).unwrap();
    assert_eq!((told.position, told.reasons), (Some(0), vec![]));
    assert_eq!((told.not_before, told.expected), (at(Span::ZERO), at(Span::ZERO)));
}

#[test]
fn the_meter_that_is_spent_is_named_with_the_instant_it_opens() {
    let mut world = World::new().limit("api", Limit::per_second(2));
    world.enqueue_many(2, &call("a").owes("api", "acme", 1));
    world.drain(10, seconds(1));
    let id = world.enqueue(call("a").owes("api", "acme", 2));
    let told = world.scheduler.explain(id, world.now).unwrap();
    let [Reason::Meter { limit, partition, blocker }] = &told.reasons[..] else {
        panic!("{told:?}")
    };
    let partition = partition.as_ref().map(|partition| partition.as_str());
    assert_eq!((limit.as_str(), partition, blocker.cause), ("api", Some("acme"), Cause::Spent));
    assert_eq!(told.not_before, at(seconds(1)));
    world.drain(10, seconds(60));
    assert_eq!(world.instants().last(), Some(&1_000));
}

#[test]
fn the_place_in_the_lane_and_the_time_it_takes_are_told() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    let ids = [0, 1, 2, 3].map(|_| world.enqueue(call("a").owes("api", "", 1)));
    let told = world.scheduler.explain(ids[3], world.now).unwrap();
    assert_eq!(told.position, Some(3));
    assert!(told.reasons.contains(&Reason::Behind { calls: 3 }));
    assert_eq!((told.not_before, told.expected), (at(seconds(3)), at(seconds(3))));
    world.drain(10, seconds(60));
    assert_eq!(world.instants(), [0, 1_000, 2_000, 3_000]);
}

#[test]
fn lanes_that_go_before_it_count_for_what_is_expected() {
    let mut world = World::with(parallel(10)).limit("api", Limit::per_second(1));
    for lane in ["a", "b", "c"] {
        world.enqueue(call(lane).owes("api", "", 1));
    }
    let id = world.enqueue(call("d").owes("api", "", 1));
    let told = world.scheduler.explain(id, world.now).unwrap();
    assert_eq!((told.not_before, told.expected), (at(Span::ZERO), at(seconds(3))));
    world.drain(10, seconds(60));
    assert_eq!(world.starts.last().map(|start| (start.call, start.at)), Some((id, 3_000)));
}

#[test]
fn what_nobody_can_compute_has_no_time() {
    let mut world = World::new().limit("slots", Limit::concurrency(1));
    world.enqueue(call("a").owes("slots", "", 1));
    let id = world.enqueue(call("b").owes("slots", "", 1));
    assert_eq!(world.claim(10).len(), 1);
    let told = world.scheduler.explain(id, world.now).unwrap();
    // A slot may be let go at any time; at the latest when the lease of the other ends.
    assert_eq!((told.not_before, told.expected), (at(Span::ZERO), at(seconds(30))));
    world.define("slots", None);
    assert_eq!(world.scheduler.explain(id, world.now).unwrap().not_before, None);
}

#[test]
fn a_call_that_rests_or_is_held_back_says_so() {
    let mut world = World::new();
    let id = world.enqueue(call("a"));
    let started = world.claim(1).remove(0);
    assert!(matches!(
        world.scheduler.explain(id, world.now).unwrap().reasons[..],
        [Reason::InFlight { .. }]
    ));
    world.settle(started.lease, Settlement::Retry(Some(seconds(5))));
    let told = world.scheduler.explain(id, world.now).unwrap();
    let until = Timestamp::default().plus(seconds(5));
    assert_eq!(told.reasons, [Reason::Resting { until }]);
    assert_eq!((told.attempts.failures, told.not_before), (1, Some(until)));
    let scope = tollgate_core::lanes::Scope::Queue(call("a").queue);
    world.scheduler.pause(&scope, world.now);
    let told = world.scheduler.explain(id, world.now).unwrap();
    assert!(told.reasons.contains(&Reason::QueuePaused));
    assert_eq!(told.not_before, None);
    assert_eq!(world.scheduler.explain(CallId(99), world.now), None);
}
