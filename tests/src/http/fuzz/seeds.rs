//! Requests that are right, one for each thing that is read at the edge: what mutations begin with.

use crate::http::started::Started;
use serde_json::json;

/// A request as it would be sent.
#[derive(Debug, Clone)]
pub(super) struct Seed {
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
}

/// Requests with bodies; `$LEASE` and `$RECEIPT` are real ones when they are sent.
const BODIES: [(&str, &str, &str); 41] = [
    (
        "PUT",
        "/v1/limits/l",
        r#"{"rule":"token_bucket","limit":100,"per":"1m","burst":150,"guard":"1s"}"#,
    ),
    (
        "PUT",
        "/v1/limits/w",
        r#"{"rules":[{"rule":"fixed_window","limit":9,"per":"1d","align":"Europe/Berlin"},{"rule":"concurrency","limit":20}]}"#,
    ),
    ("PUT", "/v1/limits/s", r#"{"rule":"sliding_window","limit":5,"per":"1h30m"}"#),
    ("PUT", "/v1/limits/l/pin", r#"{"rule":"concurrency","limit":5}"#),
    ("DELETE", "/v1/limits/l/pin", "{}"),
    ("PUT", "/v1/limits/l/partitions/big", r#"{"rule":"token_bucket","limit":1000,"per":"1m"}"#),
    ("DELETE", "/v1/limits/l/partitions/big", "{}"),
    ("POST", "/v1/limits/l/pause", "{}"),
    ("POST", "/v1/limits/l/resume", "{}"),
    ("POST", "/v1/meters/l/close", r#"{"for":"30s","reason":"429 from upstream"}"#),
    ("POST", "/v1/meters/l/acme/reopen", "{}"),
    ("POST", "/v1/meters/l/acme/reset", "{}"),
    (
        "POST",
        "/v1/consume",
        r#"{"tolls":[{"limit":"l","partition":"acme","weight":3,"define":{"rule":"token_bucket","limit":9,"per":"1s"}}],"on_exceeded":"delay","max_wait":"10s","priority":3,"receipt":"10m"}"#,
    ),
    (
        "POST",
        "/v1/consume",
        r#"{"tolls":[{"limit":"l"},{"limit":"s","weight":2}],"on_exceeded":"wait","max_wait":"1s"}"#,
    ),
    ("POST", "/v1/receipts/$RECEIPT/settle", r#"{"actual":{"c":1}}"#),
    ("POST", "/v1/receipts/$RECEIPT/renew", r#"{"for":"5m"}"#),
    ("POST", "/v1/receipts/$RECEIPT/cancel", "{}"),
    (
        "PUT",
        "/v1/queues/q",
        r#"{"order":{"parallel":200},"lease":"1m","failures_max":5,"crashes_max":3,"limited_max":100,"backoff":{"first":"1s","most":"5m"},"on_dead":"hold","depth_max":100000,"dead_max":1000,"dedupe":"10m","tolls":[{"limit":"l","partition":{"path":"body.tenant","default":"x"},"weight":{"path":"body.items.length","default":1,"max":100},"when":{"path":"body.kind","is":"card"}},{"limit":"s","like":"l","priority":3}]}"#,
    ),
    ("PUT", "/v1/queues/other", r#"{"order":"strict"}"#),
    (
        "PUT",
        "/v1/queues/pushed",
        r#"{"backoff":{"first":"1s","jitter":25},"destination":{"url":"https://u:p@a.example/x?y=1","method":"PUT","headers":{"x-a":"1","authorization":"s"},"timeout":"30s","retries":3,"retry_delay":"pow(2, retried) * 1000","fatal":[400,404],"costs":{"l":"body.usage[0].n","s":"header.x-cost"},"callback":"http://[::1]:80/","failure_callback":{"url":"https://b.example","headers":{"a":"b"}}}}"#,
    ),
    (
        "POST",
        "/v1/queues/pushed/calls",
        r#"[{"lane":"a","destination":"https://a.example"},{"lane":"b","destination":{"headers":{"x-a":"2"},"retries":0},"dedupe_content":true}]"#,
    ),
    ("POST", "/v1/queues/q/pause", "{}"),
    ("POST", "/v1/queues/q/resume", "{}"),
    ("PUT", "/v1/queues/q/lanes/a", r#"{"weight":3}"#),
    ("POST", "/v1/queues/q/lanes/a/pause", "{}"),
    (
        "POST",
        "/v1/queues/q/calls",
        r#"{"lane":"a","body":{"tenant":"t","items":[1,2],"kind":"card"},"tolls":[{"limit":"l","partition":"p","weight":2,"feedback":true}],"priority":5,"delay":"1s","expires_after":"1h","dedupe_id":"d","supersedes":"k","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#,
    ),
    (
        "POST",
        "/v1/queues/other/calls",
        r#"[{"lane":"a","body_base64":"AAECAw==","not_before":"2030-01-01T00:00:00Z","expires_at":"2031-01-01T00:00:00+01:00"},{"lane":"b","dedupe_content":true}]"#,
    ),
    (
        "POST",
        "/v1/queues/q/claim",
        r#"{"max":2,"wait":"1s","lease":"30s","worker":"w","settle":[{"lease":"$LEASE","outcome":"done"}]}"#,
    ),
    (
        "POST",
        "/v1/settle",
        r#"[{"lease":"$LEASE","outcome":"done","actual":{"l":1},"report":{"status":200},"enqueue":[{"queue":"q","lane":"c","body":"paid"}]},{"lease":"$LEASE","outcome":"retry","after":"3s"}]"#,
    ),
    ("POST", "/v1/settle", r#"{"lease":"$LEASE","outcome":"limited","after":"3s"}"#),
    ("POST", "/v1/leases/renew", r#"{"leases":["$LEASE"],"for":"5m"}"#),
    ("DELETE", "/v1/calls/1", "{}"),
    ("POST", "/v1/dead/revive", r#"{"queue":"q","lane":"a","every":"100ms"}"#),
    ("POST", "/v1/dead/delete", r#"{"ids":["1","2"]}"#),
    (
        "PUT",
        "/v1/schedules/s",
        r#"{"queue":"q","cron":"0 9 * * 1-5","zone":"Europe/Berlin","call":{"lane":"d","body":{"kind":"daily"},"expires_after":"1h"}}"#,
    ),
    (
        "PUT",
        "/v1/workflows/w",
        r#"{"name":"w","tasks":[{"name":"a","type":"t","timeout":"1m","retry":{"attempts":3,"first":"1s","most":"5s","kind":"linear"},"rate_limit":{"limit":100,"per":"1m"},"burst":150,"concurrency":5},{"name":"b","type":"u","after":["a"],"when":{"path":"kind","is":"eq","value":"card"},"map":"items","keyed_rate_limit":{"key":"tenant","limit":3,"per":"1s","units":2},"tolls":[{"limit":"l","partition_path":"tenant","weight":2}]}],"timeout":"1h","runs_max":9,"tasks_max":3,"idempotency":"id"}"#,
    ),
    ("POST", "/v1/workflows/r/runs", r#"{"id":7,"kind":"card","items":[{"tenant":"x"}]}"#),
    ("POST", "/v1/runs/$RUN/signals", r#"{"name":"go","payload":{"by":"ana"},"dedupe":"k"}"#),
    ("POST", "/v1/runs/$RUN/cancel", "{}"),
    ("POST", "/v1/runs/$RUN/rerun", r#"{"from":"a"}"#),
    ("PUT", "/v1/schedules/o", r#"{"queue":"q","at":"2031-01-01T00:00:00Z","call":{"lane":"l"}}"#),
];

/// Requests without bodies, with all that their queries may say.
const QUERIES: [&str; 21] = [
    "/v1/limits?after=a&limit=2",
    "/v1/meters/l?after=a&limit=2",
    "/v1/meters/l/acme",
    "/v1/queues?after=a&limit=2",
    "/v1/queues/q/lanes?after=a&limit=2",
    "/v1/queues/q/calls?lane=a&state=waiting&limit=5&after=0",
    "/v1/calls/1",
    "/v1/dead?queue=q&lane=a&limit=3",
    "/v1/schedules?limit=1",
    "/v1/schedules/s",
    "/v1/history?queue=q&lane=a&end=done&from=2026-01-01T00:00:00Z&to=2030-01-01T00:00:00Z&limit=3",
    "/v1/audit?limit=3&after=1",
    "/v1/audit?name=l&kind=limit,meter",
    "/v1/workflows?after=a&limit=2",
    "/v1/workflows/r",
    "/v1/workflows/r/picture",
    "/v1/runs?ended=true&name=r&after=0&limit=2",
    "/v1/runs/$RUN",
    "/v1/runs/$RUN/timeline",
    "/v1/runs/$RUN/result?wait=10s",
    "/v1/events?queue=q&lane=a&call=1",
];

/// A stream of calls.
const LINES: &str =
    "{\"lane\":\"a\",\"body\":1}\n\n{\"lane\":\"b\",\"priority\":9}\r\n{\"lane\":\"c\"}";

/// All seeds, with a lease and a receipt of this server.
pub(super) async fn seeds(server: &Started) -> Vec<Seed> {
    let limit = json!({"rule": "token_bucket", "limit": 1_000_000, "per": "1s"});
    server.put("/v1/limits/l", &limit).await.success();
    server.put("/v1/limits/s", &limit).await.success();
    server.put("/v1/queues/q", &json!({"order": {"parallel": 100}})).await.success();
    server.put("/v1/queues/other", &json!({})).await.success();
    server.put("/v1/queues/pushed", &json!({"destination": "https://a.example"})).await.success();
    // Nothing is sent anywhere.
    server.post("/v1/queues/pushed/pause", &json!({})).await.success();
    server.enqueue(&json!([{"lane": "a"}, {"lane": "a"}, {"lane": "b"}])).await;
    let lease = server.claim(&json!({"max": 1})).await[0]["lease"].as_str().unwrap().to_owned();
    server.put("/v1/limits/c", &json!({"rule": "concurrency", "limit": 100})).await.success();
    let paid = json!({"tolls": [{"limit": "c", "weight": 2}], "receipt": "1h"});
    let receipt = server.consume(&paid).await.field("receipt").as_str().unwrap().to_owned();
    let workflow = json!({"tasks": [{"name": "a", "type": "r"}, {"name": "b", "type": "r"}]});
    server.put("/v1/workflows/r", &workflow).await.success();
    let begun = server.post("/v1/workflows/r/runs", &json!(1)).await;
    let run = begun.field("run").as_str().unwrap().to_owned();
    let real = |text: &str| {
        text.replace("$LEASE", &lease).replace("$RECEIPT", &receipt).replace("$RUN", &run)
    };
    let json = |(method, target, body): (&'static str, &str, &str)| {
        seed(method, &real(target), ("content-type", "application/json"), &real(body))
    };
    let mut seeds: Vec<Seed> = BODIES.into_iter().map(json).collect();
    let lines = ("content-type", "application/x-ndjson");
    seeds.push(seed("POST", "/v1/queues/q/calls", lines, LINES));
    seeds.extend(QUERIES.map(|target| seed("GET", &real(target), ("accept", "*/*"), "")));
    seeds
}

fn seed(method: &'static str, target: &str, (name, value): (&str, &str), body: &str) -> Seed {
    let headers = vec![(name.to_owned(), value.as_bytes().to_vec())];
    Seed { method, target: target.to_owned(), headers, body: body.as_bytes().to_vec() }
}

impl Seed {
    /// The request's bytes, with a length that fits the body.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let Self { method, target, headers, body } = self;
        let mut bytes = format!("{method} {target} HTTP/1.1\r\nhost: tollgate\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        if !body.is_empty() {
            bytes.extend(format!("content-length: {}\r\n", body.len()).bytes());
        }
        [&bytes[..], b"\r\n", body].concat()
    }
}
