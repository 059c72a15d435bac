//! Destinations: where calls are delivered to, said, checked, shown without secrets, and kept from workers.

use super::holders::{admin_of, holder};
use super::started::{JSON, Kept, Started};
use serde_json::{Value, json};
use tollgate::{Delivery, Envelope, Span};
use tollgate_server::{Role, Settings};

/// A queue `q` with this destination, from which nothing is sent.
async fn pushed(destination: Value) -> Started {
    let server = Started::kept().await;
    define(&server, "q", &destination).await;
    server
}

async fn define(server: &Started, queue: &str, destination: &Value) {
    let path = format!("/v1/queues/{queue}");
    server.put(&path, &json!({ "destination": destination })).await.success();
    server.post(&format!("{path}/pause"), &json!({})).await.success();
}

fn whole() -> Value {
    json!({
        "url": "https://ana:secret@api.example.com/v1",
        "method": "PUT",
        "headers": {"x-a": "1", "authorization": "Bearer secret"},
        "timeout": "30s",
        "retries": 3,
        "retry_delay": "pow(2, retried) * 1000",
        "fatal": [400, 404],
        "costs": {"tpm": "body.usage.total_tokens", "units": "header.x-cost"},
        "callback": {"url": "https://b.example/", "headers": {"x-api-key": "secret"}},
        "failure_callback": {"url": "https://c.example/"},
    })
}

/// The same as it is shown.
fn shown() -> Value {
    let mut shown = whole();
    shown["url"] = json!("https://***@api.example.com/v1");
    shown["headers"]["authorization"] = json!("***");
    shown["callback"]["headers"]["x-api-key"] = json!("***");
    shown
}

#[tokio::test]
async fn a_queue_keeps_its_destination_and_shows_no_secret() {
    let server = pushed(whole()).await;
    let queue = server.get("/v1/queues/q").await;
    assert!(!queue.text.contains("secret"), "{}", queue.text);
    assert_eq!(queue.success()["definition"]["destination"], shown());
    let kept = server.gate.queue_state("q").await.unwrap().unwrap().spec.delivery.unwrap();
    let kept = Delivery::from_bytes(&kept).unwrap();
    assert_eq!(kept.destination.as_deref(), whole()["url"].as_str());
    assert!(kept.headers.contains(&("authorization".to_owned(), "Bearer secret".to_owned())));
    assert_eq!(kept.timeout, Some(Span::from_secs(30)));
    let audit = server.get("/v1/audit").await;
    assert!(!audit.text.contains("secret"), "{}", audit.text);
    // It was paused since.
    assert_eq!(audit.success()["changes"][1]["after"]["destination"], shown());
}

#[tokio::test]
async fn what_is_shown_for_a_secret_is_not_taken_for_it() {
    let server = pushed(whole()).await;
    let definition = server.get("/v1/queues/q").await.success()["definition"].clone();
    let answer = server.put("/v1/queues/q", &definition).await;
    assert!(answer.problem(422, "destination_invalid").contains("*** stands for"));
    assert_eq!(answer.field("field"), "destination.url");
    let call = json!({"lane": "a", "destination": {"headers": {"x-b": "***"}}});
    let answer = server.post("/v1/queues/q/calls", &json!([call])).await;
    answer.problem(422, "destination_invalid");
    assert_eq!(answer.field("field"), "[0].destination.headers.x-b");
}

