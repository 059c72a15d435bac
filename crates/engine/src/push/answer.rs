//! What came back from a destination, and how it is told in the history.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tollgate_core::Span;
use tollgate_core::lanes::act::REPORT_BYTES_MAX;

/// Most bytes of a body in a report: what one would read of it.
const BODY_SHOWN_MAX: usize = 16 << 10;
/// Most bytes of all headers in a report.
const HEADERS_SHOWN_MAX: usize = 8 << 10;

/// What a destination answered.
#[derive(Debug, Clone)]
pub struct Answer {
    /// How it went, in its words.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as far as it was read.
    pub body: Vec<u8>,
    /// There was more of the body than is read.
    pub is_cut: bool,
    /// Why the body ends before its end, if it does: what the status says holds all the same.
    pub broken: Option<String>,
}

/// What came of sending a call: an answer, or why there is none.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The answer, or what went wrong.
    pub answer: Result<Answer, String>,
    /// How long it took.
    pub took: Span,
}

/// An answer in words.
#[derive(Serialize)]
pub(super) struct ReportRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    told_by: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'a str, String>,
    #[serde(flatten)]
    body: BodyRecord<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// A body as JSON if it is, else as text, else in base64.
#[derive(Serialize, Default)]
struct BodyRecord<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
}

impl<'a> BodyRecord<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        if let Ok(json) = serde_json::from_slice(bytes) {
            return Self { body: Some(json), ..Self::default() };
        }
        // What was cut may end within a character.
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { body_text: Some(text), ..Self::default() },
            Err(error) if error.error_len().is_none() => {
                let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Self { body_text: std::str::from_utf8(whole).ok(), ..Self::default() }
            }
            Err(_) => Self { body_base64: Some(STANDARD.encode(bytes)), ..Self::default() },
        }
    }
}

impl Answered {
    /// The status, if there is an answer.
    pub fn status(&self) -> Option<StatusCode> {
        self.answer.as_ref().ok().map(|answer| answer.status)
    }

    /// It in words, of its body so many bytes.
    pub(super) fn record(&self, body_bytes_max: usize) -> ReportRecord<'_> {
        let (took_ms, told_by) = (self.took.as_millis_ceil(), None);
        match &self.answer {
            Ok(answer) => {
                let shown = answer.body.get(..body_bytes_max).unwrap_or(&answer.body);
                let (status, headers) =
                    (Some(answer.status.as_u16()), shown_headers(&answer.headers));
                let (body, cut) = (BodyRecord::new(shown), answer.is_cut || shown != answer.body);
                let error = answer.broken.as_deref();
                ReportRecord { status, took_ms, error, told_by, headers, body, cut }
            }
            Err(error) => {
                let (headers, body) = (BTreeMap::new(), BodyRecord::default());
                let error = Some(&**error);
                ReportRecord { status: None, took_ms, error, told_by, headers, body, cut: false }
            }
        }
    }

    /// What is said about the attempt in the history; `told_by` says which header asked for a pause.
    pub fn report(&self, told_by: Option<&'static str>) -> Vec<u8> {
        let record = ReportRecord { told_by, ..self.record(BODY_SHOWN_MAX) };
        let mut report = serde_json::to_vec(&record).unwrap_or_default();
        // Escapes make a text up to six times as long.
        if report.len() > REPORT_BYTES_MAX {
            let body = BodyRecord::default();
            let short = ReportRecord { body, headers: BTreeMap::new(), cut: true, ..record };
            report = serde_json::to_vec(&short).unwrap_or_default();
        }
        report
    }
}

/// Headers by name, as far as they fit; several of a name are joined as HTTP does. Cookies are their
/// owner's secret.
fn shown_headers(headers: &HeaderMap) -> BTreeMap<&str, String> {
    let mut shown: BTreeMap<&str, String> = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in headers {
        let value = match name.as_str() {
            "set-cookie" => "***".into(),
            _ => String::from_utf8_lossy(value.as_bytes()),
        };
        bytes += name.as_str().len() + value.len();
        if bytes > HEADERS_SHOWN_MAX {
            break;
        }
        match shown.entry(name.as_str()) {
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(value.into_owned());
            }
            std::collections::btree_map::Entry::Occupied(mut entry) => {
                entry.get_mut().push_str(", ");
                entry.get_mut().push_str(&value);
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use serde_json::{Value, json};

    fn report(body: &[u8], is_cut: bool) -> Value {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_static("1"));
        headers.append("x-a", HeaderValue::from_static("2"));
        headers.append("set-cookie", HeaderValue::from_static("secret"));
        let answer =
            Answer { status: StatusCode::OK, headers, body: body.into(), is_cut, broken: None };
        let answered = Answered { answer: Ok(answer), took: Span::from_millis(12) };
        serde_json::from_slice(&answered.report(None)).unwrap()
    }

    #[test]
    fn an_answer_is_told_in_words_as_far_as_it_is_read() {
        let with = |rest: Value| {
            let mut whole = json!({"status": 200, "took_ms": 12,
                "headers": {"set-cookie": "***", "x-a": "1, 2"}});
            whole.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            whole
        };
        assert_eq!(report(b"", false), with(json!({})));
        assert_eq!(report(b"{\"a\":1}", false), with(json!({"body": {"a": 1}})));
        assert_eq!(report("grün".as_bytes(), false), with(json!({"body_text": "grün"})));
        assert_eq!(report(b"gr\xc3", true), with(json!({"body_text": "gr", "cut": true})));
        assert_eq!(report(b"\xff\x00", false), with(json!({"body_base64": "/wA="})));
    }

    #[test]
    fn a_report_is_never_too_long() {
        for byte in [b'a', 0, b'"', 0xff] {
            let told = report(&vec![byte; 1 << 20], false);
            assert!(told.to_string().len() <= REPORT_BYTES_MAX);
            assert_eq!(told["cut"], true);
        }
    }
}
