//! The ways in which upstreams write a time: numbers, durations and dates.

use jiff::fmt::{rfc2822, strtime};
use tollgate_core::{Span, Timestamp};

/// No time is written longer, and parsers need not see more.
const TEXT_BYTES_MAX: usize = 64;

const SECOND: u128 = 1_000_000_000;

/// From here on a number is seconds since the epoch and not from now: as a wait it would be 31
/// years, as an instant it is in 2001.
const UNIX_SECONDS_FROM: u128 = 1_000_000_000 * SECOND;

/// From here on a number is milliseconds since the epoch: as seconds it is beyond the year 33000.
const UNIX_MILLIS_FROM: u128 = 1_000 * UNIX_SECONDS_FROM;

/// Units of durations as Go writes them, and days.
const UNITS: [(&str, u128); 7] = [
    ("d", 86_400 * SECOND),
    ("h", 3_600 * SECOND),
    ("m", 60 * SECOND),
    ("s", SECOND),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// RFC 850, as in `Sunday, 06-Nov-94 08:49:37 GMT`, and C's asctime, as in `Sun Nov  6 08:49:37 1994`.
const OLD_DATES: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// How long it is from `wall` to the time that `text` says; zero if that is past.
///
/// A number is seconds, or an instant if it is that large: see [`UNIX_SECONDS_FROM`]. Else it is a
/// duration such as `6m0.5s`, or a date of HTTP or RFC 3339.
pub(super) fn until(text: &str, wall: Timestamp) -> Option<Span> {
    if text.len() > TEXT_BYTES_MAX {
        return None;
    }
    let number = billionths(text).map(|number| match number {
        UNIX_MILLIS_FROM.. => timestamp(number / 1_000).since(wall),
        UNIX_SECONDS_FROM.. => timestamp(number).since(wall),
        _ => span(number),
    });
    number.or_else(|| duration(text)).or_else(|| Some(date(text)?.since(wall)))
}

/// A number of milliseconds.
pub(super) fn millis(text: &str) -> Option<Span> {
    // Round up: who comes a moment early is refused again.
    billionths(text).map(|number| span(number.div_ceil(1_000)))
}

/// Whether it is the number zero. What is overdrawn is not: some write -1 for what they do not know.
pub(super) fn is_zero(text: &str) -> bool {
    billionths(text) == Some(0)
}

/// A decimal without a sign, in billionths, rounded up.
fn billionths(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    // Digits alone fail by being too many.
    let whole = whole.parse::<u64>().map_or(u128::from(u64::MAX), u128::from);
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let billionths = digits.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let has_more = fraction.bytes().skip(9).any(|digit| digit != b'0');
    Some(whole * SECOND + billionths + u128::from(has_more))
}

fn duration(text: &str) -> Option<Span> {
    let mut rest = text;
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (count, after) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic())?);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let part = billionths(count)?.saturating_mul(*unit).div_ceil(SECOND);
        nanos = nanos.saturating_add(part);
        rest = after;
    }
    (!text.is_empty()).then(|| span(nanos))
}

fn date(text: &str) -> Option<Timestamp> {
    // The weekday says nothing that the date does not.
    let http = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    let date = text.parse::<jiff::Timestamp>().or_else(|_| http.parse_timestamp(text)).ok();
    let nanos = date.or_else(|| old_date(text))?.as_nanosecond();
    Some(timestamp(u128::try_from(nanos).unwrap_or(0)))
}

fn old_date(text: &str) -> Option<jiff::Timestamp> {
    let parsed = OLD_DATES.iter().find_map(|format| strtime::parse(format, text).ok())?;
    jiff::tz::Offset::UTC.to_timestamp(parsed.to_datetime().ok()?).ok()
}

fn timestamp(nanos: u128) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn span(nanos: u128) -> Span {
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
