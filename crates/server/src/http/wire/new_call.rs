//! Calls as they are handed in.

use super::destination::DestinationWire;
use super::instant::InstantWire;
use super::object::Object;
use super::priority::PriorityWire;
use super::span::SpanWire;
use super::units::Units;
use crate::http::caller::Caller;
use crate::http::problem::Problem;
use crate::http::problem::kinds::{self, Kind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use tollgate::lanes::{
    Key, LaneName, LimitName, NewCall, Partition, Payload, QueueName, Toll, Tolls,
};
use tollgate::push::caps;
use tollgate::{Delivery, Envelope, Error, NameError, Now, Timestamp, TraceParent};

/// A call: `{"lane":"acme","body":{…},"tolls":[{"limit":"stripe","partition":"acme"}]}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CallWire<'a> {
    /// Where no path says which.
    queue: Option<Cow<'a, str>>,
    #[serde(borrow)]
    lane: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    body: Option<&'a RawValue>,
    body_base64: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tolls: Vec<Object<CallTollWire<'a>>>,
    #[serde(default)]
    priority: PriorityWire,
    delay: Option<SpanWire>,
    not_before: Option<InstantWire>,
    expires_after: Option<SpanWire>,
    expires_at: Option<InstantWire>,
    dedupe_id: Option<Cow<'a, str>>,
    #[serde(default)]
    dedupe_content: bool,
    supersedes: Option<Cow<'a, str>>,
    destination: Option<DestinationWire>,
    traceparent: Option<Cow<'a, str>>,
}

/// What a call owes at one meter when it starts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallTollWire<'a> {
    #[serde(borrow)]
    limit: Cow<'a, str>,
    partition: Option<Cow<'a, str>>,
    weight: Option<Units>,
    /// Whether an upstream that asks for a pause closes this meter; unsaid, the first toll's alone.
    feedback: Option<bool>,
}

/// Dedupe keys that begin so are made here.
pub(in crate::http) const OWN_KEYS: &str = "tollgate/";
/// Keys of calls that are known by their content.
pub(in crate::http) const CONTENT_KEYS: &str = "tollgate/content/";

/// Reads what is there, `null` too.
pub(super) fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(deserializer).map(Some)
}

/// What is wrong with a call, and where.
#[derive(Debug)]
pub(in crate::http) struct Fault {
    pub(in crate::http) kind: Kind,
    pub(in crate::http) field: Cow<'static, str>,
    pub(in crate::http) why: String,
}

impl Fault {
    /// The problem with the call that is at this place of the body; `""` for the body itself.
    pub(in crate::http) fn problem(&self, at: &str) -> Problem {
        let dot = if at.is_empty() { "" } else { "." };
        let path = format!("{at}{dot}{}", self.field);
        Problem::new(self.kind, format!("`{path}`: {}", self.why)).field(&path)
    }
}

/// Where a call is handed in, by whom and when.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct HandedIn<'a> {
    pub(in crate::http) caller: &'a Caller,
    /// Which queue, unless the call says.
    pub(in crate::http) queue: Option<&'a QueueName>,
    pub(in crate::http) now: Now,
    /// Of which trace the request is a part, and with it each call that does not say.
    pub(in crate::http) trace: Option<&'a TraceParent>,
}

