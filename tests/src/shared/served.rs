//! Servers over a store that they share: what one is told the other knows, what they cannot do they say,
//! and what they say of a store that is away.

use crate::http::client::Answer;
use crate::http::started::{PATIENCE, Started};
use crate::servers::redis::RedisServer;
use crate::servers::{nats, postgres, redis};
use serde_json::{Value, json};
use std::future::Future;
use std::time::Duration;
use tokio::time::timeout;
use tollgate::{ManualClock, Tollgate};
use tollgate_server::Settings;

/// A prefix, schema or bucket that nobody else uses.
fn prefix() -> String {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().file_name().unwrap().to_string_lossy().to_lowercase();
    format!("served_{}", name.replace(|letter: char| !letter.is_ascii_alphanumeric(), ""))
}

/// A server over the store of a url.
async fn server(url: &str, prefix: &str) -> Started {
    let gate = Tollgate::builder().prefix(prefix).connect_limits(url).await.unwrap();
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    Started::serving((gate, ManualClock::new()), tempfile::tempdir().unwrap(), settings).await
}

/// Two servers that share a store.
async fn two(url: &str) -> [Started; 2] {
    let prefix = prefix();
    [server(url, &prefix).await, server(url, &prefix).await]
}

fn slots(limit: u64) -> Value {
    json!({"rule": "concurrency", "limit": limit})
}

fn one_of(limit: &str) -> Value {
    json!({"tolls": [{"limit": limit}]})
}

