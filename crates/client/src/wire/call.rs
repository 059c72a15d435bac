//! Calls as they are handed in.

use super::destination::DestinationWire;
use super::time::{InstantWire, SpanWire};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use tollgate_engine::{Call, CallParts, Delivery, Due, Envelope, Owed};

/// A call.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CallWire {
    /// Where no path says which.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
    lane: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tolls: Vec<TollWire>,
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_after: Option<SpanWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dedupe_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<DestinationWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct TollWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    weight: u64,
    feedback: bool,
}

impl From<Call> for CallWire {
    fn from(call: Call) -> Self {
        let CallParts { lane, tolls, priority, due, expires, dedupe, supersedes, body, envelope } =
            call.into_parts();
        let Envelope { trace, delivery, .. } = envelope;
        let has_own = delivery != Delivery::default();
        let (delay, not_before) = times(due);
        let (expires_after, expires_at) = times(expires.unwrap_or(Due::AtOnce));
        let (body, body_base64) = as_json_or_base64(&body);
        Self {
            queue: None,
            lane,
            body,
            body_base64,
            tolls: tolls.into_iter().map(TollWire::from).collect(),
            priority: priority.level(),
            delay,
            not_before,
            expires_after,
            expires_at,
            dedupe_id: dedupe,
            supersedes,
            destination: has_own.then(|| delivery.into()),
            traceparent: trace.map(|trace| trace.as_str().to_owned()),
        }
    }
}

impl CallWire {
    /// The call with the queue that it goes to.
    pub(crate) fn of_queue(self, queue: String) -> Self {
        Self { queue: Some(queue), ..self }
    }
}

impl From<Owed> for TollWire {
    fn from(owed: Owed) -> Self {
        let Owed { limit, partition, weight, hears_feedback } = owed;
        Self { limit, partition, weight, feedback: hears_feedback }
    }
}

fn times(due: Due) -> (Option<SpanWire>, Option<InstantWire>) {
    match due {
        Due::AtOnce => (None, None),
        Due::After(span) => (Some(SpanWire(span)), None),
        Due::At(instant) => (None, Some(InstantWire(instant))),
    }
}

/// Bytes as JSON if a reader would get the same bytes then, as base64 otherwise, and not at all if there
/// are none.
pub(super) fn as_json_or_base64(bytes: &[u8]) -> (Option<Box<RawValue>>, Option<String>) {
    let json = as_json(bytes);
    let is_base64 = json.is_none() && !bytes.is_empty();
    (json, is_base64.then(|| STANDARD.encode(bytes)))
}

/// The body as JSON, if a worker would get the same bytes then: readable on the way, and a quarter
/// smaller than otherwise.
fn as_json(body: &[u8]) -> Option<Box<RawValue>> {
    let text = std::str::from_utf8(body).ok()?;
    let json: Box<RawValue> = serde_json::from_str(text).ok()?;
    // What is around it would be lost, and `null` is taken for no body at all.
    (json.get().len() == text.len() && text != "null").then_some(json)
}

/// The bytes of a body as it came.
pub(crate) fn bytes(json: Option<&RawValue>, base64: Option<&str>) -> Result<Box<[u8]>, String> {
    match (json, base64) {
        (Some(json), _) => Ok(json.get().as_bytes().into()),
        (None, Some(text)) => match STANDARD.decode(text) {
            Ok(bytes) => Ok(bytes.into()),
            Err(error) => Err(format!("a body is not base64: {error}")),
        },
        (None, None) => Ok([].into()),
    }
}

/// Reads JSON as it stands, `null` too.
pub(crate) fn raw<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tollgate_core::{Span, Timestamp};
    use tollgate_engine::{TraceParent, toll};

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn written(call: Call) -> serde_json::Value {
        serde_json::to_value(CallWire::from(call)).unwrap()
    }

    #[test]
    fn a_body_goes_as_json_only_if_it_comes_back_as_it_was() {
        for body in [r#"{"b":1,"a":1.50}"#, "7", "\"x\""] {
            let wire = written(Call::new("a").body(body));
            assert!(wire.get("body").is_some() && wire.get("body_base64").is_none(), "{wire}");
        }
        for body in [&b" {}"[..], b"null", b"charge 42", b"\xff"] {
            let wire = written(Call::new("a").body(body));
            assert_eq!(wire["body_base64"], STANDARD.encode(body), "{wire}");
        }
        assert_eq!(written(Call::new("a")), json!({"lane": "a", "priority": 0}));
    }

    #[test]
    fn times_tolls_and_traces_are_told() {
        let call = Call::new("acme")
            .pays(toll("stripe", "acme").weight(2))
            .delay(Span::from_secs(5))
            .expires_at(Timestamp::from_nanos(1_700_000_000_000_000_000))
            .dedupe("d")
            .supersedes("s")
            .delivery(Delivery { method: Some("PUT".to_owned()), ..Delivery::default() })
            .trace(TraceParent::new(TRACE).unwrap());
        let tolls =
            json!([{"limit": "stripe", "partition": "acme", "weight": 2, "feedback": false}]);
        let told = json!({"lane": "acme", "priority": 0, "tolls": tolls, "delay": "5s",
            "expires_at": "2023-11-14T22:13:20Z", "dedupe_id": "d", "supersedes": "s",
            "destination": {"method": "PUT"}, "traceparent": TRACE});
        assert_eq!(written(call), told);
    }
}
