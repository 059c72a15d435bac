//! How messages with flow-control keys start, and how their keys stand meanwhile.

use super::{LONG, World, answer, delivered, keyed, number};
use crate::push::upstream::holding::Held;
use serde_json::{Value, json};
use tollgate::Clock;
use tollgate::lanes::{CallId, CallState};

/// When the clock starts, in unix seconds.
const BEGIN: u64 = 1_000_000;

/// The key `k`, 10 a minute and 20 at a time, when so many wait, are in flight and have started since.
fn ten_and_twenty(waiting: u64, in_flight: u64, (started, since): (u64, u64)) -> Value {
    json!({
        "flowControlKey": "k",
        "waitListSize": waiting,
        "parallelismMax": 20,
        "parallelismCount": in_flight,
        "rateMax": 10,
        "rateCount": started,
        "ratePeriod": 60,
        "ratePeriodStart": since,
        "isPaused": false,
        "isPinnedParallelism": false,
        "isPinnedRate": false,
    })
}

async fn global(world: &World) -> Value {
    world.told("GET /v2/globalParallelism").await
}

#[tokio::test]
async fn calls_that_never_end_start_by_ten_a_minute_up_to_twenty_and_then_one_for_each_that_ends() {
    let mut world = World::new().await;
    assert_eq!(global(&world).await, json!({"parallelismMax": 2000, "parallelismCount": 0}));
    let ids = world.flow("k", "rate=10, parallelism=20, period=1m", 35).await;
    let mut held = world.receiver.several(10).await;
    world.until_waits(&ids[10], "meter").await;
    assert_eq!(world.key("k").await, ten_and_twenty(25, 10, (10, BEGIN)));
    assert_eq!(global(&world).await, json!({"parallelismMax": 2000, "parallelismCount": 10}));

    world.pass(59);
    assert_eq!(world.key("k").await, ten_and_twenty(25, 10, (10, BEGIN)));
    world.pass(1);
    held.extend(world.receiver.several(10).await);
    world.until_waits(&ids[20], "meter").await;
    assert_eq!(world.key("k").await, ten_and_twenty(15, 20, (10, BEGIN + 60)));
    assert_eq!(global(&world).await["parallelismCount"], 20);

    world.pass(60);
    world.until_waits(&ids[20], "meter").await;
    assert_eq!(world.key("k").await, ten_and_twenty(15, 20, (0, 0)));
    for ended in 1..=3 {
        assert!(world.receiver.is_quiet());
        answer(held.remove(0), 200);
        held.push(world.receiver.next().await);
        let stage = ten_and_twenty(15 - ended, 20, (ended, BEGIN + 120));
        assert_eq!(world.key("k").await, stage);
        assert_eq!(global(&world).await["parallelismCount"], 20);
    }
    let arrived: Vec<String> = held.iter().map(delivered).collect();
    let started: Vec<&String> = ids[3..23].iter().filter(|id| arrived.contains(id)).collect();
    assert_eq!(started.len(), 20, "those that came first, each once");
}

#[tokio::test]
async fn a_delivery_is_leased_for_as_long_as_the_settings_say() {
    let mut world = World::new().await;
    let id = world.flow("k", "parallelism=1", 1).await.remove(0);
    let _held = world.receiver.next().await;
    let call = world.server.gate.call(CallId(number(&id).parse().unwrap())).await.unwrap().unwrap();
    assert_eq!(call.lease_expires, Some(world.server.clock.now().plus(LONG)));
}

#[tokio::test]
async fn the_newest_configuration_counts_for_messages_that_wait() {
    let mut world = World::new().await;
    world.flow("k", "parallelism=1", 6).await;
    let mut held = world.receiver.several(1).await;
    let fields = ["waitListSize", "parallelismMax", "parallelismCount"];
    assert_eq!(world.fields("k", fields).await, [5, 1, 1]);
    world.flow("k", "parallelism=3", 1).await;
    held.extend(world.receiver.several(2).await);
    assert_eq!(world.fields("k", fields).await, [4, 3, 3]);

    // Those that were started before stay, and nothing starts until they are few enough.
    let last = world.flow("k", "parallelism=1", 1).await.remove(0);
    assert_eq!(world.fields("k", fields).await, [5, 1, 3]);
    for _ in 0..2 {
        let ended = held.remove(0);
        let id = delivered(&ended);
        answer(ended, 200);
        world.until_state(&id, None).await;
    }
    assert_eq!(world.fields("k", fields).await, [5, 1, 1]);
    assert!(world.receiver.is_quiet());

    // What a message does not say is no limit any more.
    world.flow("k", "rate=100", 1).await;
    held.extend(world.receiver.several(6).await);
    world.until_state(&last, Some(CallState::InFlight)).await;
    let fields = ["waitListSize", "parallelismMax", "rateMax", "ratePeriod"];
    assert_eq!(world.fields("k", fields).await, [0, 0, 100, 1]);
}

