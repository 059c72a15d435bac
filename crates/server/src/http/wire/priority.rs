//! Priorities: 0 to 9, higher first.

use super::units::Units;
use serde::{Deserialize, Serialize, Serializer};
use tollgate::Priority;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Units")]
pub(in crate::http) struct PriorityWire(pub(in crate::http) Priority);

impl TryFrom<Units> for PriorityWire {
    type Error = String;

    fn try_from(Units(level): Units) -> Result<Self, String> {
        Priority::new(level).map(Self).map_err(|error| error.to_string())
    }
}

impl Serialize for PriorityWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0.level())
    }
}
