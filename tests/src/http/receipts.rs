//! `/v1/receipts`: settling, handing back, holding slots.

use super::client::Answer;
use super::started::Started;
use serde_json::{Value, json};
use tollgate::Span;

/// Tokens per minute, for a call that may cost 60 of 100.
async fn estimated() -> (Started, String) {
    let server = Started::new().await;
    let rule = json!({"rule": "token_bucket", "limit": 100, "per": "1m"});
    let toll = json!({"limit": "tokens", "weight": 60, "define": rule});
    let granted = server.consume(&json!({"tolls": [toll], "receipt": "10m"})).await.success();
    assert_eq!(granted["remaining"], 40);
    let receipt = granted["receipt"].as_str().unwrap().to_owned();
    (server, receipt)
}

/// A call that holds one of two slots.
async fn holding(receipt: Value) -> (Started, String) {
    let server = Started::new().await;
    let rule = json!({"rule": "concurrency", "limit": 2});
    server.put("/v1/limits/slots", &rule).await.success();
    let call = json!({"tolls": [{"limit": "slots"}], "receipt": receipt});
    let granted = server.consume(&call).await.success();
    (server, granted["receipt"].as_str().unwrap().to_owned())
}

async fn act(server: &Started, receipt: &str, action: &str, body: Value) -> Answer {
    server.post(&format!("/v1/receipts/{receipt}/{action}"), &body).await
}

async fn available(server: &Started, limit: &str) -> Value {
    server.get(&format!("/v1/meters/{limit}")).await.field("global")["available"].clone()
}

#[tokio::test]
async fn settling_down_gives_back() {
    let (server, receipt) = estimated().await;
    let settled = act(&server, &receipt, "settle", json!({"actual": {"tokens": 10}})).await;
    assert_eq!(settled.success(), json!({"settled": true}));
    assert_eq!(available(&server, "tokens").await, 90);
}

#[tokio::test]
async fn settling_up_is_owed() {
    let (server, receipt) = estimated().await;
    act(&server, &receipt, "settle", json!({"actual": {"tokens": 150}})).await.success();
    assert_eq!(available(&server, "tokens").await, -50);
}

#[tokio::test]
async fn settling_without_a_body_keeps_what_was_paid() {
    let (server, receipt) = estimated().await;
    let path = format!("/v1/receipts/{receipt}/settle");
    server.ask("POST", &path, &[], "").await.success();
    assert_eq!(available(&server, "tokens").await, 40);
}

#[tokio::test]
async fn a_receipt_settles_once() {
    let (server, receipt) = estimated().await;
    act(&server, &receipt, "settle", json!({"actual": {"tokens": 10}})).await.success();
    for action in ["settle", "cancel"] {
        act(&server, &receipt, action, json!({})).await.problem(409, "receipt_spent");
    }
    assert_eq!(available(&server, "tokens").await, 90);
}

#[tokio::test]
async fn an_expired_receipt_is_spent() {
    let (server, receipt) = estimated().await;
    server.clock.advance(Span::from_minutes(10));
    act(&server, &receipt, "settle", json!({})).await.problem(409, "receipt_spent");
}

#[tokio::test]
async fn a_call_never_started_is_handed_back() {
    let (server, receipt) = estimated().await;
    let cancelled = act(&server, &receipt, "cancel", json!({})).await;
    assert_eq!(cancelled.success(), json!({"cancelled": true}));
    assert_eq!(available(&server, "tokens").await, 100);
}

#[tokio::test]
async fn a_wrong_cost_is_refused_and_leaves_the_receipt_good() {
    let (server, receipt) = estimated().await;
    let too_large = json!({"actual": {"tokens": 1_u64 << 53}});
    act(&server, &receipt, "settle", json!({"actual": {"other": 1}}))
        .await
        .problem(422, "not_paid");
    act(&server, &receipt, "settle", too_large).await.problem(422, "actual_too_large");
    let fraction = act(&server, &receipt, "settle", json!({"actual": {"tokens": 0.5}})).await;
    fraction.problem(400, "invalid_body");
    assert_eq!(fraction.field("field"), "actual.tokens");
    act(&server, &receipt, "settle", json!({"actual": {"tokens": 0}})).await.success();
}

#[tokio::test]
async fn a_receipt_is_given_only_if_asked_for_or_needed() {
    let server = Started::per_second("stripe", 10).await;
    for mode in ["fail", "delay", "wait"] {
        let call = json!({"tolls": [{"limit": "stripe"}], "on_exceeded": mode});
        assert_eq!(server.consume(&call).await.success()["receipt"], Value::Null, "{mode}");
    }
    let (_, receipt) = holding(Value::Null).await;
    assert!(!receipt.is_empty());
}

#[tokio::test]
async fn a_slot_is_free_once_its_receipt_is_settled() {
    let (server, receipt) = holding(Value::Null).await;
    assert_eq!(available(&server, "slots").await, 1);
    act(&server, &receipt, "settle", json!({})).await.success();
    assert_eq!(available(&server, "slots").await, 2);
}

#[tokio::test]
async fn a_slot_is_free_once_its_receipt_expires() {
    let (server, receipt) = holding(Value::Null).await;
    server.clock.advance(Span::from_secs(60));
    assert_eq!(available(&server, "slots").await, 2);
    act(&server, &receipt, "renew", json!({})).await.problem(409, "receipt_spent");
}

#[tokio::test]
async fn a_renewed_receipt_holds_its_slot_longer() {
    let (server, receipt) = holding(json!("30s")).await;
    server.clock.advance(Span::from_secs(20));
    let renewed = act(&server, &receipt, "renew", json!({"for": "60s"})).await.success();
    server.clock.advance(Span::from_secs(59));
    assert_eq!(available(&server, "slots").await, 1);
    let renewed = renewed["receipt"].as_str().unwrap();
    act(&server, renewed, "settle", json!({})).await.success();
    assert_eq!(available(&server, "slots").await, 2);
}

#[tokio::test]
async fn only_slots_can_be_renewed() {
    let (server, receipt) = estimated().await;
    act(&server, &receipt, "renew", json!({})).await.problem(422, "nothing_held");
    let (server, receipt) = holding(Value::Null).await;
    let answer = act(&server, &receipt, "renew", json!({"for": "1h1s"})).await;
    answer.problem(400, "invalid_body");
    assert_eq!(answer.field("field"), "for");
}

#[tokio::test]
async fn a_delayed_call_can_settle_after_it_started() {
    let server = Started::per_second("stripe", 1).await;
    let toll = json!({"limit": "stripe"});
    server.consume(&json!({"tolls": [toll]})).await.success();
    let call = json!({"tolls": [toll], "on_exceeded": "delay", "receipt": "1s"});
    let granted = server.consume(&call).await.success();
    assert_eq!(granted["delay_ms"], 1000);
    server.clock.advance(Span::from_millis(1500));
    let receipt = granted["receipt"].as_str().unwrap();
    act(&server, receipt, "settle", json!({})).await.success();
}

#[tokio::test]
async fn a_forged_receipt_is_unknown() {
    let (server, receipt) = estimated().await;
    let (_, foreign) = estimated().await;
    let mut changed = receipt.clone().into_bytes();
    changed[12] = if changed[12] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    for forged in [foreign.as_str(), &changed, &receipt[1..], &format!("{receipt}A"), "x", "%00"] {
        for action in ["settle", "cancel", "renew"] {
            act(&server, forged, action, json!({})).await.problem(404, "receipt_unknown");
        }
    }
    act(&server, &receipt, "settle", json!({})).await.success();
}
