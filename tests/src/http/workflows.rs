//! Workflows over HTTP: defining them, looking at them, and beginning runs.

use super::client::request;
use super::started::{JSON, Started};
use serde_json::{Value, json};

/// A task that reads its provider's limit from its input, after one that fetches.
fn summarise() -> Value {
    let rate = json!({"key": "provider", "limit": 100, "per": "1m"});
    json!({"tasks": [
        {"name": "fetch", "type": "http.get"},
        {"name": "ask", "type": "llm.chat", "after": ["fetch"], "keyed_rate_limit": rate},
    ]})
}

#[tokio::test]
async fn each_change_of_a_workflow_is_a_version() {
    let server = Started::kept().await;
    let first = server.put("/v1/workflows/summarise", &summarise()).await.success();
    assert_eq!((&first["version"], &first["new"]), (&json!(1), &json!(true)));
    assert_eq!(first["definition"]["tasks"][1]["keyed_rate_limit"]["per"], "1m");
    let again = server.put("/v1/workflows/summarise", &summarise()).await.success();
    assert_eq!((&again["version"], &again["new"]), (&json!(1), &json!(false)));
    let mut changed = first["definition"].clone();
    changed["runs_max"] = json!(3);
    let second = server.put("/v1/workflows/summarise", &changed).await.success();
    assert_eq!((&second["version"], &second["new"]), (&json!(2), &json!(true)));
    let read = server.get("/v1/workflows/summarise").await.success();
    assert_eq!((&read["version"], &read["definition"]), (&json!(2), &changed));
    assert_eq!(read.get("new"), None);
}

#[tokio::test]
async fn the_limit_of_a_type_is_there_once_its_workflow_is() {
    let server = Started::kept().await;
    server.put("/v1/workflows/summarise", &summarise()).await.success();
    let limit = server.get("/v1/limits/task%2Fllm.chat").await.success();
    assert_eq!(limit["definition"]["limit"], 100);
    assert_eq!(limit["history"][0]["who"], "workflow summarise");
}

#[tokio::test]
async fn the_queue_of_a_type_takes_any_number_that_a_reader_of_json_can_hold() {
    let server = Started::kept().await;
    server.put("/v1/workflows/summarise", &summarise()).await.success();
    for queue in ["task%2Fhttp.get", "task%2Fllm.chat"] {
        let state = server.get(&format!("/v1/queues/{queue}")).await.success();
        assert_eq!(state["definition"]["depth_max"], (1_u64 << 53) - 1);
    }
}

#[tokio::test]
async fn a_workflow_that_cannot_be_is_refused_with_its_reason_and_its_place() {
    let server = Started::kept().await;
    let task = json!({"name": "a", "type": "t"});
    for (definition, status, code, field, reason) in [
        (json!({"tasks": []}), 422, "workflow_invalid", "tasks", "add one"),
        (
            json!({"tasks": [task, {"name": "b", "type": "t", "after": ["x"]}]}),
            422,
            "workflow_invalid",
            "tasks[1].after",
            "task b comes after x",
        ),
        (
            json!({"tasks": [{"name": "a", "type": "t", "rate_limit": {"limit": 0, "per": "1s"}}]}),
            422,
            "workflow_invalid",
            "tasks[0]",
            "a limit of at least 1",
        ),
        (
            json!({"tasks": [{"name": "a", "type": "t", "rate": 3}]}),
            400,
            "invalid_body",
            "tasks[0].rate",
            "unknown field `rate`",
        ),
        (
            json!({"tasks": [{"name": "a", "type": "t", "timeout": "soon"}]}),
            400,
            "invalid_body",
            "tasks[0].timeout",
            "soon",
        ),
        (
            json!({"tasks": [{"name": "a", "type": "t", "tolls": [{"limit": "l", "weight": 1, "weight_path": "n"}]}]}),
            400,
            "invalid_body",
            "tasks[0].tolls[0]",
            "leave out `weight`, or `weight_path`",
        ),
        (json!({"tasks": [task], "name": "other"}), 400, "invalid_body", "name", "other"),
    ] {
        let answer = server.put("/v1/workflows/w", &definition).await;
        let told = answer.problem(status, code);
        assert!(told.contains(reason), "{told}");
        assert_eq!(answer.field("field"), field, "{told}");
    }
    server.get("/v1/workflows/w").await.problem(404, "unknown_workflow");
}

#[tokio::test]
async fn a_name_that_no_workflow_can_have_is_refused() {
    let server = Started::kept().await;
    for name in ["a%2Fb", &"x".repeat(129)] {
        let answer = server.put(&format!("/v1/workflows/{name}"), &summarise()).await;
        answer.problem(422, "workflow_invalid");
        assert_eq!(answer.field("field"), "name");
    }
}

#[tokio::test]
async fn only_json_is_a_definition() {
    let server = Started::kept().await;
    let yaml = [("content-type", "application/yaml")];
    let answer = server.ask("PUT", "/v1/workflows/w", &yaml, "tasks: []").await;
    answer.problem(415, "unsupported_media_type");
    let answer = server.ask("PUT", "/v1/workflows/w", &[JSON], "tasks: []").await;
    answer.problem(400, "malformed_json");
    server.ask("PUT", "/v1/workflows/w", &[JSON], "[]").await.problem(400, "invalid_body");
    server.ask("PUT", "/v1/workflows/w", &[JSON], "").await.problem(400, "invalid_body");
}

