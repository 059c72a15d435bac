//! What operators do to flow-control keys, by this API and by the other.

use super::{World, answer, delivered, keyed};
use crate::http::holders::admin_of;
use serde_json::{Value, json};

const PINS: [&str; 4] = ["parallelismMax", "isPinnedParallelism", "rateMax", "isPinnedRate"];

fn pins(parallelism: u64, is_pinned: bool, rate: u64, is_pinned_rate: bool) -> [Value; 4] {
    [json!(parallelism), json!(is_pinned), json!(rate), json!(is_pinned_rate)]
}

/// Does something to the key `k`.
async fn act(world: &World, act: &str) {
    world.told(&format!("POST /v2/flowControl/k/{act}")).await;
}

#[tokio::test]
async fn what_is_pinned_stands_over_what_messages_say_each_kind_by_itself() {
    let world = World::new().await;
    world.told("POST /v2/flowControl/k/pin?rate=7&period=60").await;
    assert_eq!(world.fields("k", PINS).await, pins(0, false, 7, true));
    act(&world, "pause").await;
    world.flow("k", "rate=100, parallelism=3", 1).await;
    assert_eq!(world.fields("k", PINS).await, pins(3, false, 7, true));
    assert_eq!(world.key("k").await["ratePeriod"], 60);

    act(&world, "pin?parallelism=2").await;
    world.flow("k", "rate=50, parallelism=9", 1).await;
    assert_eq!(world.fields("k", PINS).await, pins(2, true, 7, true));
    act(&world, "pin?parallelism=4").await;
    assert_eq!(world.fields("k", PINS).await, pins(4, true, 7, true));

    // What was pinned last stays, until a message says otherwise.
    act(&world, "unpin?rate=true&parallelism=false").await;
    assert_eq!(world.fields("k", PINS).await, pins(4, true, 7, false));
    world.flow("k", "rate=50, parallelism=9", 1).await;
    assert_eq!(world.fields("k", PINS).await, pins(4, true, 50, false));
    act(&world, "unpin?parallelism=true").await;
    assert_eq!(world.fields("k", PINS).await, pins(4, false, 50, false));
    act(&world, "unpin?parallelism=true&rate=true").await;
    assert_eq!(world.fields("k", PINS).await, pins(4, false, 50, false));
    world.flow("k", "parallelism=9", 1).await;
    assert_eq!(world.fields("k", PINS).await, pins(9, false, 0, false));
}

#[tokio::test]
async fn what_is_pinned_is_what_starts_and_what_was_spent_before_does_not_count() {
    let mut world = World::new().await;
    let ids = world.flow("k", "rate=2, period=1h", 6).await;
    let mut held = world.receiver.several(2).await;
    world.until_waits(&ids[2], "meter").await;
    world.pass(5);
    act(&world, "pin?rate=3&period=1h").await;
    held.extend(world.receiver.several(3).await);
    world.until_waits(&ids[5], "meter").await;
    let fields = ["waitListSize", "rateCount", "rateMax", "ratePeriodStart"];
    assert_eq!(world.fields("k", fields).await, [1, 3, 3, 1_000_005]);
    assert!(world.receiver.is_quiet());
}

#[tokio::test]
async fn a_rate_that_is_reset_lets_messages_go_at_once_and_slots_stay_held() {
    let mut world = World::new().await;
    let ids = world.flow("k", "rate=2, period=1h, parallelism=3", 5).await;
    let mut held = world.receiver.several(2).await;
    world.until_waits(&ids[2], "meter").await;
    world.pass(10);
    for word in ["resetRate", "reset"] {
        act(&world, word).await;
        if word == "resetRate" {
            held.push(world.receiver.next().await);
            let fields = ["rateCount", "ratePeriodStart", "parallelismCount", "waitListSize"];
            assert_eq!(world.fields("k", fields).await, [1, 1_000_010, 3, 2]);
        }
    }
    let fields = ["rateCount", "ratePeriodStart", "parallelismCount", "waitListSize"];
    assert_eq!(world.fields("k", fields).await, [0, 0, 3, 2]);
    assert!(world.receiver.is_quiet());
}

#[tokio::test]
async fn a_key_that_is_paused_holds_its_messages_and_no_others_whichever_api_says_so() {
    let mut world = World::new().await;
    for (pause, resume) in [
        ("/v2/flowControl/k/pause", "/v1/limits/k/resume"),
        ("/v1/limits/k/pause", "/v2/flowControl/k/resume"),
    ] {
        let first = world.flow("k", "rate=100, period=1h", 1).await.remove(0);
        answer(world.receiver.next().await, 200);
        world.until_state(&first, None).await;
        assert_eq!(world.server.post(pause, &json!({})).await.status, 200);
        assert_eq!(world.key("k").await["isPaused"], true);
        let limit = world.server.get("/v1/limits/k").await.success();
        assert_eq!(limit["paused"], true);
        let id = world.flow("k", "rate=100, period=1h", 1).await.remove(0);
        world.until_waits(&id, "meter").await;
        let other = world.flow("other", "rate=100", 1).await.remove(0);
        let held = world.receiver.next().await;
        assert_eq!(delivered(&held), other);
        answer(held, 200);
        assert_eq!(world.key("k").await["waitListSize"], 1);
        assert_eq!(world.server.post(resume, &json!({})).await.status, 200);
        let held = world.receiver.next().await;
        assert_eq!(
            (delivered(&held), world.key("k").await["isPaused"].clone()),
            (id, json!(false))
        );
        answer(held, 200);
    }
}

