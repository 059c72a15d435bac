//! Paying over the network: now, later, in turn; and what a pass holds.

use super::served::{PATIENCE, Served, refused};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tollgate_client::{Client, Limit, Priority, Span, global, toll};

#[tokio::test]
async fn all_tolls_are_paid_or_none() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("rpm", Limit::per_minute(2)).await.unwrap();
    client.limit("tpm", Limit::per_minute(100)).await.unwrap();
    let both = || toll("rpm", "acme").and(toll("tpm", "acme").weight(60));
    let _ = client.consume(both()).await.unwrap();
    let error = client.consume(both()).await.unwrap_err();
    assert_eq!(refused(&error), Some("tpm"));
    assert_eq!(error.problem().unwrap().retry_after(), Some(Span::from_secs(12)));
    assert_eq!(client.meter("rpm", Some("acme")).await.unwrap().standing.remaining, 1);
    let pass = client.consume_delayed(both(), Span::from_secs(30)).await.unwrap();
    assert_eq!(pass.delay(), Span::from_secs(12));
}

#[tokio::test]
async fn who_waits_is_served_in_turn() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("api", Limit::per_second(1)).await.unwrap();
    let _ = client.consume(global("api")).await.unwrap();
    let ask = |priority: u64, client: Client| async move {
        let _ =
            client.acquire(global("api")).priority(Priority::new(priority).unwrap()).await.unwrap();
    };
    let low = tokio::spawn(ask(0, client.clone()));
    served.until_waiting("api", 1).await;
    let high = tokio::spawn(ask(9, client.clone()));
    served.until_waiting("api", 2).await;
    served.clock.advance(Span::from_secs(1));
    timeout(PATIENCE, high).await.unwrap().unwrap();
    assert!(!low.is_finished());
    served.clock.advance(Span::from_secs(1));
    timeout(PATIENCE, low).await.unwrap().unwrap();
}

#[tokio::test]
async fn who_would_wait_too_long_is_refused_at_once() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("api", Limit::per_minute(1)).await.unwrap();
    let _ = client.consume(global("api")).await.unwrap();
    let error = client.acquire(global("api")).max_wait(Span::from_secs(5)).await.unwrap_err();
    assert_eq!(refused(&error), Some("api"));
}

#[tokio::test]
async fn a_dropped_waiter_gives_its_turn_away() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("slots", Limit::concurrency(1)).await.unwrap();
    let pass = client.consume(global("slots")).await.unwrap();
    let waiter = tokio::spawn(client.acquire(global("slots")).into_future());
    served.until_waiting("slots", 1).await;
    waiter.abort();
    served.until_waiting("slots", 0).await;
    drop(pass);
    served.until_held("slots", 0).await;
    let _ = client.consume(global("slots")).await.unwrap();
}

/// Holds a slot, on a runtime of its own, until it is told to die: at once and without a word.
fn hold_until_killed(url: String, held: oneshot::Sender<()>, kill: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::builder(&url).heartbeat(Span::from_millis(20)).build().unwrap();
        std::mem::forget(client.acquire(global("slots")).await.unwrap());
        held.send(()).unwrap();
        kill.await.unwrap();
    });
    runtime.shutdown_background();
}

#[tokio::test]
async fn slots_are_held_while_the_pass_lives_and_free_a_minute_after_its_process_died() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("slots", Limit::concurrency(1)).await.unwrap();
    let ((held, is_held), (kill, is_killed)) = (oneshot::channel(), oneshot::channel());
    let url = served.url();
    let holder = std::thread::spawn(move || hold_until_killed(url, held, is_killed));
    is_held.await.unwrap();
    let minute = Span::from_secs(60);
    let is_renewed = async || {
        let error = client.consume(global("slots")).await.unwrap_err();
        error.problem().and_then(|problem| problem.retry_after()) == Some(minute)
    };
    for _ in 0..3 {
        served.clock.advance(Span::from_secs(59));
        served.until(is_renewed).await;
    }
    kill.send(()).unwrap();
    holder.join().unwrap();
    served.clock.advance(minute);
    let _ = client.consume(global("slots")).await.unwrap();
}

#[tokio::test]
async fn slots_are_free_when_the_pass_is_dropped() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("slots", Limit::concurrency(1)).await.unwrap();
    let pass = client.acquire(global("slots")).await.unwrap();
    let waiter = tokio::spawn(client.acquire(global("slots")).into_future());
    served.until_waiting("slots", 1).await;
    drop(pass);
    let _ = timeout(PATIENCE, waiter).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_shuts_down_has_let_go_of_its_passes() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("slots", Limit::concurrency(3)).await.unwrap();
    let passes = [(); 3].map(|()| client.consume(global("slots")));
    for pass in passes {
        let _ = pass.await.unwrap();
    }
    client.shut_down().await;
    assert_eq!(served.gate.meter("slots", None).await.unwrap().in_flight, 0);
}

#[tokio::test]
async fn an_estimate_is_settled_at_its_true_cost_once() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("rpm", Limit::per_minute(60)).await.unwrap();
    client.limit("tpm", Limit::per_minute(100)).await.unwrap();
    let ask = || global("rpm").and(global("tpm").estimate(60));
    let left = async |limit: &str| served.gate.meter(limit, None).await.unwrap().standing.remaining;
    let mut pass = client.consume(ask()).await.unwrap();
    assert!(pass.settle("rpm", 1).await.is_err(), "it was no estimate");
    pass.settle("tpm", 10).await.unwrap();
    assert_eq!(left("tpm").await, 90);
    assert!(pass.settle("tpm", 10).await.is_err(), "it was settled before");
    let pass = client.consume(ask()).await.unwrap();
    pass.cancel().await.unwrap();
    assert_eq!((left("rpm").await, left("tpm").await), (59, 90));
    let mut pass = client.acquire(ask()).await.unwrap();
    pass.settle("tpm", 20).await.unwrap();
    drop(pass);
    served.until(async || left("tpm").await == 70).await;
}

#[tokio::test]
async fn what_was_settled_stays_so_when_the_rest_is_handed_back() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("in", Limit::per_minute(100)).await.unwrap();
    client.limit("out", Limit::per_minute(100)).await.unwrap();
    let ask = global("in").estimate(50).and(global("out").estimate(60));
    let mut pass = client.consume(ask).await.unwrap();
    let error = pass.settle("in", u64::MAX).await.unwrap_err();
    assert!(error.to_string().contains("larger unit"), "{error}");
    pass.settle("in", 10).await.unwrap();
    pass.cancel().await.unwrap();
    let left = async |limit: &str| served.gate.meter(limit, None).await.unwrap().standing.remaining;
    assert_eq!((left("in").await, left("out").await), (90, 100));
}

#[tokio::test]
async fn a_future_runs_when_its_tolls_are_paid_and_holds_its_slots() {
    let served = Served::new().await;
    let client = served.client();
    client.limit("slots", Limit::concurrency(1)).await.unwrap();
    let held = client.throttle(global("slots"), async {
        served.gate.meter("slots", None).await.unwrap().in_flight
    });
    assert_eq!(held.await.unwrap(), 1);
    served.until_held("slots", 0).await;
}
