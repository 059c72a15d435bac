//! Workers: every call once and in order, at its time, through panics, and to the end.

use super::*;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use tollgate::{Clock, Job, Outcome, Span};

/// Runs a worker whose handler says which bodies it got, and does this with each.
fn run<F>(
    opened: &Opened,
    concurrency: usize,
    handle: impl Fn(Job) -> F + Send + Sync + 'static,
) -> (Running, mpsc::UnboundedReceiver<String>)
where
    F: Future<Output = Outcome> + Send + 'static,
{
    let (told, heard) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let worker = opened.gate().worker("q").concurrency(concurrency).until(stopped);
    let task = tokio::spawn(worker.run(move |job| {
        told.send(String::from_utf8(job.body.to_vec()).unwrap()).unwrap();
        handle(job)
    }));
    (Running { stop, task }, heard)
}

async fn done(_: Job) -> Outcome {
    Outcome::done()
}

async fn hears(heard: &mut mpsc::UnboundedReceiver<String>) -> String {
    patiently(heard.recv()).await.unwrap()
}

#[tokio::test]
async fn a_worker_makes_each_call_once_and_in_order() {
    let opened = Opened::with(Limit::per_second(1_000)).await;
    let bodies: Vec<String> = (0..100).map(|n| format!("{n:03}")).collect();
    let calls = bodies.iter().map(|body| paying("a", body));
    let ids = opened.gate().enqueue_all("q", calls).await.unwrap();
    let (running, mut heard) = run(&opened, 8, done);
    for body in &bodies {
        assert_eq!(hears(&mut heard).await, *body);
    }
    opened.ends(ids[99]).await;
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.lost, worked.late), (100, 0, 0));
    assert!(heard.try_recv().is_err());
}

#[tokio::test]
async fn calls_start_at_the_instant_their_limit_allows() {
    let opened = Opened::with(Limit::per_second(1)).await;
    let ids =
        opened.gate().enqueue_all("q", ["x", "y", "z"].map(|b| paying("a", b))).await.unwrap();
    let (running, mut heard) = run(&opened, 4, done);
    assert_eq!(hears(&mut heard).await, "x");
    for (id, body) in ids[1..].iter().zip(["y", "z"]) {
        let waits = |found: &Explanation| matches!(found.reasons[..], [Reason::Meter { .. }]);
        opened.is_so(*id, waits).await;
        opened.clock.advance(Span::from_nanos(999_999_999));
        opened.is_so(*id, waits).await;
        assert!(heard.try_recv().is_err(), "not before its time");
        opened.clock.advance(Span::from_nanos(1));
        assert_eq!(hears(&mut heard).await, body);
    }
    running.stop().await;
}

#[tokio::test]
async fn a_handler_that_panics_is_tried_again_and_the_worker_goes_on() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let id = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let (running, mut heard) = run(&opened, 1, async |job: Job| {
        assert!(job.attempt > 1, "the first attempt fails");
        Outcome::done()
    });
    assert_eq!(hears(&mut heard).await, "x");
    opened.is_so(id, |found| found.attempts.failures == 1).await;
    opened.clock.advance(Span::from_secs(1));
    assert_eq!(hears(&mut heard).await, "x");
    opened.ends(id).await;
    assert_eq!(running.stop().await.panicked, 1);
}

#[tokio::test]
async fn a_lease_is_held_for_as_long_as_the_handler_runs() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let id = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let goes = Arc::new(Notify::new());
    let waits = goes.clone();
    let (running, mut heard) = run(&opened, 1, move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    hears(&mut heard).await;
    let mut expired = opened.explain(id).await.map(|found| expires(&found)).unwrap();
    for _ in 0..6 {
        opened.clock.advance(Span::from_secs(10));
        opened.is_so(id, |found| expires(found) > expired).await;
        expired = opened.explain(id).await.map(|found| expires(&found)).unwrap();
    }
    goes.notify_one();
    opened.ends(id).await;
    assert_eq!(running.stop().await.lost, 0);
    assert!(heard.try_recv().is_err(), "nobody else got it");
}

