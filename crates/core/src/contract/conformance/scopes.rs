//! What an operator holds back: queues, lanes, limits.

use super::*;
use crate::lanes::Scope;

/// Nothing starts while the scope is paused, and the call does afterwards.
async fn assert_holds_back(stage: impl Stage, scope: Scope) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(10)).await;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.pause(scope.clone()).await;
    assert_eq!(world.claim("strict", 10).await, []);
    world.wait(1_000);
    assert_eq!(world.claim("strict", 10).await, []);
    world.resume(scope).await;
    assert_eq!(world.claim("strict", 10).await, [id]);
}

pub async fn a_paused_queue_starts_nothing(stage: impl Stage) {
    assert_holds_back(stage, Scope::Queue(queue("strict"))).await;
}

pub async fn a_paused_lane_starts_nothing(stage: impl Stage) {
    assert_holds_back(stage, Scope::Lane(queue("strict"), lane_name("a"))).await;
}

pub async fn a_paused_limit_lets_nothing_pass(stage: impl Stage) {
    assert_holds_back(stage, Scope::Limit(limit_name("l"))).await;
}

pub async fn a_paused_lane_does_not_hold_its_neighbour(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let _held = world.enqueue(call("strict", "a")).await;
    let neighbour = world.enqueue(call("strict", "b")).await;
    world.pause(Scope::Lane(queue("strict"), lane_name("a"))).await;
    assert_eq!(world.claim("strict", 10).await, [neighbour]);
}

pub async fn pausing_what_is_unknown_does_nothing(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.pause(Scope::Queue(queue("later"))).await;
    world.pause(Scope::Lane(queue("later"), lane_name("a"))).await;
    world.pause(Scope::Limit(limit_name("later"))).await;
    world.queue("later", QueueSpec::default()).await;
    world.limit("later", Limit::per_second(1)).await;
    let id = world.enqueue(paying("later", "a", [("later", 1)])).await;
    assert_eq!(world.claim("later", 10).await, [id]);
}

pub async fn a_claim_of_an_unknown_queue_starts_nothing(stage: impl Stage) {
    assert_eq!(World::new(stage).await.claim("unknown", 10).await, []);
}

pub async fn a_queue_that_could_start_nothing_is_refused(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let spec = QueueSpec { depth_max: 0, ..QueueSpec::default() };
    assert!(world.define_queue("strict", spec).await.is_err());
    assert!(world.try_enqueue(call("strict", "a")).await.is_ok());
}
