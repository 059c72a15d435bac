//! Counts: whole numbers, and an error that says so to people who do not know what a `u64` is.

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(in crate::http) struct Units(pub(in crate::http) u64);

struct UnitsVisitor;

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(UnitsVisitor)
    }
}

impl Visitor<'_> for UnitsVisitor {
    type Value = Units;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, not negative")
    }

    fn visit_u64<E>(self, units: u64) -> Result<Units, E> {
        Ok(Units(units))
    }
}
