//! What the face knows of a message beyond how it is delivered: kept with its call, as JSON.

use super::draft::{Draft, KeyDraft, Pair, Redact, Start};
use super::error::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Not;
use tollgate::lanes::payload::ENVELOPE_BYTES_MAX;
use tollgate::{Delivery, Span, Timestamp};

/// What of an envelope is neither card nor delivery: lengths, and the trace.
const ENVELOPE_REST_BYTES: usize = 256;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// What the face knows of a message beyond how it is delivered. Names are short, for each call has one.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Card {
    /// When it was accepted. Messages of a schedule say it by their calls.
    #[serde(rename = "c")]
    pub(super) created_ms: u64,
    /// From when on it is sent.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub(super) not_before_ms: Option<u64>,
    /// How long it waits after it was accepted.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(super) delay_ms: Option<u64>,
    /// Who sent it.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub(super) caller_ip: Option<String>,
    /// The queue it goes through, by the name that its sender knows.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<String>,
    /// The URL group it was sent to.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<String>,
    /// The name of the endpoint in that group.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) endpoint: Option<String>,
    /// The schedule that it comes from.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(super) schedule: Option<String>,
    /// When that ticks, as it was written.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) cron: Option<String>,
    /// At which limits it waits.
    #[serde(rename = "k", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) keys: Vec<CardKey>,
    /// What it can be found by.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) labels: Vec<String>,
    #[serde(rename = "rb", default, skip_serializing_if = "Not::not")]
    hides_body: bool,
    #[serde(rename = "ra", default, skip_serializing_if = "Not::not")]
    hides_headers: bool,
    #[serde(rename = "rh", default, skip_serializing_if = "Vec::is_empty")]
    hidden_headers: Vec<String>,
    /// How often it is tried again.
    #[serde(rename = "r")]
    pub(super) max_retries: u32,
    /// How long it waits before that, if it said so.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub(super) retry_delay: Option<String>,
    /// How its callback is sent, in the words of a message.
    #[serde(rename = "cb", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) callback_headers: Vec<Pair>,
    /// How its failure callback is sent, in the words of a message.
    #[serde(rename = "fb", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failure_callback_headers: Vec<Pair>,
    /// Of a callback: the message that it tells of.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
}

/// A flow-control key, as a message was sent with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct CardKey {
    /// Its name, as its sender knows it.
    #[serde(rename = "k")]
    pub(super) key: String,
    /// How many calls at a time.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(super) parallelism: Option<u64>,
    /// How many calls start in a period.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) rate: Option<u64>,
    /// The period, if anything was said of the key.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(super) period_ms: Option<u64>,
    /// An answer that says to come later closes the key.
    #[serde(rename = "f", default, skip_serializing_if = "Not::not")]
    pub(super) has_feedback: bool,
    /// How much the message owes there, if that is not 1.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(super) weight: Option<u64>,
}

/// What is known of a message once it is accepted.
#[derive(Debug, Clone, Default)]
pub(super) struct Accepted {
    /// When that was, on the wall clock.
    pub(super) at: Timestamp,
    /// Who sent it.
    pub(super) caller_ip: Option<String>,
    /// The queue it goes through.
    pub(super) queue: Option<String>,
    /// The group it was sent to, and the name of its endpoint there.
    pub(super) group: Option<(String, Option<String>)>,
    /// The schedule that it comes from.
    pub(super) schedule: Option<String>,
    /// When that ticks, as it was written.
    pub(super) cron: Option<String>,
    /// The message that it tells of.
    pub(super) source: Option<String>,
}

/// Why bytes are no card, or a card cannot be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum CardError {
    /// They were not written here.
    #[error("a card that cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// It is too long, with the delivery that goes with it.
    #[error(
        "what goes with the body (destination, headers, labels, keys, callbacks) may have up to {most} bytes, and this has {bytes}: send fewer or shorter headers, or move them into the body"
    )]
    TooLong {
        /// How many bytes it may have.
        most: usize,
        /// How many it has.
        bytes: usize,
    },
    /// The delivery cannot be written.
    #[error(transparent)]
    Delivery(#[from] tollgate::Error),
}

