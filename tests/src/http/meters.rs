//! `/v1/meters`.

use super::started::Started;
use serde_json::{Value, json};

#[tokio::test]
async fn a_meter_tells_how_it_stands() {
    let server = Started::per_second("stripe", 10).await;
    let call = json!({"tolls": [{"limit": "stripe", "partition": "acme", "weight": 10}]});
    server.consume(&call).await.success();
    let expected = json!({
        "name": "stripe",
        "partition": "acme",
        "definition": {"rule": "token_bucket", "limit": 10, "per": "1s", "burst": 10},
        "limit": 10,
        "available": 0,
        "in_flight": 0,
        "waiting": 0,
        "next_admission_ms": 100,
        "reset_after_ms": 1000,
    });
    assert_eq!(server.get("/v1/meters/stripe/acme").await.uncounted(), expected);
}

#[tokio::test]
async fn what_is_admitted_and_refused_is_counted() {
    let server = Started::with_queue(10).await;
    let call = json!({"tolls": [{"limit": "l", "partition": "p", "weight": 6}]});
    server.consume(&call).await.success();
    server.consume(&call).await.problem(429, "refused");
    let meter = server.get("/v1/meters/l/p").await.success();
    assert_eq!(meter["admitted"], json!({"count": 1, "weight": 6}));
    let totals = server.get("/v1/limits/l").await.field("totals");
    assert_eq!(totals["admitted"], json!({"count": 1, "weight": 6}));
    assert_eq!(totals["refused"], json!({"count": 1, "weight": 6}));
}

