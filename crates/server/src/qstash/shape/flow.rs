//! Flow-control keys, and what is in flight in all.

use serde::Serialize;

/// A flow-control key. What there is no limit to is 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct FlowWire {
    /// Its name.
    pub(in crate::qstash) flow_control_key: String,
    /// How many messages wait.
    pub(in crate::qstash) wait_list_size: u64,
    /// How many may be in flight.
    pub(in crate::qstash) parallelism_max: u64,
    /// How many are.
    pub(in crate::qstash) parallelism_count: u64,
    /// How many may start in a period.
    pub(in crate::qstash) rate_max: u64,
    /// How many did in this one.
    pub(in crate::qstash) rate_count: u64,
    /// How long it is, in seconds.
    pub(in crate::qstash) rate_period: u64,
    /// When it began, in unix seconds; 0 if none is under way.
    pub(in crate::qstash) rate_period_start: u64,
    /// Whether nothing is sent.
    pub(in crate::qstash) is_paused: bool,
    /// Whether messages do not change the parallelism.
    pub(in crate::qstash) is_pinned_parallelism: bool,
    /// Whether messages do not change the rate.
    pub(in crate::qstash) is_pinned_rate: bool,
}

/// What is in flight in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::qstash) struct GlobalWire {
    /// How many may be.
    pub(in crate::qstash) parallelism_max: u64,
    /// How many are.
    pub(in crate::qstash) parallelism_count: u64,
}
