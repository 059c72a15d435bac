//! Traces of calls, as a collector gets them from the real server.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::expect_used, reason = "a test that cannot go on fails, and says why")]

mod collector;
#[path = "../workers/peer.rs"]
mod peer;

use collector::{Answers, Exported, collect};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Said;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use peer::Peer;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Longest wait for anything: it all takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(60);

const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
/// A key of the collector.
const KEY: &str = "key-of-the-collector";

/// The server, with a queue `q`.
struct Server {
    process: Child,
    address: SocketAddr,
    peer: Peer,
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(collector: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path());
        command.env_remove("TOLLGATE_TOKEN").env("TOLLGATE_LOG", "debug");
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}"));
        command.env("OTEL_EXPORTER_OTLP_HEADERS", format!("x-key={KEY}"));
        command.env("OTEL_SERVICE_NAME", "gate-1");
        command.env("TOLLGATE_PUSH_ALLOW_ADDRESSES", "127.0.0.1");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let stdout = process.stdout.take().unwrap();
        let printed = BufReader::new(stdout).lines().next().unwrap().unwrap();
        let address = printed.strip_prefix("tollgate listens on http://").unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let mut peer = Peer::connect(address);
        peer.succeed("PUT", "/v1/queues/q", &json!({}));
        Self { process, address, peer, _folder: folder }
    }

    /// Hands in a call; its id.
    fn enqueue(&mut self, call: &Value) -> String {
        let answer = self.peer.succeed("POST", "/v1/queues/q/calls", call);
        answer["ids"][0].as_str().unwrap().to_owned()
    }

    /// Claims the one call that waits.
    fn claim(&mut self) -> Value {
        let answer = self.peer.succeed("POST", "/v1/queues/q/claim", &json!({"wait": "20s"}));
        answer["calls"][0].clone()
    }

    fn settle(&mut self, call: &Value, outcome: &str) {
        let settlement = json!({"lease": call["lease"], "outcome": outcome});
        let answer = self.peer.succeed("POST", "/v1/settle", &settlement);
        assert_eq!(answer["settled"][0]["settled"], true);
    }

    /// A call from beginning to end.
    fn live_through(&mut self, trace: &str) -> Value {
        self.enqueue(&json!({"lane": "a", "traceparent": trace}));
        let call = self.claim();
        self.settle(&call, "done");
        call
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Tells it to end, and returns what it logged once it has.
    fn end(self) -> String {
        let process = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &process]).status().unwrap().success());
        let (out, ended) = channel();
        thread::spawn(move || out.send(self.process.wait_with_output()));
        let ended = ended.recv_timeout(PATIENCE).expect("the server does not end");
        let Output { status, stderr, .. } = ended.unwrap();
        assert!(status.success(), "{status}");
        String::from_utf8(stderr).unwrap()
    }
}

/// All spans that came, by name.
fn spans(exported: &[Exported]) -> Vec<Span> {
    let resources = exported.iter().flat_map(|it| &it.request.resource_spans);
    let spans = resources.flat_map(|it| &it.scope_spans).flat_map(|it| &it.spans);
    let mut spans: Vec<Span> = spans.cloned().collect();
    spans.sort_by(|a, b| a.name.cmp(&b.name));
    spans
}

fn said(attributes: &[KeyValue], key: &str) -> Option<Said> {
    let found = attributes.iter().find(|it| it.key == key)?;
    found.value.clone().and_then(|AnyValue { value }| value)
}

