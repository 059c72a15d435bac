//! What comes of a start: done, failed, crashed, released, limited, cancelled, dead.

use super::*;
use crate::lanes::claim::Scope;
use crate::lanes::queue::OnDead;

#[test]
fn a_crashed_call_returns_to_the_head_and_its_crash_counts_apart() {
    let mut world = World::new();
    let first = world.enqueue(call("strict", "a"));
    let _second = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    world.wait(30);
    let started = world.start("strict", 1);
    assert_eq!(started[0].lease.call, first);
    assert_eq!((started[0].attempts.crashes, started[0].attempts.failures), (1, 0));
}

#[test]
fn a_call_that_crashes_too_often_is_dead() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    for _ in 0..3 {
        assert_eq!(world.claim("strict", 1), [id]);
        world.wait(30);
    }
    assert_eq!(world.end(id), Some(End::Dead));
}

#[test]
fn what_a_crashed_call_paid_stays_paid() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(1));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    assert_eq!(world.claim("strict", 1), [id]);
    world.wait(30);
    assert_eq!(world.claim("strict", 1), []);
}

#[test]
fn a_crashed_call_frees_its_slots() {
    let mut world = World::new();
    world.limit("l", Limit::concurrency(1));
    let crashed = world.enqueue(paying("strict", "a", [("l", 1)]));
    assert_eq!(world.claim("strict", 1), [crashed]);
    world.wait(30);
    assert_eq!(world.claim("strict", 1), [crashed]);
}

#[test]
fn a_late_settle_is_refused() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    let late = world.leases[&id];
    world.wait(30);
    world.claim("strict", 1);
    world.leases.insert(id, late);
    let refused = world.try_settle(id, Settlement::Done);
    assert_eq!(refused, Err(ActError::LeaseLost { at: 0 }));
    assert!(world.both.is_in_flight(id));
}

#[test]
fn a_lease_settles_once_in_an_act() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    let settle = Settle { lease: world.leases[&id], settlement: Settlement::Done, actual: vec![] };
    let act = Act { settle: vec![settle.clone(), settle], ..Act::default() };
    assert_eq!(world.act(&act), Err(ActError::LeaseLost { at: 1 }));
    assert!(world.both.is_in_flight(id));
}

#[test]
fn a_renewed_lease_and_its_slots_last_longer() {
    let mut world = World::new();
    world.limit("l", Limit::concurrency(1));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    let _other = world.enqueue(paying("strict", "b", [("l", 1)]));
    world.claim("strict", 1);
    world.wait(20);
    let leases = [world.leases[&id], Lease { call: id, token: 99 }];
    let renewed = world.both.renew(&leases, Span::from_secs(30), world.now);
    assert_eq!(renewed, [true, false]);
    world.wait(29);
    assert_eq!(world.claim("strict", 10), []);
    assert!(world.both.is_in_flight(id));
    world.wait(1);
    world.both.advance(world.now);
    assert!(!world.both.is_in_flight(id));
}

#[test]
fn a_released_call_gets_back_what_it_paid_and_counts_no_attempt() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(1));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.claim("strict", 1);
    world.settle(id, Settlement::Release);
    let again = world.start("strict", 1);
    assert_eq!(again[0].lease.call, id);
    assert_eq!(again[0].attempts, crate::lanes::Attempts::default());
}

#[test]
fn the_true_cost_is_settled_at_the_limit_it_names() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(10));
    let estimate = world.enqueue(paying("strict", "a", [("l", 10)]));
    world.claim("strict", 1);
    let actual = vec![(limit_name("l"), 4)];
    let lease = world.leases[&estimate];
    let settle = vec![Settle { lease, settlement: Settlement::Done, actual }];
    let _ = world.act(&Act { settle, ..Act::default() }).unwrap();
    let rest = world.enqueue(paying("strict", "a", [("l", 6)]));
    assert_eq!(world.claim("strict", 1), [rest]);
}

#[test]
fn a_true_cost_at_a_limit_that_was_not_paid_is_refused() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    let lease = world.leases[&id];
    let actual = vec![(limit_name("l"), 1)];
    let settle = vec![Settle { lease, settlement: Settlement::Done, actual }];
    let refused = world.act(&Act { settle, ..Act::default() });
    assert_eq!(refused, Err(ActError::NotPaid { at: 0, limit: limit_name("l") }));
}

#[test]
fn a_limited_call_closes_its_meter_and_keeps_its_place() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(10));
    let limited = world.enqueue(paying("strict", "a", [("l", 1)]));
    let _behind = world.enqueue(paying("strict", "a", [("l", 1)]));
    let other = world.enqueue(paying("strict", "b", [("l", 1)]));
    assert_eq!(world.claim("strict", 1), [limited]);
    world.settle(limited, Settlement::Limited(Span::from_secs(5)));
    world.wait(4);
    assert_eq!(world.claim("strict", 10), []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10), [other, limited]);
}

