//! The trace that a call is part of: handed in by a header or a field, kept, and given to the worker.

use super::started::{JSON, Kept, Started};
use serde_json::{Value, json};
use tollgate_server::Settings;

const LINES: (&str, &str) = ("content-type", "application/x-ndjson");

/// The request's.
const FIRST: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// A call's own.
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

impl Started {
    /// Hands in calls with these headers.
    async fn enqueue_with(&self, headers: &[(&str, &str)], calls: &str) -> Value {
        self.ask("POST", "/v1/queues/q/calls", headers, calls).await.success()
    }

    /// What is told of the trace of each call, by lane.
    async fn claimed_traces(&self) -> Vec<(String, Value)> {
        let claimed = self.claim(&json!({"max": 10})).await.into_iter();
        let mut traces: Vec<_> = claimed
            .map(|call| (call["lane"].as_str().unwrap().to_owned(), call["traceparent"].clone()))
            .collect();
        traces.sort_by(|a, b| a.0.cmp(&b.0));
        traces
    }
}

fn traces(expected: &[(&str, Option<&str>)]) -> Vec<(String, Value)> {
    expected.iter().map(|(lane, trace)| ((*lane).to_owned(), json!(trace))).collect()
}

#[tokio::test]
async fn a_call_is_of_its_own_trace_or_else_of_the_requests() {
    let server = Started::with_queue(10).await;
    let calls = json!([{"lane": "a"}, {"lane": "b", "traceparent": OTHER}]).to_string();
    server.enqueue_with(&[JSON, ("traceparent", FIRST)], &calls).await;
    server.enqueue_with(&[JSON], &json!({"lane": "c"}).to_string()).await;
    let expected = traces(&[("a", Some(FIRST)), ("b", Some(OTHER)), ("c", None)]);
    assert_eq!(server.claimed_traces().await, expected);
}

#[tokio::test]
async fn the_lines_of_a_stream_are_of_the_requests_trace_too() {
    let server = Started::with_queue(10).await;
    let lines = format!("{{\"lane\":\"a\"}}\n{{\"lane\":\"b\",\"traceparent\":\"{OTHER}\"}}\n");
    server.enqueue_with(&[LINES, ("traceparent", FIRST)], &lines).await;
    let expected = traces(&[("a", Some(FIRST)), ("b", Some(OTHER))]);
    assert_eq!(server.claimed_traces().await, expected);
}

/// A header comes from whatever is in between; a field was written by the caller.
#[tokio::test]
async fn a_trace_that_cannot_be_read_is_ignored_as_a_header_and_refused_as_a_field() {
    let server = Started::with_queue(10).await;
    for wrong in ["", "00-1-2-01", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] {
        let calls = json!([{"lane": "a"}, {"lane": "a", "traceparent": wrong}]);
        let answer = server.post("/v1/queues/q/calls", &calls).await;
        answer.problem(400, "invalid_body");
        assert_eq!(answer.field("field"), "[1].traceparent", "{wrong}");
        let call = json!({"lane": "a"}).to_string();
        server.enqueue_with(&[JSON, ("traceparent", wrong)], &call).await;
        server.enqueue_with(&[JSON, ("traceparent", FIRST), ("traceparent", OTHER)], &call).await;
    }
    while let [call] = &server.claim(&json!({})).await[..] {
        assert_eq!(call.get("traceparent"), None);
        server.settle(&json!({"lease": call["lease"], "outcome": "done"})).await;
    }
}

#[tokio::test]
async fn the_trace_of_a_call_is_shown_and_lasts_over_a_restart() {
    let settings = || Settings::new(([127, 0, 0, 1], 0).into());
    let mut server = Started::on(Kept::InFolder, settings()).await;
    server.put("/v1/queues/q", &json!({})).await.success();
    let call = json!({"lane": "a", "body": 1, "traceparent": FIRST});
    let id = server.enqueue(&call).await.remove(0);
    let plain = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    server.begin_stop();
    let server = server.opened_again(settings()).await;
    let shown = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!((&shown["traceparent"], &shown["body"]), (&json!(FIRST), &json!(1)));
    let shown = server.get(&format!("/v1/calls/{plain}")).await.success();
    assert_eq!(shown.get("traceparent"), None);
    let expected = traces(&[("a", Some(FIRST))]);
    assert_eq!(server.claimed_traces().await, expected);
}

/// What follows from a call says for itself of which trace it is.
#[tokio::test]
async fn a_call_that_follows_has_a_trace_of_its_own() {
    let server = Started::with_queue(10).await;
    server.enqueue(&json!({"lane": "a"})).await;
    let lease = server.claim(&json!({})).await[0]["lease"].clone();
    let follows = json!([{"queue": "q", "lane": "b", "traceparent": OTHER}]);
    let settlement = json!({"lease": lease, "outcome": "done", "enqueue": follows});
    assert_eq!(server.settle(&settlement).await["settled"], true);
    assert_eq!(server.claimed_traces().await, traces(&[("b", Some(OTHER))]));
}
