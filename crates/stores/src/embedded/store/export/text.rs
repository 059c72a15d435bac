//! Values as people and `jq` read them: instants, durations, bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserializer, Error as _};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use tollgate_core::{NameError, Span, Timestamp};

/// What is wrong with a line.
pub(super) type Wrong = String;

/// An instant as RFC 3339 has it, with nanoseconds: `2026-11-15T04:11:59.832778262Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instant(pub(super) Timestamp);

impl Serialize for Instant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let instant = jiff::Timestamp::from_nanosecond(self.0.as_nanos().into());
        serializer.collect_str(&format_args!("{:.9}", instant.map_err(S::Error::custom)?))
    }
}

impl<'de> Deserialize<'de> for Instant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || {
            let found = "is not an instant from 1970 to 2554 as in 2026-11-15T04:11:59.832778262Z";
            D::Error::custom(format_args!("{text:?} {found}"))
        };
        let instant: jiff::Timestamp = text.parse().map_err(|_| wrong())?;
        let nanos = u64::try_from(instant.as_nanosecond()).map_err(|_| wrong())?;
        Ok(Self(Timestamp::from_nanos(nanos)))
    }
}

/// A duration in the one grammar: `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Length(pub(super) Span);

impl Length {
    /// For a field that is left out then.
    pub(super) fn is_none(&self) -> bool {
        self.0.is_zero()
    }
}

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// For a field that is left out then.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
pub(super) fn is_false(claim: &bool) -> bool {
    !claim
}

/// Bytes in two fields: as text if they are UTF-8, in base64 if not, and in neither if there are none.
pub(super) fn written(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match str::from_utf8(bytes) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(STANDARD.encode(bytes))),
    }
}

/// The bytes of two such fields.
pub(super) fn read(text: Option<String>, base64: Option<&str>) -> Result<Box<[u8]>, Wrong> {
    match (text, base64) {
        (None, None) => Ok([].into()),
        (Some(text), None) => Ok(text.into_bytes().into()),
        (None, Some(base64)) => {
            let bytes = STANDARD.decode(base64);
            bytes.map(Vec::into).map_err(|error| format!("this is not base64: {error}"))
        }
        (Some(_), Some(_)) => Err("give the bytes as text or in base64, not both".to_owned()),
    }
}

/// A name that was checked.
pub(super) fn name<T>(make: fn(&str) -> Result<T, NameError>, text: &str) -> Result<T, Wrong> {
    make(text).map_err(|error| error.to_string())
}

/// A name that was checked, if there is one.
pub(super) fn optional<T>(
    make: fn(&str) -> Result<T, NameError>,
    text: Option<&str>,
) -> Result<Option<T>, Wrong> {
    text.map(|text| name(make, text)).transpose()
}
