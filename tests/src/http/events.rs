//! Events as they happen, and history.

use super::client::{Client, request};
use super::started::Started;
use serde_json::{Value, json};
use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, next};
use tollgate::lanes::{Act, Door, LaneName, LimitName, NewCall, Partition, QueueName, Toll};
use tollgate::toll;

/// Follows events; the connection, once the stream has begun.
async fn follow(server: &Started, query: &str, last: Option<&str>) -> Client {
    let mut client = server.client().await;
    let last: Vec<_> = last.map(|last| ("last-event-id", last)).into_iter().collect();
    client.send(&request("GET", &format!("/v1/events?{query}"), &last, "")).await;
    let head = client.answer().await.unwrap();
    assert_eq!(head.status, 200, "{}", head.text);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    while !client.line().await.starts_with(": events after ") {}
    client
}

/// The next event, with its id.
async fn told(client: &mut Client) -> (String, Value) {
    let mut id = String::new();
    loop {
        let line = client.line().await;
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return (id, serde_json::from_str(data).unwrap());
        }
    }
}

#[tokio::test]
async fn the_life_of_a_call_is_told_as_it_happens() {
    let server = Started::with_queue(10).await;
    server.put("/v1/queues/other", &json!({})).await.success();
    let mut client = follow(&server, "queue=q&lane=a", None).await;
    server.post("/v1/queues/other/calls", &json!({"lane": "a"})).await.success();
    let ids = server.enqueue(&json!([{"lane": "b"}, {"lane": "a"}])).await;
    let (_, event) = told(&mut client).await;
    assert_eq!((&event["event"], &event["call"]), (&json!("enqueued"), &json!(ids[1])));
    for call in server.claim(&json!({"max": 9})).await {
        server.settle(&json!({"lease": call["lease"], "outcome": "done"})).await;
    }
    let mut names = Vec::new();
    for _ in 0..3 {
        names.push(told(&mut client).await.1["event"].clone());
    }
    assert_eq!(names, ["started", "settled", "ended"]);
}

#[tokio::test]
async fn who_was_cut_off_goes_on_where_they_were() {
    let server = Started::with_queue(10).await;
    let mut client = follow(&server, "", None).await;
    let ids = server.enqueue(&json!([{"lane": "a"}, {"lane": "a"}])).await;
    let (place, first) = told(&mut client).await;
    assert_eq!(first["call"], json!(ids[0]));
    drop(client);
    let mut client = follow(&server, "", Some(&place)).await;
    assert_eq!(told(&mut client).await.1["call"], json!(ids[1]));
    server
        .ask("GET", "/v1/events", &[("last-event-id", "x")], "")
        .await
        .problem(400, "invalid_header");
    server.get("/v1/events?limit=1").await.problem(400, "invalid_query");
}

impl Started {
    /// Hands in a call that may wait for a limit which nobody defined.
    pub(super) async fn park(&self, queue: &str, toll: (&str, Option<&str>), body: &str) {
        let partition = toll.1.map(|it| Partition::new(it).unwrap());
        let limit = LimitName::new(toll.0).unwrap();
        let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
        let new = NewCall::new(QueueName::new(queue).unwrap(), LaneName::new("run").unwrap());
        let new = NewCall { tolls: tolls.into(), payload: body.as_bytes().into(), ..new };
        let act = Act { enqueue: vec![new], door: Door::Parks, ..Act::default() };
        let _ = self.gate.act(act).await.unwrap();
    }
}

/// A machine whose second step waits for a limit that nobody defined.
struct Charges;

impl Machine for Charges {
    const NAME: &'static str = "m";
    type State = ();

    async fn step(&self, _: Step<()>) -> Result<StepOutcome, StepError> {
        Ok(next("charge", ()).pays(toll("none", "acme")))
    }
}

