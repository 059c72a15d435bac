//! Passes of a gate in a folder: paid at the same meters as calls, held while they live.

use super::*;
use std::pin::pin;
use std::task::Poll;
use tollgate::lanes::Reason;
use tollgate::{Error, Span, Timestamp, global};

#[tokio::test]
async fn asks_and_calls_pay_at_the_same_meters() {
    let opened = Opened::with(Limit::per_hour(2)).await;
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    opened.gate().enqueue_all("q", ["x", "y"].map(|body| paying(body, body))).await.unwrap();
    assert_eq!(opened.gate().claim("q", 10, Span::ZERO).await.unwrap().len(), 1);
    let refused = opened.gate().consume(toll("l", "p")).await.unwrap_err();
    let Error::Refused(refusal) = refused else { panic!("{refused}") };
    assert_eq!(refusal.retry_after, Some(Span::from_minutes(30)));
}

#[tokio::test]
async fn who_acquires_waits_its_turn_and_starts_on_time() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    let gate = opened.gate().clone();
    let waiting = tokio::spawn(async move { gate.acquire(toll("l", "p")).await });
    let call = CallId(0);
    opened.is_so(call, |found| matches!(found.reasons[..], [Reason::Meter { .. }])).await;
    assert!(opened.gate().consume(toll("l", "p")).await.is_err());
    opened.clock.advance(Span::from_secs(1));
    let pass = patiently(waiting).await.unwrap().unwrap();
    drop(pass);
    opened.ends(call).await;
    assert!(opened.gate().consume(toll("l", "p")).await.is_err(), "what it paid stays spent");
}

#[tokio::test]
async fn a_slot_is_held_while_its_pass_lives_and_freed_when_it_goes() {
    let opened = Opened::with(Limit::concurrency(1)).await;
    let pass = opened.gate().consume(global("l")).await.unwrap();
    let gate = opened.gate().clone();
    let waiting = tokio::spawn(async move { gate.acquire(global("l")).await });
    opened.is_so(CallId(0), |found| matches!(found.reasons[..], [Reason::Meter { .. }])).await;
    drop(pass);
    let pass = patiently(waiting).await.unwrap().unwrap();
    let mut expired = Timestamp::default();
    for _ in 0..6 {
        opened.clock.advance(Span::from_secs(10));
        opened.is_so(CallId(0), |found| expires(found) > expired).await;
        expired = opened.explain(CallId(0)).await.map(|found| expires(&found)).unwrap();
    }
    assert!(opened.gate().consume(global("l")).await.is_err());
    drop(pass);
    opened.ends(CallId(0)).await;
    assert!(opened.gate().consume(global("l")).await.is_ok());
}

/// When a slot is free again nobody knows: who would wait less than its holder may, waits.
#[tokio::test]
async fn who_waits_for_a_slot_is_not_sent_away_for_its_holders_deadline() {
    let opened = Opened::with(Limit::concurrency(1)).await;
    let pass = opened.gate().consume(global("l")).await.unwrap();
    let gate = opened.gate().clone();
    let waiting = async move { gate.acquire(global("l")).max_wait(Span::from_secs(1)).await };
    let waiting = tokio::spawn(waiting);
    opened.is_so(CallId(0), |found| matches!(found.reasons[..], [Reason::Meter { .. }])).await;
    drop(pass);
    drop(patiently(waiting).await.unwrap().unwrap());
}

/// It is the same for who comes when others wait already.
#[tokio::test]
async fn who_waits_behind_others_for_a_slot_is_not_sent_away_for_its_holders_deadline() {
    let opened = Opened::with(Limit::concurrency(1)).await;
    let pass = opened.gate().consume(global("l")).await.unwrap();
    let mut waiting = Vec::new();
    for at in 0..3 {
        let gate = opened.gate().clone();
        let wait = async move { gate.acquire(global("l")).max_wait(Span::from_secs(1)).await };
        waiting.push(tokio::spawn(wait));
        opened.is_so(CallId(at), |found| !found.reasons.is_empty()).await;
    }
    drop(pass);
    for waiting in waiting {
        drop(patiently(waiting).await.unwrap().unwrap());
    }
}

#[tokio::test]
async fn the_true_cost_is_settled_once() {
    let opened = Opened::with(Limit::per_hour(1_000)).await;
    let mut pass = opened.gate().consume(toll("l", "p").estimate(600)).await.unwrap();
    pass.settle("l", 100).await.unwrap();
    assert!(pass.settle("l", 50).await.is_err());
    assert_eq!(opened.gate().meter("l", Some("p")).await.unwrap().standing.remaining, 900);
    drop(pass);
    let pass = opened.gate().consume(toll("l", "p").estimate(600)).await.unwrap();
    let receipt = pass.into_receipt(Span::from_secs(60)).await.unwrap();
    opened.gate().settle_receipt(&receipt, &[("l", 200)]).await.unwrap();
    assert!(opened.gate().settle_receipt(&receipt, &[("l", 0)]).await.is_err());
    assert_eq!(opened.gate().meter("l", Some("p")).await.unwrap().standing.remaining, 700);
}

