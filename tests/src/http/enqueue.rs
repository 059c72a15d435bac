//! Handing in calls: one, many, a stream; each once, and all of an array or none.

use super::client::request;
use super::started::{JSON, Started};
use serde_json::{Value, json};

const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

/// What a worker gets is what was handed in.
#[tokio::test]
async fn a_body_of_any_kind_comes_out_as_it_went_in() {
    let server = Started::with_queue(100).await;
    let bodies = [
        json!({"lane": "a", "body": {"b": [1, 2.5, null, "ü"], "a": {}}}),
        json!({"lane": "b", "body": "text"}),
        json!({"lane": "c", "body": false}),
        json!({"lane": "d", "body_base64": "AAEC/w=="}),
        json!({"lane": "e"}),
        json!({"lane": "f", "body": null}),
        json!({"lane": "g", "body_base64": "IDEg"}),
    ];
    server.enqueue(&json!(bodies)).await;
    let mut claimed = server.claim(&json!({"max": 10})).await;
    claimed.sort_by_key(|call| call["lane"].as_str().unwrap().to_owned());
    for (call, given) in claimed.iter().zip(&bodies) {
        assert_eq!(call.get("body"), given.get("body"));
        assert_eq!(call.get("body_base64"), given.get("body_base64"));
    }
    assert_eq!(claimed.len(), bodies.len());
}

