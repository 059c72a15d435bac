//! Limits that come along with calls: what operators do to them lasts, and callers do not undo it.

use super::*;
use std::sync::Arc;
use tollgate::lanes::{Act, QueueName};
use tollgate::{Span, When, global};

fn limit(rate: u64, parallel: u64) -> Limit {
    Limit::fixed_window(rate, Span::from_hours(1)).and(Limit::concurrency(parallel))
}

/// Hands in a call that owes at `key`, which comes along as somebody says.
async fn publish(opened: &Opened, limit: Limit) -> CallId {
    let gate = opened.gate();
    let define = gate.coming_along(Some("caller"), vec![("key".to_owned(), limit)]).await.unwrap();
    let new = call("a", "x").pays(global("key"));
    let queue = QueueName::new("q").unwrap();
    let enqueue = vec![new.into_new(queue, gate.now().await.unwrap()).unwrap()];
    gate.act(Act { define, enqueue, ..Act::default() }).await.unwrap().enqueued[0]
}

async fn rules(opened: &Opened) -> Limit {
    opened.gate().meter("key", None).await.unwrap().definition
}

#[tokio::test]
async fn a_limit_that_came_along_is_seen_and_goes() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let id = publish(&opened, limit(5, 2)).await;
    let gate = opened.gate();
    assert_eq!(gate.limit_state("key").await.unwrap().unwrap().defined, limit(5, 2));
    let names = gate.limits().await.unwrap().into_iter().map(|limit| limit.name);
    assert_eq!(names.collect::<Vec<_>>(), ["key", "l"].map(Arc::<str>::from));
    assert!(gate.cancel(id).await.unwrap());
    assert_eq!(gate.limit_state("key").await.unwrap(), None);
    assert_eq!(gate.limits().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_pinned_over_a_limit_that_came_along_stands_against_callers_and_lasts() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let id = publish(&opened, limit(5, 2)).await;
    let pin = opened.gate().pin("operator", "key", Some(Limit::concurrency(1)));
    pin.await.unwrap();
    assert_eq!(rules(&opened).await, limit(5, 1), "a pin of one kind leaves the other");
    publish(&opened, limit(7, 9)).await;
    assert_eq!(rules(&opened).await, limit(7, 1));
    assert!(opened.gate().cancel(id).await.unwrap());
    let opened = opened.reopen().await;
    publish(&opened, limit(8, 9)).await;
    assert_eq!(rules(&opened).await, limit(8, 1));
    opened.gate().pin("operator", "key", None).await.unwrap();
    assert_eq!(rules(&opened).await, limit(8, 9));
    publish(&opened, limit(3, 3)).await;
    assert_eq!(rules(&opened).await, limit(3, 3), "it still follows its callers");
}

#[tokio::test]
async fn callers_change_nothing_where_all_is_pinned() {
    let opened = Opened::with(Limit::per_second(1)).await;
    publish(&opened, limit(5, 2)).await;
    opened.gate().pin("operator", "key", Some(limit(1, 1))).await.unwrap();
    let before = opened.gate().audit(None, 100).await.unwrap().len();
    for rate in 10..20 {
        publish(&opened, limit(rate, 4)).await;
    }
    assert_eq!(rules(&opened).await, limit(1, 1));
    assert_eq!(opened.gate().audit(None, 100).await.unwrap().len(), before, "nothing to tell");
}

#[tokio::test]
async fn a_limit_that_came_along_can_be_held_back() {
    let opened = Opened::with(Limit::per_second(1)).await;
    publish(&opened, limit(5, 2)).await;
    opened.gate().pause_limit("key").await.unwrap();
    let opened = opened.reopen().await;
    assert_eq!(opened.gate().claim("q", 1, Span::ZERO).await.unwrap(), []);
    assert!(opened.gate().limit_state("key").await.unwrap().unwrap().is_paused);
    opened.gate().resume_limit("key").await.unwrap();
    assert_eq!(opened.gate().claim("q", 1, Span::ZERO).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_schedule_brings_its_limits_along_at_each_tick() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let gate = opened.gate();
    let new = call("a", "x").pays(global("key"));
    let new = new.into_new(QueueName::new("q").unwrap(), tollgate::Now::both(Timestamp::default()));
    let when = When::Once(gate.now().await.unwrap().wall.plus(Span::from_secs(60)));
    let limits = vec![("key".to_owned(), limit(5, 2))];
    gate.schedule_new("s", when, new.unwrap(), limits).await.unwrap();
    let opened = opened.reopen().await;
    assert_eq!(opened.gate().limit_state("key").await.unwrap(), None);
    opened.clock.advance(Span::from_secs(60));
    patiently(async {
        while opened.gate().limit_state("key").await.unwrap().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(rules(&opened).await, limit(5, 2));
    assert_eq!(opened.gate().claim("q", 1, Span::ZERO).await.unwrap().len(), 1);
}
