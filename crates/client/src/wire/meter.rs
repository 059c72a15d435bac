//! Meters as they travel.

use super::limit::LimitWire;
use super::totals::TallyWire;
use serde::Deserialize;
use tollgate_core::{Limit, RuleSpec, Span, Standing};
use tollgate_engine::MeterState;

/// How one meter stands.
#[derive(Debug, Deserialize)]
pub(crate) struct MeterWire {
    name: String,
    partition: Option<String>,
    definition: LimitWire,
    limit: u64,
    available: i64,
    in_flight: u64,
    waiting: u64,
    #[serde(default)]
    paused: bool,
    next_admission_ms: Option<u64>,
    reset_after_ms: u64,
    admitted: Option<TallyWire>,
    closed_for_ms: Option<u64>,
    closed_reason: Option<String>,
}

/// A limit's global meter, and some of its partitions.
#[derive(Debug, Deserialize)]
pub(crate) struct MeterPageWire {
    pub(crate) global: MeterWire,
    pub(crate) partitions: Vec<MeterWire>,
    pub(crate) next: Option<String>,
}

impl From<MeterWire> for MeterState {
    fn from(wire: MeterWire) -> Self {
        let definition = Limit::from(wire.definition);
        let closed = wire.closed_for_ms.map(Span::from_millis);
        Self {
            limit: wire.name.into(),
            partition: wire.partition,
            standing: Standing {
                limit: wire.limit,
                per: definition.rules().iter().find_map(|rule| period(rule, wire.limit)),
                remaining: wire.available,
                reset_after: Span::from_millis(wire.reset_after_ms),
            },
            definition,
            // A server tells of the tightest alone.
            rules: Vec::new(),
            in_flight: wire.in_flight,
            waiting: wire.waiting,
            is_paused: wire.paused,
            next_admission_after: wire.next_admission_ms.map(Span::from_millis),
            admitted: wire.admitted.map(Into::into),
            closed: closed.map(|span| (span, wire.closed_reason.unwrap_or_default())),
        }
    }
}

/// The period of a rule, if it is the one of that number.
fn period(rule: &RuleSpec, number: u64) -> Option<Span> {
    match rule {
        RuleSpec::TokenBucket { limit, per, .. }
        | RuleSpec::FixedWindow { limit, per, .. }
        | RuleSpec::SlidingWindow { limit, per, .. }
            if *limit == number =>
        {
            Some(*per)
        }
        _ => None,
    }
}
