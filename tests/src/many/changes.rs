//! Queues, limits, schedules and keys that one server changes: the others know of it.

use super::{define_queue, schema, server, two, two_by_hand, until};
use crate::gate::patiently;
use crate::http::started::Started;
use crate::servers::postgres::shared;
use serde_json::{Value, json};
use tollgate::{ManualClock, Span};

fn every_minute() -> Value {
    json!({"queue": "q", "cron": "* * * * *", "call": {"lane": "a"}})
}

async fn waiting(server: &Started) -> u64 {
    server.gate.queue_state("q").await.unwrap().unwrap().waiting
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_ticks_once_however_many_servers_there_are() {
    let [one, other] = two_by_hand().await;
    define_queue(&one).await;
    one.put("/v1/schedules/s", &every_minute()).await.success();
    // The other one ticks, too, once it knows of it.
    let known = async || other.get("/v1/schedules/s").await.status == 200;
    until(known).await;
    for ticks in 1..=5 {
        one.clock.advance(Span::from_secs(60));
        until(async || waiting(&one).await == ticks).await;
        for server in [&one, &other] {
            let schedule = server.get("/v1/schedules/s").await.success();
            assert!(schedule["next"].as_str() > schedule["last"].as_str(), "{schedule}");
        }
        assert_eq!((waiting(&one).await, waiting(&other).await), (ticks, ticks));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_goes_on_when_the_server_it_was_made_at_is_gone() {
    let (schema, clock) = (schema(), ManualClock::new());
    let mut one = server(shared(), &schema, Some(&clock)).await;
    let other = server(shared(), &schema, Some(&clock)).await;
    define_queue(&one).await;
    one.put("/v1/schedules/s", &every_minute()).await.success();
    let gate = one.gate.clone();
    one.begin_stop();
    one.ended().await;
    patiently(gate.shut_down()).await;
    // It is moved until the other one has heard of it, and ticks.
    let ticked = async || {
        clock.advance(Span::from_secs(60));
        waiting(&other).await > 0
    };
    until(ticked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_one_server_gives_a_destination_has_it_at_the_other() {
    let [one, other] = two().await;
    define_queue(&one).await;
    let call = json!({"lane": "a", "delay": "1h", "destination": {"url": "http://127.0.0.1:1/"}});
    let handed_in = async || other.post("/v1/queues/q/calls", &call).await.status;
    assert_ne!(handed_in().await, 200);
    one.put("/v1/queues/q", &json!({"destination": {}})).await.success();
    until(async || handed_in().await == 200).await;
    one.put("/v1/queues/q", &json!({})).await.success();
    until(async || handed_in().await == 422).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_one_server_changes_is_changed_for_all() {
    let [one, other] = two().await;
    let window = |limit: u64| json!({"rule": "fixed_window", "limit": limit, "per": "1d"});
    one.put("/v1/limits/api", &window(1)).await.success();
    let asked = json!({"tolls": [{"limit": "api"}]});
    other.consume(&asked).await.success();
    one.consume(&asked).await.problem(429, "refused");
    other.put("/v1/limits/api", &window(2)).await.success();
    one.consume(&asked).await.success();
    other.consume(&asked).await.problem(429, "refused");
    let limit = one.get("/v1/limits/api").await.success();
    assert_eq!(limit["history"].as_array().map(Vec::len), Some(2), "{limit}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_one_server_changes_are_those_of_the_other() {
    let [one, other] = two().await;
    let before = one.get("/v2/keys").await.json();
    assert_eq!(other.get("/v2/keys").await.json(), before);
    let after = one.ask("POST", "/v2/keys/rotate", &[], "").await.json();
    assert_ne!(after, before);
    until(async || other.get("/v2/keys").await.json() == after).await;
}
