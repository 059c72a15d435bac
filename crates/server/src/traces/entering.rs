//! Calls of a request on their way in: a span each, from the request's arrival until they are accepted.

use super::{Attribute, FinishedSpan, SpanKind, Traces, new_span, of_queue};
use tollgate::lanes::{CallId, NewCall};
use tollgate::{Envelope, SpanId, Timestamp, Tollgate, TraceParent};

/// Calls that are not accepted yet, in order.
#[derive(Debug)]
pub(crate) struct Entering<'a> {
    traces: &'a Traces,
    /// The queue and its namespace, as the caller calls them.
    queue: &'a str,
    namespace: Option<&'a str>,
    begun: Vec<Option<Begun>>,
}

/// A span that has begun.
#[derive(Debug)]
struct Begun {
    context: TraceParent,
    parent: SpanId,
    began: Timestamp,
    lane: String,
}

impl<'a> Entering<'a> {
    pub(crate) fn new(traces: &'a Traces, queue: &'a str, namespace: Option<&'a str>) -> Self {
        Self { traces, queue, namespace, begun: Vec::new() }
    }

    /// A call is handed to the store now. If it is part of a trace that is sampled, what is kept with it
    /// has this span as its parent, and the time from which it waits.
    pub(crate) fn begin(&mut self, call: &mut NewCall, arrived: Timestamp, now: Timestamp) {
        if self.traces.is_on() {
            self.begun.push(begin(call, arrived, now));
        }
    }

    /// The first of them were accepted, under these names; the others, if any, were not.
    pub(crate) async fn end(&mut self, accepted: &[CallId], gate: &Tollgate) {
        let begun = std::mem::take(&mut self.begun);
        let ended =
            begun.into_iter().zip(accepted).filter_map(|(begun, call)| Some((begun?, *call)));
        let ended: Vec<_> = ended.collect();
        if ended.is_empty() {
            return;
        }
        // The calls are accepted, whatever comes of their spans.
        let Ok(now) = gate.now().await else { return };
        for (begun, call) in ended {
            self.traces.tell(self.span(begun, call, now.wall));
        }
    }

    fn span(&self, begun: Begun, call: CallId, ended: Timestamp) -> FinishedSpan {
        let mut attributes = of_queue("send", self.queue, self.namespace);
        attributes.push(("tollgate.lane", Attribute::Text(begun.lane)));
        attributes.push(("tollgate.call", Attribute::Text(call.0.to_string())));
        FinishedSpan {
            name: "enqueue",
            kind: SpanKind::Producer,
            context: begun.context,
            parent: begun.parent,
            began: begun.began,
            // The wall clock may have been set back.
            ended: ended.max(begun.began),
            attributes,
            has_failed: false,
        }
    }
}

fn begin(call: &mut NewCall, began: Timestamp, now: Timestamp) -> Option<Begun> {
    let mut envelope = Envelope::of(&call.payload).ok()?;
    let caller = envelope.trace.take().filter(TraceParent::is_sampled)?;
    let context = caller.with_parent(new_span()?)?;
    (envelope.trace, envelope.accepted) = (Some(context.clone()), Some(now));
    call.payload = envelope.around(call.payload.body()).ok()?;
    let lane = call.lane.as_str().to_owned();
    Some(Begun { context, parent: caller.span_id(), began, lane })
}
