//! Rates and limits: what is let through, for whom, and after which change.

use super::seconds;
use crate::lanes::world::{Owing, World, call, parallel};
use tollgate_core::lanes::{QueueSpec, Settlement};
use tollgate_core::{Limit, Span, Timestamp};

/// Throttling by lease expiry made the lease the clock.
#[test]
fn the_rate_does_not_depend_on_the_lease_or_the_claim() {
    let ends = [1, 7, 100].map(|claim| {
        [1, 30, 3_600].map(|lease| {
            let spec = QueueSpec { lease: seconds(lease), ..parallel(1_000) };
            let mut world = World::with(spec).limit("api", Limit::per_second(100).burst(10));
            world.enqueue_many(210, &call("acme").owes("api", "", 1));
            world.drain(claim, seconds(60));
            (world.starts.len(), world.starts.last().map(|start| start.at))
        })
    });
    assert_eq!(ends, [[(210, Some(2_000)); 3]; 3]);
}

/// A limit checked on entry to a second queue let 13 times the limit through at once.
#[test]
fn a_worker_that_was_down_finds_no_more_than_the_limit() {
    let mut world = World::with(parallel(1_000)).limit("api", Limit::per_second(20));
    world.enqueue_many(400, &call("acme").owes("api", "", 1));
    world.drain(1_000, seconds(1));
    world.now = world.now.moved_to(Timestamp::default().plus(seconds(13)));
    let before = world.starts.len();
    world.drain(1_000, seconds(14));
    assert!(world.starts.len() - before <= 40, "{}", world.starts.len() - before);
}

/// A limit keyed by the lane multiplied when one key spanned several.
#[test]
fn one_key_over_several_lanes_is_one_limit() {
    let mut world = World::with(parallel(100)).limit("key", Limit::per_second(10));
    for lane in ["a", "b", "c", "d"] {
        world.enqueue_many(50, &call(lane).owes("key", "shared", 1));
    }
    world.drain(100, seconds(5));
    assert_eq!(world.starts.len(), 10 + 10 * 5 - 1);
    for lane in ["a", "b", "c", "d"] {
        let mine = world.starts.iter().filter(|start| start.lane == lane).count();
        assert!((14..=15).contains(&mine), "{lane}: {mine}");
    }
}

/// A quota that resets at midnight follows the wall clock, also when it is set.
#[test]
fn a_clock_that_is_set_is_noticed_within_a_minute() {
    let limit = Limit::fixed_window(1, Span::from_days(1)).on_calendar("UTC");
    let mut world = World::new().limit("quota", limit);
    world.enqueue_many(2, &call("a").owes("quota", "", 1));
    world.drain(10, seconds(10));
    assert_eq!(world.starts.len(), 1);
    world.now.wall = world.now.wall.plus(Span::from_days(1));
    world.advance(seconds(60));
    assert_eq!(world.claim(10).len(), 1);
}

/// Who was denied was found again by polling: 50 a second with a burst of one became 4.
#[test]
fn fifty_a_second_with_a_burst_of_one_are_fifty_a_second() {
    let mut world = World::new().limit("api", Limit::per_second(50).burst(1));
    world.enqueue_many(101, &call("acme").owes("api", "", 1));
    world.drain(10, seconds(60));
    let expected: Vec<u64> = (0..=100).map(|n| n * 20).collect();
    assert_eq!(world.instants(), expected);
}

/// A limit was a number in the code of each client: during a deploy the old and the new one gave
/// twice. Here it is one thing with one definition, the newest, for those who wait, too.
#[test]
fn a_deploy_that_says_two_limits_in_turn_never_lets_through_more_than_the_larger() {
    let mut world = World::with(parallel(1_000)).limit("api", Limit::per_second(10));
    world.enqueue_many(300, &call("acme").owes("api", "", 1));
    for round in 1..=100 {
        let limit = if round % 2 == 0 { 10 } else { 5 };
        world.define("api", Some(Limit::per_second(limit)));
        world.drain(100, Span::from_millis(round * 100));
        world.now = world.now.moved_to(Timestamp::default().plus(Span::from_millis(round * 100)));
    }
    let starts = world.starts.len() as u64;
    assert!((10 + 5 * 9..=10 + 10 * 10).contains(&starts), "{starts}");
    for (at, from) in world.instants().into_iter().enumerate() {
        let within = world.starts[at..].iter().filter(|start| start.at <= from + 1_000).count();
        assert!(within <= 20, "{within} in a second from {from}");
    }
}

/// The same, said once: at once, for all who wait, and what was spent stays spent.
#[test]
fn a_limit_that_is_changed_holds_for_those_who_wait() {
    let mut world = World::new().limit("api", Limit::per_hour(1));
    let ids = [0, 1, 2].map(|_| world.enqueue(call("acme").owes("api", "", 1)));
    world.drain(10, seconds(10));
    assert_eq!(world.starts.len(), 1);
    let told = |world: &World, id| world.scheduler.explain(id, world.now).unwrap().not_before;
    let hour = Timestamp::default().plus(Span::from_hours(1));
    assert_eq!(told(&world, ids[1]), Some(hour));
    world.now = world.now.moved_to(Timestamp::default().plus(seconds(10)));
    world.define("api", Some(Limit::per_second(1)));
    assert_eq!(told(&world, ids[1]), Some(world.now.at.plus(seconds(1))));
    world.drain(10, seconds(60));
    assert_eq!(world.instants(), [0, 11_000, 12_000]);
}

/// A `Retry-After` reached neither the limiter nor those who were queued before it came.
#[test]
fn a_pause_that_an_upstream_asks_for_holds_its_tenant_and_nobody_else() {
    let mut world = World::with(parallel(10)).limit("api", Limit::per_second(100));
    for tenant in ["a", "b"] {
        world.enqueue_many(5, &call(tenant).owes("api", tenant, 1));
    }
    let first = world.claim(1).remove(0);
    assert_eq!(first.lane.as_str(), "a");
    world.settle(first.lease, Settlement::Limited(seconds(30)));
    let attempts = world.scheduler.explain(first.lease.call, world.now).unwrap().attempts;
    assert_eq!((attempts.failures, attempts.crashes, attempts.limited), (0, 0, 1));
    world.drain(10, seconds(60));
    let instants = |lane: &str| -> Vec<u64> {
        let mine = world.starts.iter().filter(|start| start.lane == lane);
        mine.map(|start| start.at).collect()
    };
    assert_eq!(instants("b"), [0; 5]);
    assert_eq!(instants("a"), [0, 30_000, 30_000, 30_000, 30_000, 30_000]);
    assert_eq!(world.starts[6].call, first.lease.call, "it kept its place");
}
