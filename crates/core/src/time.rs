//! Instants and durations, in whole nanoseconds, and the one grammar in which people write them.

use std::fmt;
use std::str::FromStr;

/// An instant: nanoseconds since the Unix epoch, on whichever clock the holder says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamp(u64);

/// A length of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(u64);

/// The present: one reading of the store's clocks, handed to every decision of one unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Now {
    /// Limit time: monotonic, never set.
    pub at: Timestamp,
    /// The wall clock: what calendars follow. It may be set, forwards and backwards.
    pub wall: Timestamp,
}

impl Timestamp {
    /// The end of time, in the year 2554.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `span` later, or the end of time.
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, or the epoch.
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Now {
    /// Both clocks at one reading.
    pub const fn both(at: Timestamp) -> Self {
        Self { at, wall: at }
    }

    /// The same present, seen when limit time is `at`, before or after: the wall clock goes as far.
    pub fn moved_to(self, at: Timestamp) -> Self {
        Self { at, wall: self.wall.plus(at.since(self.at)).minus(self.at.since(at)) }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `seconds` seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// `minutes` minutes.
    pub const fn from_minutes(minutes: u64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    /// `hours` hours.
    pub const fn from_hours(hours: u64) -> Self {
        Self::from_minutes(hours.saturating_mul(60))
    }

    /// `days` days of 24 hours.
    pub const fn from_days(days: u64) -> Self {
        Self::from_hours(days.saturating_mul(24))
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in whole milliseconds, rounded up: a wait told too short would be refused again.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// The length in whole seconds, rounded up.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000_000)
    }

    /// Whether it is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Both lengths together, or the longest there is.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl From<std::time::Duration> for Span {
    /// A duration over 584 years becomes the longest span.
    fn from(duration: std::time::Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Span> for std::time::Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a duration: write whole numbers with units from large to small, as in 250ms, 10s, 5m, 1h30m, 1d or 1w; a bare number is seconds"
)]
pub struct SpanError {
    text: String,
}

/// Units from large to small, so that `1h30m` reads and `30m1h` does not.
const UNITS: [(&str, u64); 8] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let nanos = match text.parse::<u64>() {
            Ok(seconds) if text.starts_with(|c: char| c.is_ascii_digit()) => {
                seconds.checked_mul(1_000_000_000)
            }
            _ => parse_parts(text),
        };
        nanos.map(Self).ok_or_else(|| SpanError { text: text.chars().take(64).collect() })
    }
}

fn parse_parts(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut nanos: u64 = 0;
    let mut units = &UNITS[..];
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&end| end > 0)?;
        let count: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let place = units.iter().position(|(unit, _)| *unit == &rest[..letters])?;
        nanos = nanos.checked_add(count.checked_mul(units[place].1)?)?;
        units = &units[place + 1..];
        rest = &rest[letters..];
    }
    (!text.is_empty()).then_some(nanos)
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, nanos) in UNITS {
            let count = rest / nanos;
            rest %= nanos;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_one_grammar() {
        for (text, nanos) in [
            ("250ms", 250_000_000),
            ("10s", 10_000_000_000),
            ("5m", 300_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1d", 86_400_000_000_000),
            ("1w", 604_800_000_000_000),
            ("7", 7_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(text.parse::<Span>().map(Span::as_nanos), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_duration() {
        for text in [
            "",
            " ",
            "s",
            "-1s",
            "+5",
            "1.5s",
            "10 s",
            "30m1h",
            "1s1s",
            "1y",
            "99999999999999w",
            "１s",
        ] {
            assert!(text.parse::<Span>().is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn prints_what_it_reads(nanos: u64) {
            let span = Span::from_nanos(nanos);
            prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".*") {
            let _ = text.parse::<Span>();
        }
    }
}
