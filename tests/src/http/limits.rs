//! `/v1/limits`.

use super::started::{JSON, Started};
use serde_json::{Value, json};

fn bucket(limit: u64) -> Value {
    json!({"rule": "token_bucket", "limit": limit, "per": "1m", "burst": limit})
}

#[tokio::test]
async fn a_limit_is_read_as_it_was_defined() {
    let server = Started::new().await;
    let rule =
        json!({"rule": "token_bucket", "limit": 100, "per": 60, "burst": 150, "guard": "50ms"});
    let shown =
        json!({"rule": "token_bucket", "limit": 100, "per": "1m", "burst": 150, "guard": "50ms"});
    let expected = json!({
        "name": "stripe",
        "definition": shown,
        "overrides": [],
        "overrides_count": 0,
        "history": [{"at": "1970-01-12T13:46:40Z", "who": "http", "after": shown}],
    });
    assert_eq!(server.put("/v1/limits/stripe", &rule).await.uncounted(), expected);
    assert_eq!(server.get("/v1/limits/stripe").await.uncounted(), expected);
}

#[tokio::test]
async fn every_rule_can_be_defined() {
    let server = Started::new().await;
    for rule in [
        json!({"rule": "token_bucket", "limit": 1, "per": "1s", "burst": 1}),
        json!({"rule": "fixed_window", "limit": 1, "per": "1h"}),
        json!({"rule": "fixed_window", "limit": 1, "per": "1d", "align": "Europe/Berlin"}),
        json!({"rule": "sliding_window", "limit": 1, "per": "1h30m", "guard": "10ms"}),
        json!({"rule": "concurrency", "limit": 1}),
        json!({"rules": [
            {"rule": "sliding_window", "limit": 1, "per": "1w"},
            {"rule": "concurrency", "limit": 1},
        ]}),
        json!({"rule": "sliding_window", "limit": 9, "per": "1s", "ahead": "10ms"}),
        json!({"rules": [
            {"rule": "token_bucket", "limit": 9, "per": "1s", "burst": 9},
            {"rule": "sliding_window", "limit": 99, "per": "1m"},
        ], "ahead": "10ms"}),
    ] {
        let answer = server.put("/v1/limits/any", &rule).await;
        assert_eq!(answer.success()["definition"], rule);
    }
}

