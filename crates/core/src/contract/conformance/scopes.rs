//! What an operator holds back, queues, lanes and limits, and the queues that are removed.

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

pub async fn a_queue_is_removed_once_it_is_empty(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let [first, second] = world.several(call("strict", "a")).await;
    let not_empty =
        |waiting, in_flight, dead| Err(QueueError::NotEmpty { waiting, in_flight, dead });
    assert_eq!(world.remove_queue("strict").await, not_empty(2, 0, 0));
    assert_eq!(world.claim("strict", 1).await, [first]);
    assert_eq!(world.remove_queue("strict").await, not_empty(1, 1, 0));
    world.settle(first, Settlement::Dead).await;
    world.cancel(second).await;
    assert_eq!(world.remove_queue("strict").await, not_empty(0, 0, 1));
    world.cancel(first).await;
    assert_eq!(world.remove_queue("strict").await, Ok(true));
    assert_eq!(world.remove_queue("strict").await, Ok(false));
}

pub async fn a_call_that_is_not_due_keeps_its_queue(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let later = NewCall { not_before: Some(world.after(60)), ..call("strict", "a") };
    world.enqueue(later).await;
    assert!(world.remove_queue("strict").await.is_err());
}

pub async fn a_queue_that_was_removed_is_unknown(stage: impl Stage) {
    let mut world = World::new(stage).await;
    assert_eq!(world.remove_queue("strict").await, Ok(true));
    let refused = world.try_enqueue(call("strict", "a")).await;
    assert_eq!(refused, Err(ActError::UnknownQueue { at: 0, queue: queue("strict") }));
    assert_eq!(world.claim("strict", 10).await, []);
    assert_eq!(world.store().lanes(queue("strict"), None, 10).await.unwrap(), None);
    let left = world.store().queues(None, 10).await.unwrap();
    assert_eq!(left.into_iter().map(|state| state.name).collect::<Vec<_>>(), [queue("parallel")]);
}

pub async fn a_queue_that_is_defined_again_knows_nothing_of_the_one_before(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let named = NewCall { dedupe: Some(key("once")), ..call("strict", "a") };
    let first = world.enqueue(named.clone()).await;
    world.cancel(first).await;
    world.pause(Scope::Queue(queue("strict"))).await;
    world.pause(Scope::Lane(queue("strict"), lane_name("a"))).await;
    world.store().weigh(queue("strict"), lane_name("b"), 3).await.unwrap();
    assert_eq!(world.remove_queue("strict").await, Ok(true));
    world.queue("other", QueueSpec::default()).await;
    world.queue("strict", QueueSpec::default()).await;
    for name in ["strict", "other"] {
        assert_eq!(world.store().lanes(queue(name), None, 10).await.unwrap(), Some(vec![]));
    }
    let elsewhere = NewCall { queue: queue("other"), ..named.clone() };
    let other = world.enqueue(elsewhere).await;
    let second = world.enqueue(named).await;
    assert!(other != first && second != first, "the key is forgotten");
    assert_eq!(world.claim("strict", 10).await, [second]);
}
