//! `/v1/series`: what happened, step by step.

use super::holders::holder;
use super::started::{Kept, PATIENCE, Started};
use serde_json::{Value, json};
use tokio::time::timeout;
use tollgate::{Limit, global};
use tollgate_server::{Role, Settings};

/// What is counted in each step, and what is as of its end.
const COUNTED: [&str; 7] =
    ["admitted", "throttled", "enqueued", "started", "done", "failed", "died"];
const AS_OF: [&str; 3] = ["waiting", "in_flight", "dead"];

/// The points of one value.
#[track_caller]
fn points(series: &Value, value: &str) -> Vec<Option<u64>> {
    series[value].as_array().expect(value).iter().map(Value::as_u64).collect()
}

#[track_caller]
fn sum(series: &Value, value: &str) -> u64 {
    points(series, value).into_iter().flatten().sum()
}

#[track_caller]
fn last(series: &Value, value: &str) -> Option<u64> {
    points(series, value).last().copied().flatten()
}

/// The names of all values that are told.
fn told(series: &Value) -> Vec<&str> {
    let fields = series.as_object().unwrap().iter();
    let mut told: Vec<_> =
        fields.filter(|(_, value)| value.is_array()).map(|(name, _)| &**name).collect();
    told.sort_unstable();
    told
}

impl Started {
    async fn series(&self, query: &str) -> Value {
        self.get(&format!("/v1/series?{query}")).await.success()
    }

    /// The first series that is so: a point comes each second.
    async fn series_until(&self, query: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let seen = async {
            loop {
                let series = self.series(query).await;
                if is_so(&series) {
                    return series;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, seen).await.expect("it is never so")
    }
}

/// One call done, one in flight, one that waits at a limit of two per second; and one who was refused.
async fn lived() -> Started {
    let server = Started::with_queue(2).await;
    let call = |lane: &str| json!({"lane": lane, "tolls": [{"limit": "l", "partition": "p"}]});
    server.enqueue(&json!(["a", "b", "c"].map(call))).await;
    let claimed = server.claim(&json!({"max": 9})).await;
    assert_eq!(claimed.len(), 2);
    server.settle(&json!({"lease": claimed[0]["lease"], "outcome": "done"})).await;
    let tolls = json!({"tolls": [{"limit": "l", "partition": "p"}]});
    server.consume(&tolls).await.problem(429, "refused");
    server
}

#[tokio::test]
async fn what_happened_is_told_step_by_step() {
    let server = lived().await;
    let all = server.series_until("step=1s", |all| sum(all, "throttled") == 1).await;
    let counts = COUNTED.map(|value| sum(&all, value));
    assert_eq!(counts, [2, 1, 3, 2, 1, 0, 0], "{all}");
    assert_eq!(AS_OF.map(|value| last(&all, value)), [Some(1), Some(1), Some(0)], "{all}");
    assert_eq!((&all["step_ms"], all.get("weight")), (&json!(1_000), None));
    let until = all["until"].as_str().unwrap();
    assert!(until.ends_with('Z') && !until.contains('.'), "{until} is a whole second");
    let lengths: Vec<_> = told(&all).iter().map(|value| points(&all, value).len()).collect();
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{all}");
}

#[tokio::test]
async fn a_queue_and_a_limit_have_series_of_their_own() {
    let server = lived().await;
    server.put("/v1/queues/idle", &json!({})).await.success();
    let queue = server.series_until("queue=q", |queue| sum(queue, "done") == 1).await;
    let mut values = vec!["enqueued", "started", "done", "failed", "died"];
    values.extend(AS_OF);
    values.sort_unstable();
    assert_eq!(told(&queue), values);
    assert_eq!((sum(&queue, "enqueued"), last(&queue, "waiting")), (3, Some(1)));
    let limit = server.series_until("limit=l", |limit| sum(limit, "throttled") == 1).await;
    assert_eq!(told(&limit), ["admitted", "in_flight", "throttled", "waiting", "weight"]);
    assert_eq!((sum(&limit, "admitted"), sum(&limit, "weight")), (2, 2));
    assert_eq!(last(&limit, "waiting"), Some(1), "partitions are counted together");
    let idle = server.series_until("queue=idle", |idle| !points(idle, "done").is_empty()).await;
    assert_eq!(sum(&idle, "enqueued"), 0);
    for (query, status, code) in [
        ("queue=x", 404, "unknown_queue"),
        ("limit=x", 404, "unknown_limit"),
        ("queue=q&limit=l", 400, "invalid_query"),
        ("step=1h", 400, "invalid_query"),
        ("color=1", 400, "invalid_query"),
    ] {
        server.get(&format!("/v1/series?{query}")).await.problem(status, code);
    }
}

/// What was counted is told once: the next points are of what happens next.
#[tokio::test]
async fn each_step_has_what_happened_in_it() {
    let server = Started::with_queue(2).await;
    server.enqueue(&json!({"lane": "a"})).await;
    let first = server.series_until("queue=q", |queue| sum(queue, "enqueued") == 1).await;
    let length = points(&first, "enqueued").len();
    server.enqueue(&json!([{"lane": "a"}, {"lane": "a"}])).await;
    let both = server.series_until("queue=q", |queue| last(queue, "waiting") == Some(3)).await;
    let later = points(&both, "enqueued");
    assert!(later.len() > length, "{both}");
    assert_eq!(later[length..].iter().flatten().sum::<u64>(), 2, "{both}");
    let minutes = server.series("step=1m&queue=q").await;
    assert_eq!(minutes["step_ms"], 60_000);
}

#[tokio::test]
async fn a_namespace_is_told_of_its_own_alone() {
    let tokens =
        vec![holder("one", &[Role::Read], Some("acme")), holder("two", &[Role::Read], None)];
    let server = Started::kept_with(tokens).await;
    for name in ["acme/a", "globex/b"] {
        server.gate.limit(name, Limit::per_hour(9)).await.unwrap();
        let _pass = server.gate.consume(global(name)).await.unwrap();
        server.gate.queue(name, Default::default()).await.unwrap();
        server.gate.enqueue(name, tollgate::Call::new("lane")).await.unwrap();
    }
    let read = async |who, query: &str| {
        let path = format!("/v1/series?{query}");
        server.ask_as(who, ("GET", &path), &Value::Null).await
    };
    let until = async |who, query, enqueued| {
        let seen = async {
            loop {
                let series = read(who, query).await.success();
                if sum(&series, "enqueued") == enqueued {
                    return series;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, seen).await.expect("it is never so")
    };
    let all = until("two", "", 2).await;
    let own = until("one", "", 1).await;
    assert_eq!((sum(&all, "admitted"), sum(&own, "admitted")), (2, 1));
    until("one", "queue=a", 1).await;
    for query in ["queue=b", "queue=globex%2Fb", "queue=acme%2Fa"] {
        read("one", query).await.problem(404, "unknown_queue");
    }
    read("one", "limit=globex%2Fb").await.problem(404, "unknown_limit");
    server.get("/v1/series").await.problem(401, "unauthorized");
}

#[tokio::test]
async fn in_memory_it_is_told_who_waits_and_nothing_that_is_not_counted() {
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    let server = Started::on(Kept::InMemory, settings).await;
    server.gate.limit("l", Limit::concurrency(3)).await.unwrap();
    let _pass = server.gate.consume(global("l")).await.unwrap();
    for query in ["", "limit=l"] {
        let series = server.series_until(query, |series| last(series, "in_flight") == Some(1));
        assert_eq!(told(&series.await), ["in_flight", "waiting"]);
    }
    server.get("/v1/series?queue=q").await.problem(409, "limits_only");
}