fn receipt(answer: &Answer) -> String {
    answer.success()["receipt"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn two_servers_let_through_no_more_than_the_limit_says() {
    let servers = two(redis::shared()).await;
    let rule = json!({"rule": "fixed_window", "limit": 10, "per": "1d"});
    servers[0].put("/v1/limits/api", &rule).await.success();
    let mut clients = Vec::new();
    for nth in 0..40 {
        clients.push(servers[nth % 2].begin_consume(&one_of("api")).await);
    }
    let mut granted = 0;
    for client in &mut clients {
        let answer = timeout(PATIENCE, client.answer()).await.unwrap().unwrap();
        assert!([200, 429].contains(&answer.status), "{}", answer.text);
        granted += usize::from(answer.status == 200);
    }
    assert_eq!(granted, 10);
}

#[tokio::test]
async fn what_one_server_is_told_of_a_limit_the_other_knows_at_once() {
    let [one, other] = two(redis::shared()).await;
    let actor = [crate::http::started::JSON, ("tollgate-actor", "ana")];
    one.ask("PUT", "/v1/limits/api", &actor, &slots(1).to_string()).await.success();
    let seen = other.get("/v1/limits/api").await.success();
    assert_eq!((&seen["definition"], &seen["history"][0]["who"]), (&slots(1), &json!("ana")));
    let held = receipt(&other.consume(&one_of("api")).await);
    one.consume(&one_of("api")).await.problem(429, "refused");
    one.put("/v1/limits/api", &slots(2)).await.success();
    other.consume(&one_of("api")).await.success();
    let listed = other.get("/v1/limits").await.success();
    assert_eq!(listed["limits"][0]["name"], "api");
    other.get("/v1/meters/api").await.problem(409, "meters_not_listed");
    one.post(&format!("/v1/receipts/{held}/settle"), &json!({})).await.success();
    one.delete("/v1/limits/api").await.success();
    other.consume(&one_of("api")).await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn servers_that_share_a_limit_lend_what_it_says() {
    let [one, other] = two(redis::shared()).await;
    let rule = json!({"rule": "token_bucket", "limit": 3600, "per": "1h", "burst": 100});
    let available = async |definition: &Value| {
        one.put("/v1/limits/api", definition).await.success();
        assert_eq!(other.get("/v1/limits/api").await.field("definition"), *definition);
        other.get("/v1/meters/api/acme").await.field("available")
    };
    assert_eq!(available(&rule).await, 100);
    let mut lent = rule.clone();
    lent["ahead"] = json!("10s");
    assert_eq!(available(&lent).await, 90, "the burst is smaller by what flows in meanwhile");
}

/// A slot that one server gave is renewed by the other and let go by the first.
async fn slots_are_anyones_to_renew_and_settle(url: &str) {
    let [one, other] = two(url).await;
    one.put("/v1/limits/api", &slots(1)).await.success();
    let held = receipt(&one.consume(&one_of("api")).await);
    other.consume(&one_of("api")).await.problem(429, "refused");
    let renewed =
        receipt(&other.post(&format!("/v1/receipts/{held}/renew"), &json!({"for": "5m"})).await);
    assert_eq!(one.gate.meter("api", None).await.unwrap().in_flight, 1);
    one.post(&format!("/v1/receipts/{renewed}/settle"), &json!({})).await.success();
    let again = one.post(&format!("/v1/receipts/{renewed}/settle"), &json!({})).await;
    again.problem(409, "receipt_spent");
    other.consume(&one_of("api")).await.success();
}

#[tokio::test]
async fn a_slot_in_redis_is_any_servers_to_renew_and_settle() {
    slots_are_anyones_to_renew_and_settle(redis::shared()).await;
}

#[tokio::test]
async fn a_slot_in_postgres_is_any_servers_to_renew_and_settle() {
    slots_are_anyones_to_renew_and_settle(postgres::shared()).await;
}

#[tokio::test]
async fn a_slot_in_nats_is_any_servers_to_renew_and_settle() {
    slots_are_anyones_to_renew_and_settle(nats::shared()).await;
}

#[tokio::test]
async fn a_server_over_a_shared_store_says_what_it_does_not_do() {
    let server = server(redis::shared(), &prefix()).await;
    server.put("/v1/limits/api", &slots(3)).await.success();
    let told = server.put("/v1/queues/q", &json!({})).await.problem(409, "limits_only");
    assert!(told.contains("--store") && told.contains("--data"), "{told}");
    for path in ["/v1/queues", "/v1/queues/q/lanes", "/v1/schedules", "/v1/events", "/v1/audit"] {
        server.get(path).await.problem(409, "limits_only");
    }
    for (path, body) in [
        ("/v1/queues/q/calls", json!({"lane": "a"})),
        ("/v1/queues/q/claim", json!({})),
        ("/v1/limits/api/pause", json!({})),
    ] {
        server.post(path, &body).await.problem(409, "limits_only");
    }
    let answer = server.get("/v2/queues").await;
    assert_eq!((answer.status, answer.json()["error"].as_str()), (409, Some(told.as_str())));
    server.consume(&one_of("api")).await.success();
    let told = server.get("/metrics").await.text;
    for line in ["tollgate_limit_in_flight{limit=\"api\"} 1", "tollgate_store_failures_total 0"] {
        assert!(told.contains(line), "{told}");
    }
}

/// Whatever it is, it comes within what a store may take, and a little for a slow machine.
async fn soon<T>(answer: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(3), answer).await.expect("it takes longer than the store may")
}

async fn until_ready(server: &Started) {
    let wait = async { while server.get("/readyz").await.status != 200 {} };
    timeout(PATIENCE, wait).await.expect("it does not become ready");
}

#[tokio::test]
async fn a_store_that_is_killed_is_told_of_until_it_is_back() {
    let store = RedisServer::start();
    let (port, server) = (store.port(), server(&store.url(), "tollgate").await);
    server.put("/v1/limits/api", &slots(1)).await.success();
    server.get("/readyz").await.success();
    drop(store);
    let away = soon(server.consume(&one_of("api"))).await;
    away.problem(503, "store_unreachable");
    assert_eq!(away.header("retry-after"), Some("1"));
    soon(server.get("/readyz")).await.problem(503, "store_unreachable");
    server.get("/healthz").await.success();
    server.put("/v1/queues/q", &json!({})).await.problem(409, "limits_only");
    let _store = RedisServer::start_on(port, &[]);
    until_ready(&server).await;
    // It is new, and knows of no slots: those that were held before may still be in use.
    server.consume(&one_of("api")).await.problem(429, "refused");
}

#[tokio::test]
async fn a_store_that_stands_still_is_out_of_reach_and_goes_on_as_if_nothing_had_been() {
    let store = RedisServer::start();
    let server = server(&store.url(), "tollgate").await;
    server.put("/v1/limits/api", &slots(1)).await.success();
    let held = receipt(&server.consume(&one_of("api")).await);
    store.server.stand_still();
    soon(server.consume(&one_of("api"))).await.problem(503, "store_unreachable");
    soon(server.get("/readyz")).await.problem(503, "store_unreachable");
    store.server.go_on();
    until_ready(&server).await;
    server.post(&format!("/v1/receipts/{held}/settle"), &json!({})).await.success();
    let told = server.get("/metrics").await.text;
    assert!(!told.contains("tollgate_store_failures_total 0"), "{told}");
}

#[tokio::test]
async fn a_server_may_start_before_its_store() {
    let port = crate::servers::free_port();
    let server = server(&format!("redis://127.0.0.1:{port}"), "tollgate").await;
    soon(server.get("/readyz")).await.problem(503, "store_unreachable");
    soon(server.consume(&one_of("api"))).await.problem(503, "store_unreachable");
    let _store = RedisServer::start_on(port, &[]);
    until_ready(&server).await;
    server.put("/v1/limits/api", &slots(1)).await.success();
    let held = receipt(&server.consume(&one_of("api")).await);
    server.post(&format!("/v1/receipts/{held}/settle"), &json!({})).await.success();
}