#[test]
fn only_meters_that_hear_feedback_close() {
    let mut world = World::new();
    world.limit("deaf", Limit::per_second(10));
    world.limit("l", Limit::per_second(10));
    let tolls = vec![toll("deaf", 1), Toll { hears_feedback: true, ..toll("l", 1) }];
    let limited = world.enqueue(NewCall { tolls, ..call("strict", "a") });
    world.claim("strict", 1);
    world.settle(limited, Settlement::Limited(Span::from_secs(5)));
    let _closed = world.enqueue(paying("strict", "b", [("l", 1)]));
    let open = world.enqueue(paying("strict", "c", [("deaf", 1)]));
    assert_eq!(world.claim("strict", 10), [open]);
}

#[test]
fn a_limited_call_without_a_rate_to_close_waits_by_itself() {
    let mut world = World::new();
    world.limit("l", Limit::concurrency(2));
    let limited = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.claim("strict", 1);
    world.settle(limited, Settlement::Limited(Span::from_secs(5)));
    let other = world.enqueue(paying("strict", "b", [("l", 1)]));
    assert_eq!(world.claim("strict", 10), [other]);
    world.wait(5);
    assert_eq!(world.start("strict", 10)[0].attempts.limited, 1);
}

#[test]
fn a_closed_meter_can_be_reopened() {
    let mut world = World::new();
    world.limit("l", Limit::per_second(10));
    let limited = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.claim("strict", 1);
    world.settle(limited, Settlement::Limited(Span::from_secs(500)));
    assert_eq!(world.claim("strict", 1), []);
    world.both.reopen(&limit_name("l"), None, world.now);
    assert_eq!(world.claim("strict", 1), [limited]);
}

#[test]
fn a_cancelled_call_that_waits_ends_at_once() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    assert!(world.cancel(id));
    assert_eq!(world.end(id), Some(End::Cancelled));
    assert!(!world.cancel(id));
}

#[test]
fn a_cancelled_call_in_flight_is_not_tried_again() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    assert!(world.cancel(id));
    assert!(world.both.is_in_flight(id));
    world.settle(id, Settlement::Retry(None));
    assert_eq!(world.end(id), Some(End::Cancelled));
}

#[test]
fn a_cancelled_call_in_flight_may_still_be_done() {
    let mut world = World::new();
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    assert!(world.cancel(id));
    world.settle(id, Settlement::Done);
    assert_eq!(world.end(id), Some(End::Done));
}

#[test]
fn a_call_that_fails_too_often_is_dead() {
    let mut world = World::new();
    world.queue("strict", QueueSpec { failures_max: 1, ..QueueSpec::default() });
    let id = world.enqueue(call("strict", "a"));
    world.claim("strict", 1);
    world.settle(id, Settlement::Retry(None));
    assert_eq!(world.end(id), Some(End::Dead));
}

#[test]
fn a_dead_call_holds_its_lane_until_an_operator_resumes_it() {
    let mut world = World::new();
    world.queue("strict", QueueSpec { on_dead: OnDead::Hold, ..QueueSpec::default() });
    let dead = world.enqueue(call("strict", "a"));
    let behind = world.enqueue(call("strict", "a"));
    let stranger = world.enqueue(call("strict", "b"));
    world.claim("strict", 1);
    world.settle(dead, Settlement::Dead);
    assert_eq!(world.claim("strict", 10), [stranger]);
    world.both.resume(&Scope::Lane(queue("strict"), lane_name("a")), world.now);
    assert_eq!(world.claim("strict", 10), [behind]);
}

#[test]
fn slots_of_a_removed_limit_are_let_go() {
    let mut world = World::new();
    world.limit("l", Limit::concurrency(1));
    let first = world.enqueue(paying("strict", "a", [("l", 1)]));
    let second = world.enqueue(paying("strict", "b", [("l", 1)]));
    world.claim("strict", 1);
    world.remove_limit("l");
    world.settle(first, Settlement::Done);
    world.limit("l", Limit::concurrency(1));
    assert_eq!(world.claim("strict", 1), [second]);
}

#[test]
fn a_limit_defined_again_as_it_was_still_gives_back() {
    let mut world = World::new();
    world.limit("l", Limit::per_hour(1));
    let id = world.enqueue(paying("strict", "a", [("l", 1)]));
    world.claim("strict", 1);
    world.limit("l", Limit::per_hour(1));
    world.settle(id, Settlement::Release);
    assert_eq!(world.claim("strict", 1), [id]);
}
