//! Messages as they are told of, and cancelled in each state.

use super::{World, answer, delivered, keyed, number};
use crate::http::holders::admin_of;
use crate::http::started::JSON;
use serde_json::{Value, json};
use tollgate::lanes::CallState;

/// What is answered when a message is cancelled.
async fn cancel(world: &World, id: &str) -> Value {
    world.told(&format!("DELETE /v2/messages/{id}")).await
}

/// How many are cancelled by a query.
async fn cancelled(world: &World, query: &str) -> u64 {
    let answer = world.told(&format!("DELETE /v2/messages{query}")).await;
    answer["cancelled"].as_u64().unwrap()
}

/// A key whose messages wait.
async fn paused(world: &World) {
    world.told("POST /v2/flowControl/k/pin?parallelism=100").await;
    world.told("POST /v2/flowControl/k/pause").await;
}

#[tokio::test]
async fn a_message_is_told_while_it_is_alive_and_once_it_has_ended() {
    let mut world = World::new().await;
    let headers = [
        &keyed("k", "parallelism=3")[..],
        &[("upstash-forward-x-a", "1"), ("upstash-label", "one,two"), ("upstash-retries", "5")],
    ]
    .concat();
    let id = world.publish(&headers).await;
    let held = world.receiver.next().await;
    let path = format!("GET /v2/messages/{id}");
    let message = world.told(&path).await;
    let wanted = json!({
        "messageId": id,
        "url": world.receiver.url("/"),
        "method": "POST",
        "header": {"X-A": ["1"]},
        "body": "hello",
        "maxRetries": 5,
        "notBefore": 1_000_000_000,
        "createdAt": 1_000_000_000,
        "callerIP": "127.0.0.1",
        "flowControlKey": "k",
        "parallelism": 3,
        "period": 1,
        "label": "one",
        "labels": ["one", "two"],
    });
    assert_eq!(message, wanted);
    answer(held, 200);
    world.until_state(&id, None).await;
    assert_eq!(world.told(&path).await, wanted);
}

#[tokio::test]
async fn a_message_that_waits_or_is_delayed_is_cancelled_at_once() {
    let mut world = World::new().await;
    let ids = world.flow("k", "parallelism=1", 3).await;
    let held = world.receiver.next().await;
    let headers = [&keyed("k", "parallelism=1")[..], &[("upstash-delay", "1h")]].concat();
    let delayed = world.publish(&headers).await;
    assert_eq!(world.key("k").await["waitListSize"], 3);
    for id in [&ids[1], &delayed] {
        assert_eq!(cancel(&world, id).await, json!({"cancelled": 1}));
        assert_eq!(world.refused(&format!("DELETE /v2/messages/{id}")).await, 404);
    }
    assert_eq!(world.key("k").await["waitListSize"], 1);
    // Its place goes to the next.
    answer(held, 200);
    assert_eq!(delivered(&world.receiver.next().await), ids[2]);
}

#[tokio::test]
async fn a_message_in_flight_that_is_cancelled_is_not_tried_again() {
    let mut world = World::new().await;
    let id = world.flow("k", "parallelism=1", 1).await.remove(0);
    let held = world.receiver.next().await;
    assert_eq!(cancel(&world, &id).await, json!({"cancelled": 1}));
    answer(held, 500);
    world.until_state(&id, None).await;
    let call = world.server.get(&format!("/v1/calls/{}", number(&id))).await.success();
    assert_eq!(call["state"], "cancelled");
    // Its key is not gone at the very instant at which it was used.
    world.pass(1);
    assert_eq!(world.refused("GET /v2/flowControl/k").await, 404);
}

