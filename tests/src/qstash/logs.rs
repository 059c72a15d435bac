//! The log: what happened to messages, in order, by every filter, page by page.

use super::{World, answer, number};
use crate::http::holders::admin_of;
use crate::push::upstream::status;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate::lanes::{CallId, CallState};

/// When the clock of the tests starts.
pub(super) const START_MS: u64 = 1_000_000_000;

/// A message that is not sent for as long as a test lasts.
const LATER: (&str, &str) = ("upstash-delay", "1h");

/// Lines of the log that a query finds.
async fn lines(world: &World, query: &str) -> Vec<Value> {
    let page = world.told(&format!("GET /v2/events?{query}")).await;
    assert_eq!(page.get("cursor"), None, "{page}");
    page["events"].as_array().unwrap().clone()
}

/// What happened to a message, the latest first.
pub(super) async fn states(world: &World, id: &str) -> Vec<String> {
    texts(&lines(world, &format!("messageId={id}")).await, "state")
}

/// A field of each line.
fn texts(lines: &[Value], field: &str) -> Vec<String> {
    lines.iter().map(|line| line[field].as_str().unwrap().to_owned()).collect()
}

/// Takes a message back.
async fn cancel(world: &World, id: &str) {
    assert!(world.server.gate.cancel(CallId(number(id).parse().unwrap())).await.unwrap());
}

#[tokio::test]
async fn a_message_that_is_delivered_was_created_and_active_before() {
    let mut world = World::new().await;
    let id = world.publish(&[("upstash-forward-x-a", "1"), ("content-type", "text/plain")]).await;
    let held = world.receiver.next().await;
    assert_eq!(states(&world, &id).await, ["ACTIVE", "CREATED"], "it is under way");
    world.pass(2);
    held.answer(status(201, &[("x-b", "2")], "thanks"));
    world.until_state(&id, None).await;
    let told = lines(&world, &format!("messageId={id}")).await;
    assert_eq!(texts(&told, "state"), ["DELIVERED", "ACTIVE", "CREATED"]);
    let created = json!({
        "time": START_MS,
        "state": "CREATED",
        "messageId": id,
        "url": world.receiver.url("/"),
        "method": "POST",
        "header": {"Content-Type": ["text/plain"], "X-A": ["1"]},
        "body": STANDARD.encode("hello"),
        "maxRetries": 3,
        "callerIP": "127.0.0.1",
    });
    assert_eq!(told[2], created);
    let delivered = &told[0];
    assert_eq!(
        (&delivered["time"], &told[1]["time"]),
        (&json!(START_MS + 2_000), &json!(START_MS))
    );
    assert_eq!((&delivered["responseStatus"], delivered.get("error")), (&json!(201), None));
    assert_eq!(delivered["responseHeader"]["X-B"], json!(["2"]));
    assert_eq!(delivered["responseBody"], STANDARD.encode("thanks"));
    let logs = world.told(&format!("GET /v2/logs?messageIds={id}")).await;
    assert_eq!(logs, json!({"logs": told}), "under its new name");
}

