//! `/v1/consume`: grants, refusals and their header fields.

use super::started::Started;
use serde_json::{Value, json};

fn tolls(tolls: Value) -> Value {
    json!({"tolls": tolls})
}

#[tokio::test]
async fn a_grant_tells_what_is_left() {
    let server = Started::per_second("stripe", 10).await;
    let granted = server.consume(&tolls(json!([{"limit": "stripe", "weight": 3}]))).await;
    let expected = json!({
        "granted": true, "delay_ms": 0, "limit": 10, "remaining": 7, "reset_after_ms": 300,
    });
    assert_eq!(granted.success(), expected);
    assert_eq!(granted.header("ratelimit-policy"), Some(r#""stripe";q=10;w=1"#));
    assert_eq!(granted.header("ratelimit"), Some(r#""stripe";r=7;t=1"#));
}

#[tokio::test]
async fn a_refusal_tells_which_limit_why_and_until_when() {
    let server = Started::new().await;
    let rule = json!({"rule": "token_bucket", "limit": 2, "per": "1m"});
    let call =
        tolls(json!([{"limit": "stripe", "partition": "acme", "weight": 2, "define": rule}]));
    server.consume(&call).await.success();
    let refused = server.consume(&call).await;
    let detail = refused.problem(429, "refused");
    assert!(detail.contains("stripe") && detail.contains("acme"), "{detail}");
    let json = refused.json();
    assert_eq!((&json["limit"], &json["partition"]), (&json!("stripe"), &json!("acme")));
    assert_eq!((&json["cause"], &json["retry_after_ms"]), (&json!("spent"), &json!(60_000)));
    assert_eq!((&json["remaining"], &json["reset_after_ms"]), (&json!(0), &json!(60_000)));
    assert_eq!(refused.header("retry-after"), Some("60"));
    let policy = r#""stripe";q=2;w=60;pk=:YWNtZQ==:"#;
    assert_eq!(refused.header("ratelimit-policy"), Some(policy));
    assert_eq!(refused.header("ratelimit"), Some(r#""stripe";r=0;t=60;pk=:YWNtZQ==:"#));
}

#[tokio::test]
async fn a_wait_is_told_in_whole_seconds_rounded_up() {
    let server = Started::per_second("stripe", 1).await;
    let call = tolls(json!([{"limit": "stripe"}]));
    server.consume(&call).await.success();
    server.clock.advance(tollgate::Span::from_millis(999));
    let refused = server.consume(&call).await;
    assert_eq!(refused.field("retry_after_ms"), 1);
    assert_eq!(refused.header("retry-after"), Some("1"));
    server.clock.advance(tollgate::Span::from_millis(1));
    server.consume(&call).await.success();
}

#[tokio::test]
async fn several_tolls_are_paid_all_or_none() {
    let server = Started::per_second("wide", 10).await;
    let narrow = json!({"rule": "token_bucket", "limit": 1, "per": "1s"});
    server.put("/v1/limits/narrow", &narrow).await.success();
    let call = tolls(json!([{"limit": "wide"}, {"limit": "narrow", "partition": "a"}]));
    let granted = server.consume(&call).await;
    assert_eq!(granted.success()["remaining"], 0);
    assert_eq!(granted.header("ratelimit"), Some(r#""narrow";r=0;t=1;pk=:YQ==:"#));
    let refused = server.consume(&call).await;
    refused.problem(429, "refused");
    assert_eq!(refused.field("limit"), "narrow");
    assert_eq!(server.get("/v1/meters/wide").await.field("global")["available"], 9);
}

#[tokio::test]
async fn a_limit_may_come_with_the_call() {
    let server = Started::new().await;
    let rule = json!({"rules": [
        {"rule": "token_bucket", "limit": 5, "per": "1s"},
        {"rule": "concurrency", "limit": 2},
    ]});
    let call = tolls(json!([{"limit": "api", "define": rule}]));
    let granted = server.consume(&call).await;
    assert_eq!((granted.field("limit"), granted.field("remaining")), (json!(2), json!(1)));
    assert_eq!(server.get("/v1/limits/api").await.field("history")[0]["who"], "inline");
}

#[tokio::test]
async fn a_delay_is_paid_ahead() {
    let server = Started::per_second("stripe", 1).await;
    let mut call =
        json!({"tolls": [{"limit": "stripe"}], "on_exceeded": "delay", "max_wait": "2s"});
    for delay_ms in [0, 1000, 2000] {
        assert_eq!(server.consume(&call).await.success()["delay_ms"], delay_ms);
    }
    let refused = server.consume(&call).await;
    refused.problem(429, "refused");
    assert_eq!(
        (refused.field("retry_after_ms"), refused.field("remaining")),
        (json!(3000), json!(-2))
    );
    assert_eq!(refused.header("ratelimit"), Some(r#""stripe";r=0;t=3"#));
    call["max_wait"] = json!(3);
    assert_eq!(server.consume(&call).await.success()["delay_ms"], 3000);
}

#[tokio::test]
async fn slots_cannot_be_promised_for_later() {
    let server = Started::new().await;
    let slots = json!({"rule": "concurrency", "limit": 2});
    let call = json!({"tolls": [{"limit": "api", "define": slots}], "on_exceeded": "delay"});
    let told = server.consume(&call).await.problem(422, "delay_with_slots");
    assert!(told.contains("use wait instead of delay"), "{told}");
}

#[tokio::test]
async fn what_can_never_pass_is_refused_with_the_cure() {
    let server = Started::per_second("stripe", 10).await;
    let nine: Vec<_> = (0..9).map(|_| json!({"limit": "stripe"})).collect();
    for (call, status, code, cure) in [
        (json!([{"limit": "nope"}]), 404, "unknown_limit", "define it first"),
        (json!([{"limit": "stripe", "weight": 11}]), 422, "weight_over_capacity", "split the call"),
        (json!([{"limit": "stripe", "weight": 0}]), 422, "weight_zero", "at least 1"),
        (json!([]), 422, "no_toll", "at least one toll"),
        (json!(nine), 422, "too_many_tolls", "up to 8"),
        (json!([{"limit": "stripe", "partition": ""}]), 422, "name_empty", "1 to 512 bytes"),
    ] {
        let told = server.consume(&tolls(call)).await.problem(status, code);
        assert!(told.contains(cure), "{told}");
    }
}

#[tokio::test]
async fn waits_have_bounds() {
    let server = Started::per_second("stripe", 10).await;
    for (mode, max_wait, receipt, field) in [
        ("fail", json!("1s"), Value::Null, "max_wait"),
        ("wait", json!("10m1s"), Value::Null, "max_wait"),
        ("delay", json!("1d1s"), Value::Null, "max_wait"),
        ("fail", Value::Null, json!("1h1s"), "receipt"),
        ("fail", Value::Null, json!("0s"), "receipt"),
    ] {
        let call = json!({
            "tolls": [{"limit": "stripe"}],
            "on_exceeded": mode, "max_wait": max_wait, "receipt": receipt,
        });
        let answer = server.consume(&call).await;
        answer.problem(400, "invalid_body");
        assert_eq!(answer.field("field"), field);
    }
    assert_eq!(server.get("/v1/meters/stripe").await.field("global")["available"], 10);
}

#[tokio::test]
async fn a_name_cannot_break_out_of_the_header() {
    let server = Started::new().await;
    let rule = json!({"rule": "token_bucket", "limit": 1, "per": "1s"});
    let name = "\"\r\nset-cookie: ☃=1;\\";
    let granted = server.consume(&tolls(json!([{"limit": name, "define": rule}]))).await;
    granted.success();
    assert_eq!(granted.header("set-cookie"), None);
    let told = r#""\"%0D%0Aset-cookie: %E2%98%83=1;\\";r=0;t=1"#;
    assert_eq!(granted.header("ratelimit"), Some(told));
}