#[tokio::test]
async fn a_message_that_fails_gives_its_slot_to_the_next_while_it_waits_to_be_tried_again() {
    let mut world = World::new().await;
    let ids = world.flow("k", "parallelism=1", 2).await;
    let first = world.receiver.next().await;
    assert_eq!(delivered(&first), ids[0]);
    answer(first, 500);
    let second = world.receiver.next().await;
    assert_eq!(delivered(&second), ids[1]);
    world.until_state(&ids[0], Some(CallState::Resting)).await;
    let fields = ["waitListSize", "parallelismCount"];
    assert_eq!(world.fields("k", fields).await, [1, 1]);
    answer(second, 200);
    world.until_state(&ids[1], None).await;
    world.pass(13);
    let again = world.receiver.next().await;
    assert_eq!(
        (delivered(&again), again.asked.header("upstash-retried")),
        (ids[0].clone(), Some("1"))
    );
}

#[tokio::test]
async fn a_message_with_several_keys_waits_for_all_of_them_and_holds_up_none() {
    let mut world = World::new().await;
    let both = [keyed("a", "parallelism=1"), keyed("b", "parallelism=1")].concat();
    let holder = world.flow("a", "parallelism=1", 1).await.remove(0);
    let held = world.receiver.next().await;
    assert_eq!(delivered(&held), holder);
    let id = world.publish(&both).await;
    world.until_waits(&id, "meter").await;
    // It takes nothing of the one while it waits for the other.
    world.flow("b", "parallelism=1", 1).await;
    let other = world.receiver.next().await;
    assert_eq!(world.key("b").await["parallelismCount"], 1);
    answer(held, 200);
    world.until_state(&holder, None).await;
    assert!(world.receiver.is_quiet());
    answer(other, 200);
    let last: Held = world.receiver.next().await;
    assert_eq!(delivered(&last), id);
    for key in ["a", "b"] {
        assert_eq!(world.key(key).await["parallelismCount"], 1, "{key}");
    }
}

#[tokio::test]
async fn a_message_counts_as_much_as_it_weighs() {
    let mut world = World::new().await;
    let ids = world.flow("k", "rate=5, parallelism=4, period=1m, weight=2", 3).await;
    let held = world.receiver.several(2).await;
    world.until_waits(&ids[2], "meter").await;
    let fields = ["waitListSize", "parallelismCount", "rateCount"];
    assert_eq!(world.fields("k", fields).await, [1, 4, 4]);
    drop(held);
}

#[tokio::test]
async fn a_key_that_nothing_waits_for_is_gone_when_its_period_is_over() {
    let mut world = World::new().await;
    let id = world.flow("k", "rate=5, period=1m", 1).await.remove(0);
    answer(world.receiver.next().await, 200);
    world.until_state(&id, None).await;
    assert_eq!(world.fields("k", ["rateCount", "waitListSize"]).await, [1, 0]);
    world.pass(60);
    assert_eq!(world.refused("GET /v2/flowControl/k").await, 404);
    assert!(world.told("GET /v2/flowControl?search=k").await.as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_message_that_is_delayed_waits_at_its_key() {
    let mut world = World::new().await;
    let headers = [&keyed("k", "parallelism=2")[..], &[("upstash-delay", "30s")]].concat();
    let id = world.publish(&headers).await;
    let fields = ["waitListSize", "parallelismMax", "parallelismCount"];
    assert_eq!(world.fields("k", fields).await, [1, 2, 0]);
    world.pass(30);
    assert_eq!(delivered(&world.receiver.next().await), id);
    assert_eq!(world.fields("k", fields).await, [0, 2, 1]);
}
