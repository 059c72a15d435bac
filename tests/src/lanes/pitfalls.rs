//! What went wrong elsewhere, each under its own name.

use super::world::{Owing, World, call, parallel};
use tollgate_core::TollError;
use tollgate_core::lanes::{Act, ActError, QueueSpec, Settle, Settlement};
use tollgate_core::{Limit, Span, Timestamp};

fn seconds(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

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

/// A fat call froze its bucket.
#[test]
fn what_can_never_pass_is_refused_at_the_door() {
    let mut world = World::new().limit("api", Limit::per_second(10));
    let act = Act { enqueue: vec![call("a").owes("api", "", 11)], ..Act::default() };
    let error = world.scheduler.act(act, world.now).unwrap_err();
    assert!(matches!(
        error,
        ActError::Toll {
            error: TollError::WeightOverCapacity { weight: 11, capacity: 10, .. },
            ..
        }
    ));
    assert!(error.to_string().contains("split the call, or raise the limit"));
}

/// An unknown limit stalled its row for ever, in silence.
#[test]
fn an_unknown_limit_is_refused_at_the_door() {
    let mut world = World::new();
    let act = Act { enqueue: vec![call("a").owes("mistyped", "", 1)], ..Act::default() };
    let error = world.scheduler.act(act, world.now).unwrap_err();
    assert!(matches!(error, ActError::Toll { at: 0, error: TollError::UnknownLimit { .. } }));
}

/// A limit that is removed parks those who owe there, and holds nobody else.
#[test]
fn a_removed_limit_holds_only_those_who_owe_there() {
    let mut world =
        World::new().limit("gone", Limit::per_second(10)).limit("stays", Limit::per_second(10));
    world.enqueue(call("a").owes("stays", "", 1).owes("gone", "", 1));
    world.enqueue(call("b").owes("stays", "", 1));
    world.define("gone", None);
    assert_eq!(world.claim(10).len(), 1);
    world.define("gone", Some(Limit::per_second(1)));
    assert_eq!(world.claim(10)[0].lane.as_str(), "a");
}

/// Denials burned retries, and crashes were not counted at all.
#[test]
fn waiting_is_no_attempt_and_crashes_are_counted_apart() {
    let mut world = World::new().limit("api", Limit::per_minute(1));
    let calls = [0, 1].map(|_| world.enqueue(call("a").owes("api", "", 1)));
    let first = world.claim(1).remove(0);
    world.settle(first.lease, Settlement::Done);
    for _ in 0..1_000 {
        assert!(world.claim(1).is_empty());
    }
    for crashes in 0..3 {
        world.advance(seconds(60));
        let started = world.claim(1).remove(0);
        assert_eq!((started.lease.call, started.attempts.crashes), (calls[1], crashes));
        assert_eq!(started.attempts.failures, 0);
    }
    world.advance(seconds(60));
    assert!(world.claim(1).is_empty());
    assert!(!world.scheduler.is_waiting(calls[1]));
}

/// The answer of a worker that had lost its call changed what another did.
#[test]
fn a_late_settle_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let id = world.enqueue(call("a"));
    let lost = world.claim(1).remove(0);
    world.advance(seconds(31));
    let held = world.claim(1).remove(0);
    assert!(held.lease.token > lost.lease.token);
    let settle = vec![Settle { lease: lost.lease, settlement: Settlement::Done, actual: vec![] }];
    let late = world.scheduler.act(Act { settle, ..Act::default() }, world.now);
    assert_eq!(late.unwrap_err(), ActError::LeaseLost { at: 0 });
    assert!(world.scheduler.is_in_flight(id));
}

/// One deep tenant filled the batch.
#[test]
fn a_deep_lane_does_not_fill_the_claim() {
    let mut world = World::with(parallel(1_000)).limit("api", Limit::per_second(10));
    world.enqueue_many(1_000, &call("deep").owes("api", "", 1));
    for lane in ["x", "y", "z"] {
        world.enqueue_many(5, &call(lane).owes("api", "", 1));
    }
    world.drain(100, Span::from_millis(1_500));
    for lane in ["x", "y", "z"] {
        let mine = world.starts.iter().filter(|start| start.lane == lane).count();
        assert!(mine >= 3, "{lane}: {mine}");
    }
}

/// A slot counter leaked when a worker died.
#[test]
fn slots_are_live_leases() {
    let mut world = World::with(parallel(10)).limit("slots", Limit::concurrency(2));
    world.enqueue_many(5, &call("a").owes("slots", "", 1));
    assert_eq!(world.claim(10).len(), 2);
    world.advance(seconds(29));
    assert!(world.claim(10).is_empty());
    world.advance(seconds(1));
    assert_eq!(world.claim(10).len(), 2);
}

/// Throttled jobs that were put back came out again behind others.
#[test]
fn a_failed_call_keeps_its_place_in_a_strict_lane() {
    let mut world = World::new();
    let calls = [0, 1, 2].map(|_| world.enqueue(call("a")));
    let first = world.claim(10).remove(0);
    world.settle(first.lease, Settlement::Retry(Some(seconds(5))));
    assert!(world.claim(10).is_empty());
    world.advance(seconds(5));
    world.drain(10, seconds(60));
    let order: Vec<_> = world.starts.iter().map(|start| start.call).collect();
    assert_eq!(order, [calls[0], calls[0], calls[1], calls[2]]);
}

/// A request that was sent again doubled its calls.
#[test]
fn a_duplicate_is_the_first_call() {
    let mut world = World::new();
    let first = world.enqueue(call("a").dedupe("order-7"));
    assert_eq!(world.enqueue(call("b").dedupe("order-7")), first);
    world.advance(seconds(600));
    assert_ne!(world.enqueue(call("b").dedupe("order-7")), first);
}

/// Two queues at one limit: who came first goes first, as long as someone asks for it.
#[test]
fn queues_share_a_limit_in_turn() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    world.queue("other", QueueSpec::default());
    world.enqueue_many(3, &call("a").owes("api", "", 1));
    world.enqueue_many(3, &call("b").owes("api", "", 1).of("other"));
    let mut lanes = vec![];
    for _ in 0..6 {
        for queue in [super::world::QUEUE, "other"] {
            for started in world.claim_of(queue, 10) {
                lanes.push(started.lane.to_string());
                world.settle(started.lease, Settlement::Done);
            }
        }
        world.advance(seconds(1));
    }
    assert_eq!(lanes, ["a", "b", "a", "b", "a", "b"]);
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
