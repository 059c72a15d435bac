//! What is asked at limits, and granted.

use super::limit::LimitWire;
use super::time::SpanWire;
use serde::{Deserialize, Serialize};
use tollgate_core::Span;
use tollgate_engine::Ask;

/// The tolls of one call, and what to do if they cannot be paid now.
#[derive(Debug, Serialize)]
pub(crate) struct AskWire {
    tolls: Vec<TollWire>,
    on_exceeded: OnExceeded,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_wait: Option<SpanWire>,
    #[serde(skip_serializing_if = "is_lowest")]
    priority: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<SpanWire>,
    /// The limits whose cost is told later.
    #[serde(skip)]
    pub(crate) estimates: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TollWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    weight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    define: Option<LimitWire>,
}

/// What to do if a limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnExceeded {
    Fail,
    Delay,
    Wait,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it so")]
fn is_lowest(priority: &u8) -> bool {
    *priority == 0
}

/// Leave to start.
#[derive(Debug, Deserialize)]
pub(crate) struct GrantWire {
    pub(crate) delay_ms: u64,
    pub(crate) limit: u64,
    pub(crate) remaining: i64,
    pub(crate) reset_after_ms: u64,
    pub(crate) receipt: Option<String>,
}

impl AskWire {
    /// How long a server may wait with its answer. Who pays for a start later is answered at once.
    pub(crate) fn waits(&self) -> Span {
        match (self.on_exceeded, self.max_wait) {
            (OnExceeded::Wait, Some(SpanWire(span))) => span,
            _ => Span::ZERO,
        }
    }

    /// What is asked. A receipt of that life is wanted if a toll is an estimate.
    pub(crate) fn new(ask: &Ask<'_>, on_exceeded: OnExceeded, life: Span) -> Self {
        let tolls = ask.tolls().iter().map(|toll| TollWire {
            limit: toll.name().to_owned(),
            partition: toll.partition().map(str::to_owned),
            weight: toll.units(),
            define: toll.definition().map(LimitWire::from),
        });
        let mut estimates: Vec<_> = ask.tolls().iter().filter(|toll| toll.is_estimate()).collect();
        estimates.dedup_by_key(|toll| toll.name());
        let estimates: Vec<_> = estimates.iter().map(|toll| toll.name().to_owned()).collect();
        Self {
            tolls: tolls.collect(),
            on_exceeded,
            max_wait: None,
            priority: ask.given_priority().level(),
            receipt: (!estimates.is_empty()).then_some(SpanWire(life)),
            estimates,
        }
    }
}
