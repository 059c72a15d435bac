//! Queues, as they are told and as they are asked for.

use serde::{Deserialize, Serialize};

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct QueueWire {
    /// Its name.
    pub(in crate::qstash) name: String,
    /// When it was made, in milliseconds.
    pub(in crate::qstash) created_at: u64,
    /// When it was changed last, in milliseconds.
    pub(in crate::qstash) updated_at: u64,
    /// How many of its messages are sent at a time.
    pub(in crate::qstash) parallelism: u64,
    /// Whether it holds its messages.
    #[serde(rename = "paused")]
    pub(in crate::qstash) is_paused: bool,
    /// How many of its messages are not done.
    pub(in crate::qstash) lag: u64,
}

/// What a queue is to be.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct QueueAsked {
    /// Its name.
    pub(in crate::qstash) queue_name: String,
    /// How many of its messages are sent at a time.
    pub(in crate::qstash) parallelism: Option<u64>,
    /// Whether it holds its messages.
    #[serde(rename = "paused")]
    pub(in crate::qstash) is_paused: Option<bool>,
}
