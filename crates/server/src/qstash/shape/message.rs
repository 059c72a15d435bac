//! Messages, and those that are dead.

use super::{HeaderMapWire, Kept, KeyWire, LabelsWire, Response, header_map, text_or_base64};
use crate::qstash::draft::Redact;
use serde::Serialize;

/// A message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct MessageWire {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    max_retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay_expression: Option<String>,
    not_before: u64,
    created_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<String>,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    callback_header: HeaderMapWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_callback: Option<String>,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    failure_callback_header: HeaderMapWire,
    #[serde(rename = "callerIP", skip_serializing_if = "Option::is_none")]
    caller_ip: Option<String>,
    #[serde(flatten)]
    key: KeyWire,
    #[serde(flatten)]
    labels: LabelsWire,
}

/// A message that is dead.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct DeadWire {
    dlq_id: String,
    #[serde(flatten)]
    message: MessageWire,
    /// 0 if nothing came back: clients want one.
    response_status: u16,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    response_header: HeaderMapWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_body_base64: Option<String>,
}

impl MessageWire {
    /// As it is told.
    pub(in crate::qstash) fn new(kept: &Kept<'_>) -> Self {
        let (body, body_base64) = kept.body_parts();
        let card = kept.card;
        Self {
            message_id: kept.id.to_owned(),
            url: kept.url(),
            topic_name: card.group.clone(),
            endpoint_name: card.endpoint.clone(),
            queue_name: card.queue.clone(),
            schedule_id: card.schedule.clone(),
            method: kept.method(),
            header: kept.headers(),
            body,
            body_base64,
            max_retries: card.max_retries,
            retry_delay_expression: card.retry_delay.clone(),
            not_before: kept.not_before_ms(),
            created_at: kept.created_ms(),
            callback: kept.callback(),
            callback_header: kept.callback_headers(),
            failure_callback: kept.failure_callback(),
            failure_callback_header: kept.failure_callback_headers(),
            caller_ip: card.caller_ip.clone(),
            key: kept.key(),
            labels: kept.labels(),
        }
    }
}

impl DeadWire {
    /// As it is told, with the last answer.
    pub(in crate::qstash) fn new(kept: &Kept<'_>, dlq_id: &str, response: Response<'_>) -> Self {
        let (response_body, response_body_base64) = text_or_base64(response.body);
        Self {
            dlq_id: dlq_id.to_owned(),
            message: MessageWire::new(kept),
            response_status: response.status,
            response_header: header_map(response.headers, &Redact::default()),
            response_body,
            response_body_base64,
        }
    }
}
