//! What is told of messages, schedules and keys: JSON as the SDKs read it. What is absent is left out.

pub(super) mod flow;
pub(super) mod group;
pub(super) mod log;
pub(super) mod message;
pub(super) mod queue;
pub(super) mod reply;
pub(super) mod schedule;

use super::card::Card;
use super::destination::shown;
use super::digest::sha256_hex;
use super::draft::{Pair, Redact};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use std::collections::BTreeMap;
use tollgate::Delivery;

/// How names begin, in the words of a message, of what is sent with a callback.
const FORWARD: &str = "upstash-forward-";

/// Headers by their names, as `Content-Type`, each with its values.
pub(super) type HeaderMapWire = BTreeMap<String, Vec<String>>;

/// A message as it is kept.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    /// Its id, as in `msg_1`.
    pub(super) id: &'a str,
    /// What the face knows of it.
    pub(super) card: &'a Card,
    /// How it is delivered, in its own words.
    pub(super) delivery: &'a Delivery,
    /// What is sent, if that is told.
    pub(super) body: Option<&'a [u8]>,
    /// When it was accepted, if its call knows better than its card: so it is with schedules.
    pub(super) created_ms: Option<u64>,
}

/// What came back from a destination.
#[derive(Clone, Copy, Default)]
pub(super) struct Response<'a> {
    /// Its status; 0 if nothing came back.
    pub(super) status: u16,
    /// Its headers.
    pub(super) headers: &'a [Pair],
    /// Its body, as far as it is known.
    pub(super) body: &'a [u8],
}

/// The flow-control key of a message. Of several, the first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_control_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallelism: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<u64>,
}

/// What a message can be found by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct LabelsWire {
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
}

impl Kept<'_> {
    /// Where it goes, less credentials.
    pub(super) fn url(&self) -> String {
        shown(self.delivery.destination.as_deref().unwrap_or_default())
    }

    /// With which method.
    pub(super) fn method(&self) -> String {
        self.delivery.method.clone().unwrap_or_else(|| "POST".to_owned())
    }

    /// When it was accepted.
    pub(super) fn created_ms(&self) -> u64 {
        self.created_ms.unwrap_or(self.card.created_ms)
    }

    /// From when on it is sent.
    pub(super) fn not_before_ms(&self) -> u64 {
        match (self.created_ms, self.card.not_before_ms) {
            (None, Some(instant)) => instant,
            _ => self.created_ms().saturating_add(self.card.delay_ms.unwrap_or_default()),
        }
    }

    fn headers(&self) -> HeaderMapWire {
        header_map(&self.delivery.headers, &self.card.redact())
    }

    fn callback(&self) -> Option<String> {
        address(self.delivery.callback.as_deref())
    }

    fn failure_callback(&self) -> Option<String> {
        address(self.delivery.failure_callback.as_deref())
    }

    fn callback_headers(&self) -> HeaderMapWire {
        forwarded(&self.card.callback_headers, &self.card.redact())
    }

    fn failure_callback_headers(&self) -> HeaderMapWire {
        forwarded(&self.card.failure_callback_headers, &self.card.redact())
    }

    /// The body as text, or else in base64.
    fn body_parts(&self) -> (Option<String>, Option<String>) {
        let body = self.body.unwrap_or_default();
        if self.card.redact().has_body && !body.is_empty() {
            return (Some(redacted(body)), None);
        }
        text_or_base64(body)
    }

    fn key(&self) -> KeyWire {
        self.card.keys.first().map_or_else(KeyWire::default, |key| KeyWire {
            flow_control_key: Some(key.key.clone()),
            parallelism: key.parallelism,
            rate: key.rate,
            period: key.period_seconds(),
        })
    }

    fn labels(&self) -> LabelsWire {
        let labels = self.card.labels.clone();
        LabelsWire { label: labels.first().cloned(), labels }
    }
}

/// Headers by their names, less what is not shown.
pub(super) fn header_map(pairs: &[Pair], redact: &Redact) -> HeaderMapWire {
    let mut map = HeaderMapWire::new();
    for (name, value) in pairs {
        let value = if redact.hides(name) { redacted(value.as_bytes()) } else { value.clone() };
        map.entry(canonical(name)).or_default().push(value);
    }
    map
}

/// What stands in place of a secret: who knows it can tell that it is this one.
pub(super) fn redacted(secret: &[u8]) -> String {
    format!("REDACTED:{}", sha256_hex(secret))
}

/// Bytes as text if they are, or else in base64; neither if there are none.
pub(super) fn text_or_base64(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// Bytes in base64, if there are any.
pub(super) fn base64(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| STANDARD.encode(bytes))
}

/// Only what is sent with a callback, of all that is said of it.
fn forwarded(pairs: &[Pair], redact: &Redact) -> HeaderMapWire {
    let sent: Vec<Pair> = pairs
        .iter()
        .filter_map(|(name, value)| {
            let (start, rest) = name.split_at_checked(FORWARD.len())?;
            start.eq_ignore_ascii_case(FORWARD).then(|| (rest.to_owned(), value.clone()))
        })
        .collect();
    header_map(&sent, redact)
}

fn address(callback: Option<&Delivery>) -> Option<String> {
    callback.and_then(|callback| callback.destination.as_deref()).map(shown)
}

/// `content-type` as `Content-Type`.
fn canonical(name: &str) -> String {
    let mut is_first = true;
    name.chars()
        .map(|c| {
            let cased = if is_first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
            is_first = c == '-';
            cased
        })
        .collect()
}

#[cfg(test)]
mod tests;