fn text(text: &str) -> Option<Said> {
    Some(Said::StringValue(text.to_owned()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The span that a `traceparent` names.
fn parent(trace: &Value) -> String {
    trace.as_str().unwrap().split('-').nth(2).unwrap().to_owned()
}

/// What came until the server ended, which exports what is left.
fn all(exported: &Receiver<Exported>) -> Vec<Exported> {
    exported.try_iter().collect()
}

#[test]
fn a_call_is_traced_from_enqueue_to_settle() {
    let (address, exported) = collect(Answers::With(200));
    let mut server = Server::start(address);
    let id = server.enqueue(&json!({"lane": "a", "traceparent": SAMPLED}));
    let kept = server.peer.succeed("GET", &format!("/v1/calls/{id}"), &Value::Null);
    let claimed = server.claim();
    server.settle(&claimed, "dead");
    server.end();
    let exported = all(&exported);
    let [attempt, enqueue, wait] = &spans(&exported)[..] else { panic!("three spans are wanted") };
    for (span, name) in [(attempt, "attempt"), (enqueue, "enqueue"), (wait, "wait")] {
        assert_eq!((&*span.name, &*hex(&span.trace_id)), (name, &SAMPLED[3..35]));
        assert_eq!(said(&span.attributes, "tollgate.call"), text(&id));
        assert_eq!(said(&span.attributes, "messaging.destination.name"), text("q"));
    }
    assert_eq!(hex(&enqueue.parent_span_id), SAMPLED[36..52]);
    assert_eq!(hex(&enqueue.span_id), parent(&kept["traceparent"]));
    assert_eq!(wait.parent_span_id, enqueue.span_id);
    assert_eq!(attempt.parent_span_id, enqueue.span_id);
    assert_eq!(hex(&attempt.span_id), parent(&claimed["traceparent"]));
    let kinds = [enqueue, wait, attempt].map(|span| span.kind());
    assert_eq!(kinds, [SpanKind::Producer, SpanKind::Internal, SpanKind::Consumer]);
    let times = [
        enqueue.start_time_unix_nano,
        wait.start_time_unix_nano,
        wait.end_time_unix_nano,
        attempt.end_time_unix_nano,
    ];
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(wait.end_time_unix_nano, attempt.start_time_unix_nano);
    assert!(enqueue.end_time_unix_nano >= wait.start_time_unix_nano);
    assert_eq!(said(&enqueue.attributes, "tollgate.lane"), text("a"));
    assert_eq!(said(&attempt.attributes, "tollgate.outcome"), text("dead"));
    assert_eq!(said(&attempt.attributes, "tollgate.attempt"), Some(Said::IntValue(1)));
    assert_eq!(attempt.status.as_ref().unwrap().code(), StatusCode::Error);
}

/// Each attempt has a span of its own, and the wait before the first is told once.
#[test]
fn a_call_that_is_tried_again_has_a_span_for_each_attempt() {
    let (address, exported) = collect(Answers::With(200));
    let mut server = Server::start(address);
    server.enqueue(&json!({"lane": "a", "traceparent": SAMPLED}));
    for outcome in ["retry", "done"] {
        let call = server.claim();
        server.settle(&call, outcome);
    }
    server.end();
    let spans = spans(&all(&exported));
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["attempt", "attempt", "enqueue", "wait"]);
    assert_ne!(spans[0].span_id, spans[1].span_id);
}

#[test]
fn what_is_not_sampled_is_passed_on_and_not_exported() {
    let (address, exported) = collect(Answers::With(200));
    let mut server = Server::start(address);
    let plain = json!({"lane": "a"});
    server.enqueue(&plain);
    let call = server.claim();
    assert_eq!(call.get("traceparent"), None);
    server.settle(&call, "done");
    assert_eq!(server.live_through(UNSAMPLED)["traceparent"], UNSAMPLED);
    server.end();
    assert!(all(&exported).is_empty());
}

#[test]
fn the_collector_is_told_who_exports_and_its_key_is_not_logged() {
    let (address, exported) = collect(Answers::With(200));
    let mut server = Server::start(address);
    server.live_through(SAMPLED);
    let log = server.end();
    assert!(!log.contains(KEY), "{log}");
    let exported = all(&exported);
    let Exported { head, request } = &exported[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("x-key: {KEY}\r\n")), "{head}");
    assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    assert_eq!(said(&resource.attributes, "service.name"), text("gate-1"));
}

/// Calls go on as ever, and the server ends in good order.
#[test]
fn a_collector_that_never_answers_delays_nobody() {
    let (address, exported) = collect(Answers::Never);
    let mut server = Server::start(address);
    server.live_through(SAMPLED);
    exported.recv_timeout(PATIENCE).expect("nothing is exported");
    for _ in 0..100 {
        server.live_through(SAMPLED);
    }
    server.end();
}

#[test]
fn spans_that_are_not_taken_are_counted_and_that_is_logged_once() {
    let (address, exported) = collect(Answers::With(503));
    let mut server = Server::start(address);
    // The first batch is over when the second comes.
    for _ in 0..2 {
        server.live_through(SAMPLED);
        exported.recv_timeout(PATIENCE).expect("nothing is exported");
    }
    let metrics = server.metrics();
    let dropped = metrics.lines().find_map(|it| it.strip_prefix("tollgate_spans_dropped_total "));
    assert!(dropped.unwrap().parse::<u64>().unwrap() >= 3, "{metrics}");
    let log = server.end();
    assert_eq!(log.matches("spans are dropped").count(), 1, "{log}");
}

/// Answers one request with 200; the `traceparent` that came with it.
fn destination() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (out, traces) = channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        let trace = head.iter().find_map(|line| line.strip_prefix("traceparent: "));
        out.send(trace.unwrap_or_default().to_owned()).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    (address, traces)
}

#[test]
fn a_call_that_the_server_makes_itself_is_traced_to_its_destination() {
    let (collector, exported) = collect(Answers::With(200));
    let mut server = Server::start(collector);
    let (address, arrived) = destination();
    let queue = json!({"destination": format!("http://{address}/")});
    server.peer.succeed("PUT", "/v1/queues/q", &queue);
    let id = server.enqueue(&json!({"lane": "a", "traceparent": SAMPLED}));
    let arrived = arrived.recv_timeout(PATIENCE).expect("it is not delivered");
    server.end();
    let spans = spans(&all(&exported));
    let [enqueue, wait, attempt] = ["enqueue", "wait", "attempt"]
        .map(|name| spans.iter().find(|span| span.name == name).expect(name));
    assert_eq!(
        (&wait.parent_span_id, &attempt.parent_span_id),
        (&enqueue.span_id, &enqueue.span_id)
    );
    let expected = format!("00-{}-{}-01", &SAMPLED[3..35], hex(&attempt.span_id));
    assert_eq!(arrived, expected, "what it does there hangs under the attempt");
    let said = |key| said(&attempt.attributes, key);
    assert_eq!((said("tollgate.call"), said("tollgate.outcome")), (text(&id), text("done")));
}
