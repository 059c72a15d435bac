//! What is done with receipts, as it travels.

use super::span::SpanWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The true cost at each limit that is named; the others cost what they paid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SettleWire {
    #[serde(default)]
    pub(in crate::http) actual: BTreeMap<String, Units>,
}

/// How much longer slots are held.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RenewWire {
    #[serde(rename = "for")]
    pub(in crate::http) span: Option<SpanWire>,
}

#[derive(Debug, Serialize)]
pub(in crate::http) struct SettledWire {
    pub(in crate::http) settled: bool,
}

#[derive(Debug, Serialize)]
pub(in crate::http) struct CancelledWire {
    pub(in crate::http) cancelled: bool,
}

#[derive(Debug, Serialize)]
pub(in crate::http) struct RenewedWire {
    pub(in crate::http) receipt: String,
}
