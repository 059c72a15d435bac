//! `/v1/forecast`: what becomes of what waits, on paper.

use super::holders::{admin_of, holder};
use super::started::Started;
use serde_json::{Value, json};
use tollgate_server::Role;

fn is_in_memory() -> bool {
    std::env::var_os("TOLLGATE_TESTS_IN_MEMORY").is_some()
}

fn limit(limit: u64) -> Value {
    json!({"rule": "token_bucket", "limit": limit, "per": "1s", "burst": 10})
}

/// A queue with so many calls of two lanes, which pay at a limit of 10 a second.
async fn waiting(server: &Started, calls: usize) {
    server.put("/v1/limits/stripe", &limit(10)).await.success();
    let queue = json!({"order": {"parallel": 1000}});
    server.put("/v1/queues/q", &queue).await.success();
    let calls: Vec<_> = (0..calls)
        .map(|nth| json!({"lane": if nth == 0 { "small" } else { "big" }, "tolls": [{"limit": "stripe"}]}))
        .collect();
    server.post("/v1/queues/q/calls", &json!(calls)).await.success();
}

#[tokio::test]
async fn a_limit_that_is_twice_as_high_would_take_half_as_long() {
    if is_in_memory() {
        return;
    }
    let server = Started::new().await;
    waiting(&server, 110).await;
    let asked = json!({"limits": {"stripe": limit(20)}});
    let told = server.post("/v1/forecast", &asked).await.success();
    let (now, then) = (&told["now"], &told["then"]);
    assert_eq!((&now["waiting"], &now["started"]), (&json!(110), &json!(110)), "{told}");
    assert_eq!((&now["last_ms"], &then["last_ms"]), (&json!(10_000), &json!(5_000)), "{told}");
    assert_eq!(now["lanes_count"], 2);
    assert_eq!(now["lanes"][0]["lane"], "big", "it waits longest");
    let starts: u64 = now["starts"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!(starts, 110);
    let meter = server.get("/v1/meters/stripe").await.success();
    assert_eq!(meter["global"]["available"], 10, "on paper alone");
    assert_eq!(meter["global"]["limit"], 10);
}

#[tokio::test]
async fn hands_time_and_how_far_is_looked_are_said() {
    if is_in_memory() {
        return;
    }
    let server = Started::new().await;
    waiting(&server, 8).await;
    let asked = json!({"takes": "2s", "hands": 2});
    let told = server.post("/v1/forecast", &asked).await.success();
    assert_eq!((&told["now"]["last_ms"], &told["then"]), (&json!(6_000), &Value::Null));
    let asked = json!({"takes": "2s", "hands": 2, "within": "3s"});
    let told = server.post("/v1/forecast", &asked).await.success();
    assert_eq!(told["now"]["started"], 4, "{told}");
}

#[tokio::test]
async fn what_cannot_be_is_said() {
    if is_in_memory() {
        return;
    }
    let server = Started::new().await;
    for (asked, status, code) in [
        (json!({"hands": 0}), 400, "invalid_body"),
        (json!({"takes": "2d"}), 400, "invalid_body"),
        (json!({"within": "367d"}), 400, "invalid_body"),
        (json!({"limit": {}}), 400, "invalid_body"),
        (json!({"limits": {"": limit(1)}}), 422, "name_empty"),
        (json!({"limits": {"l": limit(0)}}), 422, "limit_zero"),
    ] {
        server.post("/v1/forecast", &asked).await.problem(status, code);
    }
}

#[tokio::test]
async fn a_forecast_is_for_those_who_may_see_everything() {
    if is_in_memory() {
        return;
    }
    let reader = holder("reader", &[Role::Read], None);
    let server = Started::with_tokens(vec![admin_of("acme"), reader]).await;
    let asked = ("POST", "/v1/forecast");
    server.ask_as("acme", asked, &json!({})).await.problem(403, "namespace_bound");
    let told = server.ask_as("reader", asked, &json!({})).await.success();
    assert_eq!(told["now"]["waiting"], 0);
}