#[tokio::test]
async fn what_has_ended_or_never_was_is_not_cancelled() {
    let mut world = World::new().await;
    let done = world.publish(&[]).await;
    answer(world.receiver.next().await, 200);
    world.until_state(&done, None).await;
    let dead = world.publish(&[("upstash-retries", "0")]).await;
    answer(world.receiver.next().await, 500);
    world.until_state(&dead, Some(CallState::Dead)).await;
    for id in [&done, &dead, "msg_999999", "nonsense", "msg_0x1"] {
        assert_eq!(world.refused(&format!("DELETE /v2/messages/{id}")).await, 404, "{id}");
    }
    assert_eq!(world.refused("GET /v2/messages/msg_999999").await, 404);
    assert_eq!(cancelled(&world, &format!("?messageIds={done},{dead}")).await, 0);
    assert_eq!(cancelled(&world, "").await, 0);
    world.until_state(&dead, Some(CallState::Dead)).await;
}

#[tokio::test]
async fn those_that_a_query_means_are_cancelled_and_no_others() {
    let world = World::new().await;
    paused(&world).await;
    let labelled = async |label: &str| {
        let headers = [&keyed("k", "parallelism=1")[..], &[("upstash-label", label)]].concat();
        world.publish(&headers).await
    };
    let (mut red, mut blue) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        red.push(labelled("red").await);
        blue.push(labelled("blue").await);
    }
    let queue = json!({"queueName": "q", "paused": true});
    world.server.post("/v2/queues", &queue).await.success();
    world.hand_in("enqueue/q", &[("upstash-label", "red")]).await;
    assert_eq!(world.refused("DELETE /v2/messages?labeel=red").await, 400);
    assert_eq!(cancelled(&world, "?label=red&flowControlKey=other&count=100").await, 0);
    assert_eq!(cancelled(&world, "?queueName=other").await, 0);
    assert_eq!(cancelled(&world, "?label=red&count=2").await, 2);
    for (id, state) in [(&red[0], None), (&red[1], None), (&red[2], Some(CallState::Waiting))] {
        world.until_state(id, state).await;
    }
    assert_eq!(cancelled(&world, "?queueName=q").await, 1);
    assert_eq!(cancelled(&world, "?label=red&count=100").await, 1);
    let twice = format!("?messageIds={0}&messageIds={0}&messageIds={1}", blue[0], red[0]);
    assert_eq!(cancelled(&world, &twice).await, 1);
    let both = format!("?messageIds={},{}&label=red", blue[1], blue[2]);
    assert_eq!(cancelled(&world, &both).await, 0);
    assert_eq!(world.key("k").await["waitListSize"], 2);
    let by_key = "?flowControlKey=other&flowControlKey=k&label=blue";
    assert_eq!(cancelled(&world, by_key).await, 2);
}

#[tokio::test]
async fn ids_in_a_body_are_cancelled_and_no_ids_are_none() {
    let world = World::new().await;
    paused(&world).await;
    let ids = world.flow("k", "parallelism=1", 3).await;
    let ask = async |body: &Value| {
        let answer = world.server.ask("DELETE", "/v2/messages", &[JSON], &body.to_string()).await;
        (answer.status, answer.json()["cancelled"].clone())
    };
    assert_eq!(ask(&json!({"messageIds": []})).await, (200, json!(0)));
    assert_eq!(ask(&json!({})).await.0, 400);
    assert_eq!(ask(&json!({"messageIds": [ids[0], "msg_77"]})).await, (200, json!(1)));
    assert_eq!(world.key("k").await["waitListSize"], 2);
}

