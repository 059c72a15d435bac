//! The figures of the pages that lanes grew from, to the millisecond.

use super::world::{Owing, World, call, parallel};
use tollgate_core::lanes::Settlement;
use tollgate_core::{Limit, Span};

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

#[test]
fn thirty_calls_at_burst_10_and_5_a_second_end_after_4_seconds() {
    let mut world = World::new().limit("api", Limit::per_second(5).burst(10));
    world.enqueue_many(30, &call("acme").owes("api", "acme", 1));
    world.drain(100, seconds(60));
    let expected: Vec<u64> = [0; 10].into_iter().chain((1..=20).map(|n| n * 200)).collect();
    assert_eq!(world.instants(), expected);
}

#[test]
fn three_hundred_units_at_100_and_50_a_second_end_after_4_seconds() {
    let mut world = World::new().limit("units", Limit::per_second(50).burst(100));
    world.enqueue_many(30, &call("acme").owes("units", "acme", 10));
    world.drain(100, seconds(60));
    assert_eq!((world.started(0, 1), world.instants().last()), (10, Some(&4_000)));
}

#[test]
fn two_limits_at_once_run_at_the_tighter_one() {
    let mut world =
        World::new().limit("requests", Limit::per_second(10)).limit("items", Limit::per_second(30));
    let five_items = call("acme").owes("requests", "acme", 1).owes("items", "acme", 5);
    world.enqueue_many(200, &five_items);
    world.drain(100, seconds(20));
    for second in 1..19 {
        assert_eq!(world.started(second * 1_000 + 1, second * 1_000 + 1_001), 6);
    }
}

#[test]
fn twenty_in_ten_seconds_are_never_twenty_one() {
    let mut world =
        World::with(parallel(100)).limit("quota", Limit::sliding_window(20, seconds(10)));
    for start in 0..50 {
        world.now = world
            .now
            .moved_to(tollgate_core::Timestamp::default().plus(Span::from_millis(start * 700)));
        world.enqueue_many(7, &call("acme").owes("quota", "acme", 1));
        world.drain(3, Span::from_millis((start + 1) * 700));
    }
    let instants = world.instants();
    assert!(instants.len() > 60, "{}", instants.len());
    for (at, from) in instants.iter().enumerate() {
        let within = instants[at..].iter().filter(|start| **start < from + 10_000).count();
        assert!(within <= 20, "{within} from {from}");
    }
}

/// Messages, requests and cost, one limit for each tenant: no tenant notices another.
#[test]
fn every_tenant_runs_at_its_own_rate() {
    let mut world = World::new().limit("api", Limit::per_second(5).burst(10));
    for tenant in ["a", "b", "c"] {
        world.enqueue_many(50, &call(tenant).owes("api", tenant, 1));
    }
    world.drain(10, seconds(60));
    for tenant in ["a", "b", "c"] {
        let mine = world.starts.iter().filter(|start| start.lane == tenant);
        let expected: Vec<u64> = [0; 10].into_iter().chain((1..=40).map(|n| n * 200)).collect();
        assert_eq!(mine.map(|start| start.at).collect::<Vec<_>>(), expected, "{tenant}");
    }
}

/// The first that does not fit stops all that are behind it at the meter, lighter ones too.
#[test]
fn a_meter_serves_the_prefix_that_fits() {
    let mut world = World::new().limit("api", Limit::per_second(1).burst(10));
    for (lane, weight) in [("a", 5), ("b", 3), ("c", 4), ("d", 1)] {
        world.enqueue(call(lane).owes("api", "", weight));
    }
    let lanes = |world: &mut World| -> Vec<String> {
        world.claim(10).iter().map(|started| started.lane.to_string()).collect()
    };
    assert_eq!(lanes(&mut world), ["a", "b"]);
    world.advance(Span::from_millis(1_999));
    assert!(world.claim(10).is_empty());
    world.advance(Span::from_millis(1));
    assert_eq!(lanes(&mut world), ["c"]);
    world.advance(seconds(1));
    assert_eq!(lanes(&mut world), ["d"]);
}

#[test]
fn a_higher_priority_goes_first_at_a_meter() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    for (lane, priority) in [("low", 0), ("high", 9), ("middle", 5)] {
        world.enqueue_many(2, &call(lane).owes("api", "", 1).priority(priority));
    }
    world.drain(1, seconds(60));
    let lanes: Vec<_> = world.starts.iter().map(|start| start.lane.as_str()).collect();
    assert_eq!(lanes, ["high", "high", "middle", "middle", "low", "low"]);
}

#[test]
fn a_retry_keeps_its_tolls_and_pays_them_again() {
    let mut world = World::new().limit("api", Limit::per_minute(1));
    world.enqueue(call("a").owes("api", "", 1));
    let first = world.claim(1).remove(0);
    world.settle(first.lease, Settlement::Retry(Some(seconds(5))));
    world.advance(seconds(59));
    assert!(world.claim(1).is_empty());
    world.advance(seconds(1));
    let second = world.claim(1).remove(0);
    assert_eq!((second.lease.call, second.attempts.failures), (first.lease.call, 1));
}
