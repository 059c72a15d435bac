//! `/v1/consume`: fail, delay and wait; several tolls; what the answers say.

use super::client::request;
use super::{Served, one_toll};
use serde_json::json;
use std::time::Duration;

fn two_a_minute() -> serde_json::Value {
    json!({ "rule": "token_bucket", "limit": 2, "per": "1m" })
}

#[tokio::test]
async fn a_grant_says_what_is_left_and_until_when() {
    let served = Served::limited(two_a_minute()).await;
    let answer = served.consume(one_toll()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.json,
        json!({ "granted": true, "delay_ms": 0, "limit": 2, "remaining": 1, "reset_after_ms": 30_000 })
    );
    assert_eq!(answer.headers["ratelimit-policy"], r#""api";q=2;w=60"#);
    assert!(answer.headers["ratelimit"].starts_with(r#""api";r=1"#), "{answer:?}");
}

#[tokio::test]
async fn a_refusal_names_the_limit_that_binds_and_when_to_ask_again() {
    let served = Served::limited(two_a_minute()).await;
    let heavy = json!({ "tolls": [{ "limit": "api", "partition": "acme", "weight": 2 }] });
    assert_eq!(served.consume(heavy.clone()).await.status, 200);
    let answer = served.consume(heavy).await;
    assert_eq!((answer.status, answer.code()), (429, "refused"));
    assert_eq!(answer.json["limit"], "api");
    assert_eq!(answer.json["partition"], "acme");
    assert_eq!(answer.json["retry_after_ms"], 60_000);
    assert_eq!(answer.json["remaining"], 0);
    assert_eq!(answer.headers["retry-after"], "60");
    assert!(answer.headers["ratelimit"].contains("r=0"), "{answer:?}");
}

#[tokio::test]
async fn several_tolls_are_paid_together_or_not_at_all() {
    let served = Served::limited(two_a_minute()).await;
    let tight = json!({ "rule": "concurrency", "limit": 1 });
    let both = json!({ "tolls": [{ "limit": "api" }, { "limit": "slots", "define": tight }] });
    assert_eq!(served.consume(both.clone()).await.status, 200);
    let refused = served.consume(both).await;
    assert_eq!((refused.status, &refused.json["limit"]), (429, &json!("slots")));
    assert_eq!(
        refused.headers["retry-after"], "60",
        "at the latest when the first receipt expires"
    );
    assert_eq!(served.get("/v1/meters/api").await.json["global"]["available"], 1);
}

#[tokio::test]
async fn a_delay_is_told_and_paid() {
    let served = Served::limited(two_a_minute()).await;
    let delayed = |max_wait| json!({ "tolls": [{ "limit": "api", "weight": 2 }], "on_exceeded": "delay", "max_wait": max_wait });
    assert_eq!(served.consume(delayed("1m")).await.json["delay_ms"], 0);
    let later = served.consume(delayed("1m")).await;
    assert_eq!((&later.json["delay_ms"], &later.json["remaining"]), (&json!(60_000), &json!(-2)));
    assert_eq!(served.consume(delayed("1m")).await.status, 429);
    assert_eq!(served.consume(delayed("2m")).await.json["delay_ms"], 120_000);
}

#[tokio::test]
async fn those_who_wait_start_first_come_first_served() {
    let served = Served::limited(two_a_minute()).await;
    let pay = json!({ "tolls": [{ "limit": "api", "weight": 2 }] });
    assert_eq!(served.consume(pay).await.status, 200);
    let wait = json!({ "tolls": [{ "limit": "api" }], "on_exceeded": "wait", "max_wait": "10m" });
    let (mut first, mut second) = (served.connect().await, served.connect().await);
    first.write(&request("POST", "/v1/consume", &wait.to_string())).await;
    served.until_waiting(1).await;
    second.write(&request("POST", "/v1/consume", &wait.to_string())).await;
    served.until_waiting(2).await;
    served.clock.advance(Duration::from_secs(30));
    assert_eq!(first.read().await.status, 200);
    served.until_waiting(1).await;
    served.clock.advance(Duration::from_secs(30));
    assert_eq!(second.read().await.status, 200);
}

#[tokio::test]
async fn who_hangs_up_gives_up_the_place() {
    let served = Served::limited(two_a_minute()).await;
    let pay = json!({ "tolls": [{ "limit": "api", "weight": 2 }] });
    assert_eq!(served.consume(pay).await.status, 200);
    let wait = json!({ "tolls": [{ "limit": "api" }], "on_exceeded": "wait" });
    let mut client = served.connect().await;
    client.write(&request("POST", "/v1/consume", &wait.to_string())).await;
    served.until_waiting(1).await;
    drop(client);
    served.until_waiting(0).await;
}

#[tokio::test]
async fn pipelined_replies_are_not_held_back() {
    let served =
        Served::limited(json!({ "rule": "token_bucket", "limit": 100, "per": "1m" })).await;
    let mut client = served.connect().await;
    let ask = request("POST", "/v1/consume", &one_toll().to_string());
    client.write(&ask.repeat(16)).await;
    for remaining in (84..100).rev() {
        assert_eq!(client.read().await.json["remaining"], remaining);
    }
}
