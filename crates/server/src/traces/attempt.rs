//! A start of a call that is traced: what its settlement has to know, and the spans of it.

use super::{Attribute, FinishedSpan, SpanKind, Traces, new_span, of_queue};
use tollgate::lanes::CallId;
use tollgate::{Envelope, SpanId, Timestamp, TraceParent};

/// Bytes of an attempt before the name of its queue.
const FIXED_BYTES: usize = 16 + 8 + 8 + 1 + 8 + 4;

/// An attempt that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its trace, and itself as the parent of the worker's spans.
    pub(crate) context: TraceParent,
    parent: SpanId,
    /// On the wall clock.
    started: Timestamp,
    number: u32,
    /// As the caller calls it.
    queue: String,
}

/// A start, as far as its spans tell of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) call: CallId,
    pub(crate) envelope: &'a Envelope,
    /// The queue, its namespace and the lane, as the caller calls them.
    pub(crate) queue: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) lane: &'a str,
    /// On the wall clock.
    pub(crate) at: Timestamp,
    /// Which attempt it is, from 1 on.
    pub(crate) attempt: u32,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended<'a> {
    pub(crate) call: CallId,
    pub(crate) namespace: Option<&'a str>,
    /// In a word of the wire.
    pub(crate) outcome: &'static str,
    pub(crate) has_failed: bool,
    /// On the wall clock.
    pub(crate) at: Timestamp,
}

impl Traces {
    /// Tells of the wait that ends with a start, if it is the first, and begins the attempt. `None` if
    /// the call is of no trace that is sampled, or nobody wants to know.
    pub(crate) fn start(&self, start: Start<'_>) -> Option<Attempt> {
        if !self.is_on() {
            return None;
        }
        let kept = start.envelope.trace.as_ref().filter(|trace| trace.is_sampled())?;
        if let (Some(accepted), 1) = (start.envelope.accepted, start.attempt) {
            self.tell(wait(kept, accepted, start)?);
        }
        Some(Attempt {
            context: kept.with_parent(new_span()?)?,
            parent: kept.span_id(),
            started: start.at,
            number: start.attempt,
            queue: start.queue.to_owned(),
        })
    }

    /// Tells of an attempt that has ended, whoever made it.
    pub(crate) fn end(&self, attempt: Attempt, ended: Ended<'_>) {
        let mut attributes = of_queue("process", &attempt.queue, ended.namespace);
        attributes.push(("tollgate.call", Attribute::Text(ended.call.0.to_string())));
        attributes.push(("tollgate.attempt", Attribute::Count(attempt.number)));
        attributes.push(("tollgate.outcome", Attribute::Text(ended.outcome.to_owned())));
        self.tell(FinishedSpan {
            name: "attempt",
            kind: SpanKind::Consumer,
            context: attempt.context,
            parent: attempt.parent,
            began: attempt.started,
            // The wall clock may have been set back.
            ended: ended.at.max(attempt.started),
            attributes,
            has_failed: ended.has_failed,
        });
    }
}

fn wait(kept: &TraceParent, accepted: Timestamp, start: Start<'_>) -> Option<FinishedSpan> {
    let mut attributes = of_queue("receive", start.queue, start.namespace);
    attributes.push(("tollgate.lane", Attribute::Text(start.lane.to_owned())));
    attributes.push(("tollgate.call", Attribute::Text(start.call.0.to_string())));
    Some(FinishedSpan {
        name: "wait",
        kind: SpanKind::Internal,
        context: kept.with_parent(new_span()?)?,
        parent: kept.span_id(),
        began: accepted,
        ended: start.at.max(accepted),
        attributes,
        has_failed: false,
    })
}

impl Attempt {
    /// As a lease carries it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + self.queue.len());
        bytes.extend(self.context.trace_id());
        bytes.extend(self.context.span_id());
        bytes.extend(self.parent);
        bytes.push(self.context.flags());
        bytes.extend(self.started.as_nanos().to_be_bytes());
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.queue.as_bytes());
        bytes
    }

    /// From what a lease carried; `None` if that is nothing, or something else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (trace, rest) = bytes.split_first_chunk()?;
        let (span, rest) = rest.split_first_chunk()?;
        let (parent, rest) = rest.split_first_chunk()?;
        let ([flags], rest) = rest.split_first_chunk()?;
        let (started, rest) = rest.split_first_chunk()?;
        let (number, queue) = rest.split_first_chunk()?;
        Some(Self {
            context: TraceParent::from_ids(*trace, *span, *flags)?,
            parent: *parent,
            started: Timestamp::from_nanos(u64::from_be_bytes(*started)),
            number: u32::from_be_bytes(*number),
            queue: str::from_utf8(queue).ok()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_comes_back_with_its_lease() {
        let attempt = Attempt {
            context: TraceParent::from_ids([1; 16], [2; 8], 3).unwrap(),
            parent: [4; 8],
            started: Timestamp::from_nanos(5),
            number: 6,
            queue: "ü".repeat(256),
        };
        let bytes = attempt.to_bytes();
        assert_eq!(Attempt::from_bytes(&bytes), Some(attempt));
        assert_eq!(Attempt::from_bytes(&[]), None);
        assert_eq!(Attempt::from_bytes(&bytes[..FIXED_BYTES - 1]), None);
        assert!(bytes.len() <= crate::lease::TRACE_BYTES_MAX);
    }
}
