//! What goes with a call's body: the trace it is part of, how it is delivered, and a card.

mod record;
mod trace;

pub use trace::SpanId;

use crate::error::Error;
use std::fmt;
use tollgate_core::lanes::Payload;
use tollgate_core::{Span, Timestamp};

/// What goes with a call's body. Limits and lanes do not look at it; whoever makes the call does.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Envelope {
    /// Of which trace the call is a part: W3C's `traceparent`.
    pub trace: Option<TraceParent>,
    /// When it began to wait, on the wall clock, if someone traces that.
    pub accepted: Option<Timestamp>,
    /// How it is delivered, as far as that is not for its queue to say.
    pub delivery: Delivery,
    /// What the face of another API keeps with the call: nobody else looks into it; empty: none.
    pub card: Box<[u8]>,
}

impl fmt::Debug for Envelope {
    /// A card may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, accepted, delivery, card } = self;
        let mut shown = f.debug_struct("Envelope");
        shown.field("trace", trace).field("accepted", accepted).field("delivery", delivery);
        shown.field("card_bytes", &card.len()).finish()
    }
}

/// How calls are delivered over HTTP. A queue says it for all its calls, and a call for itself: what is
/// `None` here is as the queue says, and else as everywhere.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Delivery {
    /// Where to: an `http` or `https` address.
    pub destination: Option<String>,
    /// `POST` unless it says otherwise.
    pub method: Option<String>,
    /// What is sent besides what Tollgate sends itself. Those of a call stand before those of its queue.
    pub headers: Vec<(String, String)>,
    /// How long the answer may take.
    pub timeout: Option<Span>,
    /// How often it is tried again when it failed, within what the queue allows.
    pub retries: Option<u32>,
    /// How many milliseconds it waits before that, as an expression of `retried`; the queue's backoff if
    /// there is none.
    pub retry_delay: Option<String>,
    /// Answers that make it dead at once.
    pub fatal: Vec<u16>,
    /// Where the true cost stands in the answer, by limit.
    pub costs: Vec<CostPath>,
    /// Where it is told that the call is done, with the answer.
    pub callback: Option<Box<Self>>,
    /// Where it is told that the call is dead.
    pub failure_callback: Option<Box<Self>>,
}

impl fmt::Debug for Delivery {
    /// Addresses and headers hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Where an answer tells what a call cost at a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostPath {
    /// The limit's name.
    pub limit: String,
    /// `body.usage.total_tokens`, or `header.x-cost`.
    pub from: String,
}

/// The trace that a call is part of, as `traceparent` says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceParent(Box<str>);

impl TraceParent {
    /// One of version 00; `None` if a text is none. Who is sent another version, or none, goes on
    /// without.
    pub fn new(text: &str) -> Option<Self> {
        let is_hex = |it: &str, length| {
            let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            it.len() == length && it.bytes().all(is_digit)
        };
        let mut parts = text.split('-');
        let mut part = || parts.next().unwrap_or_default();
        let (version, trace, span, flags) = (part(), part(), part(), part());
        let is_whole = parts.next().is_none() && version == "00";
        let is_some = |id: &str, length| is_hex(id, length) && id.bytes().any(|it| it != b'0');
        (is_whole && is_some(trace, 32) && is_some(span, 16) && is_hex(flags, 2))
            .then(|| Self(text.into()))
    }

    /// As it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Envelope {
    /// What goes with a payload's body.
    pub fn of(payload: &Payload) -> Result<Self, Error> {
        match payload.envelope() {
            [] => Ok(Self::default()),
            envelope => record::read_envelope(envelope),
        }
    }

    /// A body in this envelope.
    pub fn around(&self, body: &[u8]) -> Result<Payload, Error> {
        if *self == Self::default() {
            return Ok(Payload::body_alone(body));
        }
        Ok(Payload::new(&record::write_envelope(self)?, body)?)
    }
}

impl Delivery {
    /// As a queue keeps it.
    pub fn to_bytes(&self) -> Result<Box<[u8]>, Error> {
        record::write_delivery(self)
    }

    /// From what a queue kept.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        record::read_delivery(bytes)
    }

    /// This one's own words, and those of a queue where it has none.
    pub fn over(self, queue: &Self) -> Self {
        let mut headers = self.headers;
        headers.extend(queue.headers.iter().cloned());
        let or = |own: Option<String>, queue: &Option<String>| own.or_else(|| queue.clone());
        let or_list =
            |own: Vec<u16>, queue: &[u16]| if own.is_empty() { queue.into() } else { own };
        Self {
            destination: or(self.destination, &queue.destination),
            method: or(self.method, &queue.method),
            headers,
            timeout: self.timeout.or(queue.timeout),
            retries: self.retries.or(queue.retries),
            retry_delay: or(self.retry_delay, &queue.retry_delay),
            fatal: or_list(self.fatal, &queue.fatal),
            costs: if self.costs.is_empty() { queue.costs.clone() } else { self.costs },
            callback: self.callback.or_else(|| queue.callback.clone()),
            failure_callback: self.failure_callback.or_else(|| queue.failure_callback.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_parent_is_taken_as_it_is_or_not_at_all() {
        let whole = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(TraceParent::new(whole).unwrap().as_str(), whole);
        for wrong in [
            "",
            "00",
            &whole[1..],
            &format!("{whole}-00"),
            &whole.replace("00-4", "01-4"),
            &whole.to_uppercase(),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceParent::new(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_call_says_what_its_queue_leaves_open_and_overrules_the_rest() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let queue = Delivery {
            destination: Some("https://a.example/".to_owned()),
            headers: vec![header("x-a", "queue")],
            timeout: Some(Span::from_secs(3)),
            fatal: vec![400],
            ..Delivery::default()
        };
        let call = Delivery {
            destination: Some("https://b.example/".to_owned()),
            headers: vec![header("x-a", "call")],
            method: Some("PUT".to_owned()),
            ..Delivery::default()
        };
        let both = call.clone().over(&queue);
        assert_eq!(both.destination, call.destination);
        assert_eq!(both.method, call.method);
        assert_eq!(both.headers, [header("x-a", "call"), header("x-a", "queue")]);
        assert_eq!((both.timeout, both.fatal), (queue.timeout, vec![400]));
    }
}
