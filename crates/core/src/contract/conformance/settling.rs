//! What comes of a start: done, failed, crashed, released, limited, cancelled, dead.

use super::*;
use crate::lanes::OnDead;
use crate::lanes::Scope;

pub async fn a_crashed_call_returns_to_the_head_and_its_crash_counts_apart(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let first = world.enqueue(call("strict", "a")).await;
    let _second = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    world.wait(30);
    let started = world.start("strict", 1).await;
    assert_eq!(started[0].lease.call, first);
    assert_eq!((started[0].attempts.crashes, started[0].attempts.failures), (1, 0));
}

pub async fn a_call_that_crashes_too_often_is_dead(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    for _ in 0..3 {
        assert_eq!(world.claim("strict", 1).await, [id]);
        world.wait(30);
    }
    assert_eq!(world.end(id).await, Some(End::Dead));
}

pub async fn what_a_crashed_call_paid_stays_paid(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, [id]);
    world.wait(30);
    assert_eq!(world.claim("strict", 1).await, []);
}

pub async fn a_crashed_call_frees_its_slots(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let crashed = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, [crashed]);
    world.wait(30);
    assert_eq!(world.claim("strict", 1).await, [crashed]);
}

pub async fn a_late_settle_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let late = world.leases[&id];
    world.wait(30);
    world.claim("strict", 1).await;
    world.leases.insert(id, late);
    let refused = world.try_settle(id, Settlement::Done).await;
    assert_eq!(refused, Err(ActError::LeaseLost { at: 0 }));
    assert!(world.is_in_flight(id).await);
}

pub async fn a_lease_settles_once_in_an_act(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let settle = Settle::new(world.leases[&id], Settlement::Done);
    let act = Act { settle: vec![settle.clone(), settle], ..Act::default() };
    assert_eq!(world.act(act).await, Err(ActError::LeaseLost { at: 1 }));
    assert!(world.is_in_flight(id).await);
}

pub async fn a_renewed_lease_and_its_slots_last_longer(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let _other = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.wait(20);
    let leases = [world.leases[&id], Lease { call: id, token: 99 }];
    let renewed = world.renew(leases.into(), Span::from_secs(30)).await;
    assert_eq!(renewed, [true, false]);
    world.wait(29);
    assert_eq!(world.claim("strict", 10).await, []);
    assert!(world.is_in_flight(id).await);
    world.wait(1);
    assert!(!world.is_in_flight(id).await);
}

pub async fn a_released_call_gets_back_what_it_paid_and_counts_no_attempt(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.settle(id, Settlement::Release).await;
    let again = world.start("strict", 1).await;
    assert_eq!(again[0].lease.call, id);
    assert_eq!(again[0].attempts, crate::lanes::Attempts::default());
}

pub async fn the_true_cost_is_settled_at_the_limit_it_names(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(10)).await;
    let estimate = world.enqueue(paying("strict", "a", [("l", 10)])).await;
    world.claim("strict", 1).await;
    let actual = vec![(limit_name("l"), 4)];
    let lease = world.leases[&estimate];
    let settle = vec![Settle { actual, ..Settle::new(lease, Settlement::Done) }];
    let _ = world.act(Act { settle, ..Act::default() }).await.unwrap();
    let rest = world.enqueue(paying("strict", "a", [("l", 6)])).await;
    assert_eq!(world.claim("strict", 1).await, [rest]);
}

pub async fn a_true_cost_at_a_limit_that_was_not_paid_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let lease = world.leases[&id];
    let actual = vec![(limit_name("l"), 1)];
    let settle = vec![Settle { actual, ..Settle::new(lease, Settlement::Done) }];
    let refused = world.act(Act { settle, ..Act::default() }).await;
    assert_eq!(refused, Err(ActError::NotPaid { at: 0, limit: limit_name("l") }));
}

pub async fn a_limited_call_closes_its_meter_and_keeps_its_place(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(10)).await;
    let limited = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let _behind = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let other = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, [limited]);
    world.settle(limited, Settlement::Limited(Span::from_secs(5))).await;
    world.wait(4);
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 10).await, [other, limited]);
}

