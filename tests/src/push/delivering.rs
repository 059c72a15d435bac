//! What a destination gets, what its answers mean, and what follows.

use super::upstream::holding::Holding;
use super::upstream::{Upstream, status};
use super::{Pushed, reports, to};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use tollgate::lanes::{Backoff, End, Order, Outcome, QueueSpec, What, act::BODY_BYTES_MAX};
use tollgate::{Call, CostPath, Delivery, Limit, Span, Told, TraceParent, toll};

fn quick() -> QueueSpec {
    let backoff = Backoff::doubling(Span::from_millis(1), Span::from_millis(1));
    QueueSpec { backoff, order: Order::Parallel(100), ..QueueSpec::default() }
}

fn ends(history: &[What]) -> Vec<End> {
    let end = |what: &What| match what {
        What::Ended { end, .. } => Some(*end),
        _ => None,
    };
    history.iter().filter_map(end).collect()
}

#[tokio::test]
async fn a_call_arrives_with_its_body_its_headers_its_id_and_its_attempt() {
    let mut upstream = Upstream::new(|_| status(200, &[("x-answer", "1")], r#"{"ok":true}"#)).await;
    let pushed = Pushed::new().await;
    let headers =
        vec![("x-queue".to_owned(), "q".to_owned()), ("x-both".to_owned(), "q".to_owned())];
    let queue = Delivery { headers, ..to(upstream.url("/hook?a=1")) };
    pushed.queue("q", queue, quick()).await;
    let own = Delivery {
        method: Some("PUT".to_owned()),
        headers: vec![("X-Both".to_owned(), "call".to_owned())],
        ..Delivery::default()
    };
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let call = Call::new("a").body(r#"{"n":1}"#).delivery(own);
    let call = call.trace(TraceParent::new(trace).unwrap());
    let id = pushed.gate.enqueue("q", call).await.unwrap();
    let asked = upstream.next().await;
    assert_eq!((&*asked.method, &*asked.path), ("PUT", "/hook?a=1"));
    assert_eq!(asked.body, br#"{"n":1}"#);
    let header = |name| asked.header(name);
    assert_eq!([header("x-queue"), header("x-both")], [Some("q"), Some("call")]);
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("tollgate-call"), Some(&*id.0.to_string()));
    assert_eq!(header("tollgate-attempt"), Some("1"));
    assert_eq!(header("traceparent"), Some(trace));
    let history = pushed.ended(id).await;
    assert_eq!(ends(&history), [End::Done]);
    let report = &reports(&history)[0];
    assert_eq!((&report["status"], &report["body"]), (&json!(200), &json!({"ok": true})));
    assert_eq!(report["headers"]["x-answer"], "1");
    pushed.close().await;
}

#[tokio::test]
async fn a_call_that_failed_is_tried_again_until_its_retries_are_spent_and_each_attempt_is_told() {
    let mut upstream = Upstream::new(|_| status(500, &[], "no")).await;
    let pushed = Pushed::new().await;
    let delivery = Delivery { retries: Some(2), ..to(upstream.url("/")) };
    pushed.queue("q", delivery, quick()).await;
    let id = pushed.gate.enqueue("q", Call::new("a").body("x")).await.unwrap();
    for attempt in ["1", "2", "3"] {
        let asked = upstream.next().await;
        assert_eq!(asked.header("tollgate-attempt"), Some(attempt));
        assert_eq!(asked.header("tollgate-call"), Some(&*id.0.to_string()));
    }
    let history = pushed.ended(id).await;
    assert_eq!(ends(&history), [End::Dead]);
    let told: Vec<_> = reports(&history).iter().map(|it| it["body_text"].clone()).collect();
    assert_eq!(told, ["no", "no", "no"]);
    pushed.close().await;
}

#[tokio::test]
async fn the_connections_of_one_window_are_there_for_the_next() {
    const WAVE: usize = 200;
    let mut upstream = Holding::new().await;
    let pushed = Pushed::new().await;
    pushed.queue("q", to(upstream.url("/")), quick()).await;
    for _ in 0..2 {
        let calls = (0..WAVE).map(|lane| Call::new(lane.to_string()));
        let ids = pushed.gate.enqueue_all("q", calls).await.unwrap();
        for held in upstream.several(WAVE).await {
            held.answer(status(200, &[], ""));
        }
        for id in ids {
            assert_eq!(ends(&pushed.ended(id).await), [End::Done]);
        }
    }
    // Each call of the first had one; of the second a few may come before theirs is back.
    assert!(upstream.connections() < WAVE + WAVE / 2, "{}", upstream.connections());
    pushed.close().await;
}

#[tokio::test]
async fn an_upstream_that_asks_for_a_pause_closes_the_meter_and_burns_no_attempt() {
    let first = AtomicU32::new(0);
    let mut upstream = Upstream::new(move |_| match first.fetch_add(1, Ordering::Relaxed) {
        0 => status(429, &[("retry-after", "600")], ""),
        _ => status(200, &[], ""),
    })
    .await;
    let pushed = Pushed::new().await;
    pushed.gate.limit("l", Limit::per_second(100)).await.unwrap();
    let delivery = Delivery { retries: Some(0), ..to(upstream.url("/")) };
    pushed.queue("q", delivery, quick()).await;
    let mut events = pushed.gate.events(None);
    events.place().await.unwrap();
    let id = pushed.gate.enqueue("q", Call::new("a").pays(toll("l", "x"))).await.unwrap();
    drop(upstream.next().await);
    loop {
        let told = crate::gate::patiently(events.next()).await.unwrap();
        let Told::Event(_, event) = told else { continue };
        if matches!(event.what, What::Settled { .. }) {
            break;
        }
    }
    let meter = pushed.gate.meter("l", Some("x")).await.unwrap();
    let (left, reason) = meter.closed.unwrap();
    assert!(left > Span::from_secs(590) && left <= Span::from_secs(600), "{left}");
    assert!(reason.contains("pause"), "{reason}");
    pushed.gate.reopen("l", Some("x")).await.unwrap();
    let history = pushed.ended(id).await;
    assert_eq!(ends(&history), [End::Done]);
    assert_eq!(reports(&history)[0]["told_by"], "retry-after");
    assert!(matches!(history[0], What::Settled { outcome: Outcome::Limited { .. }, .. }));
    pushed.close().await;
}

#[tokio::test]
async fn the_answer_says_what_the_call_cost() {
    let upstream = Upstream::new(|_| status(200, &[], r#"{"usage":{"total_tokens":7}}"#)).await;
    let pushed = Pushed::new().await;
    pushed.gate.limit("tpm", Limit::per_hour(100)).await.unwrap();
    let path = CostPath { limit: "tpm".to_owned(), from: "body.usage.total_tokens".to_owned() };
    let delivery = Delivery { costs: vec![path], ..to(upstream.url("/")) };
    pushed.queue("q", delivery, quick()).await;
    let call = Call::new("a").pays(toll("tpm", "x").weight(90));
    let id = pushed.gate.enqueue("q", call).await.unwrap();
    pushed.ended(id).await;
    let meter = pushed.gate.meter("tpm", Some("x")).await.unwrap();
    assert_eq!(meter.standing.remaining, 93);
    pushed.close().await;
}

#[tokio::test]
async fn that_a_call_is_done_or_dead_is_told_by_a_call_of_its_own() {
    let mut upstream = Upstream::new(|asked| match &*asked.path {
        "/done" | "/dead" => status(204, &[], ""),
        "/wrong" => status(422, &[], "bad"),
        _ => status(200, &[], r#"{"answer":42}"#),
    })
    .await;
    let pushed = Pushed::new().await;
    let callback = |path: &str| Some(Box::new(to(upstream.url(path))));
    let delivery = Delivery {
        fatal: vec![422],
        callback: callback("/done"),
        failure_callback: callback("/dead"),
        ..Delivery::default()
    };
    pushed.queue("q", delivery, quick()).await;
    for (path, told, status) in [("/right", "/done", 200), ("/wrong", "/dead", 422)] {
        let call = Call::new("a").delivery(to(upstream.url(path)));
        let id = pushed.gate.enqueue("q", call).await.unwrap();
        assert_eq!(upstream.next().await.path, path);
        let asked = upstream.next().await;
        assert_eq!(asked.path, told);
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        assert_eq!((&body["call"], &body["queue"]), (&json!(id.0.to_string()), &json!("q")));
        assert_eq!(body["outcome"], told[1..]);
        assert_eq!(body["answer"]["status"], status);
    }
    pushed.close().await;
}

#[tokio::test]
async fn an_address_that_is_not_allowed_gets_no_byte() {
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pushed = Pushed::new().await;
    let delivery = Delivery { retries: Some(0), ..to(format!("http://127.0.0.2:{port}/")) };
    pushed.queue("q", delivery, quick()).await;
    let id = pushed.gate.enqueue("q", Call::new("a")).await.unwrap();
    let history = pushed.ended(id).await;
    assert_eq!(ends(&history), [End::Dead]);
    let error = reports(&history)[0]["error"].to_string();
    assert!(error.contains("127.0.0.2") && error.contains("allow"), "{error}");
    let none =
        std::future::poll_fn(|context| std::task::Poll::Ready(listener.poll_accept(context)));
    assert!(none.await.is_pending(), "someone connected");
    pushed.close().await;
}

#[tokio::test]
async fn a_long_answer_is_cut_and_a_long_body_arrives_whole() {
    let mut upstream = Upstream::new(|_| status(200, &[], &"x".repeat(1 << 20))).await;
    let pushed = Pushed::new().await;
    pushed.queue("q", to(upstream.url("/")), quick()).await;
    let body = vec![7; BODY_BYTES_MAX];
    let id = pushed.gate.enqueue("q", Call::new("a").body(body.clone())).await.unwrap();
    assert_eq!(upstream.next().await.body, body);
    let report = &reports(&pushed.ended(id).await)[0];
    assert_eq!((&report["status"], &report["cut"]), (&json!(200), &json!(true)));
    pushed.close().await;
}
