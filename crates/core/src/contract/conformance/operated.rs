//! What an operator does to single meters: rules of their own, closing, resetting.

use super::overridden::{big, meter};
use super::*;
use crate::contract::REASON_CHARS_MAX;
use crate::meter::RuleUse;

/// A call of the queue `strict` that pays at the partition.
fn paying_big(lane: &str, weight: u64) -> NewCall {
    let tolls = vec![Toll { partition: Some(big()), ..toll("l", weight) }];
    NewCall { tolls: tolls.into(), ..call("strict", lane) }
}

pub async fn a_meter_says_what_counts_at_each_of_its_rules(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let minute = Span::from_minutes(1);
    let limit = Limit::fixed_window(5, minute).and(Limit::concurrency(3));
    world.limit("l", limit.and(Limit::per(6, minute))).await;
    let uses = async |world: &World<_>| {
        let of = |it: &RuleUse| (it.limit, it.per, it.used, it.opened);
        world.inspect("l").await.rules.iter().map(of).collect::<Vec<_>>()
    };
    let counts = |[window, slots, bucket]: [u64; 3], opened| {
        [(5, Some(minute), window, opened), (3, None, slots, None), (6, Some(minute), bucket, None)]
    };
    assert_eq!(uses(&world).await, counts([0; 3], None));
    let id = world.enqueue(paying("strict", "a", [("l", 2)])).await;
    assert_eq!(world.claim("strict", 1).await, [id]);
    let opened = Some(world.now.at);
    world.wait(10);
    assert_eq!(uses(&world).await, counts([2, 2, 1], opened));
    world.settle(id, Settlement::Done).await;
    world.wait(49);
    assert_eq!(uses(&world).await, counts([2, 0, 0], opened));
    world.wait(1);
    assert_eq!(uses(&world).await, counts([0; 3], None), "the window is over");
}

pub async fn a_partition_with_rules_of_its_own_is_seen(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(2)).await;
    world.give_rules(Some(Limit::per_hour(7))).await;
    let meters = world.store().meters(limit_name("l"), None, 10).await.unwrap().unwrap();
    let told: Vec<_> = meters.into_iter().map(|(name, meter)| (name, meter.definition)).collect();
    assert_eq!(told, [(Some(big()), Definition::new(Limit::per_hour(7)).unwrap())]);
}

pub async fn calls_that_wait_at_a_partition_follow_its_new_rules_at_once(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(1)).await;
    assert!(world.pay_big(1).await.is_ok());
    let id = world.enqueue(paying_big("a", 1)).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.give_rules(Some(Limit::per_hour(5))).await;
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn the_door_knows_the_capacity_of_a_partition(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(3)).await;
    world.give_rules(Some(Limit::per_hour(5))).await;
    assert!(world.try_enqueue(paying_big("a", 5)).await.is_ok());
    let error = |weight, capacity| TollError::WeightOverCapacity {
        limit: limit_name("l"),
        weight,
        capacity,
    };
    let refused = world.try_enqueue(paying_big("a", 6)).await;
    assert_eq!(refused, Err(ActError::Toll { at: 0, error: error(6, 5) }));
    assert_eq!(world.pay_big(6).await, Err(AskError::Toll(error(6, 5))));
    let refused = world.try_enqueue(paying("strict", "a", [("l", 4)])).await;
    assert_eq!(refused, Err(ActError::Toll { at: 0, error: error(4, 3) }));
    world.give_rules(Some(Limit::per_hour(1))).await;
    assert_eq!(world.pay_big(2).await, Err(AskError::Toll(error(2, 1))));
}

pub async fn a_weight_that_its_partition_shuts_out_parks_until_the_rules_go(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(3)).await;
    let fat = world.enqueue(paying_big("a", 3)).await;
    let thin = world.enqueue(paying_big("b", 1)).await;
    world.give_rules(Some(Limit::per_hour(1))).await;
    assert_eq!(world.claim("strict", 10).await, [thin], "who can never pass holds nobody");
    let told = world.explain(fat).await.unwrap();
    let is_shut = |reason: &Reason| matches!(reason, Reason::Meter { blocker, .. } if blocker.cause == Cause::Impossible);
    assert!(told.reasons.iter().any(is_shut), "{told:?}");
    world.give_rules(None).await;
    world.wait(36_000);
    assert_eq!(world.claim("strict", 10).await, [fat]);
}

pub async fn a_closed_meter_lets_nothing_pass_until_its_time(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(10)).await;
    let reason = "x".repeat(REASON_CHARS_MAX + 1);
    let closed = world.store().close(meter(None), Span::from_secs(60), reason).await;
    closed.unwrap().unwrap();
    assert_eq!(world.refused(asking([("l", 1)])).await.cause, Cause::Closed);
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    assert!(world.pay_big(1).await.is_ok(), "other meters stay open");
    let (until, reason) = world.inspect("l").await.closed.unwrap();
    assert_eq!((until, reason.len()), (world.after(60), REASON_CHARS_MAX));
    world.wait(59);
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn a_reset_meter_has_forgotten_what_was_spent_and_holds_its_slots(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(2).and(Limit::concurrency(3))).await;
    let paid = world.consume(asking([("l", 2)])).await.unwrap();
    let waiting = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.store().reset(meter(None)).await.unwrap().unwrap();
    assert_eq!(world.inspect("l").await.in_flight, 2);
    assert_eq!(world.claim("strict", 1).await, [waiting]);
    assert_eq!(world.inspect("l").await.in_flight, 3);
    assert!(world.settle_receipt(&paid.receipt, Cost::Nothing).await.is_ok());
    let state = world.inspect("l").await;
    assert_eq!((state.in_flight, state.standing.remaining), (1, 1), "nothing is given back twice");
}
