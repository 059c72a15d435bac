//! Schedules: cron in its zone, pause, overwrite, queues and URL groups.

use super::{World, answer, delivered, settings};
use crate::gate::patiently;
use crate::http::client::Answer;
use crate::http::holders::admin_of;
use serde_json::{Value, json};
use tokio::task::yield_now;
use tollgate::Span;

/// The clock starts at 13:46:40 UTC: the next full hour is then.
const HOUR_MS: u64 = 1_000_800_000;

impl World {
    async fn schedule(&self, to: &str, headers: &[(&str, &str)]) -> Answer {
        self.server.ask("POST", &format!("/v2/schedules/{to}"), headers, "hello").await
    }

    /// Makes a schedule to the receiver; its id.
    async fn scheduled(&self, headers: &[(&str, &str)]) -> String {
        let answer = self.schedule(&self.receiver.url("/"), headers).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["scheduleId"].as_str().unwrap().to_owned()
    }

    async fn schedule_of(&self, id: &str) -> Value {
        self.told(&format!("GET /v2/schedules/{id}")).await
    }

    /// Ticks to groups that were not seen to yet.
    async fn ticks_under_way(&self) -> u64 {
        let state = self.server.gate.queue_state("qstash-groups").await.unwrap().unwrap();
        state.waiting + state.in_flight
    }

