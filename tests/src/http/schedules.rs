//! Schedules over HTTP.

use super::started::Started;
use serde_json::{Value, json};
use tollgate::Span;

fn every_minute() -> Value {
    json!({"queue": "q", "cron": "* * * * *", "call": {"lane": "a", "body": {"n": 1}, "delay": "1s"}})
}

#[tokio::test]
async fn a_schedule_hands_in_its_call_at_each_tick() {
    let server = Started::with_queue(10).await;
    let schedule = server.put("/v1/schedules/s", &every_minute()).await.success();
    assert_eq!(schedule["zone"], "UTC");
    assert_eq!(
        schedule["call"],
        json!({"lane": "a", "body": {"n": 1}, "priority": 0, "delay": "1s"})
    );
    let mut waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "5m"})).await;
    server.until_asking(1).await;
    server.clock.advance(Span::from_secs(60));
    let answer = waiting.answer().await.unwrap().success();
    assert_eq!(answer["calls"][0]["body"], json!({"n": 1}));
    let schedule = server.get("/v1/schedules/s").await.success();
    assert!(schedule["last"].is_string() && schedule["next"].as_str() > schedule["last"].as_str());
}

#[tokio::test]
async fn schedules_are_paused_listed_and_removed() {
    let server = Started::with_queue(10).await;
    for name in ["b", "a"] {
        server.put(&format!("/v1/schedules/{name}"), &every_minute()).await.success();
    }
    let paused = server.post("/v1/schedules/a/pause", &json!({})).await.success();
    assert_eq!((&paused["paused"], paused.get("next")), (&json!(true), None));
    let resumed = server.post("/v1/schedules/a/resume", &json!({})).await.success();
    assert!(resumed["next"].is_string());
    let page = server.get("/v1/schedules?limit=1").await.success();
    assert_eq!((&page["schedules"][0]["name"], &page["next"]), (&json!("a"), &json!("a")));
    server.delete("/v1/schedules/a").await.success();
    for answer in [
        server.delete("/v1/schedules/a").await,
        server.get("/v1/schedules/a").await,
        server.post("/v1/schedules/a/pause", &json!({})).await,
    ] {
        answer.problem(404, "unknown_schedule");
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_is_refused() {
    let server = Started::with_queue(10).await;
    let call = json!({"lane": "a"});
    for (schedule, status, code) in [
        (json!({"queue": "q", "call": call}), 400, "invalid_body"),
        (json!({"queue": "q", "cron": "x", "call": call}), 400, "invalid_body"),
        (json!({"queue": "q", "cron": "0 0 30 2 *", "call": call}), 400, "invalid_body"),
        (
            json!({"queue": "q", "cron": "* * * * *", "zone": "Mars", "call": call}),
            400,
            "invalid_body",
        ),
        (json!({"queue": "x", "cron": "* * * * *", "call": call}), 404, "unknown_queue"),
        (
            json!({"queue": "q", "cron": "* * * * *", "call": {"lane": "a", "not_before": "2030-01-01T00:00:00Z"}}),
            422,
            "instant_in_schedule",
        ),
    ] {
        server.put("/v1/schedules/s", &schedule).await.problem(status, code);
    }
}