#[tokio::test]
async fn a_limit_that_cannot_be_is_refused_with_the_reason() {
    let server = Started::new().await;
    let zone = json!({"rule": "fixed_window", "limit": 1, "per": "1d", "align": "Mars/Base"});
    let slots = json!({"rule": "concurrency", "limit": 1});
    for (rule, code, detail) in [
        (json!({"rule": "concurrency", "limit": 0}), "limit_zero", "limit any: limit is 0"),
        (json!({"rules": []}), "limit_no_rule", "at least one rule"),
        (json!({"rules": [slots, slots]}), "limit_two_concurrencies", "keep the smaller one"),
        (
            json!({"rule": "sliding_window", "limit": 1, "per": "1s", "burst": 2}),
            "limit_misplaced",
            "sliding_window has no burst",
        ),
        (json!({"rule": "token_bucket", "limit": 1, "per": "0s"}), "limit_period", "1ns and 366d"),
        (zone, "limit_unknown_zone", "Mars/Base"),
        (
            json!({"rule": "fixed_window", "limit": 1, "per": "1d", "align": "UTC", "ahead": "1s"}),
            "limit_ahead_on_calendar",
            "leave ahead out",
        ),
        (
            json!({"rules": [bucket(9), slots], "ahead": "1s"}),
            "limit_ahead_with_slots",
            "a limit of its own",
        ),
    ] {
        let told = server.put("/v1/limits/any", &rule).await.problem(422, code);
        assert!(told.contains(detail), "{told}");
    }
    server.get("/v1/limits/any").await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn a_server_that_has_a_limit_to_itself_keeps_what_it_lends_and_decides_as_without() {
    let server = Started::new().await;
    let mut lent = bucket(100);
    lent["ahead"] = json!("10s");
    server.put("/v1/limits/stripe", &lent).await.success();
    assert_eq!(server.get("/v1/limits/stripe").await.field("definition"), lent);
    let meter = server.get("/v1/meters/stripe/acme").await.success();
    assert_eq!((&meter["definition"], &meter["available"]), (&lent, &json!(100)));
}

#[tokio::test]
async fn the_history_tells_who_changed_what() {
    let server = Started::new().await;
    server.put("/v1/limits/stripe", &bucket(100)).await.success();
    let ana = [JSON, ("tollgate-actor", "ana@example.com")];
    let answer = server.ask("PUT", "/v1/limits/stripe", &ana, &bucket(200).to_string()).await;
    let change = &answer.success()["history"][1];
    assert_eq!(change["who"], "ana@example.com");
    assert_eq!((&change["before"], &change["after"]), (&bucket(100), &bucket(200)));
}

#[tokio::test]
async fn a_name_is_any_text() {
    let server = Started::new().await;
    for (path, name) in [
        ("a%2Fb", "a/b"),
        ("%E2%98%83", "☃"),
        ("..", ".."),
        ("a%20b%3F%23", "a b?#"),
        ("%00", "\0"),
        ("pin", "pin"),
        ("100%25", "100%"),
    ] {
        let path = format!("/v1/limits/{path}");
        assert_eq!(server.put(&path, &bucket(1)).await.success()["name"], name);
        assert_eq!(server.get(&path).await.success()["name"], name);
        let call = json!({"tolls": [{"limit": name, "partition": name}]});
        server.consume(&call).await.success();
    }
    let path = format!("/v1/limits/{}", "x".repeat(513));
    let told = server.put(&path, &bucket(1)).await.problem(422, "name_too_long");
    assert!(told.contains("513"), "{told}");
    let told = server.put("/v1/limits/%ff", &bucket(1)).await.problem(400, "invalid_path");
    assert!(told.contains("UTF-8"), "{told}");
}

#[tokio::test]
async fn a_removed_limit_is_unknown() {
    let server = Started::per_second("stripe", 1).await;
    assert_eq!(server.delete("/v1/limits/stripe").await.success(), json!({"removed": true}));
    server.get("/v1/limits/stripe").await.problem(404, "unknown_limit");
    server.delete("/v1/limits/stripe").await.problem(404, "unknown_limit");
    server.get("/v1/meters/stripe").await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn a_pinned_value_stays_in_force_whatever_is_defined() {
    let server = Started::new().await;
    server.put("/v1/limits/stripe/pin", &bucket(5)).await.problem(404, "unknown_limit");
    server.put("/v1/limits/stripe", &bucket(100)).await.success();
    let pinned = server.put("/v1/limits/stripe/pin", &bucket(5)).await.success();
    assert_eq!((&pinned["definition"], &pinned["pinned"]), (&bucket(100), &bucket(5)));

    server.put("/v1/limits/stripe", &bucket(200)).await.success();
    assert_eq!(server.get("/v1/meters/stripe/acme").await.field("available"), 5);

    let unpinned = server.delete("/v1/limits/stripe/pin").await.success();
    assert_eq!((&unpinned["definition"], &unpinned["pinned"]), (&bucket(200), &Value::Null));
    assert_eq!(server.get("/v1/meters/stripe/acme").await.field("available"), 200);
}

#[tokio::test]
async fn one_partition_can_have_a_limit_of_its_own() {
    let server = Started::new().await;
    let path = "/v1/limits/stripe/partitions/big%2Fco";
    server.put(path, &bucket(1000)).await.problem(404, "unknown_limit");
    server.put("/v1/limits/stripe", &bucket(100)).await.success();
    let state = server.put(path, &bucket(1000)).await.success();
    assert_eq!(state["overrides"], json!([{"partition": "big/co", "definition": bucket(1000)}]));
    assert_eq!(server.get("/v1/meters/stripe/big%2Fco").await.field("available"), 1000);
    assert_eq!(server.get("/v1/meters/stripe/small").await.field("available"), 100);

    assert_eq!(server.delete(path).await.success()["overrides"], json!([]));
    assert_eq!(server.get("/v1/meters/stripe/big%2Fco").await.field("available"), 100);
}

#[tokio::test]
async fn a_list_is_read_page_by_page() {
    let server = Started::new().await;
    for name in ["b", "d", "a", "c", "e"] {
        server.put(&format!("/v1/limits/{name}"), &bucket(1)).await.success();
    }
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/v1/limits?limit=2{after}")).await.success();
        let limits = page["limits"].as_array().unwrap();
        assert!(limits.len() <= 2);
        names.extend(limits.iter().map(|limit| limit["name"].as_str().unwrap().to_owned()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
    assert_eq!(server.get("/v1/limits").await.field("limits").as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn a_page_has_bounds() {
    let server = Started::new().await;
    for query in ["limit=0", "limit=1001", "limit=-1", "limit=x", "page=2", "limit=1&limit=2"] {
        let answer = server.get(&format!("/v1/limits?{query}")).await;
        answer.problem(400, "invalid_query");
    }
}
