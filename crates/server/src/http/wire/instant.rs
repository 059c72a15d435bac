//! Instants: RFC 3339, in UTC.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use tollgate::{Now, Timestamp};

/// An instant of the wall clock, as in `"2026-11-15T09:00:00Z"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) struct InstantWire(pub(in crate::http) Timestamp);

struct InstantVisitor;

impl InstantWire {
    /// An instant of limit time as the wall clock shows it, as far as is known now.
    pub(in crate::http) fn of(at: Timestamp, now: Now) -> Self {
        Self(if at >= now.at {
            now.wall.plus(at.since(now.at))
        } else {
            now.wall.minus(now.at.since(at))
        })
    }
}

impl<'de> Deserialize<'de> for InstantWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(InstantVisitor)
    }
}

impl Visitor<'_> for InstantVisitor {
    type Value = InstantWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instant, as in \"2026-11-15T09:00:00Z\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<InstantWire, E> {
        let unreadable = || E::invalid_value(serde::de::Unexpected::Str(text), &self);
        let instant: jiff::Timestamp = text.parse().map_err(|_| unreadable())?;
        let nanos = u64::try_from(instant.as_nanosecond());
        let nanos = nanos.map_err(|_| E::custom("an instant from 1970 to 2554 is wanted"))?;
        Ok(InstantWire(Timestamp::from_nanos(nanos)))
    }
}

impl Serialize for InstantWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for InstantWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Every timestamp is in range: ours end in the year 2554, theirs in 9999.
        let nanos = i128::from(self.0.as_nanos());
        jiff::Timestamp::from_nanosecond(nanos).unwrap_or_default().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate::Span;

    #[test]
    fn instants_are_told_as_rfc_3339_says() {
        let at = Timestamp::from_nanos(1_700_000_000_250_000_000);
        assert_eq!(InstantWire(at).to_string(), "2023-11-14T22:13:20.25Z");
        assert_eq!(InstantWire(Timestamp::MAX).to_string(), "2554-07-21T23:34:33.709551615Z");
    }

    #[test]
    fn reads_what_it_writes_and_any_offset() {
        let read = |text: &str| serde_json::from_str::<InstantWire>(&format!("{text:?}"));
        let at = InstantWire(Timestamp::from_nanos(1_700_000_000_250_000_000));
        assert_eq!(read(&at.to_string()).unwrap(), at);
        assert_eq!(read("2023-11-14T23:13:20.25+01:00").unwrap(), at);
        for wrong in ["", "soon", "2023-11-14", "1969-01-01T00:00:00Z", "9999-01-01T00:00:00Z"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limit_time_is_told_by_the_wall_clock() {
        let (at, wall) = (Timestamp::from_nanos(1_000), Timestamp::from_nanos(5_000_000));
        let now = Now { at, wall };
        let told = |at: Timestamp| InstantWire::of(at, now).0.as_nanos();
        assert_eq!(told(at.plus(Span::from_nanos(7))), 5_000_007);
        assert_eq!(told(at.minus(Span::from_nanos(7))), 4_999_993);
    }
}