#[tokio::test]
async fn a_limit_that_nobody_defined_is_told_with_who_waits_for_it() {
    let server = Started::with_queue(10).await;
    let mut client = follow(&server, "", None).await;
    server.park("q", ("none", None), "").await;
    let flows = server.gate.flows();
    let run = flows.start(NewRun::new::<Charges>("begin", ())).await.unwrap().run;
    let worker = tokio::spawn(flows.worker(Charges).run());
    let mut unknown = Vec::new();
    while unknown.len() < 2 {
        let (_, event) = told(&mut client).await;
        unknown.extend(Some(event).filter(|event| event["event"] == "unknown"));
    }
    worker.abort();
    let without_time = |event: &Value| {
        let mut event = event.clone();
        event.as_object_mut().unwrap().remove("at").unwrap();
        event
    };
    let bare =
        json!({"call": "0", "queue": "q", "lane": "run", "event": "unknown", "limit": "none"});
    let step = json!({"call": "2", "queue": "machine/m@1", "lane": run, "event": "unknown", "limit": "none",
        "partition": "acme", "machine": "m", "step": "charge"});
    assert_eq!(unknown.iter().map(without_time).collect::<Vec<_>>(), [bare, step]);
    let history = server.get("/v1/history?queue=machine%2Fm%401").await.success();
    let history = history["events"].as_array().unwrap();
    assert!(history.contains(&unknown[1]), "{history:?}");
}

#[tokio::test]
async fn a_limit_that_lets_fewer_go_than_stand_ready_is_told() {
    let server = Started::with_queue(2).await;
    let mut client = follow(&server, "queue=q&lane=c", None).await;
    let call = |lane: &str| json!({"lane": lane, "tolls": [{"limit": "l", "partition": "acme"}]});
    let ids = server.enqueue(&json!(["a", "b", "c"].map(call))).await;
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 2);
    assert_eq!(told(&mut client).await.1["event"], "enqueued");
    let (_, event) = told(&mut client).await;
    let expected = json!({"at": event["at"], "call": ids[2], "queue": "q", "lane": "c", "event": "throttled",
        "limit": "l", "partition": "acme", "wanted": 3, "granted": 2});
    assert_eq!(event, expected);
    assert_eq!(server.get("/v1/history?lane=c").await.success()["events"], json!([]));
}

/// Nothing is written for a claim that starts nothing, and yet it is told.
#[tokio::test]
async fn a_claim_that_starts_nothing_tells_who_waits() {
    let server = Started::with_queue(1).await;
    let mut client = follow(&server, "", None).await;
    server.consume(&json!({"tolls": [{"limit": "l"}]})).await.success();
    server.enqueue(&json!({"lane": "a", "tolls": [{"limit": "l"}]})).await;
    assert_eq!(told(&mut client).await.1["event"], "enqueued");
    assert!(server.claim(&json!({"max": 9})).await.is_empty());
    let (_, event) = told(&mut client).await;
    assert_eq!(
        (&event["event"], &event["wanted"], &event["granted"]),
        (&json!("throttled"), &json!(1), &json!(0))
    );
}

/// Who follows is told when the server goes, and does not hold it up.
#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let mut server = Started::with_queue(10).await;
    let mut client = follow(&server, "", None).await;
    server.begin_stop();
    while !client.line().await.is_empty() {}
    server.ended().await;
}

#[tokio::test]
async fn history_is_searched_by_queue_lane_and_end() {
    let server = Started::with_queue(10).await;
    let ids = server.enqueue(&json!([{"lane": "a"}, {"lane": "b"}])).await;
    for (call, outcome) in server.claim(&json!({"max": 9})).await.iter().zip(["done", "dead"]) {
        server.settle(&json!({"lease": call["lease"], "outcome": outcome})).await;
    }
    let search = async |query: &str| -> Vec<Value> {
        let page = server.get(&format!("/v1/history?{query}")).await.success();
        page["events"].as_array().unwrap().clone()
    };
    assert_eq!(search("queue=q").await.len(), 4);
    let dead = search("queue=q&end=dead").await;
    assert_eq!((dead.len(), &dead[0]["call"]), (1, &json!(ids[1])));
    assert_eq!(search("lane=a").await.len(), 2);
    assert!(search("to=1970-01-01T00:00:01Z").await.is_empty());
    for wrong in ["end=well", "from=yesterday", "after=x", "limit=0"] {
        server.get(&format!("/v1/history?{wrong}")).await.problem(400, "invalid_query");
    }
}
