//! Durations: text in the one grammar, or a number of seconds.

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use tollgate::Span;

/// A duration as people write it: `"250ms"`, `"1h30m"`, `10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct SpanWire(pub(in crate::http) Span);

struct SpanVisitor;

impl<'de> Deserialize<'de> for SpanWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

impl Visitor<'_> for SpanVisitor {
    type Value = SpanWire;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration, as in \"250ms\", \"10s\" or \"1h30m\", or whole seconds")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<SpanWire, E> {
        text.parse().map(SpanWire).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, seconds: u64) -> Result<SpanWire, E> {
        // By way of the text, which says what is wrong with a number that is too large.
        self.visit_str(&seconds.to_string())
    }
}

impl Serialize for SpanWire {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Span, String> {
        let span: Result<SpanWire, _> = serde_json::from_str(json);
        span.map(|SpanWire(span)| span).map_err(|error| error.to_string())
    }

    #[test]
    fn a_number_is_seconds_like_its_text() {
        for json in ["90", "\"90\"", "\"90s\"", "\"1m30s\""] {
            assert_eq!(read(json), Ok(Span::from_secs(90)), "{json}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_duration_and_says_what_is() {
        for json in ["1.5", "-1", "true", "null", "[]", "\"soon\"", "18446744073709551615"] {
            let error = read(json).unwrap_err();
            assert!(error.contains("250ms"), "{json}: {error}");
        }
    }

    #[test]
    fn writes_what_it_reads() {
        let json = serde_json::to_string(&SpanWire(Span::from_millis(90_250))).unwrap();
        assert_eq!(json, "\"1m30s250ms\"");
        assert_eq!(read(&json), Ok(Span::from_millis(90_250)));
    }
}
