//! Shapes as clients read them.

use super::flow::{FlowWire, GlobalWire};
use super::group::{DefaultsAsked, EndpointWire, EndpointsAsked, GroupWire};
use super::log::{Happened, LogWire, State};
use super::message::{DeadWire, MessageWire};
use super::queue::{QueueAsked, QueueWire};
use super::reply::{
    Cancelled, DeadPage, Deleted, EventsPage, LogsPage, Published, PublishedWire, Retried,
    ScheduleMade, SigningKeysWire,
};
use super::schedule::{ScheduleWire, Scheduled, TickState};
use super::*;
use crate::qstash::card::Accepted;
use crate::qstash::destination::Target;
use crate::qstash::draft::Draft;
use serde_json::{Value, json};
use tollgate::Timestamp;

const CREATED_MS: u64 = 1_700_000_000_000;

fn draft(headers: &[(&str, &str)]) -> Draft {
    let pairs: Vec<Pair> =
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Draft::read(Target::Url("https://user:pass@a.example/b?c=1".to_owned()), &pairs).unwrap()
}

fn accepted() -> Accepted {
    Accepted { at: Timestamp::from_nanos(CREATED_MS * 1_000_000), ..Accepted::default() }
}

fn told(draft: &Draft, accepted: Accepted, body: &[u8]) -> Value {
    let card = Card::new(draft, accepted);
    let kept = Kept {
        id: "msg_1",
        card: &card,
        delivery: &draft.delivery,
        body: Some(body),
        created_ms: None,
    };
    serde_json::to_value(MessageWire::new(&kept)).unwrap()
}

fn whole() -> Draft {
    draft(&[
        ("Content-Type", "text/plain"),
        ("Upstash-Forward-x-a", "1"),
        ("Upstash-Forward-X-A", "2"),
        ("Upstash-Flow-Control-Key", "k"),
        ("Upstash-Flow-Control-Value", "parallelism=2"),
        ("Upstash-Label", "a,b"),
        ("Upstash-Retry-Delay", "1000"),
        ("Upstash-Timeout", "1500ms"),
        ("Upstash-Delay", "2s"),
        ("Upstash-Callback", "https://c.example"),
        ("Upstash-Callback-Forward-X-C", "c"),
        ("Upstash-Callback-Retries", "1"),
        ("Upstash-Failure-Callback", "https://f.example"),
        ("Upstash-Failure-Callback-Forward-X-F", "f"),
    ])
}

fn everywhere() -> Accepted {
    Accepted {
        caller_ip: Some("192.0.2.1".to_owned()),
        queue: Some("q".to_owned()),
        group: Some(("g".to_owned(), Some("e".to_owned()))),
        schedule: Some("scd_1".to_owned()),
        ..accepted()
    }
}

#[test]
fn what_a_message_does_not_have_is_left_out() {
    let wanted = json!({
        "messageId": "msg_1",
        "url": "https://***@a.example/b?c=1",
        "method": "POST",
        "maxRetries": 3,
        "notBefore": CREATED_MS,
        "createdAt": CREATED_MS,
    });
    assert_eq!(told(&draft(&[]), accepted(), b""), wanted);
}

#[test]
fn a_message_tells_all_it_has() {
    let wanted = json!({
        "messageId": "msg_1",
        "url": "https://***@a.example/b?c=1",
        "topicName": "g",
        "endpointName": "e",
        "queueName": "q",
        "scheduleId": "scd_1",
        "method": "POST",
        "header": {"Content-Type": ["text/plain"], "X-A": ["1", "2"]},
        "body": "hi",
        "maxRetries": 3,
        "retryDelayExpression": "1000",
        "notBefore": CREATED_MS + 2_000,
        "createdAt": CREATED_MS,
        "callback": "https://c.example",
        "callbackHeader": {"X-C": ["c"]},
        "failureCallback": "https://f.example",
        "failureCallbackHeader": {"X-F": ["f"]},
        "callerIP": "192.0.2.1",
        "flowControlKey": "k",
        "parallelism": 2,
        "period": 1,
        "label": "a",
        "labels": ["a", "b"],
    });
    assert_eq!(told(&whole(), everywhere(), b"hi"), wanted);
    assert_eq!(told(&whole(), everywhere(), b"\xff")["bodyBase64"], "/w==");
}

#[test]
fn what_is_redacted_is_shown_as_its_digest() {
    let digest = "REDACTED:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
    let headers = [("Upstash-Forward-X-A", "foo"), ("Upstash-Forward-X-B", "b")];
    let with = |fields| draft(&[&headers[..], &[("Upstash-Redact-Fields", fields)]].concat());
    let message = told(&with("body,header[x-a]"), accepted(), b"foo");
    assert_eq!(message["body"], digest);
    assert_eq!(message["header"], json!({"X-A": [digest], "X-B": ["b"]}));
    let message = told(&with("headers"), accepted(), b"foo");
    assert_eq!(message["body"], "foo");
    assert_eq!(message["header"]["X-A"], json!([digest]));
    assert_ne!(message["header"]["X-B"], json!(["b"]));
}

