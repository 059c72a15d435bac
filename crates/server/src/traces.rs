//! Traces: what is told of a call on its way, from the request that hands it in to its settlement.
//!
//! Three spans, all of the trace that the call's `traceparent` names: `enqueue`, a child of the caller's,
//! and below it `wait` and `attempt`. The server keeps nothing of a call that a worker has: what the last
//! span needs goes out with the lease and comes back with the settlement.

mod attempt;
#[cfg(feature = "otel")]
mod collector;
mod entering;
#[cfg(feature = "otel")]
mod export;
mod pushed;

pub(crate) use attempt::{Attempt, Ended, Start};
#[cfg(feature = "otel")]
pub use collector::{TraceSettings, TracesError};
pub(crate) use entering::Entering;
#[cfg(feature = "otel")]
pub(crate) use export::Exporter;
pub(crate) use pushed::tracer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tollgate::{SpanId, Timestamp, TraceParent};

/// What messaging systems are told apart by.
const SYSTEM: &str = "tollgate";

/// Where spans go: nowhere, unless someone exports them.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    out: Option<mpsc::Sender<FinishedSpan>>,
    dropped: Arc<AtomicU64>,
}

/// What a span is to those on its other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Producer,
    Internal,
    Consumer,
}

/// Something that began and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinishedSpan {
    pub(crate) name: &'static str,
    pub(crate) kind: SpanKind,
    /// Its trace, and itself as the parent of others.
    pub(crate) context: TraceParent,
    pub(crate) parent: SpanId,
    /// On the wall clock.
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) attributes: Vec<(&'static str, Attribute)>,
    pub(crate) has_failed: bool,
}

/// What a span says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attribute {
    Text(String),
    Count(u32),
}

impl Traces {
    /// Hands spans to whoever has the other end.
    #[cfg(any(feature = "otel", test))]
    pub(crate) fn to(out: mpsc::Sender<FinishedSpan>) -> Self {
        Self { out: Some(out), dropped: Arc::default() }
    }

    /// Whether anyone wants to know.
    pub(crate) fn is_on(&self) -> bool {
        self.out.is_some()
    }

    /// How many spans were not exported.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Hands over a span, and never waits: without room it is dropped, and counted.
    fn tell(&self, span: FinishedSpan) {
        if let Some(out) = &self.out
            && out.try_send(span).is_err()
        {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The id of a new span; `None` if the system has no randomness to give, and then there is no span.
fn new_span() -> Option<SpanId> {
    let mut id = SpanId::default();
    getrandom::fill(&mut id).ok()?;
    Some(id)
}

/// What the spans of one queue say in common, in the words of OpenTelemetry's conventions and our own.
fn of_queue(
    operation: &str,
    queue: &str,
    namespace: Option<&str>,
) -> Vec<(&'static str, Attribute)> {
    let text = |text: &str| Attribute::Text(text.to_owned());
    let mut attributes = vec![
        ("messaging.system", text(SYSTEM)),
        ("messaging.operation.type", text(operation)),
        ("messaging.destination.name", text(queue)),
        ("tollgate.queue", text(queue)),
    ];
    attributes.extend(namespace.map(|namespace| ("tollgate.namespace", text(namespace))));
    attributes
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Envelope;
    use tollgate::lanes::CallId;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The second attempt at a call that was kept so: no wait is told of.
    fn again(envelope: &Envelope) -> Start<'_> {
        let (queue, namespace, lane) = ("q", None, "a");
        let at = Timestamp::default();
        Start { call: CallId(1), envelope, queue, namespace, lane, at, attempt: 2 }
    }

    fn of_trace(text: &str) -> Envelope {
        Envelope { trace: TraceParent::new(text), ..Envelope::default() }
    }

    #[test]
    fn a_span_without_room_is_dropped_and_counted() {
        let (out, mut spans) = mpsc::channel(1);
        let traces = Traces::to(out);
        let at = Timestamp::default();
        let ended =
            Ended { call: CallId(1), namespace: None, outcome: "done", has_failed: false, at };
        for _ in 0..3 {
            let attempt = traces.start(again(&of_trace(SAMPLED))).unwrap();
            traces.end(attempt, ended);
        }
        assert_eq!(traces.dropped(), 2);
        assert_eq!(spans.try_recv().unwrap().name, "attempt");
    }

    #[test]
    fn only_what_is_sampled_and_wanted_is_traced() {
        let (out, _spans) = mpsc::channel(1);
        let traces = Traces::to(out);
        assert!(traces.start(again(&of_trace(SAMPLED))).is_some());
        assert_eq!(traces.start(again(&of_trace(&SAMPLED.replace("-01", "-00")))), None);
        assert_eq!(traces.start(again(&Envelope::default())), None);
        assert_eq!(Traces::default().start(again(&of_trace(SAMPLED))), None);
    }
}
