//! A database that is gone for a while: it is said, nothing is lost, and all go on by themselves.

use super::{define_queue, schema, server, until};
use crate::gate::{hang_at_first, patiently};
use crate::push::upstream::{Upstream, status};
use crate::servers::postgres::PostgresServer;
use serde_json::json;
use tokio::sync::mpsc;
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Outcome, Span, Tollgate};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_is_gone_all_is_refused_and_then_nothing_is_lost() {
    let mut database = PostgresServer::start();
    let schema = schema();
    let one = server(&database.url(), &schema, None).await;
    let other = server(&database.url(), &schema, None).await;
    define_queue(&one).await;
    let ids = one.enqueue(&json!([{"lane": "a", "body": 1}, {"lane": "b", "body": 2}])).await;
    let claimed = one.claim(&json!({"lease": "10m"})).await.remove(0);
    database.stop();
    for server in [&one, &other] {
        let call = json!({"lane": "a"});
        let told = patiently(server.post("/v1/queues/q/calls", &call)).await;
        let told = told.problem(503, "store_unreachable");
        assert!(told.contains("PostgreSQL"), "{told}");
        patiently(server.get("/readyz")).await.problem(503, "store_unreachable");
        for path in ["/v1/queues/q", "/v1/limits", "/v1/schedules"] {
            patiently(server.get(path)).await.problem(503, "store_unreachable");
        }
        server.get("/healthz").await.success();
    }
    database.go_on();
    for server in [&one, &other] {
        until(async || server.get("/readyz").await.status == 200).await;
    }
    let done = json!({"lease": claimed["lease"], "outcome": "done"});
    assert_eq!(other.settle(&done).await, json!({"settled": true}));
    let left = other.claim(&json!({"max": 10})).await;
    assert_eq!((left.len(), &left[0]["id"]), (1, &json!(ids[1])));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_nobody_asks_sees_that_the_database_is_gone_and_that_it_is_back() {
    let mut database = PostgresServer::start();
    let server = server(&database.url(), &schema(), None).await;
    server.get("/readyz").await.success();
    database.stop();
    until(async || server.get("/readyz").await.status == 503).await;
    database.go_on();
    until(async || server.get("/readyz").await.status == 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_pushes_and_waiting_claims_go_on_after_an_outage() {
    let mut database = PostgresServer::start();
    let server = server(&database.url(), &schema(), None).await;
    let mut upstream = Upstream::new(|_| status(200, &[], "")).await;
    let pushed = json!({"destination": {"url": upstream.url("/")}});
    server.put("/v1/queues/pushed", &pushed).await.success();
    server.post("/v1/queues/pushed/calls", &json!({"lane": "a", "body": 1})).await.success();
    assert_eq!(&*upstream.next().await.body, b"1");
    define_queue(&server).await;
    let mut waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "1m"})).await;
    server.until_asking(1).await;
    database.stop();
    until(async || server.get("/readyz").await.status == 503).await;
    database.go_on();
    until(async || server.get("/readyz").await.status == 200).await;
    server.post("/v1/queues/pushed/calls", &json!({"lane": "a", "body": 2})).await.success();
    assert_eq!(&*upstream.next().await.body, b"2");
    server.enqueue(&json!({"lane": "a"})).await;
    let answer = patiently(waiting.answer()).await.unwrap();
    // It went on waiting, or was told and asks again.
    if answer.status != 200 {
        answer.problem(503, "store_unreachable");
        assert_eq!(server.claim(&json!({"wait": "10s"})).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_whose_node_lost_the_database_is_dropped_when_its_lease_ends() {
    let mut database = PostgresServer::start();
    let gate = Tollgate::builder().prefix(&schema()).connect(&database.url()).await.unwrap();
    gate.queue("q", QueueSpec::default()).await.unwrap();
    gate.enqueue("q", Call::new("a")).await.unwrap();
    let (told, mut dropped) = mpsc::unbounded_channel();
    let (begins, mut begun) = mpsc::unbounded_channel();
    let worker = gate.worker("q").lease(Span::from_secs(1)).until_drained();
    let working = tokio::spawn(worker.run(move |job| {
        begins.send(job.attempt).unwrap();
        let hanging = hang_at_first(job.attempt, told.clone());
        async move {
            hanging.await;
            Outcome::done()
        }
    }));
    assert_eq!(patiently(begun.recv()).await, Some(1));
    database.stop();
    patiently(dropped.recv()).await.expect("the handler went on without a lease");
    database.go_on();
    assert_eq!(patiently(begun.recv()).await, Some(2));
    let worked = patiently(working).await.unwrap().unwrap();
    assert_eq!((worked.started, worked.lost), (2, 1));
}