impl CallWire<'_> {
    /// The call that is meant, by the names of the store.
    pub(in crate::http) fn new_call(&self, handed_in: HandedIn<'_>) -> Result<NewCall, Fault> {
        let named = |field| move |error: NameError| named(field, &error);
        let lane = LaneName::new(&self.lane).map_err(named("lane"))?;
        let (body, delivery) = (self.body_bytes()?, self.delivery(handed_in.caller)?);
        let key = |field, text: Option<&str>| {
            text.map(|text| Key::new(text).map_err(named(field))).transpose()
        };
        Ok(NewCall {
            queue: self.queue(handed_in)?,
            tolls: self.tolls(handed_in.caller, &delivery)?,
            priority: self.priority.0,
            not_before: either(
                ("delay", self.delay),
                ("not_before", self.not_before),
                handed_in.now,
            )?,
            expires: either(
                ("expires_after", self.expires_after),
                ("expires_at", self.expires_at),
                handed_in.now,
            )?,
            dedupe: match (&self.dedupe_id, self.dedupe_content) {
                (Some(_), true) => {
                    return Err(invalid(
                        "dedupe_content",
                        "a call with a `dedupe_id` is known by that: leave one out",
                    ));
                }
                (Some(id), false) if id.starts_with(OWN_KEYS) => {
                    let why = format!(
                        "keys that begin with {OWN_KEYS:?} are Tollgate's own: choose another"
                    );
                    return Err(invalid("dedupe_id", &why));
                }
                (id, false) => key("dedupe_id", id.as_deref())?,
                (None, true) => key("dedupe_content", Some(&content_key(&lane, &body, &delivery)))?,
            },
            supersedes: key("supersedes", self.supersedes.as_deref())?,
            lane,
            payload: wrapped(
                Envelope { trace: self.trace(handed_in)?, delivery, ..Envelope::default() },
                &body,
            )?,
        })
    }

    /// Whether it names instants of the wall clock.
    pub(in crate::http) fn has_instants(&self) -> bool {
        self.not_before.is_some() || self.expires_at.is_some()
    }

    fn queue(&self, handed_in: HandedIn<'_>) -> Result<QueueName, Fault> {
        match (handed_in.queue, &self.queue) {
            (Some(queue), None) => Ok(queue.clone()),
            (None, Some(name)) => QueueName::new(&handed_in.caller.inner(name))
                .map_err(|error| named("queue", &error)),
            (Some(_), Some(_)) => Err(invalid("queue", "the queue is named already: leave it out")),
            (None, None) => Err(invalid("queue", "missing field `queue`: where the call goes")),
        }
    }

    /// Of which trace it is a part.
    fn trace(&self, handed_in: HandedIn<'_>) -> Result<Option<TraceParent>, Fault> {
        Ok(match &self.traceparent {
            None => handed_in.trace.cloned(),
            Some(text) => Some(TraceParent::new(text).ok_or_else(|| {
                let why = "this is no `traceparent` of version 00, as in \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"";
                invalid("traceparent", why)
            })?),
        })
    }

    fn body_bytes(&self) -> Result<Box<[u8]>, Fault> {
        match (self.body, &self.body_base64) {
            (Some(_), Some(_)) => {
                Err(invalid("body_base64", "a call has one body: leave out `body`, or this"))
            }
            (Some(json), None) => Ok(json.get().as_bytes().into()),
            (None, Some(text)) => match STANDARD.decode(&**text) {
                Ok(bytes) => Ok(bytes.into()),
                Err(error) => Err(invalid("body_base64", &format!("this is not base64: {error}"))),
            },
            (None, None) => Ok([].into()),
        }
    }

    fn delivery(&self, caller: &Caller) -> Result<Delivery, Fault> {
        let Some(destination) = &self.destination else { return Ok(Delivery::default()) };
        destination.delivery(caller).map_err(|(field, why)| {
            let field = format!("destination{field}").into();
            Fault { kind: kinds::DESTINATION_INVALID, field, why }
        })
    }

    fn tolls(&self, caller: &Caller, delivery: &Delivery) -> Result<Tolls, Fault> {
        let tolls = self.tolls.iter().map(|Object(toll)| {
            let limit = LimitName::new(&caller.inner(&toll.limit));
            let partition = toll.partition.as_deref().map(Partition::new).transpose();
            Ok(Toll {
                limit: limit.map_err(|error| named("tolls", &error))?,
                partition: partition.map_err(|error| named("tolls", &error))?,
                weight: toll.weight.map_or(1, |Units(weight)| weight),
                hears_feedback: toll.feedback.unwrap_or(false),
            })
        });
        // A place of its own is owed at by the call itself.
        let place = delivery.destination.as_deref().map(|url| {
            let wrong = |error: Error| invalid("destination", &error.to_string());
            caps::toll(url).map_err(wrong)
        });
        tolls.chain(place).collect()
    }
}

/// An instant that is given as such, or as the time until then.
fn either(
    (after_field, after): (&str, Option<SpanWire>),
    (at_field, at): (&'static str, Option<InstantWire>),
    now: Now,
) -> Result<Option<Timestamp>, Fault> {
    match (after, at) {
        (Some(_), Some(_)) => Err(invalid(
            at_field,
            &format!("leave out `{after_field}`, or this: they say the same"),
        )),
        (Some(after), None) => Ok(Some(now.wall.plus(after.0))),
        (None, at) => Ok(at.map(|at| at.0)),
    }
}

/// A body with what goes with it.
fn wrapped(envelope: Envelope, body: &[u8]) -> Result<Payload, Fault> {
    envelope.around(body).map_err(|error| {
        let (kind, field) = (kinds::ENVELOPE_TOO_LONG, "destination".into());
        Fault { kind, field, why: error.to_string() }
    })
}

/// What two calls have in common that are one if their content is the same.
fn content_key(lane: &LaneName, body: &[u8], delivery: &Delivery) -> String {
    let length = u64::try_from(lane.len()).unwrap_or(u64::MAX).to_be_bytes();
    let digest = Sha256::new().chain_update(length).chain_update(lane.as_str()).chain_update(body);
    let mut digest = digest.finalize();
    // The same body to another place is another call. Without a place the key is as it always was.
    if let Some(bytes) = delivery.to_bytes().ok().filter(|_| *delivery != Delivery::default()) {
        digest = Sha256::new().chain_update(digest).chain_update(bytes).finalize();
    }
    format!("{CONTENT_KEYS}{}", URL_SAFE_NO_PAD.encode(digest))
}

fn named(field: &'static str, error: &NameError) -> Fault {
    let kind = match error {
        NameError::Empty { .. } => kinds::NAME_EMPTY,
        _ => kinds::NAME_TOO_LONG,
    };
    Fault { kind, field: field.into(), why: error.to_string() }
}

fn invalid(field: &'static str, why: &str) -> Fault {
    Fault { kind: kinds::INVALID_BODY, field: field.into(), why: why.to_owned() }
}
