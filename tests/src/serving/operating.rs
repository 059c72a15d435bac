//! Limits and meters as operators see and change them.

use super::{Served, one_toll};
use serde_json::{Value, json};

fn bucket(limit: u64) -> Value {
    json!({ "rule": "token_bucket", "limit": limit, "per": "1m" })
}

#[tokio::test]
async fn a_limit_is_defined_read_listed_and_removed() {
    let served = Served::limited(bucket(5)).await;
    let read = served.get("/v1/limits/api").await.json;
    assert_eq!(read["name"], "api");
    assert_eq!(served.get("/v1/limits").await.json["limits"][0]["name"], "api");
    assert_eq!(served.ask("DELETE", "/v1/limits/api", &Value::Null).await.status, 200);
    assert_eq!(served.get("/v1/limits/api").await.code(), "unknown_limit");
    assert_eq!(served.consume(one_toll()).await.code(), "unknown_limit");
}

#[tokio::test]
async fn a_change_keeps_what_was_spent_and_says_who_made_it() {
    let served = Served::limited(bucket(5)).await;
    let pay = json!({ "tolls": [{ "limit": "api", "weight": 3 }] });
    assert_eq!(served.consume(pay).await.json["remaining"], 2);
    let body = bucket(10).to_string();
    let change = format!(
        "PUT /v1/limits/api HTTP/1.1\r\nhost: t\r\ntollgate-actor: ops@acme\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    assert_eq!(served.connect().await.send(&change).await.status, 200);
    assert_eq!(served.consume(one_toll()).await.json["remaining"], 6);
    let history = served.get("/v1/limits/api").await.json["history"].clone();
    let last = history.as_array().unwrap().last().unwrap();
    assert_eq!(last["who"], "ops@acme");
    assert!(last["before"].is_object() && last["after"].is_object(), "{last}");
}

#[tokio::test]
async fn a_pin_and_an_override_win_over_what_callers_send() {
    let served = Served::limited(bucket(5)).await;
    assert_eq!(served.ask("PUT", "/v1/limits/api/pin", &bucket(2)).await.status, 200);
    let inline = json!({ "tolls": [{ "limit": "api", "define": bucket(100) }] });
    assert_eq!(served.consume(inline).await.json["limit"], 2);
    let own = "/v1/limits/api/partitions/acme";
    assert_eq!(served.ask("PUT", own, &bucket(50)).await.status, 200);
    let acme = json!({ "tolls": [{ "limit": "api", "partition": "acme" }] });
    assert_eq!(served.consume(acme.clone()).await.json["limit"], 50);
    assert_eq!(served.ask("DELETE", own, &Value::Null).await.status, 200);
    assert_eq!(served.consume(acme).await.json["limit"], 2);
    assert_eq!(served.ask("DELETE", "/v1/limits/api/pin", &Value::Null).await.status, 200);
    assert_eq!(served.consume(one_toll()).await.json["limit"], 100);
}

#[tokio::test]
async fn a_meter_is_closed_reopened_and_reset() {
    let served = Served::limited(bucket(5)).await;
    let close = json!({ "for": "30s", "reason": "upstream said 429" });
    assert_eq!(served.ask("POST", "/v1/meters/api/close", &close).await.status, 200);
    let refused = served.consume(one_toll()).await;
    assert_eq!((refused.status, &refused.json["retry_after_ms"]), (429, &json!(30_000)));
    let meter = served.get("/v1/meters/api").await.json;
    assert_eq!(meter["global"]["closed_reason"], "upstream said 429");
    assert_eq!(served.ask("POST", "/v1/meters/api/reopen", &json!({})).await.status, 200);
    assert_eq!(served.consume(one_toll()).await.json["remaining"], 4);
    assert_eq!(served.ask("POST", "/v1/meters/api/reset", &json!({})).await.status, 200);
    assert_eq!(served.consume(one_toll()).await.json["remaining"], 4);
}

#[tokio::test]
async fn partitions_are_listed_a_page_at_a_time() {
    let served = Served::limited(bucket(5)).await;
    for name in ["c", "a", "b", "d"] {
        let request = json!({ "tolls": [{ "limit": "api", "partition": name }] });
        assert_eq!(served.consume(request).await.status, 200);
    }
    let names = |page: &Value| -> Vec<String> {
        let partitions = page["partitions"].as_array().unwrap().iter();
        partitions.map(|meter| meter["partition"].as_str().unwrap().to_owned()).collect()
    };
    let first = served.get("/v1/meters/api?limit=3").await.json;
    assert_eq!(names(&first), ["a", "b", "c"]);
    let after = first["next"].as_str().unwrap();
    let second = served.get(&format!("/v1/meters/api?limit=3&after={after}")).await.json;
    assert_eq!(names(&second), ["d"]);
    assert!(second["next"].is_null());
}