#[tokio::test]
async fn a_worker_that_is_told_to_stop_finishes_what_it_has_and_claims_no_more() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let ids = opened.gate().enqueue_all("q", ["x", "y"].map(|body| call("a", body))).await.unwrap();
    let goes = Arc::new(Notify::new());
    let waits = goes.clone();
    let (running, mut heard) = run(&opened, 1, move |_| {
        let waits = waits.clone();
        async move {
            waits.notified().await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    let stopping = tokio::spawn(running.stop());
    goes.notify_one();
    assert_eq!(patiently(stopping).await.unwrap().started, 1);
    assert_eq!(opened.explain(ids[0]).await, None);
    assert!(!is_in_flight(&opened.explain(ids[1]).await.unwrap()));
}

#[tokio::test]
async fn what_an_outcome_says_becomes_of_the_call() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let id = opened.gate().enqueue("q", paying("a", "x")).await.unwrap();
    let (running, mut heard) = run(&opened, 1, async |job: Job| match job.attempt {
        1 => Outcome::retry_after(Span::from_secs(7)),
        2 => Outcome::limited(Span::from_secs(9)),
        _ => Outcome::done().enqueue("q", call("b", "after")),
    });
    hears(&mut heard).await;
    opened.is_so(id, |found| matches!(found.reasons[..], [Reason::Resting { .. }])).await;
    opened.clock.advance(Span::from_secs(7));
    hears(&mut heard).await;
    opened.is_so(id, |found| found.attempts.limited == 1).await;
    assert!(opened.gate().meter("l", Some("p")).await.unwrap().closed.is_some());
    opened.clock.advance(Span::from_secs(9));
    assert_eq!(hears(&mut heard).await, "x");
    assert_eq!(hears(&mut heard).await, "after");
    opened.ends(id).await;
    running.stop().await;
}

#[tokio::test]
async fn no_more_handlers_run_than_the_worker_has_hands() {
    let opened = Opened::new().await;
    opened.gate().queue("q", parallel(100)).await.unwrap();
    let calls = (0..20).map(|n| call("a", &format!("{n}")));
    let ids = opened.gate().enqueue_all("q", calls).await.unwrap();
    let running_now = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = running_now.clone();
    let (running, mut heard) = run(&opened, 3, move |_| {
        let counted = counted.clone();
        async move {
            use std::sync::atomic::Ordering::SeqCst;
            assert!(counted.fetch_add(1, SeqCst) < 3);
            tokio::task::yield_now().await;
            counted.fetch_sub(1, SeqCst);
            Outcome::done()
        }
    });
    for _ in 0..20 {
        hears(&mut heard).await;
    }
    for id in ids {
        opened.ends(id).await;
    }
    assert_eq!(running.stop().await.panicked, 0);
}

#[tokio::test]
async fn who_waits_longest_is_served_first() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let (told, mut heard) = mpsc::unbounded_channel();
    let mut claimers = Vec::new();
    for name in 0..3 {
        let (gate, told) = (opened.gate().clone(), told.clone());
        claimers.push(tokio::spawn(async move {
            let claimed = gate.claim("q", 1, Span::from_secs(60)).await.unwrap();
            told.send((name, claimed.len())).unwrap();
        }));
        tokio::task::yield_now().await;
    }
    // Whoever of them is woken for nothing is asleep again once someone else is woken after that.
    opened.gate().queue("other", QueueSpec::default()).await.unwrap();
    let gate = opened.gate().clone();
    let other = tokio::spawn(async move { gate.claim("other", 1, Span::from_secs(60)).await });
    tokio::task::yield_now().await;
    opened.gate().enqueue("other", call("lane", "x")).await.unwrap();
    assert_eq!(patiently(other).await.unwrap().unwrap().len(), 1);
    for name in 0..3 {
        opened.gate().enqueue("q", call(&format!("lane {name}"), "x")).await.unwrap();
        assert_eq!(patiently(heard.recv()).await, Some((name, 1)));
    }
}

