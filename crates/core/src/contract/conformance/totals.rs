//! What is counted since the store was opened.

use super::*;
use crate::contract::{
    EndCounts, LimitTotals, OutcomeCounts, QueueCounts, QueueTotals, StoreTotals, Tally,
};

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
    let both = NewCall { tolls: [toll("l", 3), elsewhere].into(), ..call("strict", "a") };
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

pub async fn what_happens_to_the_calls_of_a_queue_is_counted(stage: impl Stage) {
    let mut world = World::new(stage).await;
    let [first, second, third, fourth] = world.several(call("parallel", "a")).await;
    assert_eq!(world.claim("parallel", 3).await, [first, second, third]);
    world.settle(first, Settlement::Done).await;
    world.settle(second, Settlement::Dead).await;
    world.settle(third, Settlement::Retry(Some(Span::ZERO))).await;
    assert_eq!(world.claim("parallel", 1).await, [third]);
    world.settle(third, Settlement::Release).await;
    world.cancel(fourth).await;
    assert!(world.revive(second).await);
    let totals = world.store().totals().await.unwrap();
    let [parallel, strict]: [QueueTotals; 2] = totals.queues.try_into().unwrap();
    assert_eq!((strict.name, strict.counts), (queue("strict"), QueueCounts::default()));
    assert_eq!((parallel.waiting, parallel.in_flight, parallel.dead), (2, 0, 0));
    let QueueCounts { enqueued, started, retries, settled, ended, revived, .. } = parallel.counts;
    assert_eq!((enqueued, started, retries, revived), (4, 4, 1, 1));
    let settled_as = OutcomeCounts { done: 1, failed: 1, released: 1, dead: 1, ..<_>::default() };
    assert_eq!(settled, settled_as);
    assert_eq!(ended, EndCounts { done: 1, dead: 1, cancelled: 1, ..<_>::default() });
}

pub async fn totals_have_an_entry_for_each_queue_and_limit_there_is(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(5)).await;
    world.limit("gone", Limit::per_hour(5)).await;
    world.spend("a", "l").await;
    world.remove_limit("gone").await;
    assert_eq!(world.remove_queue("parallel").await, Ok(true));
    let totals = world.store().totals().await.unwrap();
    let queues: Vec<_> = totals.queues.into_iter().map(|queue| queue.name).collect();
    assert_eq!(queues, [queue("strict")]);
    let counted = LimitTotals { admitted: tally(1, 1), ..LimitTotals::default() };
    assert_eq!(totals.limits, [(limit_name("l"), counted)]);
    let StoreTotals { commits, bytes, commit_time } = totals.store;
    assert_eq!((commits > 0, commits), (bytes > 0, commit_time.count()), "each is measured");
}
