//! What is told of an attempt: the body of a callback, or of a failure callback.

use super::draft::{Pair, Redact};
use super::shape::{HeaderMapWire, Kept, Response, header_map};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// Most bytes of an answer that are told: what comes after is cut off.
pub(super) const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// Most bytes of the message itself that are told. With base64, and with the answer, it is a body that can be
/// kept, and two of them are an act.
pub(super) const SOURCE_BYTES_MAX: usize = 8 << 20;
/// Most bytes of an answer's headers that are told: those that come after are left out.
pub(super) const RESPONSE_HEADER_BYTES_MAX: usize = 32 << 10;

/// An attempt that is told of.
#[derive(Clone, Copy)]
pub(super) struct Attempted<'a> {
    /// The message, with its body.
    pub(super) kept: Kept<'a>,
    /// How often it was tried before.
    pub(super) retried: u32,
    /// What came back.
    pub(super) response: Response<'a>,
    /// Where it is found among the dead, if it is one of them.
    pub(super) dlq_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallbackWire {
    /// 0 if nothing came back.
    status: u16,
    header: HeaderMapWire,
    body: String,
    retried: u32,
    max_retries: u32,
    source_message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    dlq_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    url: String,
    method: String,
    source_header: HeaderMapWire,
    source_body: String,
    not_before: u64,
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_id: Option<String>,
    #[serde(rename = "callerIP", skip_serializing_if = "Option::is_none")]
    caller_ip: Option<String>,
}

impl Attempted<'_> {
    /// The body that tells of it, as JSON. It is delivered, so it has what is shown nowhere else.
    pub(super) fn body(&self) -> Vec<u8> {
        let Self { kept, response, .. } = self;
        let card = kept.card;
        let wire = CallbackWire {
            status: response.status,
            header: header_map(first(response.headers), &Redact::default()),
            body: encoded(response.body, RESPONSE_BYTES_MAX),
            retried: self.retried,
            max_retries: card.max_retries,
            source_message_id: kept.id.to_owned(),
            dlq_id: self.dlq_id.map(str::to_owned),
            topic_name: card.group.clone(),
            endpoint_name: card.endpoint.clone(),
            queue_name: card.queue.clone(),
            url: kept.url(),
            method: kept.method(),
            source_header: header_map(&kept.delivery.headers, &Redact::default()),
            source_body: encoded(kept.body.unwrap_or_default(), SOURCE_BYTES_MAX),
            not_before: kept.not_before_ms(),
            created_at: kept.created_ms(),
            schedule_id: card.schedule.clone(),
            caller_ip: card.caller_ip.clone(),
        };
        // Texts and numbers are always JSON.
        serde_json::to_vec(&wire).unwrap_or_default()
    }
}

fn encoded(bytes: &[u8], most: usize) -> String {
    STANDARD.encode(bytes.get(..most).unwrap_or(bytes))
}

/// As many headers as fit.
fn first(headers: &[Pair]) -> &[Pair] {
    let mut bytes = 0;
    let fits = |(name, value): &&Pair| {
        bytes += name.len() + value.len();
        bytes <= RESPONSE_HEADER_BYTES_MAX
    };
    let count = headers.iter().take_while(fits).count();
    headers.get(..count).unwrap_or(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qstash::card::{Accepted, Card};
    use crate::qstash::destination::Target;
    use crate::qstash::draft::Draft;
    use serde_json::{Value, json};
    use tollgate::Timestamp;
    use tollgate::lanes::act::{ACT_BYTES_MAX, BODY_BYTES_MAX};

    const CREATED_MS: u64 = 1_700_000_000_000;

    fn draft() -> Draft {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [
            pair("Upstash-Forward-X-A", "a"),
            pair("Upstash-Redact-Fields", "body,header"),
            pair("Upstash-Retries", "2"),
        ];
        Draft::read(Target::Url("https://a.example/b".to_owned()), &headers).unwrap()
    }

    fn accepted() -> Accepted {
        Accepted {
            at: Timestamp::from_nanos(CREATED_MS * 1_000_000),
            caller_ip: Some("192.0.2.1".to_owned()),
            group: Some(("g".to_owned(), None)),
            ..Accepted::default()
        }
    }

    fn told(body: &[u8], response: Response<'_>, dlq_id: Option<&str>) -> Vec<u8> {
        let (draft, card) = (draft(), Card::new(&draft(), accepted()));
        let kept = Kept {
            id: "msg_1",
            card: &card,
            delivery: &draft.delivery,
            body: Some(body),
            created_ms: None,
        };
        Attempted { kept, retried: 1, response, dlq_id }.body()
    }

    #[test]
    fn a_callback_tells_the_answer_and_the_message_as_it_was_sent() {
        let headers = [("content-type".to_owned(), "text/plain".to_owned())];
        let response = Response { status: 200, headers: &headers, body: b"ok" };
        let body: Value = serde_json::from_slice(&told(b"hi", response, None)).unwrap();
        let wanted = json!({
            "status": 200,
            "header": {"Content-Type": ["text/plain"]},
            "body": "b2s=",
            "retried": 1,
            "maxRetries": 2,
            "sourceMessageId": "msg_1",
            "topicName": "g",
            "url": "https://a.example/b",
            "method": "POST",
            "sourceHeader": {"X-A": ["a"]},
            "sourceBody": "aGk=",
            "notBefore": CREATED_MS,
            "createdAt": CREATED_MS,
            "callerIP": "192.0.2.1",
        });
        assert_eq!(body, wanted);
    }

    #[test]
    fn a_failure_callback_says_where_the_message_is_and_zero_if_nothing_came_back() {
        let bytes = told(b"", Response::default(), Some("5-1"));
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&body["dlqId"], &body["status"]), (&json!("5-1"), &json!(0)));
        assert_eq!((&body["body"], &body["sourceBody"]), (&json!(""), &json!("")));
    }

    #[test]
    fn what_is_too_long_is_cut_so_that_it_can_be_kept() {
        let long = vec![b'x'; BODY_BYTES_MAX];
        let many = vec![("x".to_owned(), "y".repeat(1 << 10)); 1_000];
        let response = Response { status: 200, headers: &many, body: &long };
        let bytes = told(&long, response, None);
        assert!(bytes.len() <= BODY_BYTES_MAX && 2 * bytes.len() <= ACT_BYTES_MAX);
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(body["body"], STANDARD.encode(&long[..RESPONSE_BYTES_MAX]));
        assert_eq!(body["sourceBody"], STANDARD.encode(&long[..SOURCE_BYTES_MAX]));
        assert_eq!(body["header"]["X"].as_array().unwrap().len(), 31);
    }
}