#[tokio::test]
async fn a_meter_never_used_stands_full() {
    let server = Started::per_second("stripe", 10).await;
    let meter = server.get("/v1/meters/stripe/nobody").await.success();
    assert_eq!((&meter["available"], &meter["reset_after_ms"]), (&json!(10), &json!(0)));
    server.get("/v1/meters/unknown/nobody").await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn slots_in_use_are_told() {
    let server = Started::new().await;
    let slots = json!({"rule": "concurrency", "limit": 2});
    let call = json!({"tolls": [{"limit": "browsers", "define": slots}]});
    server.consume(&call).await.success();
    assert_eq!(server.get("/v1/meters/browsers").await.field("global")["in_flight"], 1);
}

#[tokio::test]
async fn partitions_are_read_page_by_page() {
    let server = Started::per_second("stripe", 10).await;
    for partition in ["b", "c", "a"] {
        let call = json!({"tolls": [{"limit": "stripe", "partition": partition}]});
        server.consume(&call).await.success();
    }
    let names = |page: &Value| -> Vec<String> {
        let meters = page["partitions"].as_array().unwrap();
        meters.iter().map(|meter| meter["partition"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/v1/meters/stripe?limit=2").await.success();
    assert_eq!((names(&first), &first["next"]), (vec!["a".into(), "b".into()], &json!("b")));
    assert_eq!(first["global"]["available"], 10);
    assert_eq!(first["partitions"][0]["available"], 9);
    let second = server.get("/v1/meters/stripe?limit=2&after=b").await.success();
    assert_eq!((names(&second), &second["next"]), (vec!["c".into()], &Value::Null));
}

#[tokio::test]
async fn meters_in_the_way_are_listed_first_if_asked_for() {
    let server = Started::per_second("stripe", 10).await;
    for partition in ["a", "b", "c"] {
        let call = json!({"tolls": [{"limit": "stripe", "partition": partition}]});
        server.consume(&call).await.success();
    }
    server.post("/v1/meters/stripe/b/close", &json!({"for": "30s"})).await.success();
    server.post("/v1/meters/stripe/close", &json!({"for": "30s"})).await.success();
    let page = server.get("/v1/meters/stripe?order=pressure&limit=2").await.success();
    let partitions = page["partitions"].as_array().unwrap().iter();
    let partitions: Vec<_> = partitions.map(|meter| &meter["partition"]).collect();
    assert_eq!(partitions, [&json!("b"), &json!("a")]);
    assert_eq!((&page["global"]["closed_for_ms"], page.get("next")), (&json!(30_000), None));
    assert_eq!(page["partitions"][1], server.get("/v1/meters/stripe/a").await.success());
    let refused = server.get("/v1/meters/stripe?order=pressure&after=a").await;
    assert!(refused.problem(400, "invalid_query").contains("leave out `after`"));
    server.get("/v1/meters/x?order=pressure").await.problem(404, "unknown_limit");
}

/// Heads of lanes that stand at a meter are counted there, and the fullest comes first.
#[tokio::test]
async fn the_meter_where_most_wait_comes_first() {
    let server = Started::with_queue(1).await;
    let call = |lane: &str, partition: &str| json!({"lane": lane, "tolls": [{"limit": "l", "partition": partition}]});
    let calls = [("1", "few"), ("2", "few"), ("3", "many"), ("4", "many"), ("5", "many")];
    server.enqueue(&json!(calls.map(|(lane, partition)| call(lane, partition)))).await;
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 2);
    let page = server.get("/v1/meters/l?order=pressure").await.success();
    let partitions = page["partitions"].as_array().unwrap().iter();
    let found: Vec<_> =
        partitions.map(|meter| (meter["partition"].as_str(), meter["waiting"].as_u64())).collect();
    assert_eq!(found, [(Some("many"), Some(2)), (Some("few"), Some(1))]);
}

#[tokio::test]
async fn a_closed_meter_refuses_until_it_opens() {
    let server = Started::per_second("stripe", 10).await;
    let closure = json!({"for": "30s", "reason": "429 from upstream"});
    let meter = server.post("/v1/meters/stripe/acme/close", &closure).await.success();
    assert_eq!(meter["closed_for_ms"], 30_000);
    assert_eq!(meter["closed_reason"], "429 from upstream");

    let call = json!({"tolls": [{"limit": "stripe", "partition": "acme"}]});
    let refused = server.consume(&call).await;
    refused.problem(429, "refused");
    assert_eq!(
        (refused.field("cause"), refused.header("retry-after")),
        ("closed".into(), Some("30"))
    );
    let other = json!({"tolls": [{"limit": "stripe", "partition": "other"}]});
    server.consume(&other).await.success();

    server.clock.advance(tollgate::Span::from_secs(30));
    server.consume(&call).await.success();
}

#[tokio::test]
async fn a_closure_can_end_before_its_time() {
    let server = Started::per_second("stripe", 10).await;
    let call = json!({"tolls": [{"limit": "stripe"}]});
    let closed = server.post("/v1/meters/stripe/close", &json!({"for": 60})).await.success();
    assert_eq!(closed["closed_reason"], "closed by http");
    server.consume(&call).await.problem(429, "refused");
    let open = server.post("/v1/meters/stripe/reopen", &json!({})).await.success();
    assert_eq!(open["closed_for_ms"], Value::Null);
    server.consume(&call).await.success();
}

#[tokio::test]
async fn a_reset_meter_is_as_new() {
    let server = Started::per_second("stripe", 10).await;
    for (partition, path) in [(None, "stripe"), (Some("acme"), "stripe/acme")] {
        let call = json!({"tolls": [{"limit": "stripe", "partition": partition, "weight": 10}]});
        server.consume(&call).await.success();
        server.consume(&call).await.problem(429, "refused");
        let reset = server.ask("POST", &format!("/v1/meters/{path}/reset"), &[], "").await;
        assert_eq!(reset.success()["available"], 10);
        server.consume(&call).await.success();
    }
}

#[tokio::test]
async fn a_partition_may_be_called_like_an_action() {
    let server = Started::per_second("stripe", 10).await;
    for action in ["close", "reopen", "reset"] {
        let read = server.get(&format!("/v1/meters/stripe/{action}")).await.success();
        assert_eq!(read["partition"], action);
        let path = format!("/v1/meters/stripe/{action}/close");
        let closed = server.post(&path, &json!({"for": "1m"})).await.success();
        assert_eq!(
            (&closed["partition"], &closed["closed_for_ms"]),
            (&json!(action), &json!(60_000))
        );
    }
    assert_eq!(server.get("/v1/meters/stripe").await.field("global")["closed_for_ms"], Value::Null);
}

#[tokio::test]
async fn a_closure_has_bounds() {
    let server = Started::per_second("stripe", 10).await;
    let long = "x".repeat(257);
    for (closure, field) in [
        (json!({"for": "0s"}), "for"),
        (json!({"for": "1d1s"}), "for"),
        (json!({"for": "1s", "reason": long}), "reason"),
    ] {
        let answer = server.post("/v1/meters/stripe/close", &closure).await;
        answer.problem(400, "invalid_body");
        assert_eq!(answer.field("field"), field);
    }
    let told = server.post("/v1/meters/stripe/close", &json!({})).await;
    assert!(told.problem(400, "invalid_body").contains("missing field `for`"));
    server.post("/v1/meters/unknown/close", &json!({"for": 1})).await.problem(404, "unknown_limit");
}
