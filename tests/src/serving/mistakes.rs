//! The mistakes people make: each a 4xx that says what to change, and nothing is lost.

use super::{Served, one_toll};
use serde_json::json;

#[tokio::test]
async fn a_wrong_body_is_answered_with_the_place_and_the_cure() {
    let served = Served::limited(json!({ "rule": "token_bucket", "limit": 5, "per": "1m" })).await;
    let mut client = served.connect().await;
    for (body, status, code, tells) in [
        ("{", 400, "malformed_json", "line 1"),
        ("", 400, "invalid_body", "send a JSON object"),
        ("[]", 400, "invalid_body", ""),
        (r#"{"tolls":[]}"#, 422, "no_toll", "at least one toll"),
        (r#"{"toll":[]}"#, 400, "invalid_body", "unknown field `toll`"),
        (r#"{"tolls":[{"limit":7}]}"#, 400, "invalid_body", "tolls[0].limit"),
        (r#"{"tolls":[{"limit":"api","weight":-1}]}"#, 400, "invalid_body", "weight"),
        (r#"{"tolls":[{"limit":"api","weight":1.5}]}"#, 400, "invalid_body", "weight"),
        (r#"{"tolls":[{"limit":"api","weight":0}]}"#, 422, "weight_zero", "at least 1"),
        (
            r#"{"tolls":[{"limit":"api","weight":6}]}"#,
            422,
            "weight_over_capacity",
            "split the call",
        ),
        (r#"{"tolls":[{"limit":"none"}]}"#, 404, "unknown_limit", "define it first"),
        (r#"{"tolls":[{"limit":"api","partition":""}]}"#, 422, "name_empty", "512"),
        (r#"{"tolls":[{"limit":"api"}],"max_wait":"1s"}"#, 400, "invalid_body", "on_exceeded"),
        (r#"{"tolls":[{"limit":"api"}],"on_exceeded":"pray"}"#, 400, "invalid_body", "pray"),
        (r#"{"tolls":[{"limit":"api"}],"priority":10}"#, 400, "invalid_body", "0 to 9"),
    ] {
        let answer = client.ask("POST", "/v1/consume", body).await;
        assert_eq!((answer.status, answer.code()), (status, code), "{body}");
        assert!(answer.detail().contains(tells), "{body}: {}", answer.detail());
    }
    assert_eq!(served.consume(one_toll()).await.json["remaining"], 4, "mistakes cost nothing");
}

#[tokio::test]
async fn a_wrong_limit_is_refused_with_the_cure() {
    let served = Served::new().await;
    for (body, code, tells) in [
        (json!({ "rule": "token_bucket", "limit": 0, "per": "1m" }), "limit_zero", "at least 1"),
        (json!({ "rule": "token_bucket", "limit": 1, "per": "0s" }), "limit_period", "366d"),
        (json!({ "rule": "token_bucket", "limit": 1, "per": "2 m" }), "invalid_body", "1h30m"),
        (json!({ "rule": "leaky", "limit": 1 }), "invalid_body", "token_bucket"),
        (json!({ "rules": [] }), "limit_no_rule", "at least one rule"),
        (
            json!({ "rule": "fixed_window", "limit": 1, "per": "1d", "align": "Mars/Base" }),
            "limit_unknown_zone",
            "Europe/Berlin",
        ),
    ] {
        let answer = served.ask("PUT", "/v1/limits/api", &body).await;
        assert_eq!(answer.code(), code, "{body}");
        assert!(answer.detail().contains(tells), "{body}: {}", answer.detail());
    }
    assert_eq!(served.get("/v1/limits/api").await.status, 404);
}

#[tokio::test]
async fn unknown_places_wrong_methods_and_huge_bodies_are_told_apart() {
    let served = Served::new().await;
    assert_eq!(served.get("/v2/nothing").await.code(), "unknown_route");
    let wrong = served.get("/v1/consume").await;
    assert_eq!((wrong.status, wrong.code()), (405, "method_not_allowed"));
    assert!(wrong.headers["allow"].contains("POST"), "{wrong:?}");
    let huge = format!(r#"{{"tolls":[{{"limit":"{}"}}]}}"#, "x".repeat(2 << 20));
    let mut client = served.connect().await;
    let head = format!(
        "POST /v1/consume HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        huge.len()
    );
    assert_eq!(client.send(&head).await.status, 413);
    let plain = "POST /v1/consume HTTP/1.1\r\nhost: t\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}";
    assert_eq!(served.connect().await.send(plain).await.code(), "unsupported_media_type");
}

#[tokio::test]
async fn names_of_any_kind_pass_through_the_path() {
    let served = Served::new().await;
    for name in ["a%2Fb", "na%C3%AFve%20%E2%98%83", "a:b@c", "%22quoted%22"] {
        let path = format!("/v1/limits/{name}");
        let body = json!({ "rule": "concurrency", "limit": 1 });
        assert_eq!(served.ask("PUT", &path, &body).await.status, 200, "{name}");
        assert_eq!(served.get(&path).await.status, 200, "{name}");
        assert_eq!(served.get(&format!("/v1/meters/{name}/p%2Fq")).await.status, 200, "{name}");
    }
}
