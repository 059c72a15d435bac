//! Totals as they travel.

use serde::Serialize;
use tollgate::lanes::{LimitTotals, Tally};

/// How often, and how much.
#[derive(Debug, Serialize)]
pub(super) struct TallyWire {
    count: u64,
    weight: u64,
}

/// What happened at a limit, at all its meters together.
#[derive(Debug, Serialize)]
pub(super) struct LimitTotalsWire {
    admitted: TallyWire,
    refused: TallyWire,
    /// How long calls waited here as the first of their lanes, all together.
    waited_ms: u64,
}

impl From<Tally> for TallyWire {
    fn from(Tally { count, weight }: Tally) -> Self {
        Self { count, weight }
    }
}

impl From<LimitTotals> for LimitTotalsWire {
    fn from(totals: LimitTotals) -> Self {
        let waited_ms = u64::try_from(totals.waited_ns / 1_000_000).unwrap_or(u64::MAX);
        Self { admitted: totals.admitted.into(), refused: totals.refused.into(), waited_ms }
    }
}