pub async fn only_meters_that_hear_feedback_close(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("deaf", Limit::per_second(10)).await;
    world.limit("l", Limit::per_second(10)).await;
    let tolls = vec![toll("deaf", 1), Toll { hears_feedback: true, ..toll("l", 1) }];
    let limited = world.enqueue(NewCall { tolls: tolls.into(), ..call("strict", "a") }).await;
    world.claim("strict", 1).await;
    world.settle(limited, Settlement::Limited(Span::from_secs(5))).await;
    let _closed = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    let open = world.enqueue(paying("strict", "c", [("deaf", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [open]);
}

pub async fn a_limited_call_without_a_rate_to_close_waits_by_itself(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(2)).await;
    let limited = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.settle(limited, Settlement::Limited(Span::from_secs(5))).await;
    let other = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [other]);
    world.wait(5);
    assert_eq!(world.start("strict", 10).await[0].attempts.limited, 1);
}

pub async fn a_meter_without_a_rate_closes_if_its_toll_hears_feedback(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(2)).await;
    let tolls = vec![Toll { hears_feedback: true, ..toll("l", 1) }];
    let limited = world.enqueue(NewCall { tolls: tolls.into(), ..call("strict", "a") }).await;
    world.claim("strict", 1).await;
    world.settle(limited, Settlement::Limited(Span::from_secs(5))).await;
    let other = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(5);
    assert_eq!(world.claim("strict", 10).await, [limited, other]);
}

pub async fn a_closed_meter_can_be_reopened(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(10)).await;
    let limited = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.settle(limited, Settlement::Limited(Span::from_secs(500))).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.reopen("l").await;
    assert_eq!(world.claim("strict", 1).await, [limited]);
}

pub async fn a_cancelled_call_that_waits_ends_at_once(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    assert!(world.cancel(id).await);
    assert_eq!(world.end(id).await, Some(End::Cancelled));
    assert!(!world.cancel(id).await);
}

pub async fn a_cancelled_call_in_flight_is_not_tried_again(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    assert!(world.cancel(id).await);
    assert!(world.is_in_flight(id).await);
    world.settle(id, Settlement::Retry(None)).await;
    assert_eq!(world.end(id).await, Some(End::Cancelled));
}

pub async fn a_cancelled_call_in_flight_may_still_be_done(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    assert!(world.cancel(id).await);
    world.settle(id, Settlement::Done).await;
    assert_eq!(world.end(id).await, Some(End::Done));
}

pub async fn a_call_that_fails_too_often_is_dead(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { failures_max: 1, ..QueueSpec::default() }).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    world.settle(id, Settlement::Retry(None)).await;
    assert_eq!(world.end(id).await, Some(End::Dead));
}

pub async fn a_dead_call_holds_its_lane_until_an_operator_resumes_it(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { on_dead: OnDead::Hold, ..QueueSpec::default() }).await;
    let dead = world.enqueue(call("strict", "a")).await;
    let behind = world.enqueue(call("strict", "a")).await;
    let stranger = world.enqueue(call("strict", "b")).await;
    world.claim("strict", 1).await;
    world.settle(dead, Settlement::Dead).await;
    assert_eq!(world.claim("strict", 10).await, [stranger]);
    world.resume(Scope::Lane(queue("strict"), lane_name("a"))).await;
    assert_eq!(world.claim("strict", 10).await, [behind]);
}

pub async fn slots_of_a_removed_limit_are_let_go(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    let second = world.enqueue(paying("strict", "b", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.remove_limit("l").await;
    world.settle(first, Settlement::Done).await;
    world.limit("l", Limit::concurrency(1)).await;
    assert_eq!(world.claim("strict", 1).await, [second]);
}

pub async fn a_limit_defined_again_as_it_was_still_gives_back(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.claim("strict", 1).await;
    world.limit("l", Limit::per_hour(1)).await;
    world.settle(id, Settlement::Release).await;
    assert_eq!(world.claim("strict", 1).await, [id]);
}
