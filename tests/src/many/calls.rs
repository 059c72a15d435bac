//! Calls, leases, receipts and pushes, handed over from one server to another.

use super::{define_queue, one_slot, schema, two, until};
use crate::gate::patiently;
use crate::http::started::Started;
use crate::push::upstream::{Upstream, status};
use crate::servers::postgres::shared;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use tollgate::lanes::QueueSpec;
use tollgate::{Call, ManualClock, Span, Tollgate};

fn done(claimed: &Value) -> Value {
    json!({"lease": claimed["lease"], "outcome": "done"})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_handed_in_at_one_server_is_claimed_at_another_and_settled_at_the_first() {
    let [one, other] = two().await;
    define_queue(&one).await;
    let mut waiting = other.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    other.until_asking(1).await;
    let ids = one.enqueue(&json!({"lane": "a", "body": {"n": 7}})).await;
    let answer = patiently(waiting.answer()).await.unwrap().success();
    let claimed = &answer["calls"][0];
    assert_eq!((&claimed["id"], &claimed["body"]), (&json!(ids[0]), &json!({"n": 7})));
    assert_eq!(one.settle(&done(claimed)).await, json!({"settled": true}));
    assert_eq!(other.settle(&done(claimed)).await["problem"]["code"], "lease_lost");
    Started::until_counts(&other.gate, (0, 0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_one_server_is_renewed_at_another() {
    let [one, other] = two().await;
    define_queue(&one).await;
    one.enqueue(&json!({"lane": "a"})).await;
    let claimed = one.claim(&json!({})).await.remove(0);
    let renew = json!({"leases": [claimed["lease"]], "for": "30s"});
    let renewed = other.post("/v1/leases/renew", &renew).await.success();
    assert_eq!(renewed["renewed"], json!([true]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_of_one_server_is_settled_at_another() {
    let [one, other] = two().await;
    one.put("/v1/limits/api", &one_slot()).await.success();
    let asked = json!({"tolls": [{"limit": "api"}]});
    let paid = one.consume(&asked).await.success();
    other.consume(&asked).await.problem(429, "refused");
    let receipt = paid["receipt"].as_str().unwrap();
    other.post(&format!("/v1/receipts/{receipt}/settle"), &json!({})).await.success();
    other.consume(&asked).await.success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_pass_at_one_server_is_called_there_and_nowhere_else() {
    let [one, other] = two().await;
    one.put("/v1/limits/api", &one_slot()).await.success();
    let asked = json!({"tolls": [{"limit": "api"}], "on_exceeded": "wait", "max_wait": "20s"});
    let mut held = one.consume(&asked).await.success();
    let mut waiting = JoinSet::new();
    for server in [&one, &other, &one, &other] {
        let mut client = server.begin_consume(&asked).await;
        waiting.spawn(async move { client.answer().await.unwrap().success() });
    }
    let stands = async || {
        let queues = one.gate.totals().await.unwrap().queues.into_iter();
        let own = queues.filter(|queue| queue.name.starts_with("tollgate:acquire"));
        own.map(|queue| queue.waiting).sum::<u64>() == 4
    };
    until(stands).await;
    for at in 0..4 {
        let receipt = held["receipt"].as_str().unwrap();
        let server = if at % 2 == 0 { &other } else { &one };
        server.post(&format!("/v1/receipts/{receipt}/settle"), &json!({})).await.success();
        held = patiently(waiting.join_next()).await.unwrap().unwrap();
    }
}

/// A clock that stands still, years behind: the database's decides when a call is due and how long who
/// claims waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_this_machine_decides_nothing() {
    let builder = Tollgate::builder().prefix(&schema()).clock(ManualClock::new());
    let gate = builder.connect(shared()).await.unwrap();
    gate.queue("q", QueueSpec::default()).await.unwrap();
    let delayed = Call::new("a").delay(Span::from_millis(300));
    gate.enqueue("q", delayed).await.unwrap();
    assert!(gate.claim("q", 1, Span::from_millis(10)).await.unwrap().is_empty());
    let claimed = patiently(gate.claim("q", 1, Span::from_secs(15))).await.unwrap();
    assert_eq!(claimed.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_waits_at_one_server_is_cancelled_at_another() {
    let [one, other] = two().await;
    define_queue(&one).await;
    let ids = one.enqueue(&json!([{"lane": "a", "delay": "1h"}, {"lane": "a"}])).await;
    other.delete(&format!("/v1/calls/{}", ids[1])).await.success();
    assert!(one.claim(&json!({})).await.is_empty());
    let seen = one.get(&format!("/v1/calls/{}", ids[0])).await.success();
    assert_eq!(seen["id"], json!(ids[0]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_pushed_call_is_delivered_once_whichever_server_has_it() {
    let [one, other] = two().await;
    let mut upstream = Upstream::new(|_| status(200, &[], "")).await;
    let queue = json!({"destination": {"url": upstream.url("/")}, "order": {"parallel": 8}});
    one.put("/v1/queues/q", &queue).await.success();
    for n in 0..20 {
        let server = if n % 2 == 0 { &one } else { &other };
        server.enqueue(&json!({"lane": format!("l{n}"), "body": n})).await;
    }
    let mut delivered = BTreeSet::new();
    for _ in 0..20 {
        let asked = upstream.next().await;
        assert!(delivered.insert(asked.body.clone()), "{:?} came twice", asked.body);
    }
    Started::until_counts(&one.gate, (0, 0)).await;
    Started::until_counts(&other.gate, (0, 0)).await;
    assert!(upstream.asked.try_recv().is_err(), "one came once more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_published_at_one_server_is_signed_wherever_it_is_sent_from() {
    let [one, other] = two().await;
    let mut upstream = Upstream::new(|_| status(200, &[], "")).await;
    for server in [&one, &other, &one, &other] {
        let path = format!("/v2/publish/{}", upstream.url("/"));
        let answer = server.ask("POST", &path, &[], "hello").await;
        assert!([200, 201].contains(&answer.status), "{}", answer.text);
        let asked = upstream.next().await;
        assert!(asked.header("upstash-signature").is_some());
    }
    let keys = one.get("/v2/keys").await.json();
    assert_eq!(keys, other.get("/v2/keys").await.json());
}
