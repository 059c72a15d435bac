//! Names of calls, as text: opaque to those who hold them.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use tollgate::lanes::CallId;

/// A call's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct IdWire(pub(in crate::http) CallId);

struct IdVisitor;

impl IdWire {
    /// The call of that name; `None` if no call has such a one.
    pub(in crate::http) fn read(text: &str) -> Option<Self> {
        // As it is written, so that a call has one name.
        let is_written_so = text.bytes().all(|byte| byte.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        text.parse().ok().filter(|_| is_written_so).map(|number| Self(CallId(number)))
    }
}

impl Serialize for IdWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(itoa::Buffer::new().format(self.0.0))
    }
}

impl<'de> Deserialize<'de> for IdWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(IdVisitor)
    }
}

impl Visitor<'_> for IdVisitor {
    type Value = IdWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the id of a call, as it was given when the call was accepted")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<IdWire, E> {
        IdWire::read(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_one_name() {
        assert_eq!(IdWire::read("42"), Some(IdWire(CallId(42))));
        for wrong in ["", "042", "+42", "-1", " 42", "4e1", "18446744073709551616", "x"] {
            assert_eq!(IdWire::read(wrong), None, "{wrong}");
        }
    }
}
