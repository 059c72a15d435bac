//! `/v1/consume` with `wait`: turns, places given up, and the end of the server.

use super::client::Client;
use super::started::Started;
use serde_json::{Value, json};
use tollgate::Span;

fn wait(priority: u64) -> Value {
    json!({
        "tolls": [{"limit": "stripe"}],
        "on_exceeded": "wait", "max_wait": "1m", "priority": priority,
    })
}

/// A server whose one unit a second is spent, and so many calls that wait there.
async fn crowded(priorities: &[u64]) -> (Started, Vec<Client>) {
    let server = Started::per_second("stripe", 1).await;
    server.consume(&json!({"tolls": [{"limit": "stripe"}]})).await.success();
    let mut waiting = Vec::new();
    for (before, priority) in (0..).zip(priorities) {
        waiting.push(server.begin_consume(&wait(*priority)).await);
        server.until_waiting("stripe", before + 1).await;
    }
    (server, waiting)
}

#[tokio::test]
async fn who_waits_is_answered_when_the_limit_allows() {
    let (server, mut waiting) = crowded(&[0]).await;
    server.clock.advance(Span::from_secs(1));
    let granted = waiting[0].answer().await.unwrap();
    assert_eq!(granted.success()["granted"], true);
    assert_eq!(granted.header("ratelimit"), Some(r#""stripe";r=0;t=1"#));
}

#[tokio::test]
async fn waiters_are_served_first_come_first_served() {
    let (server, mut waiting) = crowded(&[0, 0]).await;
    server.clock.advance(Span::from_secs(1));
    waiting[0].answer().await.unwrap().success();
    server.until_waiting("stripe", 1).await;
    server.clock.advance(Span::from_secs(1));
    waiting[1].answer().await.unwrap().success();
}

#[tokio::test]
async fn a_higher_priority_goes_first() {
    let (server, mut waiting) = crowded(&[0, 9]).await;
    server.clock.advance(Span::from_secs(1));
    waiting[1].answer().await.unwrap().success();
    server.until_waiting("stripe", 1).await;
    server.clock.advance(Span::from_secs(1));
    waiting[0].answer().await.unwrap().success();
}

#[tokio::test]
async fn who_waits_is_not_overtaken() {
    let (server, _waiting) = crowded(&[0]).await;
    let refused = server.consume(&json!({"tolls": [{"limit": "stripe"}]})).await;
    refused.problem(429, "refused");
    assert_eq!(
        (refused.field("cause"), refused.field("retry_after_ms")),
        ("turn".into(), 2000.into())
    );
}

#[tokio::test]
async fn who_would_wait_too_long_is_refused_at_once() {
    let (server, _waiting) = crowded(&[]).await;
    let mut call = wait(0);
    call["max_wait"] = json!("999ms");
    let refused = server.consume(&call).await;
    refused.problem(429, "refused");
    assert_eq!(refused.field("retry_after_ms"), 1000);
}

#[tokio::test]
async fn a_client_that_disconnects_gives_up_its_place() {
    let (server, mut waiting) = crowded(&[0, 0]).await;
    drop(waiting.remove(0));
    server.until_waiting("stripe", 1).await;
    server.clock.advance(Span::from_secs(1));
    waiting[0].answer().await.unwrap().success();
}

#[tokio::test]
async fn who_waits_learns_that_the_server_goes() {
    let (mut server, mut waiting) = crowded(&[0, 0]).await;
    server.begin_stop();
    for client in &mut waiting {
        let told = client.answer().await.unwrap().problem(503, "shutting_down");
        assert!(told.contains("nothing was paid"), "{told}");
        assert!(client.answer().await.is_none());
    }
    server.until_waiting("stripe", 0).await;
    server.ended().await;
}

#[tokio::test]
async fn a_changed_limit_reaches_who_waits() {
    let (server, mut waiting) = crowded(&[0]).await;
    let faster = json!({"rule": "token_bucket", "limit": 100, "per": "1s"});
    server.put("/v1/limits/stripe", &faster).await.success();
    waiting[0].answer().await.unwrap().success();
}
