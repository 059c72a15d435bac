//! Schedules.

use super::{HeaderMapWire, Kept, KeyWire, LabelsWire};
use serde::Serialize;
use std::collections::BTreeMap;

/// How a message of a schedule went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(in crate::qstash) enum TickState {
    /// It is not done yet.
    InProgress,
    /// It is done.
    Success,
    /// It is dead, or was cancelled.
    Fail,
}

/// A schedule as it stands.
#[derive(Debug, Clone)]
pub(in crate::qstash) struct Scheduled<'a> {
    /// When it ticks, as it was written.
    pub(in crate::qstash) cron: &'a str,
    /// Where it sends to: an address less credentials, or the name of a group.
    pub(in crate::qstash) destination: String,
    /// Whether it lets its ticks go by.
    pub(in crate::qstash) is_paused: bool,
    /// When it ticked last.
    pub(in crate::qstash) last_ms: Option<u64>,
    /// When it ticks next.
    pub(in crate::qstash) next_ms: Option<u64>,
    /// How the messages of its last tick went.
    pub(in crate::qstash) last_states: BTreeMap<String, TickState>,
    /// Why its last tick sent nothing.
    pub(in crate::qstash) error: Option<String>,
}

/// A schedule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct ScheduleWire {
    schedule_id: String,
    cron: String,
    created_at: u64,
    destination: String,
    method: String,
    #[serde(skip_serializing_if = "HeaderMapWire::is_empty")]
    header: HeaderMapWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    retries: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_delay_expression: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<u64>,
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
    is_paused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_schedule_time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_schedule_time: Option<u64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    last_schedule_states: BTreeMap<String, TickState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    key: KeyWire,
    #[serde(flatten)]
    labels: LabelsWire,
}

impl ScheduleWire {
    /// As it is told. `kept` is what each of its messages will be, with the schedule's own id.
    pub(in crate::qstash) fn new(kept: &Kept<'_>, scheduled: Scheduled<'_>) -> Self {
        let (body, body_base64) = kept.body_parts();
        let card = kept.card;
        Self {
            schedule_id: kept.id.to_owned(),
            cron: scheduled.cron.to_owned(),
            created_at: kept.created_ms(),
            destination: scheduled.destination,
            method: kept.method(),
            header: kept.headers(),
            body,
            body_base64,
            retries: card.max_retries,
            retry_delay_expression: card.retry_delay.clone(),
            delay: card.delay_ms.map(|delay| delay.div_ceil(1_000)),
            timeout: kept.delivery.timeout.map(|timeout| timeout.as_secs_ceil()),
            callback: kept.callback(),
            callback_header: kept.callback_headers(),
            failure_callback: kept.failure_callback(),
            failure_callback_header: kept.failure_callback_headers(),
            caller_ip: card.caller_ip.clone(),
            is_paused: scheduled.is_paused,
            queue_name: card.queue.clone(),
            last_schedule_time: scheduled.last_ms,
            next_schedule_time: scheduled.next_ms,
            last_schedule_states: scheduled.last_states,
            error: scheduled.error,
            key: kept.key(),
            labels: kept.labels(),
        }
    }
}