#[tokio::test]
async fn a_destination_that_cannot_be_is_refused_by_the_part_that_is_wrong() {
    let server = Started::kept().await;
    let long = "x".repeat(8192);
    let many: Value = (0..65).map(|nth| (format!("x-{nth}"), json!("1"))).collect();
    for (destination, field) in [
        (json!("ftp://x.example"), "destination.url"),
        (json!({"method": "TRACE"}), "destination.method"),
        (json!({"headers": {"Host": "x"}}), "destination.headers.host"),
        (json!({"headers": {"a": "1\r\nb: 2"}}), "destination.headers.a"),
        (json!({"timeout": "3h"}), "destination.timeout"),
        (json!({"timeout": 0}), "destination.timeout"),
        (json!({"retries": 1001}), "destination.retries"),
        (json!({"retry_delay": "now()"}), "destination.retry_delay"),
        (json!({"fatal": [200]}), "destination.fatal"),
        (json!({"costs": {"units": "answer.x"}}), "destination.costs.units"),
        (json!({"callback": {"method": "PUT"}}), "destination.callback.url"),
        (
            json!({"callback": {"url": "https://b.example", "callback": "https://c.example"}}),
            "destination.callback.callback",
        ),
    ] {
        let answer = server.put("/v1/queues/q", &json!({ "destination": destination })).await;
        answer.problem(422, "destination_invalid");
        assert_eq!(answer.field("field"), field, "{destination}");
    }
    for (destination, field) in [
        (json!(7), "destination"),
        (json!(["https://a.example"]), "destination"),
        (json!({"uri": "https://a.example"}), "destination.uri"),
        (json!({"retries": -1}), "destination.retries"),
        (json!({"headers": {"a": 1}}), "destination.headers"),
        (json!({"headers": many}), "destination.headers"),
    ] {
        let answer = server.put("/v1/queues/q", &json!({ "destination": destination })).await;
        answer.problem(400, "invalid_body");
        let named = answer.field("field");
        assert!(named.as_str().unwrap().starts_with(field), "{destination}: {named}");
    }
    let headers = json!({"a": long, "b": long, "c": long, "d": &long[..8188]});
    let answer = server.put("/v1/queues/q", &json!({"destination": {"headers": headers}})).await;
    answer.problem(422, "queue_delivery");
    server.get("/v1/queues/q").await.problem(404, "unknown_queue");
    define(&server, "q", &json!("https://a.example")).await;
    let call = json!({"lane": "a", "destination": {"headers": headers}});
    server.post("/v1/queues/q/calls", &call).await.problem(422, "envelope_too_long");
}

#[tokio::test]
async fn a_call_says_what_its_queue_leaves_open() {
    let server = pushed(json!({"method": "PUT"})).await;
    let call = json!({"lane": "a", "body": {"n": 1}, "destination": whole()});
    let id = server.enqueue(&call).await.remove(0);
    let looked_at = server.get(&format!("/v1/calls/{id}")).await.success();
    assert_eq!((&looked_at["destination"], &looked_at["body"]), (&shown(), &json!({"n": 1})));
    let owed = looked_at["tolls"].as_array().unwrap().iter();
    let owed: Vec<_> = owed.map(|toll| (&toll["limit"], &toll["partition"])).collect();
    let place = (&json!("tollgate:destinations"), &json!("https://api.example.com:443"));
    assert!(owed.contains(&place), "{owed:?}");
    let answer = server.post("/v1/queues/q/calls", &json!([call, {"lane": "a"}])).await;
    assert!(answer.problem(422, "destination_missing").contains("call 1: "));
    let answer = server.post("/v1/queues/q/calls", &json!({"lane": "a", "destination": {}})).await;
    answer.problem(422, "destination_missing");
    let lines = format!(
        "{call}\n{}\n{{\"lane\":\"a\"}}\n",
        json!({"lane": "b", "destination": "http://b"})
    );
    let stream = [("content-type", "application/x-ndjson")];
    let answer = server.ask("POST", "/v1/queues/q/calls", &stream, &lines).await;
    answer.problem(422, "destination_missing");
    assert_eq!((answer.field("accepted"), answer.field("line")), (json!(2), json!(3)));
    server.put("/v1/queues/q", &json!({"destination": "https://a.example"})).await.success();
    let id = server.enqueue(&json!({"lane": "a"})).await.remove(0);
    assert_eq!(server.get(&format!("/v1/calls/{id}")).await.success().get("destination"), None);
    let id = server.enqueue(&call).await.remove(0);
    let looked_at = server.get(&format!("/v1/calls/{id}")).await.success();
    let owed = looked_at["tolls"].as_array().unwrap().iter();
    let owed = owed.filter(|toll| toll["limit"] == "tollgate:destinations");
    let owed: Vec<_> = owed.map(|toll| toll["partition"].clone()).collect();
    assert_eq!(owed, ["https://api.example.com:443"], "where it goes, and not where others do");
}

