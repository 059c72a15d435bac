//! Counts: whole numbers, and an error that says so to people who do not know what a `u64` is.

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(in crate::http) struct Units(pub(in crate::http) u64);

/// A number of things, of which there are never so many as units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Units")]
pub(in crate::http) struct Count(pub(in crate::http) u32);

impl TryFrom<Units> for Count {
    type Error = String;

    fn try_from(Units(count): Units) -> Result<Self, String> {
        let too_many = |_| format!("{count} is over the largest number here, {}", u32::MAX);
        u32::try_from(count).map(Self).map_err(too_many)
    }
}

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
