//! Problems as they travel: RFC 9457, with the engine's words beside.

use serde::Serialize;
use tollgate::{Cause, Refusal};

/// A problem.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ProblemWire {
    #[serde(rename = "type")]
    pub(in crate::http) kind: String,
    pub(in crate::http) title: &'static str,
    pub(in crate::http) status: u16,
    pub(in crate::http) detail: String,
    pub(in crate::http) code: &'static str,
    /// The part of the body that is wrong, as in `tolls[0].weight`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) field: Option<String>,
    #[serde(flatten)]
    pub(in crate::http) refusal: Option<RefusalWire>,
    #[serde(flatten)]
    pub(in crate::http) stream: Option<StreamWire>,
}

/// How far a stream of calls was taken.
#[derive(Debug, Clone, Serialize)]
pub(in crate::http) struct StreamWire {
    /// So many calls are accepted and durable.
    pub(in crate::http) accepted: u64,
    /// The line that could not be taken, from 1 on.
    pub(in crate::http) line: u64,
}

/// Which toll was refused, why, and until when.
#[derive(Debug, Clone, Serialize)]
pub(in crate::http) struct RefusalWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    cause: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    remaining: i64,
    reset_after_ms: u64,
}

impl From<&Refusal> for RefusalWire {
    fn from(refusal: &Refusal) -> Self {
        Self {
            limit: refusal.limit.as_ref().to_owned(),
            partition: refusal.partition.as_deref().map(str::to_owned),
            cause: cause(refusal.cause),
            retry_after_ms: refusal.retry_after.map(|span| span.as_millis_ceil()),
            remaining: refusal.standing.remaining,
            reset_after_ms: refusal.standing.reset_after.as_millis_ceil(),
        }
    }
}

/// What is in the way, in a word.
pub(super) fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Spent => "spent",
        Cause::Slots => "slots",
        Cause::Closed => "closed",
        Cause::Turn => "turn",
        Cause::Impossible => "impossible",
        Cause::Missing => "missing",
        Cause::Paused => "paused",
        _ => "other",
    }
}
