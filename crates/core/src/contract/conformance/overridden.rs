//! Partitions with rules of their own.

use super::*;
use crate::contract::MeterName;

pub(super) fn big() -> Partition {
    Partition::new("big").unwrap()
}

pub(super) fn meter(partition: Option<Partition>) -> MeterName {
    (limit_name("l"), partition)
}

impl<S: MetersStage> World<S> {
    pub(super) async fn give_rules(&mut self, limit: Option<Limit>) {
        let definition = limit.map(|limit| Definition::new(limit).unwrap());
        self.configure(Configure::partition(limit_name("l"), big(), definition)).await.unwrap();
    }

    pub(super) async fn remaining(&self, partition: Option<Partition>) -> i64 {
        let states = self.store().inspect(vec![meter(partition)]).await.unwrap();
        states[0].as_ref().unwrap().standing.remaining
    }

    pub(super) async fn pay_big(&mut self, weight: u64) -> Result<Paid, AskError> {
        let tolls = vec![Toll { partition: Some(big()), ..toll("l", weight) }];
        self.consume(Ask { tolls: tolls.into(), ..asking([]) }).await
    }
}

pub async fn a_partition_with_rules_of_its_own_follows_them(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(2)).await;
    world.give_rules(Some(Limit::per_hour(7))).await;
    let other = Some(Partition::new("other").unwrap());
    assert_eq!(world.remaining(Some(big())).await, 7);
    assert_eq!((world.remaining(other).await, world.remaining(None).await), (2, 2));
    assert!(world.pay_big(7).await.is_ok());
    assert!(world.pay_big(1).await.is_err());
    world.give_rules(None).await;
    world.wait(36_000);
    assert_eq!(world.remaining(Some(big())).await, 2);
}

pub async fn rules_of_its_own_keep_what_was_spent(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(5)).await;
    assert!(world.pay_big(4).await.is_ok());
    world.give_rules(Some(Limit::per_hour(9))).await;
    assert_eq!(world.remaining(Some(big())).await, 5);
    world.give_rules(None).await;
    assert_eq!(world.remaining(Some(big())).await, 1);
}

pub async fn rules_of_its_own_outlast_a_change_of_the_limit_and_its_removal(
    stage: impl MetersStage,
) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(2)).await;
    world.give_rules(Some(Limit::per_hour(7))).await;
    assert!(world.pay_big(3).await.is_ok());
    world.limit("l", Limit::per_hour(3)).await;
    assert_eq!(world.remaining(Some(big())).await, 4);
    world.remove_limit("l").await;
    let refused = world.pay_big(1).await.unwrap_err();
    assert_eq!(refused, AskError::Toll(TollError::UnknownLimit { limit: limit_name("l") }));
    world.limit("l", Limit::per_hour(4)).await;
    assert_eq!(world.remaining(Some(big())).await, 4);
    assert_eq!(world.remaining(None).await, 4);
}

pub async fn the_rules_of_a_partition_say_what_can_never_pass(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(3)).await;
    let over = |weight, capacity| {
        let limit = limit_name("l");
        Err(AskError::Toll(TollError::WeightOverCapacity { limit, weight, capacity }))
    };
    assert_eq!(world.pay_big(5).await, over(5, 3));
    world.give_rules(Some(Limit::per_hour(5))).await;
    assert!(world.pay_big(5).await.is_ok());
    assert_eq!(world.pay_big(6).await, over(6, 5));
    world.give_rules(Some(Limit::per_hour(1))).await;
    assert_eq!(world.pay_big(2).await, over(2, 1));
}