#[tokio::test]
async fn a_call_for_workers_goes_nowhere_else() {
    let server = Started::with_queue(10).await;
    define(&server, "hooks", &json!("https://a.example")).await;
    let call = json!({"lane": "a", "destination": "https://b.example"});
    let told = server.post("/v1/queues/q/calls", &call).await.problem(422, "queue_not_pushed");
    assert!(told.contains("the queue q hands its calls to workers"), "{told}");
    let schedule = json!({"queue": "q", "cron": "@daily", "call": call});
    server.put("/v1/schedules/s", &schedule).await.problem(422, "queue_not_pushed");
    server.enqueue(&json!({"lane": "a"})).await;
    let lease = server.claim(&json!({})).await[0]["lease"].clone();
    let mut next = call.clone();
    next["queue"] = json!("q");
    let settled = json!({"lease": lease, "outcome": "done", "enqueue": [next]});
    let answer = server.settle(&settled).await;
    assert_eq!(answer["problem"]["code"], "queue_not_pushed", "{answer}");
    next["queue"] = json!("hooks");
    let settled = json!({"lease": lease, "outcome": "done", "enqueue": [next]});
    assert_eq!(server.settle(&settled).await["settled"], true);
    // It is a pushed queue from then on.
    define(&server, "q", &json!("https://a.example")).await;
    server.enqueue(&call).await;
    server.put("/v1/queues/q", &json!({})).await.success();
    server.post("/v1/queues/q/calls", &call).await.problem(422, "queue_not_pushed");
}

#[tokio::test]
async fn no_worker_claims_what_tollgate_delivers() {
    let server = pushed(json!("https://a.example")).await;
    server.enqueue(&json!({"lane": "a"})).await;
    for claim in [json!({}), json!({"wait": "10s", "lease": "5s"})] {
        let told = server.post("/v1/queues/q/claim", &claim).await.problem(409, "queue_pushed");
        assert!(told.starts_with("Tollgate delivers the calls of q itself"), "{told}");
    }
    server.put("/v1/queues/q", &json!({})).await.success();
    server.post("/v1/queues/q/resume", &json!({})).await.success();
    assert_eq!(server.claim(&json!({})).await.len(), 1);
    server.put("/v1/queues/q", &json!({"destination": "https://a.example"})).await.success();
    server.post("/v1/queues/q/claim", &json!({})).await.problem(409, "queue_pushed");
}

#[tokio::test]
async fn a_queue_that_is_made_anew_is_known_anew() {
    let server = pushed(json!("https://a.example")).await;
    server.post("/v1/queues/q/claim", &json!({})).await.problem(409, "queue_pushed");
    server.delete("/v1/queues/q").await.success();
    server.post("/v1/queues/q/claim", &json!({})).await.problem(404, "unknown_queue");
    server.put("/v1/queues/q", &json!({})).await.success();
    assert!(server.claim(&json!({})).await.is_empty());
}

#[tokio::test]
async fn a_schedule_delivers_until_its_queue_does_not() {
    let server = pushed(json!({})).await;
    let call = json!({"lane": "a", "destination": {"url": "https://a.example", "headers": {"x-key": "s"}}});
    let schedule = json!({"queue": "q", "cron": "* * * * *", "call": call});
    let made = server.put("/v1/schedules/s", &schedule).await.success();
    assert_eq!(made["call"]["destination"]["headers"], json!({"x-key": "***"}));
    server.clock.advance(Span::from_secs(60));
    server.until_waiting_calls(1).await;
    let id = server.get("/v1/queues/q/calls").await.success()["calls"][0]["id"].clone();
    let id = id.as_str().unwrap().parse().unwrap();
    let payload = server.gate.payload(tollgate::lanes::CallId(id)).await.unwrap().unwrap();
    let delivery = Envelope::of(&payload).unwrap().delivery;
    assert_eq!(delivery.headers, [("x-key".to_owned(), "s".to_owned())]);
}

