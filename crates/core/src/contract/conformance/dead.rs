//! The dead: kept, revived, cancelled, dropped.

use super::*;
use crate::lanes::{Attempts, OnDead};

fn keeping(dead_max: u64) -> QueueSpec {
    QueueSpec { dead_max, ..QueueSpec::default() }
}

pub async fn a_revived_call_waits_at_the_end_of_its_lane_as_if_it_had_never_started(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { failures_max: 1, ..QueueSpec::default() }).await;
    let dead = world.enqueue(call("strict", "a")).await;
    let behind = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    world.settle(dead, Settlement::Retry(None)).await;
    assert!(!world.is_waiting(dead).await);
    assert!(world.revive(dead).await);
    assert_eq!(world.end(dead).await, None);
    assert!(world.is_waiting(dead).await);
    assert_eq!(world.claim("strict", 10).await, [behind]);
    world.settle(behind, Settlement::Done).await;
    let started = world.start("strict", 10).await;
    assert_eq!((started[0].lease.call, started[0].attempts), (dead, Attempts::default()));
    world.settle(dead, Settlement::Done).await;
    assert_eq!(world.end(dead).await, Some(End::Done));
}

pub async fn a_revived_call_has_the_body_it_was_handed_in_with(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(NewCall { payload: (*b"body").into(), ..call("strict", "a") }).await;
    let dead = world.kill("strict").await;
    world.revive(dead).await;
    let (asks, most) = (Span::ZERO, 1);
    let claim = Claim { queue: queue("strict"), most, lease: None, asks };
    assert_eq!(world.store().claim(claim).await.unwrap()[0].payload.body(), b"body");
}

pub async fn a_call_that_is_revived_for_later_joins_when_it_is_due(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(call("strict", "a")).await;
    let dead = world.kill("strict").await;
    let due = world.after(10);
    assert!(world.revive_at(dead, Some(due)).await);
    let other = world.enqueue(call("strict", "a")).await;
    world.wait(9);
    assert_eq!(world.claim("strict", 1).await, [other]);
    world.settle(other, Settlement::Done).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [dead]);
}

pub async fn only_the_dead_are_revived_and_each_once(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(call("strict", "a")).await;
    let waiting = world.enqueue(call("strict", "b")).await;
    let dead = world.kill("strict").await;
    let each = [dead, waiting, CallId(99), dead];
    let revive = each.map(|call| Revive { call, not_before: None }).into();
    let acted = world.act(Act { revive, ..Act::default() }).await.unwrap();
    assert_eq!(acted.revived, [true, false, false, false]);
    assert_eq!(world.claim("strict", 10).await, [waiting, dead]);
}

pub async fn only_the_dead_are_deleted(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(call("strict", "a")).await;
    let waiting = world.enqueue(call("strict", "b")).await;
    let dead = world.kill("strict").await;
    let delete = vec![dead, waiting, CallId(99), dead];
    let revive = vec![Revive { call: dead, not_before: None }];
    let acted = world.act(Act { delete, revive, ..Act::default() }).await.unwrap();
    assert_eq!(acted.deleted, [true, false, false, false]);
    assert_eq!((acted.revived, world.end(dead).await), (vec![false], Some(End::Cancelled)));
    assert_eq!(world.claim("strict", 10).await, [waiting]);
}

pub async fn a_dead_call_that_is_cancelled_is_gone_for_good(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(call("strict", "a")).await;
    let dead = world.kill("strict").await;
    assert!(world.cancel(dead).await);
    assert_eq!(world.end(dead).await, Some(End::Cancelled));
    assert!(!world.revive(dead).await);
    assert!(!world.cancel(dead).await);
}

pub async fn a_call_that_dies_in_an_act_can_be_revived_in_it(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { depth_max: 1, ..QueueSpec::default() }).await;
    let id = world.enqueue(call("strict", "a")).await;
    world.claim("strict", 1).await;
    let lease = world.leases[&id];
    let settle = vec![Settle::new(lease, Settlement::Dead)];
    let revive = vec![Revive { call: id, not_before: None }];
    assert_eq!(world.act(Act { settle, revive, ..Act::default() }).await.unwrap().revived, [true]);
    assert_eq!(world.end(id).await, None);
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn a_revived_call_goes_on_where_it_held_its_lane(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { on_dead: OnDead::Hold, ..QueueSpec::default() }).await;
    world.enqueue(call("strict", "a")).await;
    let behind = world.enqueue(call("strict", "a")).await;
    let dead = world.kill("strict").await;
    assert_eq!(world.claim("strict", 10).await, []);
    assert!(world.revive(dead).await);
    assert_eq!(world.claim("strict", 10).await, [dead]);
    world.settle(dead, Settlement::Done).await;
    assert_eq!(world.claim("strict", 10).await, [behind]);
}