#[tokio::test]
async fn a_workflow_that_says_otherwise_of_a_type_than_another_is_refused_with_both() {
    let server = Started::kept().await;
    server.put("/v1/workflows/summarise", &summarise()).await.success();
    let mut other = summarise();
    other["tasks"][1]["keyed_rate_limit"]["limit"] = json!(7);
    let told = server.put("/v1/workflows/w", &other).await.problem(409, "workflow_disagrees");
    assert!(told.contains("task/llm.chat") && told.contains("workflow summarise"), "{told}");
}

#[tokio::test]
async fn workflows_are_listed_by_name_in_pages() {
    let server = Started::kept().await;
    for name in ["c", "a", "b"] {
        server.put(&format!("/v1/workflows/{name}"), &summarise()).await.success();
    }
    let page = server.get("/v1/workflows?limit=2").await.success();
    let names = [&page["workflows"][0]["name"], &page["workflows"][1]["name"]];
    assert_eq!((names, &page["next"]), ([&json!("a"), &json!("b")], &json!("b")));
    let last = server.get("/v1/workflows?limit=2&after=b").await.success();
    assert_eq!((&last["workflows"][0]["name"], last.get("next")), (&json!("c"), None));
    server.get("/v1/workflows?limit=0").await.problem(400, "invalid_query");
}

#[tokio::test]
async fn a_workflow_is_drawn() {
    let server = Started::kept().await;
    server.put("/v1/workflows/summarise", &summarise()).await.success();
    let answer = server.get("/v1/workflows/summarise/picture").await;
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
    let expected = "flowchart TD\n    t0[\"fetch<br/>http.get\"]\n    t1[\"ask<br/>llm.chat\"]\n    t0 --> t1\n";
    assert_eq!(answer.text, expected);
}

#[tokio::test]
async fn a_run_begins_once_for_its_idempotency_key() {
    let server = Started::kept().await;
    let mut once = summarise();
    once["idempotency"] = json!("order.id");
    server.put("/v1/workflows/once", &once).await.success();
    let input = json!({"order": {"id": 42}});
    let first = server.post("/v1/workflows/once/runs", &input).await;
    assert_eq!((first.status, first.field("known")), (201, json!(false)));
    let again = server.post("/v1/workflows/once/runs", &input).await;
    assert_eq!((again.status, again.field("known")), (200, json!(true)));
    assert_eq!(again.field("run"), first.field("run"));
    let keyless = server.post("/v1/workflows/once/runs", &json!({"order": {}})).await;
    let told = keyless.problem(422, "run_input");
    assert!(told.contains("order.id"), "{told}");
}

#[tokio::test]
async fn the_input_of_a_run_is_any_json_or_none() {
    let server = Started::kept().await;
    server.put("/v1/workflows/w", &json!({"tasks": [{"name": "a", "type": "t"}]})).await.success();
    let bodies = ["", "null", "7", "\"x\"", "[1, 2]", "{\"a\": 1.50}"];
    for body in bodies {
        let answer = server.ask("POST", "/v1/workflows/w/runs", &[JSON], body).await;
        assert_eq!(answer.status, 201, "{body}: {}", answer.text);
    }
    let claimed = server.post("/v1/queues/task%2Ft/claim", &json!({"max": 6})).await.text;
    for body in &bodies[1..] {
        assert!(claimed.contains(&format!("\"body\":{body}")), "{body} in {claimed}");
    }
    let answer = server.ask("POST", "/v1/workflows/w/runs", &[JSON], "{\"a\":").await;
    answer.problem(400, "malformed_json");
    let plain = [("content-type", "text/plain")];
    let answer = server.ask("POST", "/v1/workflows/w/runs", &plain, "1").await;
    answer.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn an_input_that_is_too_large_is_refused() {
    let server = Started::kept().await;
    server.put("/v1/workflows/w", &json!({"tasks": [{"name": "a", "type": "t"}]})).await.success();
    let length = (33 << 20).to_string();
    let headers = [JSON, ("content-length", &length)];
    let head = request("POST", "/v1/workflows/w/runs", &headers, "");
    server.send(&head).await.problem(413, "body_too_large");
}

#[tokio::test]
async fn what_is_no_workflow_is_unknown_everywhere() {
    let server = Started::kept().await;
    server.put("/v1/workflows/w", &json!({"tasks": [{"name": "a", "type": "t"}]})).await.success();
    // Its first version is kept under that name, and is no workflow of its own.
    for name in ["x", "w%2F1"] {
        server.get(&format!("/v1/workflows/{name}")).await.problem(404, "unknown_workflow");
        server.get(&format!("/v1/workflows/{name}/picture")).await.problem(404, "unknown_workflow");
        let begin = server.post(&format!("/v1/workflows/{name}/runs"), &json!(1)).await;
        let told = begin.problem(404, "unknown_workflow");
        assert!(told.contains("define it with PUT /v1/workflows/"), "{told}");
    }
}

#[tokio::test]
async fn a_limit_that_nobody_defined_is_refused_when_a_run_begins() {
    let server = Started::kept().await;
    let task = json!({"name": "a", "type": "t", "tolls": [{"limit": "nowhere"}]});
    server.put("/v1/workflows/w", &json!({"tasks": [task]})).await.success();
    let begin = server.post("/v1/workflows/w/runs", &json!(1)).await;
    assert!(begin.problem(404, "unknown_limit").contains("nowhere"));
    assert_eq!(server.get("/v1/runs").await.success()["runs"], json!([]));
}