#[tokio::test]
async fn the_same_body_to_another_place_is_another_call() {
    let server = pushed(json!({"url": "https://a.example"})).await;
    let to =
        |url: &str| json!({"lane": "a", "body": 1, "dedupe_content": true, "destination": url});
    let calls = json!([to("https://b.example"), to("https://c.example"), to("https://b.example")]);
    let ids = server.enqueue(&calls).await;
    assert!(ids[0] == ids[2] && ids[0] != ids[1], "{ids:?}");
}

#[tokio::test]
async fn no_header_is_shown_where_bodies_are_not() {
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = Settings { redact_bodies: true, ..Settings::new(listen) };
    let server = Started::on(Kept::InFolder, settings).await;
    define(&server, "q", &json!({})).await;
    let destination = json!({"url": "https://a.example", "headers": {"x-iban": "DE02"}});
    let call = json!({"lane": "a", "destination": destination});
    let id = server.enqueue(&call).await.remove(0);
    let looked_at = server.get(&format!("/v1/calls/{id}")).await.success();
    let bare = json!({"url": "https://a.example", "headers": {"x-iban": "***"}});
    assert_eq!(looked_at["destination"], bare);
    let schedule = json!({"queue": "q", "cron": "@daily", "call": call});
    let looked_at = server.put("/v1/schedules/s", &schedule).await.success();
    assert_eq!(looked_at["call"]["destination"], bare);
}

/// Nothing crosses: limits of costs are those of the namespace, and errors name its queues.
#[tokio::test]
async fn costs_are_settled_at_ones_own_limits() {
    let tokens = vec![admin_of("acme"), holder("all", &[Role::Admin], None)];
    let server = Started::kept_with(tokens).await;
    let destination = json!({"url": "https://a.example", "costs": {"units": "header.x-cost"}});
    let queue = json!({ "destination": destination });
    let own = server.ask_as("acme", ("PUT", "/v1/queues/q"), &queue).await.success();
    server.ask_as("acme", ("POST", "/v1/queues/q/pause"), &json!({})).await.success();
    assert_eq!(own["definition"]["destination"], destination);
    let all = server.ask_as("all", ("GET", "/v1/queues/acme%2Fq"), &Value::Null).await.success();
    assert_eq!(all["definition"]["destination"]["costs"], json!({"acme/units": "header.x-cost"}));
    let call = json!({"lane": "a", "destination": {"costs": {"units": "body.units"}}});
    let ids = server.ask_as("acme", ("POST", "/v1/queues/q/calls"), &call).await.success();
    let path = format!("/v1/calls/{}", ids["ids"][0].as_str().unwrap());
    assert_eq!(own["definition"]["tolls"], json!([]), "what is owed for a push is not said twice");
    for (who, limit) in [("acme", "units"), ("all", "acme/units")] {
        let looked_at = server.ask_as(who, ("GET", &path), &Value::Null).await.success();
        assert_eq!(looked_at["destination"]["costs"], json!({limit: "body.units"}));
    }
    let told = server.ask_as("acme", ("POST", "/v1/queues/q/claim"), &json!({})).await;
    let told = told.problem(409, "queue_pushed");
    assert!(told.contains("the calls of q itself"), "{told}");
}

/// Header fields come as they were written: an object says no order, and Tollgate keeps the one it has.
#[tokio::test]
async fn headers_are_shown_in_the_order_in_which_they_were_given() {
    let server = Started::kept().await;
    let queue = r#"{"destination":{"url":"https://a.example","headers":{"x-b":"1","x-a":"2"}}}"#;
    let answer = server.ask("PUT", "/v1/queues/q", &[JSON], queue).await;
    answer.success();
    assert!(answer.text.contains(r#""headers":{"x-b":"1","x-a":"2"}"#), "{}", answer.text);
    let twice = queue.replace("x-b", "X-A");
    server.ask("PUT", "/v1/queues/q", &[JSON], &twice).await.problem(400, "invalid_body");
}
