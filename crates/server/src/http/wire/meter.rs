//! Meters as they travel.

use super::limit::DefinitionWire;
use super::span::SpanWire;
use super::totals::TallyWire;
use serde::{Deserialize, Serialize};
use tollgate::MeterState;

/// How one meter stands.
#[derive(Debug, Serialize)]
pub(in crate::http) struct MeterWire {
    /// The limit's name.
    name: String,
    /// Left out for the global meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    definition: DefinitionWire,
    /// The number in the tightest rule.
    limit: u64,
    /// Units that would pass now; negative under debt.
    available: i64,
    in_flight: u64,
    waiting: u64,
    /// An operator holds its limit back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
    /// When a call of weight 1 would pass; left out if no one can know.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_admission_ms: Option<u64>,
    reset_after_ms: u64,
    /// What was admitted since the server started, or since the meter was last as new; left out in
    /// memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    admitted: Option<TallyWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_for_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    closed_reason: Option<String>,
}

/// A limit's global meter, and some of its partitions.
#[derive(Debug, Serialize)]
pub(in crate::http) struct MeterPageWire {
    pub(in crate::http) global: MeterWire,
    pub(in crate::http) partitions: Vec<MeterWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// For how long to close a meter, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct CloseWire {
    #[serde(rename = "for")]
    pub(in crate::http) span: SpanWire,
    pub(in crate::http) reason: Option<String>,
}

/// A body with nothing in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NothingWire {}

impl MeterWire {
    /// A meter of the limit that the caller calls so.
    pub(in crate::http) fn new(name: &str, state: MeterState) -> Self {
        let (closed_for, closed_reason) = state.closed.unzip();
        Self {
            name: name.to_owned(),
            partition: state.partition,
            definition: (&state.definition).into(),
            limit: state.standing.limit,
            available: state.standing.remaining,
            in_flight: state.in_flight,
            waiting: state.waiting,
            paused: state.is_paused,
            next_admission_ms: state.next_admission_after.map(|span| span.as_millis_ceil()),
            reset_after_ms: state.standing.reset_after.as_millis_ceil(),
            admitted: state.admitted.map(TallyWire::from),
            closed_for_ms: closed_for.map(|span| span.as_millis_ceil()),
            closed_reason,
        }
    }
}