#[tokio::test]
async fn a_message_that_dies_was_tried_again_before() {
    let mut world = World::new().await;
    let id = world.publish(&[("upstash-retries", "1"), ("upstash-retry-delay", "5000")]).await;
    world.receiver.next().await.answer(status(500, &[], "oops"));
    world.until_state(&id, Some(CallState::Resting)).await;
    world.pass(5);
    answer(world.receiver.next().await, 503);
    world.until_state(&id, Some(CallState::Dead)).await;
    let told = lines(&world, &format!("messageId={id}&order=earliestFirst")).await;
    let wanted = ["CREATED", "ACTIVE", "ERROR", "RETRY", "ACTIVE", "ERROR", "FAILED"];
    assert_eq!(texts(&told, "state"), wanted);
    assert_eq!(told[2]["responseStatus"], 500);
    assert_eq!(told[2]["error"], "the destination answered with status 500");
    assert_eq!(told[2]["responseBody"], STANDARD.encode("oops"));
    assert_eq!(told[3]["nextDeliveryTime"], START_MS + 5_000);
    assert_eq!(
        (&told[4]["time"], &told[5]["responseStatus"]),
        (&json!(START_MS + 5_000), &json!(503))
    );
    assert_eq!(told[6]["body"], STANDARD.encode("hello"), "what is dead still has its body");
    let mut latest = states(&world, &id).await;
    latest.reverse();
    assert_eq!(latest, wanted);
    let all = lines(&world, "").await;
    assert_eq!(texts(&all, "state").into_iter().rev().collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn a_message_is_cancelled_where_it_waits_and_not_tried_again_where_it_is_in_flight() {
    let mut world = World::new().await;
    let waiting = world.publish(&[LATER]).await;
    cancel(&world, &waiting).await;
    assert_eq!(states(&world, &waiting).await, ["CANCELED", "CANCEL_REQUESTED", "CREATED"]);
    let flying = world.publish(&[]).await;
    let held = world.receiver.next().await;
    cancel(&world, &flying).await;
    answer(held, 500);
    world.until_state(&flying, None).await;
    let wanted = ["CANCELED", "CANCEL_REQUESTED", "ERROR", "ACTIVE", "CREATED"];
    assert_eq!(states(&world, &flying).await, wanted);
}

#[tokio::test]
async fn lines_are_found_by_every_filter() {
    let world = World::new().await;
    let group = json!({"endpoints": [{"url": world.receiver.url("/g"), "name": "e"}]});
    world.server.post("/v2/topics/g/endpoints", &group).await.success();
    let key = ("upstash-flow-control-key", "a,b");
    let value = ("upstash-flow-control-value", "rate=1");
    let plain = world.hand_in("publish", &[LATER]).await;
    let labelled = world.hand_in("publish", &[LATER, ("upstash-label", "one,two")]).await;
    let keyed = world.hand_in("publish", &[LATER, key, value]).await;
    let queued = world.hand_in("enqueue/q", &[LATER]).await;
    let answer = world.server.ask("POST", "/v2/publish/g", &[LATER], "").await;
    let grouped = answer.json()[0]["messageId"].as_str().unwrap().to_owned();
    world.server.clock.advance(tollgate::Span::from_secs(1));
    let late = world.hand_in("publish", &[LATER]).await;
    let address = world.receiver.url("");
    let host = address.strip_prefix("http://").unwrap();
    let all = [&plain, &labelled, &keyed, &queued, &grouped, &late];
    for (query, wanted) in [
        (format!("messageId={plain}"), vec![&plain]),
        (format!("messageIds={plain}&messageIds={late}"), vec![&plain, &late]),
        (format!("messageIds={plain},{late}"), vec![&plain, &late]),
        ("messageId=msg_12345678".to_owned(), vec![]),
        ("state=CREATED".to_owned(), all.into()),
        ("state=IN_PROGRESS".to_owned(), vec![]),
        (format!("url={address}/g"), vec![&grouped]),
        (format!("host={host}&path=/g"), vec![&grouped]),
        ("host=elsewhere".to_owned(), vec![]),
        ("topicName=g".to_owned(), vec![&grouped]),
        ("queueName=q&queueName=other".to_owned(), vec![&queued]),
        ("scheduleId=scd_1".to_owned(), vec![]),
        ("label=two".to_owned(), vec![&labelled]),
        ("label=two&queueName=q".to_owned(), vec![]),
        ("flowControlKey=a%2Cb".to_owned(), vec![&keyed]),
        ("callerIp=127.0.0.1".to_owned(), all.into()),
        ("callerIp=192.0.2.1".to_owned(), vec![]),
        (format!("fromDate={}", START_MS + 1), vec![&late]),
        (format!("toDate={START_MS}&label=one"), vec![&labelled]),
        (format!("fromDate={START_MS}&toDate={}", START_MS + 999), all[..5].into()),
        ("groupBy=messageId&trimBody=true".to_owned(), all.into()),
    ] {
        for order in ["earliestFirst", "latestFirst"] {
            let mut found =
                texts(&lines(&world, &format!("{query}&order={order}")).await, "messageId");
            if order == "latestFirst" {
                found.reverse();
            }
            assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{query}, {order}");
        }
    }
    for wrong in ["labeel=x", "state=GONE", "cursor=x", "count=0", "responseStatus=500"] {
        assert_eq!(world.refused(&format!("GET /v2/events?{wrong}")).await, 400, "{wrong}");
    }
}

#[tokio::test]
async fn pages_follow_each_other_whatever_happens_meanwhile() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let id = world.publish(&[("upstash-retries", "0"), ("upstash-label", "one")]).await;
        answer(world.receiver.next().await, 500);
        world.until_state(&id, Some(CallState::Dead)).await;
        ids.push(id);
    }
    let named = format!("messageIds={}&", ids.join(","));
    for narrowed in ["", "label=one&", &*named] {
        for order in ["latestFirst", "earliestFirst"] {
            let query = format!("{narrowed}order={order}&fromDate={START_MS}");
            let whole = world.told(&format!("GET /v2/logs?{query}&count=1000")).await;
            let whole = whole["logs"].as_array().unwrap().clone();
            assert!(whole.len() >= 12, "{whole:?}");
            let (mut paged, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = world.told(&format!("GET /v2/logs?{query}&count=2{cursor}")).await;
                let lines = page["logs"].as_array().unwrap();
                assert!(lines.len() <= 2, "{page}");
                paged.extend(lines.clone());
                // What is new comes before all that was told, or behind it.
                if cursor.is_empty() {
                    world.publish(&[LATER]).await;
                }
                let Some(next) = page["cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            match order {
                "latestFirst" => assert_eq!(paged, whole, "{query}"),
                _ => assert!(paged.starts_with(&whole), "{query}"),
            }
        }
    }
}

#[tokio::test]
async fn what_is_redacted_is_not_in_the_log() {
    let mut world = World::new().await;
    let headers = [
        ("upstash-redact-fields", "body,header[X-Secret]"),
        ("upstash-forward-x-secret", "hush"),
        ("upstash-forward-x-open", "loud"),
    ];
    let id = world.publish(&headers).await;
    let held = world.receiver.next().await;
    assert_eq!(held.asked.header("x-secret"), Some("hush"));
    assert_eq!(held.asked.body, b"hello");
    let text = world.told(&format!("GET /v2/events?messageId={id}")).await.to_string();
    assert!(!text.contains("hush") && !text.contains(&STANDARD.encode("hello")), "{text}");
    assert!(text.contains("loud"), "{text}");
    assert_eq!(text.matches("REDACTED:").count(), 4, "a body and a header in each of two lines");
}

#[tokio::test]
async fn a_namespace_sees_its_own_messages_alone() {
    let world = World::with_tokens(vec![admin_of("acme"), admin_of("other")]).await;
    let publish = format!("/v2/publish/{}", world.receiver.url("/"));
    let mut ids = Vec::new();
    for token in ["acme", "other"] {
        let answer = world.server.ask_as(token, ("POST", &publish), &Value::Null).await;
        ids.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    }
    for (token, id) in ["acme", "other"].into_iter().zip(&ids) {
        for query in ["", "?order=earliestFirst", &*format!("?messageIds={}", ids.join(","))] {
            let path = format!("/v2/events{query}");
            let page = world.server.ask_as(token, ("GET", &path), &Value::Null).await.success();
            let lines = page["events"].as_array().unwrap();
            assert!(!lines.is_empty() && lines.iter().all(|line| line["messageId"] == **id));
        }
    }
}