    /// Returns once a schedule ticked at an instant.
    async fn until_ticked(&self, id: &str, wanted_ms: u64) {
        patiently(async {
            while self.schedule_of(id).await["lastScheduleTime"] != wanted_ms {
                yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_schedule_ticks_in_its_zone_and_says_so() {
    let mut world = World::new().await;
    let headers = [
        ("upstash-cron", "CRON_TZ=Asia/Tokyo 0 23 * * *"),
        ("upstash-method", "PUT"),
        ("upstash-retries", "1"),
        ("upstash-delay", "5s"),
        ("upstash-timeout", "9s"),
        ("upstash-label", "one"),
        ("upstash-forward-x-a", "1"),
        ("upstash-flow-control-key", "k"),
        ("upstash-flow-control-value", "parallelism=2"),
    ];
    let id = world.scheduled(&headers).await;
    assert!(id.starts_with("scd_"), "{id}");
    let schedule = world.schedule_of(&id).await;
    let wanted = json!({
        "scheduleId": id,
        "cron": "CRON_TZ=Asia/Tokyo 0 23 * * *",
        "createdAt": 1_000_000_000,
        "destination": world.receiver.url("/"),
        "method": "PUT",
        "header": {"X-A": ["1"]},
        "body": "hello",
        "retries": 1,
        "delay": 5,
        "timeout": 9,
        "callerIP": "127.0.0.1",
        "isPaused": false,
        "nextScheduleTime": HOUR_MS,
        "flowControlKey": "k",
        "parallelism": 2,
        "period": 1,
        "label": "one",
        "labels": ["one"],
    });
    assert_eq!(schedule, wanted);
    assert_eq!(world.told("GET /v2/schedules").await, json!([wanted]));
    world.pass(800);
    world.until_ticked(&id, HOUR_MS).await;
    assert!(world.receiver.is_quiet(), "it is delayed");
    world.pass(5);
    let held = world.receiver.next().await;
    let headers = ["upstash-schedule-id", "x-a"].map(|name| held.asked.header(name));
    assert_eq!(headers, [Some(&*id), Some("1")]);
    assert_eq!((&*held.asked.method, &*held.asked.body), ("PUT", &b"hello"[..]));
    let lines = world.told(&format!("GET /v2/events?scheduleId={id}&state=CREATED")).await;
    let line = &lines["events"][0];
    assert_eq!((&line["messageId"], &line["time"]), (&json!(delivered(&held)), &json!(HOUR_MS)));
    let message = delivered(&held);
    let state = async || world.schedule_of(&id).await["lastScheduleStates"][&message].clone();
    assert_eq!(state().await, "IN_PROGRESS");
    answer(held, 200);
    world.until_state(&message, None).await;
    assert_eq!(state().await, "SUCCESS");
    let next = world.schedule_of(&id).await["nextScheduleTime"].clone();
    assert_eq!(next, HOUR_MS + 86_400_000);
    let native = world.told("GET /v1/schedules").await.to_string();
    assert!(native.contains(&format!("qstash:{id}")), "{native}");
}

#[tokio::test]
async fn a_message_of_a_schedule_was_created_at_its_tick() {
    let mut world = World::new().await;
    let id = world.scheduled(&[("upstash-cron", "0 * * * *"), ("upstash-retries", "0")]).await;
    world.pass(800);
    answer(world.receiver.next().await, 500);
    let dead = patiently(async {
        loop {
            let page = world.told(&format!("GET /v2/dlq?scheduleId={id}")).await;
            if let Some(dead) = page["messages"].get(0) {
                return dead.clone();
            }
            yield_now().await;
        }
    })
    .await;
    assert_eq!((&dead["createdAt"], &dead["notBefore"]), (&json!(HOUR_MS), &json!(HOUR_MS)));
    let number = super::number(dead["messageId"].as_str().unwrap());
    assert_eq!(dead["dlqId"], format!("{HOUR_MS}-{number}"));
}

#[tokio::test]
async fn a_schedule_is_paused_resumed_and_overwritten_and_a_pause_stays() {
    let mut world = World::new().await;
    let minutely = [("upstash-cron", "* * * * *"), ("upstash-schedule-id", "mine")];
    assert_eq!(world.scheduled(&minutely).await, "mine");
    world.told("PATCH /v2/schedules/mine/pause").await;
    let paused = world.schedule_of("mine").await;
    assert_eq!((&paused["isPaused"], paused.get("nextScheduleTime")), (&json!(true), None));
    world.pass(20);
    let hourly =
        [("upstash-cron", "0 * * * *"), ("upstash-schedule-id", "mine"), ("upstash-label", "new")];
    world.scheduled(&hourly).await;
    let other = world.schedule_of("mine").await;
    let fields = ["cron", "isPaused", "createdAt", "label"].map(|field| other[field].clone());
    assert_eq!(fields, [json!("0 * * * *"), json!(true), json!(1_000_000_000), json!("new")]);
    assert_eq!(world.told("GET /v2/schedules").await.as_array().unwrap().len(), 1);
    world.pass(3_600);
    assert!(world.receiver.is_quiet());
    world.told("POST /v2/schedules/mine/resume").await;
    let next = world.schedule_of("mine").await["nextScheduleTime"].as_u64().unwrap();
    assert_eq!(next, HOUR_MS + 3_600_000);
    world.pass(780);
    let held = world.receiver.next().await;
    assert_eq!(held.asked.header("upstash-schedule-id"), Some("mine"));
    answer(held, 200);
    assert!(world.receiver.is_quiet(), "what was missed is not made up for");
    world.told("DELETE /v2/schedules/mine").await;
    for request in
        ["GET /v2/schedules/mine", "DELETE /v2/schedules/mine", "PATCH /v2/schedules/mine/pause"]
    {
        assert_eq!(world.refused(request).await, 404, "{request}");
    }
}

#[tokio::test]
async fn a_schedule_that_says_no_time_or_an_instant_is_refused() {
    let world = World::new().await;
    let cron = ("upstash-cron", "* * * * *");
    let to = world.receiver.url("/");
    for (to, headers) in [
        (&*to, vec![]),
        (&to, vec![("upstash-cron", "99 * * * *")]),
        (&to, vec![("upstash-cron", "CRON_TZ=Nowhere/City * * * * *")]),
        (&to, vec![cron, ("upstash-not-before", "2000000000")]),
        (&to, vec![cron, ("upstash-schedule-id", "a b")]),
        ("http://10.0.0.1/", vec![cron]),
    ] {
        let answer = world.schedule(to, &headers).await;
        assert_eq!(answer.status, 400, "{headers:?}: {}", answer.text);
    }
    assert_eq!(world.told("GET /v2/schedules").await, json!([]));
}

#[tokio::test]
async fn a_schedule_goes_through_its_queue_and_shows_no_secret() {
    let mut world = World::new().await;
    let headers = [
        ("upstash-cron", "0 * * * *"),
        ("upstash-queue-name", "q"),
        ("upstash-redact-fields", "body,header"),
        ("upstash-forward-x-secret", "hush"),
    ];
    let id = world.scheduled(&headers).await;
    let shown = world.schedule_of(&id).await;
    assert_eq!(shown["queueName"], "q");
    let text = shown.to_string();
    assert!(!text.contains("hush") && !text.contains("hello"), "{text}");
    assert_eq!(text.matches("REDACTED:").count(), 2, "{text}");
    world.told("POST /v2/queues/q/pause").await;
    world.pass(800);
    world.until_ticked(&id, HOUR_MS).await;
    assert_eq!(world.told("GET /v2/queues/q").await["lag"], 1);
    world.told("POST /v2/queues/q/resume").await;
    let held = world.receiver.next().await;
    assert_eq!((held.asked.header("x-secret"), &*held.asked.body), (Some("hush"), &b"hello"[..]));
}

#[tokio::test]
async fn a_schedule_to_a_group_sends_to_the_endpoints_that_it_has_then() {
    let mut world = World::new().await;
    let endpoints = |names: &[&str]| {
        let url =
            |name: &&str| json!({"name": name, "url": world.receiver.url(&format!("/{name}"))});
        json!({"endpoints": names.iter().map(url).collect::<Vec<_>>()})
    };
    let group = "/v2/topics/g/endpoints";
    world.server.post(group, &endpoints(&["a", "b"])).await.success();
    let late = endpoints(&["c"]);
    let gone = endpoints(&["a"]).to_string();
    let headers = [
        ("upstash-cron", "0 * * * *"),
        ("upstash-label", "one"),
        ("upstash-forward-x-a", "1"),
        ("upstash-flow-control-key", "k"),
        ("upstash-flow-control-value", "parallelism=5"),
    ];
    let answered = world.schedule("g", &headers).await.json();
    let id = answered["scheduleId"].as_str().unwrap();
    let shown = world.schedule_of(id).await;
    let fields = ["destination", "body", "label", "flowControlKey"].map(|it| shown[it].clone());
    assert_eq!(fields, [json!("g"), json!("hello"), json!("one"), json!("k")]);
    world.server.post(group, &late).await.success();
    world.server.ask("DELETE", group, &[], &gone).await.success();
    world.pass(800);
    let mut paths = Vec::new();
    for held in world.receiver.several(2).await {
        let header = |name| held.asked.header(name);
        assert_eq!(header("upstash-schedule-id"), Some(id));
        assert_eq!((header("upstash-topic-name"), header("x-a")), (Some("g"), Some("1")));
        assert_eq!(held.asked.body, b"hello");
        paths.push(held.asked.path.clone());
        let message = delivered(&held);
        let lines = world.told(&format!("GET /v2/events?messageId={message}")).await;
        let line = lines["events"].as_array().unwrap().last().unwrap().clone();
        let fields = ["state", "topicName", "scheduleId", "flowControlKey"];
        let told = fields.map(|field| line[field].clone());
        assert_eq!(told, [json!("CREATED"), json!("g"), json!(id), json!("k")]);
        assert_eq!(line["endpointName"], held.asked.path.trim_start_matches('/'));
        answer(held, 200);
        world.until_state(&message, None).await;
    }
    paths.sort();
    assert_eq!(paths, ["/b", "/c"]);
    let states = world.schedule_of(id).await.get("lastScheduleStates").cloned();
    assert_eq!(states, None, "the tick itself is no message");
    world.told("DELETE /v2/topics/g").await;
    world.pass(3_600);
    world.until_ticked(id, HOUR_MS + 3_600_000).await;
    patiently(async {
        while world.ticks_under_way().await > 0 {
            yield_now().await;
        }
    })
    .await;
    assert!(world.receiver.is_quiet(), "nobody is left to send to");
}

#[tokio::test]
async fn a_server_that_starts_later_sees_to_schedules_and_ticks_that_were_missed_come_once() {
    let world = World::new().await;
    let endpoints = json!({"endpoints": [{"url": world.receiver.url("/g")}]});
    world.server.post("/v2/topics/g/endpoints", &endpoints).await.success();
    let hourly = [("upstash-cron", "0 * * * *")];
    let direct = world.scheduled(&hourly).await;
    assert_eq!(world.schedule("g", &hourly).await.status, 201);
    let World { mut server, receiver } = world;
    server.begin_stop();
    let server = patiently(server.opened_again(settings())).await;
    server.clock.advance(Span::from_hours(5));
    let mut world = World { server, receiver };
    let mut paths = Vec::new();
    for held in world.receiver.several(2).await {
        paths.push(held.asked.path.clone());
        answer(held, 200);
    }
    paths.sort();
    assert_eq!(paths, ["/", "/g"]);
    let next = world.schedule_of(&direct).await["nextScheduleTime"].clone();
    assert_eq!(next, HOUR_MS + 5 * 3_600_000);
    assert!(world.receiver.is_quiet());
}

#[tokio::test]
async fn a_namespace_has_its_own_schedules() {
    let world = World::with_tokens(vec![admin_of("acme"), admin_of("other")]).await;
    let path = format!(
        "/v2/schedules/{}?upstash-cron=@hourly&upstash-schedule-id=s",
        world.receiver.url("/")
    );
    for token in ["acme", "other"] {
        let answer = world.server.ask_as(token, ("POST", &path), &Value::Null).await;
        assert_eq!((answer.status, answer.json()), (201, json!({"scheduleId": "s"})));
    }
    let removed = world.server.ask_as("acme", ("DELETE", "/v2/schedules/s"), &Value::Null).await;
    assert_eq!(removed.status, 200);
    for (token, count) in [("acme", 0), ("other", 1)] {
        let all = world.server.ask_as(token, ("GET", "/v2/schedules"), &Value::Null).await;
        assert_eq!(all.success().as_array().unwrap().len(), count, "{token}");
    }
}