#[tokio::test]
async fn nothing_at_all_means_everything_that_is_the_callers_however_much() {
    let world = World::with_tokens(vec![admin_of("acme"), admin_of("rival")]).await;
    let batch = |count: usize| {
        let headers = json!({"upstash-delay": "1h"});
        let item = json!({"destination": world.receiver.url("/"), "headers": headers});
        Value::Array(vec![item; count])
    };
    for (token, count) in [("acme", 1_000), ("acme", 500), ("rival", 2)] {
        let answer = world.server.ask_as(token, ("POST", "/v2/batch"), &batch(count)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let path = format!("/v2/enqueue/q/{}", world.receiver.url("/"));
    world
        .server
        .ask_as("acme", ("POST", "/v2/queues"), &json!({"queueName": "q", "paused": true}))
        .await
        .success();
    let queued = world.server.ask_as("acme", ("POST", &path), &Value::Null).await.json();
    let all = ("DELETE", "/v2/messages?count=100");
    // What is another's is not there.
    let one = format!("/v2/messages/{}", queued["messageId"].as_str().unwrap());
    for method in ["GET", "DELETE"] {
        assert_eq!(world.server.ask_as("rival", (method, &one), &Value::Null).await.status, 404);
    }
    let told = world.server.ask_as("acme", all, &Value::Null).await.success();
    assert_eq!(told, json!({"cancelled": 1_501}));
    let told = world.server.ask_as("rival", ("DELETE", "/v2/messages"), &Value::Null).await;
    assert_eq!(told.success(), json!({"cancelled": 2}));
}

#[tokio::test]
async fn a_queue_is_removed_with_what_waits_and_is_dead_there_but_not_while_it_delivers() {
    let mut world = World::new().await;
    let dead = world.hand_in("enqueue/q", &[("upstash-retries", "0")]).await;
    answer(world.receiver.next().await, 500);
    world.until_state(&dead, Some(CallState::Dead)).await;
    let first = world.hand_in("enqueue/q", &[]).await;
    let held = world.receiver.next().await;
    let second = world.hand_in("enqueue/q", &[]).await;
    assert_eq!(world.refused("DELETE /v2/queues/q").await, 412);
    world.until_state(&second, Some(CallState::Waiting)).await;
    world.told("POST /v2/queues/q/pause").await;
    answer(held, 200);
    world.until_state(&first, None).await;
    world.told("DELETE /v2/queues/q").await;
    assert_eq!(world.refused("GET /v2/queues/q").await, 404);
    for id in [&dead, &second] {
        world.until_state(id, None).await;
    }
    world.told("DELETE /v2/queues/q").await;
}

#[tokio::test]
async fn a_failure_callback_names_a_dead_message_by_when_it_was_accepted() {
    let mut world = World::new().await;
    let back = world.receiver.url("/failed");
    let id = world.publish(&[("upstash-retries", "0"), ("upstash-failure-callback", &back)]).await;
    let held = world.receiver.next().await;
    world.pass(7);
    answer(held, 500);
    let told = world.receiver.next().await;
    let told: Value = serde_json::from_slice(&told.asked.body).unwrap();
    assert_eq!(told["sourceMessageId"], id);
    assert_eq!(told["dlqId"], format!("1000000000-{}", number(&id)));
}

#[tokio::test]
async fn a_failed_attempt_is_told_though_all_messages_go_through_queues() {
    let mut world = World::new().await;
    let url = world.receiver.url("/told");
    let id = world.hand_in("enqueue/q", &[("upstash-callback", &url)]).await;
    answer(world.receiver.next().await, 500);
    let told = world.receiver.next().await;
    assert_eq!(told.asked.path, "/told");
    assert_ne!(delivered(&told), id, "it is a message of its own");
    answer(told, 200);
}

#[tokio::test]
async fn a_message_that_would_be_too_much_for_its_group_is_refused_before_it_is_copied() {
    let world = World::new().await;
    let endpoint = |nth| json!({"url": world.receiver.url(&format!("/{nth}"))});
    let endpoints: Vec<_> = (0..1_000).map(endpoint).collect();
    let body = json!({"endpoints": endpoints}).to_string();
    let added = world.server.ask("POST", "/v2/topics/g/endpoints", &[JSON], &body).await;
    assert_eq!(added.status, 200, "{}", added.text);
    let long = "x".repeat(100_000);
    let refused = world.server.ask("POST", "/v2/publish/g", &[], &long).await;
    assert_eq!(refused.status, 412, "{}", refused.text);
}
