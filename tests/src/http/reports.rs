//! Reports: what there is to say about an attempt, kept and shown; and waits that chance makes shorter.

use super::client::request;
use super::started::{Kept, Started};
use serde_json::{Value, json};
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Outcome};
use tollgate_server::Settings;

/// Starts a call of the queue `q`; its id and lease.
async fn start(server: &Started) -> (String, Value) {
    let id = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    (id, server.claim(&json!({})).await[0]["lease"].clone())
}

#[tokio::test]
async fn a_report_is_told_with_its_attempt_wherever_that_is() {
    let server = Started::with_queue(10).await;
    let (id, lease) = start(&server).await;
    let mut stream = server.client().await;
    stream.send(&request("GET", "/v1/events", &[], "")).await;
    stream.answer().await.unwrap();
    while !stream.line().await.starts_with(": events after ") {}
    let report = json!({"status": 200, "body": "paid\nin full"});
    // As people write it, on several lines: in a stream of events a line is one.
    let written = serde_json::to_string_pretty(&report).unwrap();
    let lease = lease.as_str().unwrap();
    let body = format!(r#"[{{"lease":"{lease}","outcome":"done","report":{written}}}]"#);
    let settled = server.ask("POST", "/v1/settle", &[super::started::JSON], &body).await.success();
    assert_eq!(settled["settled"][0]["settled"], true);
    let call = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!(call["history"][0]["report"], report);
    let history = server.get("/v1/history?queue=q").await.success();
    let told = history["events"].as_array().unwrap().iter().find(|it| it["event"] == "settled");
    assert_eq!(told.unwrap()["report"], report);
    loop {
        let line = stream.line().await;
        if let Some(event) = line.strip_prefix("data: ").filter(|it| it.contains("settled")) {
            let event: Value = serde_json::from_str(event).unwrap();
            assert_eq!(event["report"], report);
            return;
        }
    }
}

#[tokio::test]
async fn a_claim_takes_reports_with_what_it_settles() {
    let server = Started::with_queue(10).await;
    let (id, lease) = start(&server).await;
    let settle = json!({"lease": lease, "outcome": "dead", "report": null});
    let claim = json!({"settle": [settle]});
    let answer = server.post("/v1/queues/q/claim", &claim).await.success();
    assert_eq!(answer["settled"][0]["settled"], true);
    let call = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!(call["history"][0].get("report"), Some(&Value::Null));
}

#[tokio::test]
async fn a_report_that_is_not_json_goes_as_base64() {
    let server = Started::with_queue(10).await;
    let (first, lease) = start(&server).await;
    let settled = json!({"lease": lease, "outcome": "done", "report_base64": "/w=="});
    assert_eq!(server.settle(&settled).await["settled"], true);
    let (second, _) = (server.enqueue(&json!({"lane": "a"})).await.remove(0), ());
    let claimed = server.gate.claim("q", 1, tollgate::Span::ZERO).await.unwrap().remove(0);
    let outcome = Outcome::done().report("no JSON");
    let _ = server.gate.settle(claimed.started.lease, outcome).await.unwrap();
    for (id, report) in [(first, "/w=="), (second, "bm8gSlNPTg==")] {
        let call = server.get(&format!("/v1/calls/{id}")).await.success();
        assert_eq!(call["history"][0]["report_base64"], report);
    }
}

#[tokio::test]
async fn a_report_that_cannot_be_kept_is_refused_and_nothing_is_settled() {
    let server = Started::with_queue(10).await;
    let (_, lease) = start(&server).await;
    let long = "x".repeat((64 << 10) - 2);
    for (more, code) in [
        (json!({"report": format!("{long}x")}), "report_too_long"),
        (json!({"report": 1, "report_base64": "/w=="}), "invalid_body"),
        (json!({"report_base64": "?"}), "invalid_body"),
    ] {
        let mut settled = json!({"lease": lease, "outcome": "done"});
        settled.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(server.settle(&settled).await["problem"]["code"], code, "{code}");
    }
    let settled = json!({"lease": lease, "outcome": "done", "report": long});
    assert_eq!(server.settle(&settled).await["settled"], true);
}

#[tokio::test]
async fn a_report_is_kept_from_those_who_look_if_that_is_chosen() {
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = Settings { redact_bodies: true, ..Settings::new(listen) };
    let server = Started::on(Kept::InFolder, settings).await;
    server.put("/v1/queues/q", &json!({})).await.success();
    let (id, lease) = start(&server).await;
    let settled = json!({"lease": lease, "outcome": "done", "report": {"iban": "DE02"}});
    assert_eq!(server.settle(&settled).await["settled"], true);
    let call = server.get(&format!("/v1/calls/{id}")).await.success();
    let event = &call["history"][0];
    assert_eq!((event.get("report"), &event["report_bytes"]), (None, &json!(15)));
    let history = server.get("/v1/history").await;
    assert!(!history.text.contains("DE02"), "{}", history.text);
}

#[tokio::test]
async fn that_a_call_was_accepted_is_told_without_its_envelope() {
    let server = Started::kept().await;
    let spec = QueueSpec { tells_accepted: true, ..QueueSpec::default() };
    server.gate.queue("q", spec).await.unwrap();
    let call = Call::new("a").card(*b"DE02");
    let id = server.gate.enqueue("q", call).await.unwrap();
    let call = server.get(&format!("/v1/calls/{}", id.0)).await;
    let history = server.get("/v1/history?queue=q").await;
    let events = [call.success()["history"].clone(), history.success()["events"].clone()];
    let told = events.map(|it| (it[0]["event"].clone(), it.as_array().map(Vec::len)));
    assert_eq!(told, [(); 2].map(|()| (json!("enqueued"), Some(1))));
    for answer in [call, history] {
        assert!(!answer.text.contains("DE02"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_wait_may_be_shorter_by_up_to_all_of_it() {
    let server = Started::kept().await;
    for jitter in [0, 25, 100] {
        let queue = json!({"backoff": {"jitter": jitter}});
        let queue = server.put("/v1/queues/q", &queue).await.success();
        let backoff = json!({"first": "1s", "most": "5m", "jitter": jitter});
        assert_eq!(queue["definition"]["backoff"], backoff);
    }
    for jitter in [101, 300] {
        let queue = json!({"backoff": {"jitter": jitter}});
        let answer = server.put("/v1/queues/q", &queue).await;
        answer.problem(422, "queue_jitter");
        assert_eq!(answer.field("field"), "backoff.jitter");
    }
    let queue = json!({"backoff": {"jitter": 1.5}});
    server.put("/v1/queues/q", &queue).await.problem(400, "invalid_body");
}