#[test]
fn a_message_of_a_schedule_counts_from_its_tick() {
    let draft = whole();
    let card = Card::new(&draft, everywhere());
    let kept = Kept {
        id: "msg_2",
        card: &card,
        delivery: &draft.delivery,
        body: None,
        created_ms: Some(CREATED_MS + 60_000),
    };
    assert_eq!(kept.created_ms(), CREATED_MS + 60_000);
    assert_eq!(kept.not_before_ms(), CREATED_MS + 62_000);
}

#[test]
fn a_dead_message_tells_its_last_answer_and_zero_if_there_was_none() {
    let draft = draft(&[]);
    let card = Card::new(&draft, accepted());
    let kept =
        Kept { id: "msg_1", card: &card, delivery: &draft.delivery, body: None, created_ms: None };
    let headers = [("retry-after".to_owned(), "1".to_owned())];
    let response = Response { status: 503, headers: &headers, body: b"busy" };
    let dead = serde_json::to_value(DeadWire::new(&kept, "1-1", response)).unwrap();
    assert_eq!((&dead["dlqId"], &dead["messageId"]), (&json!("1-1"), &json!("msg_1")));
    assert_eq!(dead["responseStatus"], 503);
    assert_eq!(dead["responseHeader"], json!({"Retry-After": ["1"]}));
    assert_eq!(dead["responseBody"], "busy");
    let silent = DeadWire::new(&kept, "1-1", Response::default());
    let page = DeadPage { cursor: None, messages: vec![silent] };
    let page = serde_json::to_value(page).unwrap();
    assert_eq!(page["messages"][0]["responseStatus"], 0);
    assert_eq!(page["messages"][0].get("responseBody"), None);
    assert_eq!(page.get("cursor"), None);
}

fn log(draft: &Draft, happened: &Happened<'_>) -> LogWire {
    let card = Card::new(draft, everywhere());
    let kept = Kept {
        id: "msg_1",
        card: &card,
        delivery: &draft.delivery,
        body: Some(b"hi"),
        created_ms: None,
    };
    LogWire::new(&kept, happened)
}

