//! Order: who goes first, and who holds up nobody.

use super::seconds;
use crate::lanes::world::{Owing, QUEUE, World, call, parallel};
use tollgate_core::lanes::{Act, QueueSpec, Settlement};
use tollgate_core::{Limit, Span, Timestamp};

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

/// Two queues at one limit: who came first goes first, as long as someone asks for it.
#[test]
fn queues_share_a_limit_in_turn() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    world.queue("other", QueueSpec::default());
    world.enqueue_many(3, &call("a").owes("api", "", 1));
    world.enqueue_many(3, &call("b").owes("api", "", 1).of("other"));
    let mut lanes = vec![];
    for _ in 0..6 {
        for queue in [QUEUE, "other"] {
            for started in world.claim_of(queue, 10) {
                lanes.push(started.lane.to_string());
                world.settle(started.lease, Settlement::Done);
            }
        }
        world.advance(seconds(1));
    }
    assert_eq!(lanes, ["a", "b", "a", "b", "a", "b"]);
}

/// A batch of which nothing was left to be sent was never acknowledged, and its partition stood
/// still for ever.
#[test]
fn calls_that_come_to_nothing_do_not_hold_those_behind_them() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    let soon = Some(Timestamp::default().plus(seconds(1)));
    for _ in 0..10 {
        let mut old = call("a").owes("api", "", 1);
        old.expires = soon;
        world.enqueue(old);
    }
    let cancel: Vec<_> = (0..10).map(|_| world.enqueue(call("a").owes("api", "", 1))).collect();
    let last = world.enqueue(call("a").owes("api", "", 1));
    world.advance(seconds(1));
    let acted = world.scheduler.act(Act { cancel, ..Act::default() }, world.now).unwrap();
    assert!(acted.cancelled.iter().all(|was_there| *was_there));
    let started = world.claim(20);
    assert_eq!(started.iter().map(|started| started.lease.call).collect::<Vec<_>>(), [last]);
}

/// Those who were denied filled the window from which the next were picked: 50 of them, and nobody
/// behind them was ever seen.
#[test]
fn heads_that_must_wait_do_not_fill_the_claim() {
    let mut world = World::new().limit("spent", Limit::per_hour(1));
    world = world.limit("gone", Limit::per_hour(1)).limit("full", Limit::concurrency(1));
    for limit in ["spent", "gone", "full"] {
        for lane in 0..50 {
            world.enqueue(call(&format!("{limit} {lane}")).owes(limit, "", 1));
        }
    }
    world.define("gone", None);
    assert_eq!(world.claim(2).len(), 2);
    for lane in 0..5 {
        world.enqueue(call(&format!("plain {lane}")));
    }
    assert_eq!(world.claim(10).len(), 5);
}

/// A slot that was set aside for a call was lost to the others when its rate denied it.
#[test]
fn the_slot_of_a_call_that_its_rate_denies_is_there_for_the_next() {
    let mut world =
        World::new().limit("slots", Limit::concurrency(2)).limit("rate", Limit::per_hour(1));
    world.enqueue(call("first").owes("rate", "", 1));
    assert_eq!(world.claim(10).len(), 1);
    world.enqueue(call("denied").owes("slots", "", 1).owes("rate", "", 1));
    for lane in ["b", "c", "d"] {
        world.enqueue(call(lane).owes("slots", "", 1));
    }
    let lanes: Vec<_> = world.claim(10).iter().map(|started| started.lane.to_string()).collect();
    assert_eq!(lanes, ["b", "c"]);
}

/// Buckets were shared by queues and their order was not: a low queue took all there was.
#[test]
fn a_priority_counts_across_queues() {
    let mut world = World::new().limit("api", Limit::per_second(1));
    world.queue("other", QueueSpec::default());
    world.enqueue_many(5, &call("low").owes("api", "", 1));
    world.enqueue_many(5, &call("high").owes("api", "", 1).of("other").priority(9));
    let mut lanes = vec![];
    // Both are asked for from the start; what is there first goes to whoever asks first.
    for _ in 0..10 {
        for queue in [QUEUE, "other"] {
            for started in world.claim_of(queue, 10) {
                lanes.push(started.lane.to_string());
                world.settle(started.lease, Settlement::Done);
            }
        }
        world.advance(seconds(1));
    }
    assert_eq!(lanes[1..6], ["high"; 5], "{lanes:?}");
    assert_eq!(lanes.len(), 10);
}
