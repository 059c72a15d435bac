//! Lanes as they travel.

use super::id::IdWire;
use super::units::Units;
use serde::{Deserialize, Serialize};
use tollgate::lanes::LaneState;

/// A lane.
#[derive(Debug, Serialize)]
pub(in crate::http) struct LaneWire {
    pub(in crate::http) name: String,
    waiting: u64,
    in_flight: u64,
    dead: u64,
    paused: bool,
    /// A dead call holds it.
    held: bool,
    weight: u32,
    /// The call that may start next.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<IdWire>,
}

/// Some lanes of a queue.
#[derive(Debug, Serialize)]
pub(in crate::http) struct LanePageWire {
    pub(in crate::http) lanes: Vec<LaneWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// How many times as much as others a lane is served.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WeightWire {
    pub(in crate::http) weight: Units,
}

impl From<LaneState> for LaneWire {
    fn from(lane: LaneState) -> Self {
        Self {
            name: lane.name.as_str().to_owned(),
            waiting: lane.waiting,
            in_flight: lane.in_flight,
            dead: lane.dead,
            paused: lane.is_paused,
            held: lane.is_held,
            weight: lane.weight,
            head: lane.head.map(IdWire),
        }
    }
}