#[test]
fn a_line_of_the_log_has_both_names_of_what_clients_call_differently() {
    let headers = [("x-r".to_owned(), "1".to_owned())];
    let happened = Happened {
        time_ms: 5,
        state: State::Error,
        error: Some("status 500"),
        next_ms: Some(6),
        response: Some(Response { status: 500, headers: &headers, body: b"no" }),
    };
    let page = EventsPage { cursor: Some("x".to_owned()), events: vec![log(&whole(), &happened)] };
    let page = serde_json::to_value(page).unwrap();
    let line = &page["events"][0];
    for (field, value) in [
        ("time", json!(5)),
        ("state", json!("ERROR")),
        ("messageId", json!("msg_1")),
        ("body", json!("aGk=")),
        ("error", json!("status 500")),
        ("nextDeliveryTime", json!(6)),
        ("responseStatus", json!(500)),
        ("responseHeader", json!({"X-R": ["1"]})),
        ("responseHeaders", json!({"X-R": ["1"]})),
        ("responseBody", json!("bm8=")),
        ("timeout", json!(1500)),
        ("retryDelayExpr", json!("1000")),
        ("retryDelayExpression", json!("1000")),
        ("callbackHeaders", json!({"X-C": ["c"]})),
        ("flowControlKey", json!("k")),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert_eq!(page["cursor"], "x");
    let created =
        Happened { time_ms: 5, state: State::Created, error: None, next_ms: None, response: None };
    let secret = draft(&[("Upstash-Redact-Fields", "body")]);
    let logs = LogsPage { cursor: None, logs: vec![log(&secret, &created)] };
    let line = serde_json::to_value(logs).unwrap()["logs"][0].clone();
    assert!(line["body"].as_str().unwrap().starts_with("REDACTED:"));
    for absent in ["error", "nextDeliveryTime", "responseStatus", "responseHeader", "timeout"] {
        assert_eq!(line.get(absent), None, "{absent}");
    }
}

#[test]
fn states_are_spelt_as_clients_know_them() {
    let spelt = |state: State| serde_json::to_value(state).unwrap();
    assert_eq!(spelt(State::Canceled), "CANCELED");
    assert_eq!(spelt(State::CancelRequested), "CANCEL_REQUESTED");
    for state in [State::Active, State::Retry, State::Delivered, State::Failed] {
        let name = format!("{state:?}").to_uppercase();
        assert_eq!(spelt(state), name);
    }
}

#[test]
fn a_schedule_is_told_as_it_was_made() {
    let draft = draft(&[
        ("content-type", "application/json"),
        ("upstash-forward-test-header", "test-value"),
        ("upstash-method", "GET"),
        ("upstash-delay", "10s"),
        ("upstash-timeout", "30s"),
        ("upstash-retries", "5"),
    ]);
    let card = Card::new(&draft, Accepted { queue: Some("q".to_owned()), ..accepted() });
    let kept = Kept {
        id: "scd_1",
        card: &card,
        delivery: &draft.delivery,
        body: Some(b"{}"),
        created_ms: None,
    };
    let scheduled = Scheduled {
        cron: "*/10 * * * *",
        destination: "group".to_owned(),
        is_paused: false,
        last_ms: None,
        next_ms: Some(7),
        last_states: [("msg_1".to_owned(), TickState::InProgress)].into(),
        error: None,
    };
    let wanted = json!({
        "scheduleId": "scd_1",
        "cron": "*/10 * * * *",
        "createdAt": CREATED_MS,
        "destination": "group",
        "method": "GET",
        "header": {"Content-Type": ["application/json"], "Test-Header": ["test-value"]},
        "body": "{}",
        "retries": 5,
        "delay": 10,
        "timeout": 30,
        "isPaused": false,
        "queueName": "q",
        "nextScheduleTime": 7,
        "lastScheduleStates": {"msg_1": "IN_PROGRESS"},
    });
    assert_eq!(serde_json::to_value(ScheduleWire::new(&kept, scheduled)).unwrap(), wanted);
    let states = json!([TickState::Success, TickState::Fail]);
    assert_eq!(states, json!(["SUCCESS", "FAIL"]));
}

#[test]
fn answers_to_changes_are_as_clients_read_them() {
    let one = Published { message_id: "msg_1".to_owned(), url: None, is_duplicate: false };
    let other = Published {
        message_id: "msg_2".to_owned(),
        url: Some("https://a.example".to_owned()),
        is_duplicate: true,
    };
    let batch = [PublishedWire::One(one.clone()), PublishedWire::Each(vec![other])];
    assert_eq!(
        json!(batch),
        json!([
            {"messageId": "msg_1"},
            [{"messageId": "msg_2", "url": "https://a.example", "deduplicated": true}],
        ])
    );
    assert_eq!(json!(ScheduleMade { schedule_id: "s".to_owned() }), json!({"scheduleId": "s"}));
    assert_eq!(json!(Cancelled { cancelled: 2 }), json!({"cancelled": 2}));
    assert_eq!(json!(Deleted { deleted: 2, cursor: None }), json!({"deleted": 2}));
    let retried = Retried { cursor: None, responses: vec![one] };
    assert_eq!(json!(retried), json!({"responses": [{"messageId": "msg_1"}]}));
    let keys = SigningKeysWire { current: "sig_1".to_owned(), next: "sig_2".to_owned() };
    assert_eq!(json!(keys), json!({"current": "sig_1", "next": "sig_2"}));
}

#[test]
fn queues_groups_and_keys_are_as_clients_read_them() {
    let queue = QueueWire {
        name: "q".to_owned(),
        created_at: 1,
        updated_at: 2,
        parallelism: 3,
        is_paused: true,
        lag: 4,
    };
    assert_eq!(
        json!(queue),
        json!({"name": "q", "createdAt": 1, "updatedAt": 2, "parallelism": 3, "paused": true, "lag": 4})
    );
    let asked: QueueAsked =
        serde_json::from_value(json!({"queueName": "q", "parallelism": 1, "paused": false}))
            .unwrap();
    assert_eq!((asked.parallelism, asked.is_paused), (Some(1), Some(false)));
    assert_eq!(asked.queue_name, "q");
    let endpoints: EndpointsAsked =
        serde_json::from_value(json!({"endpoints": [{"url": "https://a.example"}]})).unwrap();
    let group = GroupWire {
        name: "g".to_owned(),
        created_at: 1,
        updated_at: 2,
        endpoints: endpoints.endpoints,
    };
    assert_eq!(json!(group)["endpoints"], json!([{"url": "https://a.example"}]));
    assert_eq!(json!(EndpointWire { name: Some("n".to_owned()), url: None }), json!({"name": "n"}));
    let defaults: DefaultsAsked =
        serde_json::from_value(json!({"headers": {"Upstash-Retries": "3"}})).unwrap();
    assert_eq!(defaults.headers["Upstash-Retries"], "3");
    let flow = json!(FlowWire { flow_control_key: "k".to_owned(), ..FlowWire::default() });
    assert_eq!(flow.as_object().unwrap().len(), 11);
    assert_eq!((&flow["waitListSize"], &flow["isPinnedRate"]), (&json!(0), &json!(false)));
    let global = GlobalWire { parallelism_max: 2_000, parallelism_count: 1 };
    assert_eq!(json!(global), json!({"parallelismMax": 2000, "parallelismCount": 1}));
}
