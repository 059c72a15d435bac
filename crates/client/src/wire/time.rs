//! Durations as text, and instants as RFC 3339 says.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use tollgate_core::{Span, Timestamp};

/// A duration: text, or whole seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanWire(pub(crate) Span);

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InstantWire(pub(crate) Timestamp);

impl Serialize for SpanWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = SpanWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SpanWire, E> {
        text.parse().map(SpanWire).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<SpanWire, E> {
        Ok(SpanWire(Span::from_secs(seconds)))
    }
}

impl<'de> Deserialize<'de> for SpanWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

impl Serialize for InstantWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every timestamp is in range: ours end in the year 2554, theirs in 9999.
        let nanos = i128::from(self.0.as_nanos());
        serializer.collect_str(&jiff::Timestamp::from_nanosecond(nanos).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for InstantWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let instant: jiff::Timestamp = text.parse().map_err(D::Error::custom)?;
        // What was before 1970 is as good as the epoch.
        let nanos = u64::try_from(instant.as_nanosecond().max(0)).unwrap_or(u64::MAX);
        Ok(Self(Timestamp::from_nanos(nanos)))
    }
}

/// For fields that are an instant.
pub(crate) fn instant<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    InstantWire::deserialize(deserializer).map(|InstantWire(instant)| instant)
}

/// The same, written.
pub(crate) fn write_instant<S: Serializer>(
    instant: &Timestamp,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    InstantWire(*instant).serialize(serializer)
}

/// For fields that may be an instant.
pub(crate) fn maybe_instant<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    let read = Option::<InstantWire>::deserialize(deserializer)?;
    Ok(read.map(|InstantWire(instant)| instant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let span = SpanWire(Span::from_millis(90_250));
        let text = serde_json::to_string(&span).unwrap();
        assert_eq!((&*text, serde_json::from_str(&text).unwrap()), ("\"1m30s250ms\"", span));
        let at = InstantWire(Timestamp::from_nanos(1_700_000_000_250_000_001));
        let text = serde_json::to_string(&at).unwrap();
        assert_eq!(text, "\"2023-11-14T22:13:20.250000001Z\"");
        assert_eq!(serde_json::from_str::<InstantWire>(&text).unwrap(), at);
    }
}
