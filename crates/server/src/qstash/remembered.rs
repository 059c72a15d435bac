//! Messages as they were accepted, and what came of their attempts: read from what the engine kept.

use super::card::{Card, millis};
use super::draft::{Pair, Redact};
use super::filter::Facts;
use super::shape::{Kept, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tollgate::lanes::Payload;
use tollgate::{Delivery, Envelope};

/// A message as it was accepted, but for its body.
#[derive(Debug, Clone, Default)]
pub(super) struct Message {
    /// What the face knows of it.
    pub(super) card: Card,
    /// How it is delivered.
    pub(super) delivery: Delivery,
    /// When it was accepted, if its call knows better than its card.
    pub(super) created_ms: Option<u64>,
    /// Its body, if that came with it.
    pub(super) body: Option<Payload>,
}

impl Message {
    /// From what history was told of its call; `None` if that is of no message.
    pub(super) fn told(payload: &Payload) -> Option<Self> {
        let body = (!payload.body().is_empty()).then(|| payload.clone());
        Some(Self { body, ..Self::of(payload.envelope())? })
    }

    /// From the envelope of its call; `None` if that is of no message.
    pub(super) fn of(envelope: &[u8]) -> Option<Self> {
        let payload = Payload::new(envelope, &[]).ok()?;
        let Envelope { accepted, delivery, card, .. } = Envelope::of(&payload).ok()?;
        let card = Card::from_bytes(&card).ok()?;
        Some(Self { card, delivery, created_ms: accepted.map(millis), body: None })
    }

    /// The same, with nothing told that a sender could mean as a secret: so the server may be set.
    pub(super) fn hidden_if(mut self, is_hidden: bool) -> Self {
        if is_hidden {
            self.card.hide_all();
        }
        self
    }

    /// When it was accepted.
    pub(super) fn created_ms(&self) -> u64 {
        self.created_ms.unwrap_or(self.card.created_ms)
    }

    /// As it is told, under this id.
    pub(super) fn kept<'a>(&'a self, id: &'a str, body: Option<&'a [u8]>) -> Kept<'a> {
        let Self { card, delivery, created_ms, body: _ } = self;
        Kept { id, card, delivery, body, created_ms: *created_ms }
    }

    /// What it can be found by, under this id; `url` is where it goes, as that is told.
    pub(super) fn facts<'a>(&'a self, id: &'a str, url: &'a str) -> Facts<'a> {
        let card = &self.card;
        Facts {
            message_id: id,
            url,
            group: card.group.as_deref(),
            queue: card.queue.as_deref(),
            schedule: card.schedule.as_deref(),
            labels: &card.labels,
            keys: card.keys.iter().map(|key| key.key.as_str()).collect(),
            caller_ip: card.caller_ip.as_deref(),
            ..Facts::default()
        }
    }
}

/// Whether the body of a call is hidden, and its headers: all are, or its sender wants it so.
pub(crate) fn hidden(payload: &Payload, is_all: bool) -> (bool, bool) {
    let message = Message::of(payload.envelope()).filter(|_| !is_all);
    let redact = message.map(|message| message.card.redact()).unwrap_or_default();
    let Redact { has_body, has_headers, names } = redact;
    (is_all || has_body, is_all || has_headers || !names.is_empty())
}

/// What came of an attempt, as history has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Report {
    /// The status of the answer; 0 if nothing came back.
    pub(super) status: u16,
    /// What went wrong.
    pub(super) error: Option<String>,
    pub(super) headers: Vec<Pair>,
    pub(super) body: Vec<u8>,
}

/// As pushes write it.
#[derive(Deserialize, Default)]
struct ReportRecord {
    status: Option<u16>,
    error: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<Box<RawValue>>,
    body_text: Option<String>,
    body_base64: Option<String>,
}

impl Report {
    /// From what history has. What cannot be read says nothing.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let record: ReportRecord = serde_json::from_slice(bytes).unwrap_or_default();
        let json = record.body.map(|body| body.get().as_bytes().to_vec());
        let text = record.body_text.map(String::into_bytes);
        let bytes = || record.body_base64.and_then(|body| STANDARD.decode(body).ok());
        Self {
            status: record.status.unwrap_or(0),
            error: record.error,
            headers: record.headers.into_iter().collect(),
            body: json.or(text).or_else(bytes).unwrap_or_default(),
        }
    }

    /// The same without the answer's words: so the server may be set.
    pub(super) fn hidden_if(self, is_hidden: bool) -> Self {
        if is_hidden { Self { status: self.status, ..Self::default() } } else { self }
    }

    /// What came back.
    pub(super) fn response(&self) -> Response<'_> {
        Response { status: self.status, headers: &self.headers, body: &self.body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Span;
    use tollgate::push::{Answer, Answered};

    fn reported(body: &[u8]) -> Report {
        let headers = [("x-a", "1")].map(|(name, value)| {
            (name.parse().unwrap(), axum::http::HeaderValue::from_static(value))
        });
        let answer = Answer {
            status: axum::http::StatusCode::BAD_GATEWAY,
            headers: headers.into_iter().collect(),
            body: body.to_vec(),
            is_cut: false,
            broken: None,
        };
        Report::read(&Answered { answer: Ok(answer), took: Span::ZERO }.report(None))
    }

    #[test]
    fn an_answer_comes_back_from_history_as_it_was() {
        for body in [&b"{\"a\": [1 ,2]}"[..], b"plain", b"", b"\xff\x00"] {
            let report = reported(body);
            assert_eq!((report.status, report.response().body), (502, body));
            assert_eq!(report.headers, [("x-a".to_owned(), "1".to_owned())]);
        }
    }

    #[test]
    fn what_did_not_come_back_is_told_as_an_error() {
        let answered = Answered { answer: Err("refused".to_owned()), took: Span::ZERO };
        let report = Report::read(&answered.report(None));
        assert_eq!((report.status, report.error.as_deref()), (0, Some("refused")));
        assert_eq!(Report::read(b"no report"), Report::default());
    }

    #[test]
    fn a_server_that_hides_bodies_tells_the_status_alone() {
        let report = reported(b"secret").hidden_if(true);
        assert_eq!(report, Report { status: 502, ..Report::default() });
        let message = Message::default().hidden_if(true);
        assert!(message.card.redact().has_body && message.card.redact().has_headers);
    }
}
