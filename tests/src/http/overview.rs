//! `/v1/overview`: one look at everything.

use super::holders::holder;
use super::started::{Kept, PATIENCE, Started};
use serde_json::{Value, json};
use tokio::time::timeout;
use tollgate::{Limit, Span, global};
use tollgate_server::{Role, Settings};

impl Started {
    async fn overview(&self) -> Value {
        self.get("/v1/overview").await.success()
    }

    /// The first overview that is so: what was seen is kept for a second.
    async fn overview_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let seen = async {
            loop {
                let overview = self.overview().await;
                if is_so(&overview) {
                    return overview;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, seen).await.expect("it is never so")
    }
}

/// Lanes `a`, `b` and `c` with one, two and three calls that owe at a limit of one per second, of which one is in
/// flight.
async fn lived() -> Started {
    let server = Started::with_queue(1).await;
    server.put("/v1/queues/idle", &json!({})).await.success();
    let call = |lane: &str| json!({"lane": lane, "tolls": [{"limit": "l", "partition": "p"}]});
    let calls = ["a", "b", "b", "c", "c", "c"].map(call);
    server.enqueue(&json!(calls)).await;
    assert_eq!(server.claim(&json!({"max": 9})).await.len(), 1);
    server
}

#[tokio::test]
async fn everything_is_seen_at_one_look() {
    let server = lived().await;
    server.post("/v1/queues/idle/pause", &json!({})).await.success();
    let _waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    server.until_asking(1).await;
    let mut seen = server.overview().await;
    let busiest = seen["queues"][0].as_object_mut().unwrap();
    assert_eq!(busiest.remove("oldest"), Some(json!("1")), "the first was started");
    assert!(busiest.remove("oldest_ms").is_some_and(|age| age.is_u64()));
    assert_eq!((&seen["version"], &seen["ready"]), (&json!("0.1.0"), &json!(true)));
    let sums = ["waiting", "in_flight", "dead", "asking"].map(|sum| seen[sum].as_u64().unwrap());
    assert_eq!(sums, [5, 1, 0, 1]);
    let everyone = ["read", "enqueue", "work", "admin"];
    assert_eq!(seen["caller"], json!({"name": null, "roles": everyone, "namespace": null}));
    let queue = |name: &str, [waiting, in_flight, asking]: [u64; 3], paused: bool| {
        json!({"queue": name, "waiting": waiting, "in_flight": in_flight, "dead": 0,
            "asking": asking, "paused": paused})
    };
    assert_eq!(seen["queues"], json!([queue("q", [5, 1, 1], false), queue("idle", [0; 3], true)]));
    let lane = |name: &str, waiting: u64, in_flight: u64| {
        json!({"queue": "q", "lane": name, "waiting": waiting, "in_flight": in_flight, "dead": 0,
            "paused": false, "held": false, "weight": 1})
    };
    assert_eq!(seen["lanes"], json!([lane("c", 3, 0), lane("b", 2, 0), lane("a", 0, 1)]));
    let meter = json!({"limit": "l", "partition": "p", "waiting": 2, "in_flight": 0, "available": 0,
        "of": 1, "next_admission_ms": 1_000, "paused": false});
    assert_eq!(seen["limits"], json!([meter]));
    assert!(seen["at"].is_string() && seen["uptime_ms"].is_u64());
    let stores = [json!("embedded"), json!("postgres")];
    assert!(stores.contains(&seen["store"]), "{seen}");
}

#[tokio::test]
async fn what_is_closed_or_held_back_is_seen_and_what_lets_all_pass_is_not() {
    let server = Started::kept().await;
    for name in ["closed", "held", "open", "spent"] {
        server.gate.limit(name, Limit::per_hour(1)).await.unwrap();
    }
    let _pass = server.gate.consume(global("spent")).await.unwrap();
    let closure = json!({"for": "30s", "reason": "429 from upstream"});
    server.post("/v1/meters/closed/close", &closure).await.success();
    server.post("/v1/limits/held/pause", &json!({})).await.success();
    let seen = server.overview().await;
    let closed = json!({"limit": "closed", "waiting": 0, "in_flight": 0, "available": 1, "of": 1,
        "next_admission_ms": 30_000, "closed_for_ms": 30_000,
        "closed_reason": "429 from upstream", "paused": false});
    let held = json!({"limit": "held", "waiting": 0, "in_flight": 0, "available": 1, "of": 1,
        "paused": true});
    assert_eq!(seen["limits"], json!([closed, held]));
}

#[tokio::test]
async fn the_twenty_longest_are_seen_of_many() {
    let server = Started::kept().await;
    for number in 0..25 {
        let queue = format!("/v1/queues/q{number:02}");
        server.put(&queue, &json!({})).await.success();
        let calls = vec![json!({"lane": "a"}); number + 1];
        server.post(&format!("{queue}/calls"), &json!(calls)).await.success();
    }
    let seen = server.overview().await;
    for (list, name) in [("queues", "queue"), ("lanes", "queue")] {
        let names: Vec<_> = seen[list].as_array().unwrap().iter().map(|it| &it[name]).collect();
        let longest: Vec<_> = (5..25).rev().map(|number| json!(format!("q{number:02}"))).collect();
        assert_eq!(names, longest.iter().collect::<Vec<_>>(), "{list}");
    }
    assert_eq!(seen["waiting"], 25 * 26 / 2, "the others are counted");
}

#[tokio::test]
async fn a_look_is_kept_for_a_second_and_then_made_again() {
    let server = Started::with_queue(1).await;
    let first = server.overview().await;
    server.enqueue(&json!({"lane": "a"})).await;
    let later = server.overview_until(|seen| seen["waiting"] == 1).await;
    let uptime = |seen: &Value| seen["uptime_ms"].as_u64().unwrap();
    let passed = uptime(&later) - uptime(&first);
    assert!(passed >= 900, "it was made again after {passed} ms");
}

#[tokio::test]
async fn a_namespace_sees_its_own_alone() {
    let tokens = vec![
        holder("one", &[Role::Read], Some("acme")),
        holder("two", &[Role::Read, Role::Work], None),
    ];
    let server = Started::kept_with(tokens).await;
    for name in ["acme/a", "globex/b"] {
        server.gate.limit(name, Limit::per_second(1)).await.unwrap();
        server.gate.close(name, None, Span::from_secs(9), "test").await.unwrap();
        server.gate.queue(name, Default::default()).await.unwrap();
        server.gate.enqueue(name, tollgate::Call::new("lane")).await.unwrap();
    }
    let read =
        async |who| server.ask_as(who, ("GET", "/v1/overview"), &Value::Null).await.success();
    let names = |seen: &Value, list: &str, field: &str| -> Vec<String> {
        let names = seen[list].as_array().unwrap().iter();
        names.map(|it| it[field].as_str().unwrap().to_owned()).collect()
    };
    let (own, all) = (read("one").await, read("two").await);
    assert_eq!(own["caller"], json!({"name": "one", "roles": ["read"], "namespace": "acme"}));
    assert_eq!(all["caller"]["roles"], json!(["read", "work"]));
    assert_eq!((&own["waiting"], &all["waiting"]), (&json!(1), &json!(2)));
    for (list, field) in [("queues", "queue"), ("lanes", "queue"), ("limits", "limit")] {
        assert_eq!(names(&own, list, field), ["a"], "{list}");
        assert_eq!(names(&all, list, field), ["acme/a", "globex/b"], "{list}");
    }
    server.get("/v1/overview").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn in_memory_limits_are_seen_and_there_are_no_calls() {
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    let server = Started::on(Kept::InMemory, settings).await;
    for (name, partition) in [("l", None), ("l", Some("p")), ("m", Some("q"))] {
        server.gate.limit(name, Limit::per_hour(3)).await.unwrap();
        server.gate.close(name, partition, Span::from_secs(9), "test").await.unwrap();
    }
    server.gate.limit("open", Limit::per_hour(3)).await.unwrap();
    let _pass = server.gate.consume(global("open")).await.unwrap();
    let seen = server.overview().await;
    assert_eq!((&seen["store"], &seen["waiting"]), (&json!("memory"), &json!(0)));
    assert_eq!((&seen["queues"], &seen["lanes"]), (&json!([]), &json!([])));
    let limits = seen["limits"].as_array().unwrap().iter();
    let names: Vec<_> = limits.map(|meter| (&meter["limit"], &meter["partition"])).collect();
    let (l, m) = (&json!("l"), &json!("m"));
    assert_eq!(names, [(l, &Value::Null), (l, &json!("p")), (m, &json!("q"))]);
}