pub async fn a_lane_goes_on_when_the_dead_call_that_holds_it_is_cancelled(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { on_dead: OnDead::Hold, ..QueueSpec::default() }).await;
    world.enqueue(call("strict", "a")).await;
    let behind = world.enqueue(call("strict", "a")).await;
    let dead = world.kill("strict").await;
    assert_eq!(world.claim("strict", 10).await, []);
    let cancelled = world.act(Act { cancel: vec![dead], ..Act::default() }).await.unwrap();
    assert_eq!(cancelled.cancelled, [true]);
    assert_eq!(world.claim("strict", 10).await, [behind]);
}

pub async fn the_dead_need_no_room_and_the_revived_do(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", QueueSpec { depth_max: 1, ..QueueSpec::default() }).await;
    world.enqueue(call("strict", "a")).await;
    let first = world.kill("strict").await;
    world.enqueue(call("strict", "a")).await;
    let second = world.kill("strict").await;
    let full = Err(ActError::QueueFull { queue: queue("strict"), depth: 1 });
    let revive = [first, second].map(|call| Revive { call, not_before: None }).to_vec();
    assert_eq!(world.act(Act { revive: revive.clone(), ..Act::default() }).await, full);
    assert_eq!(world.end(first).await, Some(End::Dead));
    let enqueue = vec![call("strict", "a")];
    let one = revive[..1].to_vec();
    assert_eq!(world.act(Act { revive: one, enqueue, ..Act::default() }).await, full);
    let cancelled = Act { cancel: vec![first], revive, ..Act::default() };
    assert_eq!(world.act(cancelled).await.unwrap().revived, [false, true]);
    assert_eq!(world.try_enqueue(call("strict", "a")).await, full.map(|_: Acted| CallId(0)));
}

pub async fn whoever_died_first_is_dropped_if_there_are_too_many(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.queue("strict", keeping(2)).await;
    let old = world.enqueue(call("strict", "a")).await;
    let [first, second] =
        [world.enqueue(call("strict", "b")).await, world.enqueue(call("strict", "c")).await];
    assert_eq!(world.claim("strict", 10).await, [old, first, second]);
    for id in [first, second, old] {
        world.settle(id, Settlement::Dead).await;
        world.wait(1);
    }
    assert_eq!(world.end(first).await, Some(End::Dropped));
    assert_eq!(world.end(second).await, Some(End::Dead));
    assert_eq!(world.end(old).await, Some(End::Dead));
    assert!(!world.revive(first).await);
}

pub async fn a_queue_that_keeps_fewer_drops_dead_calls_at_once(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.enqueue(call("strict", "a")).await;
    let first = world.kill("strict").await;
    world.wait(1);
    world.enqueue(call("strict", "a")).await;
    let second = world.kill("strict").await;
    world.queue("strict", keeping(1)).await;
    assert_eq!(world.end(first).await, Some(End::Dropped));
    assert_eq!(world.end(second).await, Some(End::Dead));
    world.queue("strict", keeping(0)).await;
    assert_eq!(world.end(second).await, Some(End::Dropped));
}

pub async fn a_revived_call_neither_expires_nor_is_superseded(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let (expires, supersedes) = (Some(world.after(10)), Some(key("k")));
    let new = NewCall { expires, supersedes: supersedes.clone(), ..call("strict", "a") };
    world.enqueue(new).await;
    let dead = world.kill("strict").await;
    world.revive(dead).await;
    world.wait(20);
    let newer = world.enqueue(NewCall { supersedes, ..call("strict", "a") }).await;
    assert_eq!(world.claim("strict", 1).await, [dead]);
    world.settle(dead, Settlement::Done).await;
    assert_eq!(world.claim("strict", 1).await, [newer]);
}

pub async fn a_revived_call_that_can_never_pass_waits_for_a_larger_limit(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    world.enqueue(paying("strict", "a", [("l", 5)])).await;
    let dead = world.kill("strict").await;
    world.limit("l", Limit::per_second(4)).await;
    assert!(world.revive(dead).await);
    world.wait(10);
    assert_eq!(world.claim("strict", 1).await, []);
    world.limit("l", Limit::per_second(5)).await;
    world.wait(10);
    assert_eq!(world.claim("strict", 1).await, [dead]);
}
