//! Receipts over HTTP: settled once, handed back, renewed, never forged.

use super::Served;
use serde_json::{Value, json};
use std::time::Duration;

async fn paid(served: &Served, weight: u64) -> String {
    let request = json!({ "tolls": [{ "limit": "api", "weight": weight }], "receipt": "10m" });
    let answer = served.consume(request).await;
    answer.json["receipt"].as_str().unwrap().to_owned()
}

async fn left(served: &Served) -> Value {
    served.get("/v1/meters/api").await.json["global"]["available"].clone()
}

fn hundred() -> Value {
    json!({ "rule": "token_bucket", "limit": 100, "per": "1d" })
}

#[tokio::test]
async fn the_true_cost_is_settled_once() {
    let served = Served::limited(hundred()).await;
    let receipt = paid(&served, 60).await;
    let settle = format!("/v1/receipts/{receipt}/settle");
    let actual = json!({ "actual": { "api": 10 } });
    assert_eq!(served.ask("POST", &settle, &actual).await.json, json!({ "settled": true }));
    assert_eq!(left(&served).await, 90);
    assert_eq!(served.ask("POST", &settle, &actual).await.code(), "receipt_spent");
    assert_eq!(left(&served).await, 90);
}

#[tokio::test]
async fn more_than_the_estimate_is_owed() {
    let served = Served::limited(hundred()).await;
    let receipt = paid(&served, 60).await;
    let settle = format!("/v1/receipts/{receipt}/settle");
    assert_eq!(served.ask("POST", &settle, &json!({ "actual": { "api": 130 } })).await.status, 200);
    assert_eq!(left(&served).await, -30);
}

#[tokio::test]
async fn what_was_never_started_is_handed_back() {
    let served = Served::limited(hundred()).await;
    let receipt = paid(&served, 60).await;
    let cancel = format!("/v1/receipts/{receipt}/cancel");
    assert_eq!(served.ask("POST", &cancel, &json!({})).await.json, json!({ "cancelled": true }));
    assert_eq!(left(&served).await, 100);
}

#[tokio::test]
async fn a_receipt_that_was_changed_is_unknown() {
    let served = Served::limited(hundred()).await;
    let receipt = paid(&served, 60).await;
    let flipped: String = receipt.chars().rev().collect();
    for forged in [flipped.as_str(), "x", &receipt[..receipt.len() - 2]] {
        let answer = served.ask("POST", &format!("/v1/receipts/{forged}/settle"), &json!({})).await;
        assert_eq!(answer.code(), "receipt_unknown", "{forged}");
    }
    assert_eq!(left(&served).await, 40);
}

#[tokio::test]
async fn slots_are_held_by_the_receipt_until_it_is_settled_or_expires() {
    let served = Served::limited(json!({ "rule": "concurrency", "limit": 1 })).await;
    let ask = || served.consume(json!({ "tolls": [{ "limit": "api" }], "receipt": "1m" }));
    let receipt = ask().await.json["receipt"].as_str().unwrap().to_owned();
    assert_eq!(ask().await.status, 429);
    served.clock.advance(Duration::from_secs(50));
    let renew = format!("/v1/receipts/{receipt}/renew");
    let renewed = served.ask("POST", &renew, &json!({ "for": "1m" })).await;
    assert!(renewed.json["receipt"].is_string(), "{renewed:?}");
    served.clock.advance(Duration::from_secs(50));
    assert_eq!(ask().await.status, 429);
    served.clock.advance(Duration::from_secs(10));
    let next = ask().await;
    assert_eq!(next.status, 200, "a dead holder's slot comes back by itself");
    let next = next.json["receipt"].as_str().unwrap().to_owned();
    let settle = format!("/v1/receipts/{next}/settle");
    assert_eq!(served.ask("POST", &settle, &json!({})).await.status, 200);
    assert_eq!(ask().await.status, 200);
}