#[tokio::test]
async fn a_limit_that_is_pinned_or_defined_in_the_other_api_is_so_in_this() {
    let world = World::new().await;
    let rule = json!({"rule": "concurrency", "limit": 6});
    world.server.put("/v1/limits/k", &rule).await.success();
    assert_eq!(world.fields("k", PINS).await, pins(6, false, 0, false));
    act(&world, "pin?parallelism=5").await;
    let limit = world.server.get("/v1/limits/k").await.success();
    assert_eq!(limit["pinned"]["limit"], 5, "{limit}");
}

#[tokio::test]
async fn what_is_not_there_or_means_nothing_is_refused() {
    let world = World::new().await;
    let missing = ["pause", "resume", "resetRate", "unpin?rate=true"];
    for act in missing {
        assert_eq!(world.refused(&format!("POST /v2/flowControl/k/{act}")).await, 404, "{act}");
    }
    assert_eq!(world.refused("GET /v2/flowControl/k").await, 404);
    world.told("POST /v2/flowControl/k/pin?rate=1").await;
    let wrong =
        ["pin", "pin?rate=0", "pin?rate=1&period=8d", "pin?period=5", "unpin", "unpin?rate=x"];
    for act in wrong {
        assert_eq!(world.refused(&format!("POST /v2/flowControl/k/{act}")).await, 400, "{act}");
    }
    for own in ["$/pin?rate=1", "tollgate:pushes/pin?parallelism=1", "$/pause"] {
        assert_eq!(world.refused(&format!("POST /v2/flowControl/{own}")).await, 400, "{own}");
    }
    assert_eq!(world.refused("GET /v2/flowControl/tollgate:pushes").await, 404);
}

#[tokio::test]
async fn a_list_has_all_keys_and_those_that_wait_without_one() {
    let mut world = World::new().await;
    let names = |list: &Value| {
        let keys = list.as_array().unwrap().iter();
        keys.map(|key| key["flowControlKey"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&world.told("GET /v2/flowControl").await), ["$"]);
    world.flow("team/a b", "parallelism=1", 3).await;
    world.flow("other", "rate=9", 1).await;
    let held = world.receiver.several(2).await;
    // Nothing more is delivered, so that some wait without a key.
    let full = json!({"rule": "concurrency", "limit": 2});
    world.server.put("/v1/limits/tollgate:pushes", &full).await.success();
    let free = world.publish(&[]).await;
    world.until_waits(&free, "meter").await;
    let list = world.told("GET /v2/flowControl").await;
    assert_eq!(names(&list), ["$", "other", "team/a b"]);
    assert_eq!([&list[0]["waitListSize"], &list[0]["parallelismMax"]], [1, 2]);
    assert_eq!(list[0]["parallelismCount"], 2);
    assert_eq!(list[1], world.key("other").await);
    assert_eq!(list[2], world.key("team/a%20b").await);
    assert_eq!(list[2]["waitListSize"], 2);
    assert_eq!(world.key("$").await, list[0]);
    assert_eq!(names(&world.told("GET /v2/flowControl?search=a+b").await), ["team/a b"]);
    drop(held);
}

#[tokio::test]
async fn a_list_of_thousands_has_each_key_once_with_what_waits_there() {
    const KEYS: usize = 2_100;
    let world = World::new().await;
    let item = |number: usize| {
        let key = format!("k{number:04}");
        let value = format!("parallelism={}", number + 1);
        let headers = json!({
            "upstash-delay": "1h",
            "upstash-flow-control-key": key,
            "upstash-flow-control-value": value,
        });
        json!({"destination": world.receiver.url("/"), "headers": headers})
    };
    for first in (0..KEYS).step_by(700) {
        let items: Value = (first..first + 700).map(item).collect();
        assert_eq!(world.server.post("/v2/batch", &items).await.status, 200);
    }
    let list = world.told("GET /v2/flowControl?search=k").await;
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), KEYS);
    for (number, key) in list.iter().enumerate() {
        assert_eq!(key["flowControlKey"], format!("k{number:04}"));
        assert_eq!([&key["parallelismMax"], &key["waitListSize"]], [number + 1, 1]);
    }
}

#[tokio::test]
async fn a_namespace_has_keys_of_its_own() {
    let world = World::with_tokens(vec![admin_of("acme"), admin_of("rival")]).await;
    let ask = async |token: &str, request: &str| {
        let request = request.split_once(' ').unwrap();
        world.server.ask_as(token, request, &Value::Null).await
    };
    ask("acme", "POST /v2/flowControl/k/pin?rate=3").await.success();
    let list = ask("acme", "GET /v2/flowControl?search=k").await.success();
    assert_eq!([&list[0]["flowControlKey"], &list[0]["rateMax"]], [&json!("k"), &json!(3)]);
    assert_eq!(ask("rival", "GET /v2/flowControl/k").await.status, 404);
    assert_eq!(ask("rival", "POST /v2/flowControl/k/pause").await.status, 404);
    assert_eq!(ask("rival", "GET /v2/flowControl?search=k").await.success(), json!([]));
    let path = format!("/v2/publish/{}", world.receiver.url("/"));
    let headers = [&keyed("k", "rate=9")[..], &[("authorization", "Bearer acme")]].concat();
    ask("acme", "POST /v2/flowControl/k/pause").await.success();
    assert_eq!(world.server.ask("POST", &path, &headers, "").await.status, 201);
    let key = ask("acme", "GET /v2/flowControl/k").await.success();
    assert_eq!([&key["waitListSize"], &key["rateMax"]], [1, 3]);
}
