//! Calls: read with why they wait, listed, taken back.

use super::started::{Kept, Started};
use serde_json::json;
use tollgate::Span;

#[tokio::test]
async fn a_call_that_waits_says_why_and_until_when() {
    let server = Started::with_queue(1).await;
    let call = json!({"lane": "a", "tolls": [{"limit": "l"}]});
    let ids = server.enqueue(&json!([call, call, call])).await;
    server.claim(&json!({})).await;
    let waiting = server.get(&format!("/v1/calls/{}", ids[2])).await.success();
    assert_eq!(waiting["state"], "waiting");
    assert_eq!(waiting["waiting"]["position"], 1);
    let reasons: Vec<_> = waiting["waiting"]["reasons"].as_array().unwrap().iter().collect();
    assert!(reasons.iter().any(|reason| reason["reason"] == "behind"), "{reasons:?}");
    assert!(reasons.iter().any(|reason| reason["reason"] == "lane_busy"), "{reasons:?}");
}

#[tokio::test]
async fn calls_are_listed_by_lane_and_state() {
    let server = Started::with_queue(10).await;
    let calls = json!([{"lane": "a"}, {"lane": "b"}, {"lane": "a", "delay": "1h"}, {"lane": "a"}]);
    let ids = server.enqueue(&calls).await;
    let list = async |query: &str| -> Vec<String> {
        let page = server.get(&format!("/v1/queues/q/calls?{query}")).await.success();
        let calls = page["calls"].as_array().unwrap().iter();
        calls.map(|call| call["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("").await, ids);
    assert_eq!(list("lane=b").await, ids[1..2]);
    assert_eq!(list("state=not_due").await, ids[2..3]);
    assert_eq!(list(&format!("after={}&limit=2", ids[0])).await, ids[1..3]);
    for wrong in ["state=lost", "after=x", "limit=0", "limit=1001", "color=red"] {
        let answer = server.get(&format!("/v1/queues/q/calls?{wrong}")).await;
        answer.problem(400, "invalid_query");
    }
}

#[tokio::test]
async fn a_call_is_taken_back_once() {
    let server = Started::with_queue(10).await;
    let id = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    let path = format!("/v1/calls/{id}");
    assert_eq!(server.delete(&path).await.success(), json!({"cancelled": true}));
    assert_eq!(server.get(&path).await.success()["state"], "cancelled");
    server.delete(&path).await.problem(404, "unknown_call");
    for unknown in ["99", "x", "007", "-1", "%00"] {
        server.get(&format!("/v1/calls/{unknown}")).await.problem(404, "unknown_call");
        server.delete(&format!("/v1/calls/{unknown}")).await.problem(404, "unknown_call");
    }
}

#[tokio::test]
async fn a_call_expires_unstarted() {
    let server = Started::with_queue(10).await;
    let id = server.enqueue(&json!({"lane": "a", "expires_after": "5s"})).await.remove(0);
    server.clock.advance(Span::from_secs(6));
    assert!(server.claim(&json!({})).await.is_empty());
    assert_eq!(server.get(&format!("/v1/calls/{id}")).await.success()["state"], "expired");
}

/// Promise 20: a call that nothing holds back says that nobody asks for it.
#[tokio::test]
async fn a_call_that_only_lacks_a_worker_says_so() {
    let server = Started::with_queue(1).await;
    let id = server.enqueue(&json!({"lane": "a", "delay": "1h"})).await.remove(0);
    server.clock.advance(Span::from_secs(3600));
    server.until_reason(&id, "no_worker").await;
}

#[tokio::test]
async fn bodies_are_kept_from_those_who_look_if_that_is_chosen() {
    let listen = ([127, 0, 0, 1], 0).into();
    let settings =
        tollgate_server::Settings { redact_bodies: true, ..tollgate_server::Settings::new(listen) };
    let server = Started::on(Kept::InFolder, settings).await;
    server.put("/v1/queues/q", &json!({})).await.success();
    let id = server.enqueue(&json!({"lane": "a", "body": {"iban": "DE02"}})).await.remove(0);
    let looked_at = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!((looked_at.get("body"), &looked_at["body_bytes"]), (None, &json!(15)));
    let schedule =
        json!({"queue": "q", "cron": "@daily", "call": {"lane": "a", "body": {"iban": "DE02"}}});
    let looked_at = server.put("/v1/schedules/s", &schedule).await.success();
    assert_eq!(looked_at["call"].get("body"), None);
    assert_eq!(server.claim(&json!({})).await[0]["body"], json!({"iban": "DE02"}));
}
