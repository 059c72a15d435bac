//! What Prometheus is told: line by line, of a server whose figures are known.

use super::client::Answer;
use super::holders::holder;
use super::started::{Kept, Started};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tollgate::{Limit, Span, global};
use tollgate_server::{Role, Settings, metrics};

/// The page for people.
const PAGE: &str = include_str!("../../../docs/metrics.md");

/// All values by name and labels, as they are written.
struct Told(BTreeMap<String, String>);

impl Told {
    /// Reads the text line by line, and fails if it is not as Prometheus wants it.
    #[track_caller]
    fn read(answer: &Answer) -> Self {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let content = answer.header("content-type");
        assert_eq!(content, Some("text/plain; version=0.0.4; charset=utf-8"));
        assert!(answer.text.ends_with('\n'));
        let (mut values, mut begun) = (BTreeMap::new(), Vec::new());
        for line in answer.text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, help) = help.split_once(' ').unwrap();
                assert!(!begun.contains(&name) && !help.is_empty(), "{line}");
                begun.push(name);
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let metric = metrics().find(|metric| begun.last() == Some(&metric.name)).unwrap();
                assert_eq!(kind, format!("{} {}", metric.name, metric.kind()));
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(series.starts_with(begun.last().unwrap()), "{line}: not in its place");
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(values.insert(series.to_owned(), value.to_owned()).is_none(), "{line}");
            }
        }
        Self(values)
    }

    #[track_caller]
    fn value(&self, series: &str) -> &str {
        self.0.get(series).unwrap_or_else(|| panic!("{series} is not told"))
    }

    /// The names of all metrics that have a value.
    fn names(&self) -> BTreeSet<&str> {
        let is_told = |name: &&str| self.0.keys().any(|series| series.starts_with(*name));
        metrics().map(|metric| metric.name).filter(is_told).collect()
    }
}

impl Started {
    async fn metrics(&self) -> Told {
        Told::read(&self.get("/metrics").await)
    }
}

/// One call done, one failed and waiting again, one that waits at a limit of one per second; and two who
/// make their calls themselves, of which one is refused. In another queue, one that waits for an unknown limit.
async fn lived() -> Started {
    let server = Started::with_queue(1).await;
    let queue = json!({"order": "strict", "backoff": {"first": "1h", "most": "1h"}});
    server.put("/v1/queues/q", &queue).await.success();
    server.enqueue(&json!([{"lane": "a"}, {"lane": "b"}])).await;
    server.clock.advance(Span::from_secs(2));
    let claimed = server.claim(&json!({"max": 2})).await;
    server.settle(&json!({"lease": claimed[0]["lease"], "outcome": "done"})).await;
    server.settle(&json!({"lease": claimed[1]["lease"], "outcome": "retry"})).await;
    server.enqueue(&json!({"lane": "c", "tolls": [{"limit": "l"}]})).await;
    let tolls = |weight: u64| json!({"tolls": [{"limit": "l", "weight": weight}]});
    server.consume(&tolls(1)).await.success();
    server.consume(&tolls(1)).await.problem(429, "refused");
    let unknown = json!({"tolls": [{"limit": "typo"}]});
    server.consume(&unknown).await.problem(404, "unknown_limit");
    server.put("/v1/queues/steps", &json!({})).await.success();
    server.park("steps", ("typo", None), "").await;
    assert!(server.claim(&json!({"max": 9})).await.is_empty());
    server
}

#[tokio::test]
async fn what_happened_is_told() {
    let server = lived().await;
    server.post("/v1/queues/q/pause", &json!({})).await.success();
    let _waiting = server.begin("/v1/queues/q/claim", &json!({"wait": "20s"})).await;
    server.until_asking(1).await;
    let told = server.metrics().await;
    for (series, value) in [
        ("tollgate_queue_waiting{queue=\"q\"}", "2"),
        ("tollgate_queue_in_flight{queue=\"q\"}", "0"),
        ("tollgate_queue_dead{queue=\"q\"}", "0"),
        ("tollgate_queue_asking{queue=\"q\"}", "1"),
        ("tollgate_queue_paused{queue=\"q\"}", "1"),
        ("tollgate_queue_enqueued_total{queue=\"q\"}", "3"),
        ("tollgate_queue_started_total{queue=\"q\"}", "2"),
        ("tollgate_queue_retries_total{queue=\"q\"}", "0"),
        ("tollgate_queue_settled_total{queue=\"q\",outcome=\"done\"}", "1"),
        ("tollgate_queue_settled_total{queue=\"q\",outcome=\"failed\"}", "1"),
        ("tollgate_queue_settled_total{queue=\"q\",outcome=\"crashed\"}", "0"),
        ("tollgate_queue_ended_total{queue=\"q\",end=\"done\"}", "1"),
        ("tollgate_queue_dwell_seconds_bucket{queue=\"q\",le=\"1\"}", "0"),
        ("tollgate_queue_dwell_seconds_bucket{queue=\"q\",le=\"5\"}", "2"),
        ("tollgate_queue_dwell_seconds_sum{queue=\"q\"}", "4"),
        ("tollgate_queue_dwell_seconds_count{queue=\"q\"}", "2"),
        ("tollgate_queue_unknown_total{queue=\"steps\",limit=\"typo\"}", "1"),
        ("tollgate_queue_throttled_wanted_total{queue=\"q\",limit=\"l\"}", "1"),
        ("tollgate_queue_throttled_granted_total{queue=\"q\",limit=\"l\"}", "0"),
        ("tollgate_limit_admitted_total{limit=\"l\"}", "1"),
        ("tollgate_limit_granted_weight_total{limit=\"l\"}", "1"),
        ("tollgate_limit_throttled_total{limit=\"l\"}", "1"),
        ("tollgate_limit_wanted_weight_total{limit=\"l\"}", "1"),
        ("tollgate_limit_closed{limit=\"l\"}", "0"),
        ("tollgate_http_responses_total{status=\"429\",code=\"refused\"}", "1"),
        ("tollgate_http_responses_total{status=\"404\",code=\"unknown_limit\"}", "1"),
        ("tollgate_http_responses_total{status=\"401\",code=\"unauthorized\"}", "0"),
    ] {
        assert_eq!(told.value(series), value, "{series}");
    }
    let fine: u64 =
        told.value("tollgate_http_responses_total{status=\"200\",code=\"ok\"}").parse().unwrap();
    assert!(fine >= 8, "{fine}");
    assert_ne!(told.value("tollgate_store_commits_total"), "0");
}

