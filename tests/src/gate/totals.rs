//! What is counted while a gate is open.

use super::*;
use tollgate::lanes::{QueueCounts, StoreTotals, Tally};
use tollgate::{Outcome, Span};

fn tally(count: u64, weight: u64) -> Option<Tally> {
    Some(Tally { count, weight })
}

#[tokio::test]
async fn what_is_admitted_and_refused_is_counted_until_the_gate_is_closed() {
    let opened = Opened::with(Limit::per_hour(10)).await;
    let gate = opened.gate();
    gate.enqueue("q", paying("a", "x")).await.unwrap();
    assert_eq!(gate.claim("q", 1, Span::ZERO).await.unwrap().len(), 1);
    let _ = gate.consume(toll("l", "p").weight(7)).await.unwrap();
    assert!(gate.consume(toll("l", "p").weight(3)).await.is_err());
    let _ = gate.consume(toll("l", "other").weight(2)).await.unwrap();
    let totals = gate.limit_state("l").await.unwrap().unwrap().totals.unwrap();
    assert_eq!((Some(totals.admitted), Some(totals.refused)), (tally(3, 10), tally(1, 3)));
    assert_eq!(gate.limits().await.unwrap()[0].totals, Some(totals), "listed as well");
    assert_eq!(gate.meter("l", Some("p")).await.unwrap().admitted, tally(2, 8));
    let opened = opened.reopen().await;
    let meter = opened.gate().meter("l", Some("p")).await.unwrap();
    assert_eq!((meter.standing.remaining, meter.admitted), (2, tally(0, 0)));
}

#[tokio::test]
async fn in_memory_nothing_is_counted() {
    let gate = Tollgate::memory();
    gate.limit("l", Limit::per_hour(10)).await.unwrap();
    assert_eq!(gate.limit_state("l").await.unwrap().unwrap().totals, None);
    assert_eq!(gate.meter("l", None).await.unwrap().admitted, None);
}

#[tokio::test]
async fn the_life_of_calls_and_the_commits_are_counted() {
    let opened = Opened::with(Limit::per_hour(1)).await;
    let gate = opened.gate();
    gate.enqueue_all("q", ["a", "b"].map(|lane| paying(lane, "x"))).await.unwrap();
    opened.clock.advance(Span::from_secs(3));
    let claimed = gate.claim("q", 2, Span::ZERO).await.unwrap();
    let _ = gate.settle(claimed[0].started.lease, Outcome::done()).await.unwrap();
    let totals = gate.totals().await.unwrap();
    let queue = &totals.queues[0];
    assert_eq!((queue.name.as_str(), queue.waiting, queue.in_flight), ("q", 1, 0));
    let QueueCounts { enqueued, started, settled, ended, dwell, .. } = &queue.counts;
    assert_eq!((*enqueued, *started, settled.done, ended.done), (2, 1, 1, 1));
    assert_eq!((dwell.count(), dwell.sum_ns), (1, 3_000_000_000));
    assert_eq!(totals.limits[0].1.admitted.count, 1);
    let StoreTotals { commits, bytes, commit_time } = totals.store;
    assert!(commits > 0 && bytes > 0 && commit_time.count() == commits);
    assert!(Tollgate::memory().totals().await.is_err(), "there are no calls");
}