#[tokio::test]
async fn an_array_is_taken_whole_or_refused_whole() {
    let server = Started::with_queue(10).await;
    for (wrong, status, code) in [
        (json!({"lane": ""}), 422, "name_empty"),
        (json!({"lane": "a", "tolls": [{"limit": "x"}]}), 404, "unknown_limit"),
        (
            json!({"lane": "a", "tolls": [{"limit": "l", "weight": 11}]}),
            422,
            "weight_over_capacity",
        ),
        (json!({"lane": "a", "tolls": [{"limit": "l", "weight": 0}]}), 422, "weight_zero"),
        (json!({"lane": "a", "delay": "soon"}), 400, "invalid_body"),
        (
            json!({"lane": "a", "delay": 1, "not_before": "2030-01-01T00:00:00Z"}),
            400,
            "invalid_body",
        ),
        (json!({"lane": "a", "body": 1, "body_base64": "AA=="}), 400, "invalid_body"),
        (json!({"lane": "a", "body_base64": "%"}), 400, "invalid_body"),
        (json!({"lane": "a", "queue": "q"}), 400, "invalid_body"),
        (json!({"lane": "a", "priority": 10}), 400, "invalid_body"),
        (json!({"lane": "a", "dedupe_id": "tollgate/x"}), 400, "invalid_body"),
        (json!({}), 400, "invalid_body"),
        (json!([]), 400, "invalid_body"),
    ] {
        let answer = server.post("/v1/queues/q/calls", &json!([{"lane": "a"}, wrong])).await;
        answer.problem(status, code);
    }
    assert_eq!(server.get("/v1/queues/q").await.success()["waiting"], 0);
    server.post("/v1/queues/x/calls", &json!({"lane": "a"})).await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn what_is_wrong_is_named_with_its_place() {
    let server = Started::with_queue(10).await;
    let calls = json!([{"lane": "a"}, {"lane": "a", "expires_after": 1, "expires_at": "2030-01-01T00:00:00Z"}]);
    let answer = server.post("/v1/queues/q/calls", &calls).await;
    answer.problem(400, "invalid_body");
    assert_eq!(answer.field("field"), "[1].expires_at");
}

#[tokio::test]
async fn a_full_queue_pushes_back_and_takes_nothing() {
    let server = Started::kept().await;
    server.put("/v1/queues/q", &json!({"depth_max": 2})).await.success();
    server.enqueue(&json!({"lane": "a"})).await;
    let answer = server.post("/v1/queues/q/calls", &json!([{"lane": "a"}, {"lane": "a"}])).await;
    answer.problem(429, "queue_full");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(server.get("/v1/queues/q").await.success()["waiting"], 1);
}

#[tokio::test]
async fn a_request_with_a_key_is_taken_once() {
    let server = Started::with_queue(10).await;
    let calls = json!([{"lane": "a"}, {"lane": "a"}]).to_string();
    let send = async |key: &str| {
        let headers = [JSON, ("idempotency-key", key)];
        server.ask("POST", "/v1/queues/q/calls", &headers, &calls).await.success()["ids"].clone()
    };
    let first = send("k1").await;
    assert_eq!(send("k1").await, first);
    assert_ne!(send("k2").await, first);
    assert_eq!(server.get("/v1/queues/q").await.success()["waiting"], 4);
    let headers = [JSON, ("idempotency-key", "ü")];
    let answer = server.ask("POST", "/v1/queues/q/calls", &headers, &calls).await;
    answer.problem(400, "invalid_header");
}

#[tokio::test]
async fn duplicates_by_id_and_by_content_are_the_first_call() {
    let server = Started::with_queue(10).await;
    let by_id = json!({"lane": "a", "dedupe_id": "x", "body": 1});
    let by_content = json!({"lane": "a", "dedupe_content": true, "body": {"n": 1}});
    let ids = server.enqueue(&json!([by_id, by_content, by_id, by_content])).await;
    assert_eq!(ids[..2], ids[2..]);
    let other = json!({"lane": "b", "dedupe_content": true, "body": {"n": 1}});
    assert_ne!(server.enqueue(&other).await[0], ids[1]);
}

#[tokio::test]
async fn a_stream_is_taken_line_by_line() {
    let server = Started::with_queue(10).await;
    let lines: String =
        (0..2_500).map(|n| format!("{{\"lane\":\"a\",\"body\":{n}}}\r\n\n")).collect();
    let answer = server.ask("POST", "/v1/queues/q/calls", &[LINES], &lines).await.success();
    assert_eq!(answer["accepted"], 2_500);
    assert_eq!(server.get("/v1/queues/q").await.success()["waiting"], 2_500);
    let first = answer["first"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/calls/{first}")).await.success()["body"], 0);
    let last = answer["last"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/calls/{last}")).await.success()["body"], 2_499);
}

/// What came before a wrong line is kept, so that whoever sends can go on from there.
#[tokio::test]
async fn a_stream_stops_at_a_wrong_line_and_says_which() {
    let server = Started::with_queue(10).await;
    for (wrong, status, code) in [
        ("{\"lane\":", 400, "malformed_json"),
        ("{\"lane\":\"\"}", 422, "name_empty"),
        ("[]", 400, "invalid_body"),
        ("{\"lane\":\"a\",\"tolls\":[{\"limit\":\"x\"}]}", 404, "unknown_limit"),
    ] {
        let before = server.get("/v1/queues/q").await.success()["waiting"].as_u64().unwrap();
        let lines =
            format!("{{\"lane\":\"a\"}}\n\n{{\"lane\":\"b\"}}\n{wrong}\n{{\"lane\":\"c\"}}");
        let answer = server.ask("POST", "/v1/queues/q/calls", &[LINES], &lines).await;
        answer.problem(status, code);
        let told: Value = answer.json();
        assert_eq!((&told["accepted"], &told["line"]), (&json!(2), &json!(4)), "{wrong}");
        let after = server.get("/v1/queues/q").await.success()["waiting"].as_u64().unwrap();
        assert_eq!(after, before + 2);
    }
}

#[tokio::test]
async fn a_large_body_is_taken_and_a_larger_one_refused() {
    let server = Started::with_queue(10).await;
    let text = "x".repeat(3 << 20);
    let id = server.enqueue(&json!({"lane": "a", "body": text})).await.remove(0);
    assert_eq!(server.get(&format!("/v1/calls/{id}")).await.success()["body"], json!(text));
    let call = json!({"lane": "a", "body": "x".repeat(17 << 20)});
    server.post("/v1/queues/q/calls", &call).await.problem(422, "call_body_too_long");
    let mut bytes = request("POST", "/v1/queues/q/calls", &[JSON], "");
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(b"content-length: 40000000\r\n\r\n");
    server.send(&bytes).await.problem(413, "body_too_large");
}

/// A stream that goes on behind a wrong line would have its calls taken for those before.
#[tokio::test]
async fn a_stream_takes_no_key() {
    let server = Started::with_queue(10).await;
    let headers = [LINES, ("idempotency-key", "k")];
    let answer = server.ask("POST", "/v1/queues/q/calls", &headers, "{\"lane\":\"a\"}").await;
    assert!(answer.problem(400, "invalid_header").contains("dedupe_id"));
}

/// What came is kept while nothing more does, and told when the server goes.
#[tokio::test]
async fn a_stream_that_rests_keeps_what_came() {
    let mut server = Started::with_queue(10).await;
    let mut client = server.client().await;
    let head = "POST /v1/queues/q/calls HTTP/1.1\r\nhost: t\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000\r\n\r\n";
    client.send(format!("{head}{{\"lane\":\"a\"}}\n{{\"lane\":\"b\"}}\n").as_bytes()).await;
    server.until_waiting_calls(2).await;
    server.begin_stop();
    let answer = client.answer().await.unwrap();
    answer.problem(503, "shutting_down");
    assert_eq!(answer.field("accepted"), 2);
}

/// One who never stops sending does not hold up the end of the server, and is told what was taken.
#[tokio::test]
async fn a_stream_without_end_ends_with_the_server() {
    let mut server = Started::with_queue(10).await;
    let mut client = server.client().await;
    let head = "POST /v1/queues/q/calls HTTP/1.1\r\nhost: t\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000000\r\n\r\n";
    client.send(head.as_bytes()).await;
    client.send(b"{\"lane\":\"a\"}\n").await;
    server.until_waiting_calls(1).await;
    server.begin_stop();
    client.send(&b"{\"lane\":\"a\"}\n".repeat(1_000)).await;
    let answer = client.answer().await.unwrap();
    answer.problem(503, "shutting_down");
    let waiting = server.gate.queue_state("q").await.unwrap().unwrap().waiting;
    assert_eq!(answer.field("accepted"), waiting);
}