#[tokio::test]
async fn every_metric_is_told_and_documented() {
    let told = lived().await.metrics().await;
    assert_eq!(told.names(), metrics().map(|metric| metric.name).collect());
    let mut documented = BTreeSet::new();
    for metric in metrics() {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, kind, labels) = (metric.name, metric.kind(), labels.join(", "));
        let row = format!("| `{name}` | {kind} | {labels} | {} |", metric.help);
        assert!(PAGE.contains(&row), "docs/metrics.md does not have the row\n{row}");
        documented.insert(name);
    }
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(rows.collect::<BTreeSet<_>>(), documented);
}

#[tokio::test]
async fn a_name_that_would_break_a_line_is_escaped() {
    let server = Started::kept().await;
    let name = "a\"} 1\nb\\c";
    server.gate.limit(name, Limit::per_second(1)).await.unwrap();
    server.gate.queue(name, Default::default()).await.unwrap();
    let told = server.metrics().await;
    assert_eq!(told.value("tollgate_limit_admitted_total{limit=\"a\\\"} 1\\nb\\\\c\"}"), "0");
    assert_eq!(told.value("tollgate_queue_waiting{queue=\"a\\\"} 1\\nb\\\\c\"}"), "0");
}

#[tokio::test]
async fn those_beyond_a_thousand_are_summed() {
    let server = Started::new().await;
    for number in 0..1_005 {
        server.gate.limit(&format!("l{number:04}"), Limit::per_hour(9)).await.unwrap();
    }
    for limit in ["l0999", "l1000", "l1004"] {
        server.gate.close(limit, None, Span::from_secs(9), "test").await.unwrap();
    }
    let told = server.metrics().await;
    let closed = |name: &str| format!("tollgate_limit_closed{{limit=\"{name}\"}}");
    assert_eq!(told.value(&closed("l0999")), "1");
    assert_eq!(told.value(&closed("other")), "2");
    let limits = told.0.keys().filter(|series| series.starts_with("tollgate_limit_closed"));
    assert_eq!(limits.count(), 1_001);
}

#[tokio::test]
async fn in_memory_limits_are_told_and_nothing_that_is_not_there() {
    let settings = Settings::new(([127, 0, 0, 1], 0).into());
    let server = Started::on(Kept::InMemory, settings).await;
    server.gate.limit("l", Limit::concurrency(3)).await.unwrap();
    let _pass = server.gate.consume(global("l")).await.unwrap();
    let told = server.metrics().await;
    assert_eq!(told.value("tollgate_limit_in_flight{limit=\"l\"}"), "1");
    let is_absent =
        |name: &str| ["_queue_", "_store_", "_total{limit"].iter().any(|part| name.contains(part));
    assert!(told.0.keys().all(|series| !is_absent(series)));
}

#[tokio::test]
async fn a_namespace_is_told_of_its_own_alone() {
    let tokens =
        vec![holder("one", &[Role::Read], Some("acme")), holder("two", &[Role::Read], None)];
    let server = Started::kept_with(tokens).await;
    for name in ["acme/a", "globex/b"] {
        server.gate.limit(name, Limit::per_second(1)).await.unwrap();
        server.gate.queue(name, Default::default()).await.unwrap();
    }
    let read = async |token: &str| {
        Told::read(&server.ask_as(token, ("GET", "/metrics"), &Value::Null).await)
    };
    let own = read("one").await;
    assert_eq!(own.value("tollgate_queue_waiting{queue=\"a\"}"), "0");
    assert_eq!(own.value("tollgate_limit_admitted_total{limit=\"a\"}"), "0");
    let is_own = |series: &String| series.contains("queue=\"a\"") || series.contains("limit=\"a\"");
    assert!(own.0.keys().all(is_own), "{:?}", own.0.keys().find(|series| !is_own(series)));
    assert_eq!(read("two").await.value("tollgate_queue_waiting{queue=\"globex/b\"}"), "0");
    server.get("/metrics").await.problem(401, "unauthorized");
}
