//! The server goes: it says so first, and hands back calls that no worker was told of.

use super::client::{Client, request};
use super::started::{JSON, Started};
use serde_json::json;
use std::time::Duration;
use tollgate_server::Settings;

/// More than the system keeps for a client that does not read.
const BODY_BYTES: usize = 12 << 20;

/// A server with one call, started for a worker that does not read the answer.
async fn unread() -> (Started, Client) {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a", "body": "x".repeat(BODY_BYTES)})).await;
    let mut worker = server.begin("/v1/queues/q/claim", &json!({"lease": "1h"})).await;
    // The answer is under way; the rest of it is never read.
    assert_eq!(worker.line().await, "HTTP/1.1 200 OK\r\n");
    (server, worker)
}

#[tokio::test]
async fn a_server_that_goes_says_so_while_it_answers_still() {
    let hour = Duration::from_secs(3600);
    let settings = Settings { leave: hour, ..Settings::new(([127, 0, 0, 1], 0).into()) };
    let mut server = Started::with(settings).await;
    assert_eq!(server.get("/readyz").await.success(), json!({"status": "ready"}));
    server.begin_stop();
    server.until_ready_says(503).await;
    server.get("/readyz").await.problem(503, "shutting_down");
    server.get("/healthz").await.success();
    let limit = json!({"rule": "token_bucket", "limit": 1, "per": "1s"});
    server.put("/v1/limits/l", &limit).await.success();
    server.consume(&json!({"tolls": [{"limit": "l"}]})).await.success();
    assert!(server.get("/metrics").await.text.contains("\ntollgate_ready 0\n"));
}

#[tokio::test]
async fn calls_that_the_worker_was_not_told_of_wait_again_when_the_server_ends() {
    let (mut server, _worker) = unread().await;
    server.begin_stop();
    // Ten seconds go by at once, for nobody has anything left to do.
    tokio::time::pause();
    let gate = server.gate.clone();
    server.ended().await;
    tokio::time::resume();
    Started::until_counts(&gate, (1, 0)).await;
}

#[tokio::test]
async fn calls_whose_worker_goes_without_the_answer_wait_again_at_once() {
    let (server, worker) = unread().await;
    drop(worker);
    Started::until_counts(&server.gate, (1, 0)).await;
    let again = server.claim(&json!({})).await;
    assert_eq!(again[0]["attempt"], 1, "as if it had never started");
}

#[tokio::test]
async fn calls_that_the_worker_was_told_of_stay_its_own_when_the_server_ends() {
    let mut server = Started::with_queue(10).await;
    server.enqueue(&json!([{"lane": "a"}, {"lane": "b"}])).await;
    let mut worker = server.client().await;
    let claim = request("POST", "/v1/queues/q/claim", &[JSON], "{}");
    // Two answers in one write, and the connection ends right after.
    worker.send(&claim.repeat(2)).await;
    for _ in 0..2 {
        let calls = worker.answer().await.unwrap().success()["calls"].clone();
        assert_eq!(calls.as_array().unwrap().len(), 1);
    }
    drop(worker);
    server.begin_stop();
    let gate = server.gate.clone();
    server.ended().await;
    // Until all is handed back that is to be.
    gate.clone().shut_down().await;
    let state = gate.queue_state("q").await.unwrap().unwrap();
    assert_eq!((state.waiting, state.in_flight), (0, 2));
}
