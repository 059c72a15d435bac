//! `/v1/queues` and their lanes: defined, read, listed, held back and weighed.

use super::started::{Kept, Started};
use serde_json::json;

#[tokio::test]
async fn a_queue_has_every_setting_and_keeps_what_it_was_told() {
    let server = Started::kept().await;
    let queue = server.put("/v1/queues/q", &json!({"order": {"parallel": 3}})).await.success();
    assert_eq!(queue["name"], "q");
    assert_eq!(queue["definition"]["order"], json!({"parallel": 3}));
    assert_eq!(queue["definition"]["lease"], "30s");
    assert_eq!(queue["definition"]["backoff"], json!({"first": "1s", "most": "5m", "jitter": 0}));
    // What is shown can be sent again as it is.
    let again = server.put("/v1/queues/q", &queue["definition"]).await.success();
    assert_eq!(again, queue);
    assert_eq!(server.get("/v1/queues/q").await.success(), queue);
}

#[tokio::test]
async fn a_queue_that_could_start_nothing_is_refused() {
    let server = Started::kept().await;
    for (queue, code) in [
        (json!({"order": {"parallel": 0}}), "queue_parallel"),
        (json!({"lease": "2d"}), "queue_lease"),
        (json!({"failures_max": 0}), "queue_no_attempts"),
        (json!({"depth_max": 0}), "queue_no_depth"),
    ] {
        server.put("/v1/queues/q", &queue).await.problem(422, code);
    }
    for queue in [json!({"order": "loose"}), json!({"color": 1}), json!([]), json!({"lease": -1})] {
        server.put("/v1/queues/q", &queue).await.problem(400, "invalid_body");
    }
    server.get("/v1/queues/q").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn a_bound_that_json_does_not_carry_exactly_is_refused() {
    let server = Started::kept().await;
    for field in ["depth_max", "dead_max"] {
        let most = (1_u64 << 53) - 1;
        server.put("/v1/queues/q", &json!({field: most})).await.success();
        let answer = server.put("/v1/queues/q", &json!({field: most + 1})).await;
        assert!(answer.problem(400, "invalid_body").contains("9007199254740991"));
        assert_eq!(answer.field("field"), field);
    }
}

#[tokio::test]
async fn queues_are_listed_page_by_page() {
    let server = Started::kept().await;
    for name in ["b", "a", "c"] {
        server.put(&format!("/v1/queues/{name}"), &json!({})).await.success();
    }
    let page = server.get("/v1/queues?limit=2").await.success();
    let names = |page: &serde_json::Value| -> Vec<String> {
        let queues = page["queues"].as_array().unwrap().iter();
        queues.map(|queue| queue["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&page), &page["next"]), (vec!["a".into(), "b".into()], &json!("b")));
    let page = server.get("/v1/queues?limit=2&after=b").await.success();
    assert_eq!((names(&page), page.get("next")), (vec!["c".to_owned()], None));
}

#[tokio::test]
async fn a_queue_and_a_lane_and_a_limit_are_held_back_and_let_go() {
    let server = Started::with_queue(10).await;
    let call = json!({"lane": "a", "tolls": [{"limit": "l"}]});
    let id = server.enqueue(&call).await.remove(0);
    for (path, reason) in [
        ("/v1/queues/q", "queue_paused"),
        ("/v1/queues/q/lanes/a", "lane_paused"),
        ("/v1/limits/l", "meter"),
    ] {
        let paused = server.post(&format!("{path}/pause"), &json!({})).await.success();
        assert_eq!(paused["paused"], true);
        assert!(server.claim(&json!({})).await.is_empty());
        server.until_reason(&id, reason).await;
        if path == "/v1/limits/l" {
            assert_eq!(server.get(path).await.field("paused"), true);
            assert_eq!(server.get("/v1/meters/l").await.field("global")["paused"], true);
        }
        let resumed = server.post(&format!("{path}/resume"), &json!({})).await.success();
        assert_eq!(resumed["paused"], false);
    }
    assert_eq!(server.claim(&json!({})).await.len(), 1);
    server.post("/v1/queues/x/pause", &json!({})).await.problem(404, "unknown_queue");
    server.post("/v1/queues/x/lanes/a/pause", &json!({})).await.problem(404, "unknown_queue");
    server.post("/v1/limits/x/pause", &json!({})).await.problem(404, "unknown_limit");
}

#[tokio::test]
async fn lanes_are_listed_and_weighed() {
    let server = Started::with_queue(10).await;
    let ids = server.enqueue(&json!([{"lane": "b"}, {"lane": "a"}, {"lane": "a"}])).await;
    server.put("/v1/queues/q/lanes/a", &json!({"weight": 3})).await.success();
    let page = server.get("/v1/queues/q/lanes?limit=1").await.success();
    assert_eq!(page["lanes"][0]["name"], "a");
    assert_eq!(page["lanes"][0]["waiting"], 2);
    assert_eq!(page["lanes"][0]["weight"], 3);
    assert_eq!(page["lanes"][0]["head"], ids[1]);
    assert_eq!(page["next"], "a");
    let rest = server.get("/v1/queues/q/lanes?after=a").await.success();
    assert_eq!(rest["lanes"][0]["name"], "b");
    server.put("/v1/queues/q/lanes/a", &json!({"weight": 101})).await.problem(400, "invalid_body");
    server.get("/v1/queues/x/lanes").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn the_longest_lanes_are_listed_first_if_asked_for() {
    let server = Started::with_queue(10).await;
    let lanes = ["a", "b", "b", "c", "c", "c", "d", "d"].map(|lane| json!({ "lane": lane }));
    let ids = server.enqueue(&json!(lanes)).await;
    let page = server.get("/v1/queues/q/lanes?order=waiting&limit=3").await.success();
    let lanes = page["lanes"].as_array().unwrap().iter();
    let lanes: Vec<_> = lanes.map(|lane| (&lane["name"], &lane["waiting"])).collect();
    let expected = [("c", 3), ("b", 2), ("d", 2)].map(|(lane, calls)| (json!(lane), json!(calls)));
    assert_eq!(lanes, expected.iter().map(|(lane, calls)| (lane, calls)).collect::<Vec<_>>());
    assert_eq!((&page["lanes"][0]["head"], page.get("next")), (&json!(ids[3]), None));
    let refused = server.get("/v1/queues/q/lanes?order=waiting&after=a").await;
    assert!(refused.problem(400, "invalid_query").contains("leave out `after`"));
    let refused = server.get("/v1/queues/q/lanes?order=size").await;
    assert!(refused.problem(400, "invalid_query").contains("`waiting`"));
    server.get("/v1/queues/x/lanes?order=waiting").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn a_server_in_memory_says_that_it_keeps_no_calls() {
    let settings = tollgate_server::Settings::new(([127, 0, 0, 1], 0).into());
    let server = Started::on(Kept::InMemory, settings).await;
    let problem = server.put("/v1/queues/q", &json!({})).await.problem(409, "limits_only");
    assert!(problem.contains("--memory") && problem.contains("--data"), "{problem}");
    server.post("/v1/queues/q/claim", &json!({})).await.problem(409, "limits_only");
    server.get("/v1/events").await.problem(409, "limits_only");
}

/// Those who wait for a pass are in a queue of Tollgate's own, which nobody else has a hand in.
#[tokio::test]
async fn queues_of_tollgates_own_are_nobody_elses() {
    let server = Started::kept().await;
    let own = "/v1/queues/tollgate:acquire";
    server.put(own, &json!({})).await.problem(422, "reserved_name");
    for (path, body) in
        [("calls", json!({"lane": "a"})), ("claim", json!({})), ("lanes/a/pause", json!({}))]
    {
        let answer = server.post(&format!("{own}/{path}"), &body).await;
        assert!([404, 422].contains(&answer.status), "{path}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_full_page_of_the_largest_size_has_a_next_one() {
    let server = Started::with_queue(10).await;
    let calls: Vec<_> = (0..1_001).map(|n| json!({"lane": format!("l{n}")})).collect();
    let ids = server.enqueue(&json!(calls)).await;
    for (path, things) in [("calls", "calls"), ("lanes", "lanes")] {
        let page = server.get(&format!("/v1/queues/q/{path}?limit=1000")).await.success();
        assert_eq!(page[things].as_array().unwrap().len(), 1_000);
        let next = page["next"].as_str().unwrap();
        let rest = server.get(&format!("/v1/queues/q/{path}?limit=1000&after={next}")).await;
        assert_eq!(rest.success()[things].as_array().unwrap().len(), 1);
    }
    assert_eq!(ids.len(), 1_001);
}

/// Promise 6: a queue declares tolls once; where and how much is read from each body, or the call is
/// refused.
#[tokio::test]
async fn a_queue_reads_what_its_calls_owe_from_their_bodies() {
    let server = Started::with_queue(10).await;
    let toll = json!({
        "limit": "l",
        "partition": {"path": "body.tenant"},
        "weight": {"path": "body.items.length", "default": 1, "max": 5},
        "when": {"path": "body.kind", "is": "card"},
    });
    let queue = server.put("/v1/queues/q", &json!({"tolls": [toll]})).await.success();
    assert_eq!(queue["definition"]["tolls"], json!([toll]));
    let body = json!({"tenant": "acme", "items": [1, 2, 3], "kind": "card"});
    let ids =
        server.enqueue(&json!([{"lane": "a", "body": body}, {"lane": "a", "body": {}}])).await;
    let tolls =
        async |id: &str| server.get(&format!("/v1/calls/{id}")).await.success()["tolls"].clone();
    let owed = json!([{"limit": "l", "partition": "acme", "weight": 3, "feedback": false}]);
    assert_eq!((tolls(&ids[0]).await, tolls(&ids[1]).await), (owed, json!([])));
    let wrong = json!({"lane": "a", "body": {"kind": "card"}});
    let problem = server.post("/v1/queues/q/calls", &wrong).await.problem(422, "no_partition");
    assert!(problem.contains("body.tenant"), "{problem}");
    let wrong = json!({"tolls": [{"limit": "l", "partition": {"path": "tenant"}}]});
    let answer = server.put("/v1/queues/q", &wrong).await;
    answer.problem(400, "invalid_body");
    assert_eq!(answer.field("field"), "tolls[0].partition");
}

#[tokio::test]
async fn a_queue_is_removed_once_it_has_no_calls() {
    let server = Started::with_queue(10).await;
    let id = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    let problem = server.delete("/v1/queues/q").await.problem(409, "queue_not_empty");
    assert!(problem.contains("1 wait"), "{problem}");
    server.delete(&format!("/v1/calls/{id}")).await.success();
    assert_eq!(server.delete("/v1/queues/q").await.success(), json!({"removed": true}));
    server.delete("/v1/queues/q").await.problem(404, "unknown_queue");
}
