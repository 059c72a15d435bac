//! The dead: listed, removed, and sent again as they were.

use super::logs::states;
use super::{World, answer, delivered, settings};
use crate::http::started::JSON;
use crate::push::upstream::holding::Held;
use crate::push::upstream::status;
use serde_json::{Value, json};
use tollgate::lanes::CallState;
use tollgate_server::Settings;

/// No second attempt.
const ONCE: (&str, &str) = ("upstash-retries", "0");

impl World {
    /// Hands in a message that dies; its id.
    async fn die(&mut self, door: &str, headers: &[(&str, &str)]) -> String {
        let id = self.hand_in(door, &[headers, &[ONCE]].concat()).await;
        answer(self.receiver.next().await, 500);
        self.until_state(&id, Some(CallState::Dead)).await;
        id
    }

    /// The dead that a query finds.
    async fn dead(&self, query: &str) -> Vec<Value> {
        let page = self.told(&format!("GET /v2/dlq?{query}")).await;
        assert_eq!(page.get("cursor"), None, "{page}");
        page["messages"].as_array().unwrap().clone()
    }

    /// The ids of all messages that are dead, in order.
    async fn dead_ids(&self, query: &str) -> Vec<String> {
        let dead = self.dead(query).await;
        dead.iter().map(|it| it["messageId"].as_str().unwrap().to_owned()).collect()
    }

    /// The id that a message has among the dead.
    async fn dlq_id(&self, message: &str) -> String {
        let dead = self.dead(&format!("messageId={message}")).await;
        dead[0]["dlqId"].as_str().unwrap().to_owned()
    }

