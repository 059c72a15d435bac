//! What is counted since the store was opened.

use super::*;
use crate::contract::{LimitTotals, Tally};
use crate::name::Partition;

impl<S: Stage> World<S> {
    /// What was counted at a limit, as it is told in two places.
    async fn totals(&self, limit: &str) -> LimitTotals {
        let told = self.inspect(limit).await.of_limit;
        let limits = self.store().limits(None, 10).await.unwrap();
        let listed = limits.into_iter().find(|view| view.name == limit_name(limit));
        assert_eq!(listed.unwrap().totals, told);
        told
    }
}

fn tally(count: u64, weight: u64) -> Tally {
    Tally { count, weight }
}

pub async fn what_was_admitted_is_counted_at_the_meter_and_at_the_limit(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(20)).await;
    let elsewhere = Toll { partition: Some(Partition::new("p").unwrap()), ..toll("l", 4) };
    let both = NewCall { tolls: vec![toll("l", 3), elsewhere], ..call("strict", "a") };
    world.enqueue(both).await;
    assert_eq!(world.totals("l").await, LimitTotals::default(), "nothing has started");
    let started = world.claim("strict", 10).await;
    let _ = world.consume(asking([("l", 2)])).await.unwrap();
    world.settle(started[0], Settlement::Release).await;
    assert_eq!(world.totals("l").await.admitted, tally(3, 9));
    assert_eq!(world.inspect("l").await.admitted, tally(2, 5));
    assert_eq!(world.totals("l").await.refused, tally(0, 0));
}

pub async fn what_was_refused_is_counted_with_what_it_wanted(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("narrow", Limit::per_hour(5)).await;
    world.limit("wide", Limit::per_hour(50)).await;
    let _ = world.consume(asking([("narrow", 4)])).await.unwrap();
    world.refused(asking([("wide", 7), ("narrow", 2), ("narrow", 1)])).await;
    assert!(world.consume(asking([("narrow", 6)])).await.is_err(), "for good");
    let peeked = world.store().peek(vec![asking([("narrow", 2)])]).await.unwrap();
    assert!(peeked[0].is_err());
    assert_eq!(world.totals("narrow").await.refused, tally(1, 3));
    assert_eq!(world.totals("narrow").await.admitted, tally(1, 4));
    assert_eq!(world.totals("wide").await, LimitTotals::default(), "it was not in the way");
}

pub async fn totals_outlast_a_change_of_the_limit(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(5)).await;
    world.spend("a", "l").await;
    world.limit("l", Limit::per_hour(6)).await;
    world.remove_limit("l").await;
    world.limit("l", Limit::per_hour(7)).await;
    world.spend("a", "l").await;
    assert_eq!(world.totals("l").await.admitted, tally(2, 2));
}