#[tokio::test]
async fn a_claim_that_finds_nothing_ends_in_time() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let gate = opened.gate().clone();
    let begun = opened.clock.now();
    let claim = tokio::spawn(async move { gate.claim("q", 1, Span::from_secs(5)).await });
    let claimed = patiently(async {
        while !claim.is_finished() {
            opened.clock.advance(Span::from_secs(1));
            tokio::task::yield_now().await;
        }
        claim.await.unwrap().unwrap()
    })
    .await;
    assert!(claimed.is_empty());
    assert!(opened.clock.now().since(begun) >= Span::from_secs(5), "not before its time");
}

#[tokio::test]
async fn a_handler_whose_lease_has_ended_is_dropped_and_its_call_is_made_again() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let id = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let (told, mut dropped) = mpsc::unbounded_channel();
    let (running, mut heard) = run(&opened, 1, move |job| {
        let hanging = hang_at_first(job.attempt, told.clone());
        async move {
            hanging.await;
            Outcome::done()
        }
    });
    assert_eq!(hears(&mut heard).await, "x");
    opened.is_so(id, is_in_flight).await;
    // As if the machine had slept: no heartbeat came in time.
    opened.clock.advance(Span::from_secs(31));
    patiently(dropped.recv()).await.expect("the handler went on without a lease");
    assert_eq!(hears(&mut heard).await, "x");
    opened.ends(id).await;
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.lost), (2, 1));
}

#[tokio::test]
async fn a_call_that_begins_too_late_is_handed_back_though_it_was_claimed_in_time() {
    let opened = Opened::with(Limit::per_second(10)).await;
    opened.gate().enqueue_all("q", ["a", "b"].map(|lane| call(lane, lane))).await.unwrap();
    // The first keeps the runtime busy, and the second is not polled before.
    let clock = opened.clock.clone();
    let (running, mut heard) = run(&opened, 2, move |job| {
        assert!(clock.now().since(job.started) <= Span::from_secs(1), "it was begun too late");
        clock.advance(Span::from_secs(2));
        done(job)
    });
    assert_eq!([hears(&mut heard).await, hears(&mut heard).await], ["a", "b"]);
    let worked = running.stop().await;
    assert_eq!((worked.started, worked.panicked, worked.late), (2, 0, 1));
}

#[tokio::test]
async fn what_follows_from_a_call_waits_for_room() {
    let opened = Opened::with(Limit::per_second(10)).await;
    let narrow = QueueSpec { depth_max: 1, ..QueueSpec::default() };
    opened.gate().queue("next", narrow).await.unwrap();
    let in_the_way = opened.gate().enqueue("next", call("a", "first")).await.unwrap();
    let id = opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let (running, mut heard) =
        run(&opened, 1, async |_| Outcome::done().enqueue("next", call("a", "second")));
    assert_eq!(hears(&mut heard).await, "x");
    for _ in 0..3 {
        opened.clock.advance(Span::from_millis(250));
        opened.is_so(id, is_in_flight).await;
    }
    assert!(opened.gate().cancel(in_the_way).await.unwrap());
    patiently(async {
        while opened.explain(id).await.is_some() {
            opened.clock.advance(Span::from_millis(250));
            tokio::task::yield_now().await;
        }
    })
    .await;
    let next = opened.gate().claim("next", 1, Span::ZERO).await.unwrap();
    assert_eq!(next[0].payload.body(), b"second");
    running.stop().await;
}

#[tokio::test]
async fn a_claim_of_nothing_is_answered_at_once() {
    let opened = Opened::with(Limit::per_second(10)).await;
    opened.gate().enqueue("q", call("a", "x")).await.unwrap();
    let nothing = patiently(opened.gate().claim("q", 0, Span::from_hours(1))).await.unwrap();
    assert!(nothing.is_empty());
}

#[tokio::test]
async fn a_worker_that_drains_ends_with_the_last_call() {
    let opened = Opened::with(Limit::per_second(10)).await;
    opened.gate().enqueue_all("q", ["x", "y"].map(|body| call("a", body))).await.unwrap();
    let worker = opened.gate().worker("q").concurrency(2).until_drained();
    let worked = patiently(worker.run(async |_: Job| ())).await.unwrap();
    assert_eq!(worked.started, 2);
}