    /// The messages that a retry makes.
    async fn retry(&self, query: &str) -> Vec<String> {
        let answer = self.ask(&format!("POST /v2/dlq/retry{query}")).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let responses = answer.json()["responses"].as_array().unwrap().clone();
        responses.iter().map(|it| it["messageId"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_dead_message_tells_its_last_answer_and_is_gone_once_it_is_removed() {
    let mut world = World::new().await;
    let headers = [ONCE, ("upstash-label", "one"), ("upstash-forward-x-a", "1")];
    let id = world.publish(&headers).await;
    world.receiver.next().await.answer(status(502, &[("x-b", "2")], "oops"));
    world.until_state(&id, Some(CallState::Dead)).await;
    let dead = world.dead("").await.remove(0);
    let dlq_id = dead["dlqId"].as_str().unwrap().to_owned();
    assert_eq!(dlq_id, format!("1000000000-{}", super::number(&id)));
    let mut without_header = dead.clone();
    let header = without_header.as_object_mut().unwrap().remove("responseHeader").unwrap();
    assert_eq!(header["X-B"], json!(["2"]));
    let wanted = json!({
        "dlqId": dlq_id,
        "messageId": id,
        "url": world.receiver.url("/"),
        "method": "POST",
        "header": {"X-A": ["1"]},
        "body": "hello",
        "maxRetries": 0,
        "notBefore": 1_000_000_000,
        "createdAt": 1_000_000_000,
        "callerIP": "127.0.0.1",
        "label": "one",
        "labels": ["one"],
        "responseStatus": 502,
        "responseBody": "oops",
    });
    assert_eq!(without_header, wanted);
    assert_eq!(world.told(&format!("GET /v2/dlq/{dlq_id}")).await, dead);
    world.told(&format!("DELETE /v2/dlq/{dlq_id}")).await;
    for request in ["GET /v2/dlq", "DELETE /v2/dlq", "POST /v2/dlq/retry"] {
        assert_eq!(world.refused(&format!("{request}/{dlq_id}")).await, 404, "{request}");
    }
    assert_eq!(world.refused("GET /v2/dlq/1-2").await, 404);
    assert_eq!(world.refused(&format!("GET /v2/dlq/{id}")).await, 404);
    assert_eq!(states(&world, &id).await[0], "FAILED", "it was not cancelled");
}

#[tokio::test]
async fn a_message_that_nobody_answered_has_status_zero() {
    let world = World::new().await;
    // Nobody listens there.
    let answer = world.server.ask("POST", "/v2/publish/http://127.0.0.1:1/", &[ONCE], "").await;
    let id = answer.json()["messageId"].as_str().unwrap().to_owned();
    world.until_state(&id, Some(CallState::Dead)).await;
    let dead = world.dead("responseStatus=0").await.remove(0);
    assert_eq!((&dead["responseStatus"], dead.get("responseBody")), (&json!(0), None));
    assert_eq!(world.dead_ids("responseStatus=500").await, [""; 0]);
}

#[tokio::test]
async fn the_dead_of_all_queues_come_in_one_order_page_by_page() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for door in ["publish", "enqueue/a", "enqueue/b", "publish", "enqueue/a"] {
        ids.push(world.die(door, &[]).await);
    }
    assert_eq!(world.dead_ids("").await, ids, "the earliest first");
    for (order, is_latest) in [("earliestFirst", false), ("latestFirst", true)] {
        let (mut found, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = format!("GET /v2/dlq?order={order}&count=2{cursor}");
            let page = world.told(&page).await;
            let messages = page["messages"].as_array().unwrap();
            assert!(messages.len() <= 2);
            found.extend(messages.iter().map(|it| it["messageId"].as_str().unwrap().to_owned()));
            let Some(next) = page["cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        if is_latest {
            found.reverse();
        }
        assert_eq!(found, ids, "{order}");
    }
    assert_eq!(world.dead_ids("queueName=a").await, [&*ids[1], &*ids[4]]);
    let dlq_ids = [world.dlq_id(&ids[0]).await, world.dlq_id(&ids[2]).await];
    let named = format!("dlqIds={}&dlqIds={}&queueName=b", dlq_ids[0], dlq_ids[1]);
    assert_eq!(world.dead_ids(&named).await, [&*ids[2]]);
}

#[tokio::test]
async fn the_dead_are_removed_by_name_and_by_filter_and_never_by_a_slip() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for label in ["a", "a", "b", "b", "c", "c"] {
        ids.push(world.die("publish", &[("upstash-label", label)]).await);
    }
    for wrong in ["labeel=a", "label=", "cursor=x", "state=FAILED", "host=x"] {
        assert_eq!(world.refused(&format!("DELETE /v2/dlq?{wrong}")).await, 400, "{wrong}");
    }
    let none = world.server.ask("DELETE", "/v2/dlq", &[JSON], r#"{"dlqIds":[]}"#).await;
    assert_eq!(none.success(), json!({"deleted": 0}));
    let none = world.server.ask("DELETE", "/v2/dlq", &[JSON], r#"{"ids":["1-1"]}"#).await;
    assert_eq!(none.status, 400);
    assert_eq!(world.dead_ids("").await, ids);
    assert_eq!(world.told("DELETE /v2/dlq?label=a").await, json!({"deleted": 2}));
    let (third, fourth) = (world.dlq_id(&ids[2]).await, world.dlq_id(&ids[3]).await);
    let body = json!({"dlqIds": [third, "1-1"]});
    let deleted = world.server.ask("DELETE", "/v2/dlq", &[JSON], &body.to_string()).await;
    assert_eq!(deleted.success(), json!({"deleted": 1}));
    let query = format!("dlqIds={fourth}&dlqIds={third}");
    assert_eq!(world.told(&format!("DELETE /v2/dlq?{query}")).await, json!({"deleted": 1}));
    let first = world.told("DELETE /v2/dlq?count=1").await;
    assert_eq!(first["deleted"], 1);
    let next = first["cursor"].as_str().unwrap();
    let last = world.told(&format!("DELETE /v2/dlq?count=1&cursor={next}")).await;
    assert_eq!(last, json!({"deleted": 1}), "there is no more");
    assert_eq!(world.dead_ids("").await, [""; 0]);
}

/// What a delivery has that matters to its receiver.
fn sent(held: &Held) -> (String, Option<String>, Vec<u8>, Option<String>) {
    let asked = &held.asked;
    let header = |name| asked.header(name).map(str::to_owned);
    (asked.method.clone(), header("x-secret"), asked.body.clone(), header("upstash-retried"))
}

#[tokio::test]
async fn a_message_is_sent_again_as_it_was_although_it_is_shown_redacted() {
    let mut world = World::new().await;
    let headers = [
        ("upstash-redact-fields", "body,header"),
        ("upstash-forward-x-secret", "hush"),
        ("upstash-method", "PUT"),
        ("upstash-label", "one"),
        ("upstash-flow-control-key", "k"),
        ("upstash-flow-control-value", "parallelism=1, rate=7, period=1m"),
        ONCE,
    ];
    let first = world.publish(&headers).await;
    let held = world.receiver.next().await;
    let was = sent(&held);
    answer(held, 500);
    world.until_state(&first, Some(CallState::Dead)).await;
    let shown = world.dead("").await.remove(0).to_string();
    assert!(!shown.contains("hush") && !shown.contains("hello"), "{shown}");
    assert_eq!(shown.matches("REDACTED:").count(), 2, "{shown}");
    let second = world.retry("").await.remove(0);
    assert_ne!(first, second);
    assert_eq!(world.dead_ids("").await, [""; 0]);
    let held = world.receiver.next().await;
    assert_eq!((sent(&held), delivered(&held)), (was, second.clone()));
    let lines = world.told(&format!("GET /v2/events?messageId={second}")).await["events"].clone();
    assert!(!lines.to_string().contains("hush"), "{lines}");
    let said = ["flowControlKey", "parallelism", "rate", "period", "label", "maxRetries"];
    let said = said.map(|field| lines[0][field].clone());
    assert_eq!(said, [json!("k"), json!(1), json!(7), json!(60), json!("one"), json!(0)]);
    // Its limit came along: another of its key waits.
    let third = world.publish(&headers).await;
    world.until_state(&third, Some(CallState::Waiting)).await;
    answer(held, 200);
    assert_eq!(delivered(&world.receiver.next().await), third);
}

#[tokio::test]
async fn the_dead_are_sent_again_by_name_and_by_filter() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for label in ["a", "a", "b", "c"] {
        ids.push(world.die("enqueue/q", &[("upstash-label", label)]).await);
    }
    assert_eq!(world.refused("POST /v2/dlq/retry?labeel=a").await, 400);
    let again = world.retry("?label=a").await;
    assert_eq!(again.len(), 2);
    for id in &again {
        // It waits in its queue, one after the other.
        let held = world.receiver.next().await;
        assert_eq!(delivered(&held), *id);
        answer(held, 200);
    }
    let (third, fourth) = (world.dlq_id(&ids[2]).await, world.dlq_id(&ids[3]).await);
    let again = world.retry(&format!("?dlqIds={fourth}&dlqIds=1-1&dlqIds={fourth}")).await;
    assert_eq!(again.len(), 1, "what is not there is left out, and what is named twice is one");
    answer(world.receiver.next().await, 200);
    assert_eq!(world.retry(&format!("?dlqIds={fourth}")).await, [""; 0]);
    assert_eq!(world.retry(&format!("?dlqIds={third}")).await.len(), 1);
    answer(world.receiver.next().await, 200);
    assert_eq!(world.retry("?count=100").await, [""; 0]);
}

#[tokio::test]
async fn one_is_sent_again_with_other_settings_and_once_however_often_it_is_asked_at_a_time() {
    let mut world = World::new().await;
    let id = world.die("publish", &[("upstash-forward-x-a", "1"), ("upstash-label", "old")]).await;
    let path = format!("/v2/dlq/retry/{}", world.dlq_id(&id).await);
    let headers =
        [("upstash-retries", "5"), ("upstash-label", "new"), ("upstash-forward-x-b", "2")];
    let wrong = world.server.ask("POST", &path, &[("upstash-retries", "x")], "").await;
    assert_eq!(wrong.status, 400);
    let ask = || world.server.ask("POST", &path, &headers, "");
    let (one, other) = tokio::join!(ask(), ask());
    let made: Vec<_> = [one, other].into_iter().filter(|it| it.status != 404).collect();
    assert!(made.iter().all(|it| it.status == 201 && it.json() == made[0].json()), "{made:?}");
    let again = made[0].json()["messageId"].as_str().unwrap().to_owned();
    let held = world.receiver.next().await;
    assert_eq!(delivered(&held), again);
    assert_eq!(["x-a", "x-b"].map(|name| held.asked.header(name)), [Some("1"), Some("2")]);
    let lines = world.told(&format!("GET /v2/events?messageId={again}")).await["events"].clone();
    assert_eq!((&lines[0]["maxRetries"], &lines[0]["labels"]), (&json!(5), &json!(["new"])));
    answer(held, 200);
    world.until_state(&again, None).await;
    assert!(world.receiver.is_quiet());
}

#[tokio::test]
async fn a_server_that_keeps_bodies_from_those_who_look_tells_no_secret_of_any_message() {
    let mut world = World::with(Settings { redact_bodies: true, ..settings() }).await;
    let id = world.publish(&[ONCE, ("upstash-forward-x-secret", "hush")]).await;
    world.receiver.next().await.answer(status(500, &[("x-b", "silence")], "quiet"));
    world.until_state(&id, Some(CallState::Dead)).await;
    let to = format!("/v2/schedules/{}?upstash-cron=@daily", world.receiver.url("/"));
    let made =
        world.server.ask("POST", &to, &[("upstash-forward-x-secret", "hush")], "hello").await;
    assert_eq!(made.status, 201);
    for path in ["dlq", "events", "schedules"] {
        let told = world.told(&format!("GET /v2/{path}")).await.to_string();
        for secret in ["hush", "hello", "aGVsbG8", "silence", "quiet", "cXVpZXQ"] {
            assert!(!told.contains(secret), "{path}: {told}");
        }
        assert!(told.contains(&world.receiver.url("/")), "{path}: {told}");
    }
    assert_eq!(world.dead("").await[0]["responseStatus"], 500);
}