impl From<CardError> for Fault {
    fn from(error: CardError) -> Self {
        Self::invalid(error)
    }
}

impl fmt::Debug for Card {
    /// Headers hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card").field("created_ms", &self.created_ms).finish_non_exhaustive()
    }
}

impl Card {
    /// The card of a message that was accepted.
    pub(super) fn new(draft: &Draft, accepted: Accepted) -> Self {
        let (group, endpoint) = accepted.group.unzip();
        let Redact { has_body, has_headers, names } = draft.redact.clone();
        let delay = match draft.start {
            Start::After(delay) => Some(delay.as_millis_ceil()),
            Start::Now | Start::At(_) => None,
        };
        let not_before = draft.not_before(accepted.at);
        Self {
            created_ms: millis(accepted.at),
            // What waits for nothing is sent from when it was accepted, and need not say it.
            not_before_ms: (not_before > accepted.at).then(|| millis(not_before)),
            delay_ms: delay,
            caller_ip: accepted.caller_ip,
            queue: accepted.queue,
            group,
            endpoint: endpoint.flatten(),
            schedule: accepted.schedule,
            cron: accepted.cron,
            keys: draft.keys.iter().map(CardKey::new).collect(),
            labels: draft.labels.clone(),
            hides_body: has_body,
            hides_headers: has_headers,
            hidden_headers: names,
            max_retries: draft.retries(),
            retry_delay: draft.delivery.retry_delay.clone(),
            callback_headers: draft.callback_headers.clone(),
            failure_callback_headers: draft.failure_callback_headers.clone(),
            source: accepted.source,
        }
    }

    /// As it is kept, if there is room for it beside the delivery that goes with it.
    pub(super) fn to_bytes(&self, delivery: &Delivery) -> Result<Box<[u8]>, CardError> {
        let card = serde_json::to_vec(self)?;
        let bytes = card.len() + delivery.to_bytes()?.len();
        let most = ENVELOPE_BYTES_MAX - ENVELOPE_REST_BYTES;
        if bytes > most {
            return Err(CardError::TooLong { most, bytes });
        }
        Ok(card.into())
    }

    /// From what was kept.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, CardError> {
        Ok(serde_json::from_slice(bytes)?)
    }

    /// What of the message is not shown.
    pub(super) fn redact(&self) -> Redact {
        Redact {
            has_body: self.hides_body,
            has_headers: self.hides_headers,
            names: self.hidden_headers.clone(),
        }
    }

    /// Shows nothing that its sender could mean as a secret.
    pub(super) fn hide_all(&mut self) {
        (self.hides_body, self.hides_headers) = (true, true);
    }

    /// Takes over what another does not show: one that tells of it holds the same.
    pub(super) fn hide_as(&mut self, other: &Self) {
        self.hides_body |=
            other.hides_body || other.hides_headers || !other.hidden_headers.is_empty();
    }
}

impl CardKey {
    fn new(draft: &KeyDraft) -> Self {
        let is_said = draft.parallelism.is_some() || draft.rate.is_some();
        Self {
            key: draft.key.clone(),
            parallelism: draft.parallelism,
            rate: draft.rate,
            period_ms: is_said.then(|| draft.window().as_millis_ceil()),
            has_feedback: draft.has_feedback,
            weight: Some(draft.weight).filter(|weight| *weight != 1),
        }
    }

    /// As a message says it.
    pub(super) fn draft(&self) -> KeyDraft {
        KeyDraft {
            key: self.key.clone(),
            parallelism: self.parallelism,
            rate: self.rate,
            period: self.period_ms.map(Span::from_millis),
            weight: self.weight.unwrap_or(1),
            has_feedback: self.has_feedback,
        }
    }

    /// The period in whole seconds, rounded up.
    pub(super) fn period_seconds(&self) -> Option<u64> {
        self.period_ms.map(|period| Span::from_millis(period).as_secs_ceil())
    }
}

/// An instant from the wire.
pub(super) fn instant(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
}

/// An instant as the wire has it.
pub(super) fn millis(instant: Timestamp) -> u64 {
    instant.as_nanos() / NANOS_PER_MILLI
}

#[cfg(test)]
mod tests;
