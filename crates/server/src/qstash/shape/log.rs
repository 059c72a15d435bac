//! What happened to messages.

use super::{HeaderMapWire, Kept, KeyWire, LabelsWire, Response, base64, header_map, redacted};
use crate::qstash::draft::Redact;
use serde::Serialize;

/// What happened to a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(in crate::qstash) enum State {
    /// It was accepted.
    Created,
    /// It is being sent.
    Active,
    /// It is to be sent again.
    Retry,
    /// It was sent, and that failed.
    Error,
    /// It is done.
    Delivered,
    /// It is dead.
    Failed,
    /// It was asked to be cancelled.
    CancelRequested,
    /// It was cancelled: spelt as clients know it.
    Canceled,
}

/// Something that happened to a message.
#[derive(Clone, Copy)]
pub(in crate::qstash) struct Happened<'a> {
    /// When, in milliseconds of the wall clock.
    pub(in crate::qstash) time_ms: u64,
    /// What.
    pub(in crate::qstash) state: State,
    /// Why it failed.
    pub(in crate::qstash) error: Option<&'a str>,
    /// When it is sent next.
    pub(in crate::qstash) next_ms: Option<u64>,
    /// What came back.
    pub(in crate::qstash) response: Option<Response<'a>>,
}

/// A line of the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct LogWire {
    time: u64,
    state: State,
    message_id: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule_id: Option<String>,
    method: String,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    header: HeaderMapWire,
    /// In base64, but for what is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_delivery_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_status: Option<u16>,
    /// Clients differ in what they call it.
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    response_header: HeaderMapWire,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    response_headers: HeaderMapWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<String>,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    callback_headers: HeaderMapWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_callback: Option<String>,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    failure_callback_headers: HeaderMapWire,
    max_retries: u32,
    /// Clients differ in what they call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay_expr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay_expression: Option<String>,
    #[serde(rename = "callerIP", skip_serializing_if = "Option::is_none")]
    caller_ip: Option<String>,
    #[serde(flatten)]
    key: KeyWire,
    #[serde(flatten)]
    labels: LabelsWire,
}

impl LogWire {
    /// As it is told.
    pub(in crate::qstash) fn new(kept: &Kept<'_>, happened: &Happened<'_>) -> Self {
        let card = kept.card;
        let body = kept.body.unwrap_or_default();
        let is_hidden = card.redact().has_body && !body.is_empty();
        let response = happened.response.unwrap_or_default();
        let response_headers = header_map(response.headers, &Redact::default());
        Self {
            time: happened.time_ms,
            state: happened.state,
            message_id: kept.id.to_owned(),
            url: kept.url(),
            topic_name: card.group.clone(),
            endpoint_name: card.endpoint.clone(),
            queue_name: card.queue.clone(),
            schedule_id: card.schedule.clone(),
            method: kept.method(),
            header: kept.headers(),
            body: if is_hidden { Some(redacted(body)) } else { base64(body) },
            error: happened.error.filter(|error| !error.is_empty()).map(str::to_owned),
            next_delivery_time: happened.next_ms,
            response_status: (response.status > 0).then_some(response.status),
            response_header: response_headers.clone(),
            response_headers,
            response_body: base64(response.body),
            timeout: kept.delivery.timeout.map(|timeout| timeout.as_millis_ceil()),
            callback: kept.callback(),
            callback_headers: kept.callback_headers(),
            failure_callback: kept.failure_callback(),
            failure_callback_headers: kept.failure_callback_headers(),
            max_retries: card.max_retries,
            retry_delay_expr: card.retry_delay.clone(),
            retry_delay_expression: card.retry_delay.clone(),
            caller_ip: card.caller_ip.clone(),
            key: kept.key(),
            labels: kept.labels(),
        }
    }
}