#[tokio::test]
async fn who_gives_up_leaves_the_line() {
    let opened = Opened::with(Limit::per_hour(1)).await;
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    let gate = opened.gate().clone();
    let at_once = gate.acquire(toll("l", "p")).max_wait(Span::from_secs(9)).await.unwrap_err();
    assert!(matches!(at_once, Error::Refused(_)), "it is known to take longer");
    let waiting = tokio::spawn(async move { gate.acquire(toll("l", "p")).await });
    opened.is_so(CallId(0), |found| matches!(found.reasons[..], [Reason::Meter { .. }])).await;
    waiting.abort();
    opened.ends(CallId(0)).await;
    opened.clock.advance(Span::from_hours(1));
    assert!(opened.gate().consume(toll("l", "p")).await.is_ok());
}

#[tokio::test]
async fn who_is_dropped_while_the_folder_is_asked_holds_no_slot() {
    let opened = Opened::with(Limit::concurrency(1)).await;
    for polls in 0..8 {
        let mut asking = Box::pin(opened.gate().acquire(global("l")).into_future());
        for _ in 0..polls {
            if poll_once(&mut asking).await.is_some() {
                break;
            }
        }
        drop(asking);
        let free = async || opened.gate().consume(global("l")).await.is_ok();
        patiently(async {
            while !free().await {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let polled = std::future::poll_fn(|context| Poll::Ready(pin!(&mut *future).poll(context)));
    match polled.await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[tokio::test]
async fn a_call_that_was_not_started_is_handed_back() {
    let opened = Opened::with(Limit::per_hour(1)).await;
    let pass = opened.gate().consume(toll("l", "p").estimate(1)).await.unwrap();
    pass.cancel().await;
    assert!(opened.gate().consume(toll("l", "p")).await.is_ok());
}

#[tokio::test]
async fn who_waits_second_is_not_overtaken_either() {
    let opened = Opened::with(Limit::per_second(1).burst(10)).await;
    let _ = opened.gate().consume(toll("l", "p").weight(10)).await.unwrap();
    let mut waiting = Vec::new();
    for call in [CallId(0), CallId(1)] {
        let gate = opened.gate().clone();
        waiting.push(tokio::spawn(async move { gate.acquire(toll("l", "p").weight(10)).await }));
        opened.is_so(call, |found| found.position.is_some()).await;
    }
    opened.clock.advance(Span::from_secs(10));
    let first = patiently(waiting.remove(0)).await.unwrap().unwrap();
    drop(first);
    opened.ends(CallId(0)).await;
    opened.clock.advance(Span::from_secs(5));
    for _ in 0..20 {
        assert!(opened.gate().consume(toll("l", "p")).await.is_err(), "the second saves for it");
    }
    opened.clock.advance(Span::from_secs(5));
    let _ = patiently(waiting.remove(0)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_pass_that_did_not_have_to_wait_is_settled_as_one_that_did() {
    let opened = Opened::with(Limit::per_hour(100)).await;
    let mut pass = opened.gate().acquire(toll("l", "p").weight(50)).await.unwrap();
    pass.settle("l", 20).await.unwrap();
    assert_eq!(opened.gate().meter("l", Some("p")).await.unwrap().standing.remaining, 80);
    opened.gate().acquire(toll("l", "p").weight(50)).await.unwrap().cancel().await;
    assert_eq!(opened.gate().meter("l", Some("p")).await.unwrap().standing.remaining, 80);
}

#[tokio::test]
async fn who_waits_for_a_call_that_was_cancelled_is_told() {
    let opened = Opened::with(Limit::per(1, Span::from_days(300))).await;
    let _ = opened.gate().consume(toll("l", "p")).await.unwrap();
    let gate = opened.gate().clone();
    let waiting = tokio::spawn(async move { gate.acquire(toll("l", "p")).await });
    opened.is_so(CallId(0), |found| found.position.is_some()).await;
    assert!(opened.gate().cancel(CallId(0)).await.unwrap());
    let told = patiently(async {
        while !waiting.is_finished() {
            opened.clock.advance(Span::from_secs(1));
            tokio::task::yield_now().await;
        }
        waiting.await.unwrap()
    });
    assert!(told.await.is_err());
}
