//! What was counted at limits, as it travels.

use serde::Deserialize;
use tollgate_core::contract::{LimitTotals, Tally};

#[derive(Debug, Deserialize)]
pub(crate) struct TallyWire {
    count: u64,
    weight: u64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LimitTotalsWire {
    admitted: TallyWire,
    refused: TallyWire,
    waited_ms: u64,
}

impl From<TallyWire> for Tally {
    fn from(wire: TallyWire) -> Self {
        Self { count: wire.count, weight: wire.weight }
    }
}

impl From<LimitTotalsWire> for LimitTotals {
    fn from(wire: LimitTotalsWire) -> Self {
        Self {
            admitted: wire.admitted.into(),
            refused: wire.refused.into(),
            waited_ns: u128::from(wire.waited_ms) * 1_000_000,
        }
    }
}
