//! Windows on the calendar, from offsets written down by hand.

use tollgate_core::{Span, Timestamp};

const SECOND: u64 = 1_000_000_000;
const DAY: u64 = 86_400 * SECOND;

/// When clocks change in Berlin, from 2026 on: on the wall clock, in seconds, with what then is the
/// distance from Greenwich. 2026-03-29, 2026-10-25 and 2027-03-28, each at 01:00.
const BERLIN: [(u64, u64); 4] =
    [(0, 3_600), (1_774_746_000, 7_200), (1_792_890_000, 3_600), (1_806_195_600, 7_200)];

/// How far east of Greenwich a zone's clocks are, in nanoseconds.
fn ahead(zone: &str, wall: u64) -> u64 {
    let seconds = match zone {
        "UTC" => 0,
        "Asia/Kathmandu" => 20_700,
        "Europe/Berlin" => {
            let since = BERLIN.iter().rev().find(|(since, _)| *since * SECOND <= wall);
            since.map_or(0, |(_, ahead)| *ahead)
        }
        _ => panic!("{zone} is not written down here"),
    };
    seconds * SECOND
}

/// The window that holds an instant of the wall clock: its start, and the first instant after it.
/// Parts of a day are counted from midnight, and the last ends with the day.
pub(super) fn window(zone: &str, per: Span, wall: Timestamp) -> (Timestamp, Timestamp) {
    let (per, wall) = (per.as_nanos(), wall.as_nanos());
    let local = wall + ahead(zone, wall);
    let midnight = local - local % DAY;
    // No clock is changed at midnight: a first guess, an hour off at most, tells the right offset.
    let instant = |midnight: u64| midnight - ahead(zone, midnight - ahead(zone, wall));
    let (mut start, mut end) = (instant(midnight), instant(midnight + DAY));
    if per < DAY {
        start += (wall - start) / per * per;
        end = end.min(start + per);
    }
    (Timestamp::from_nanos(start), Timestamp::from_nanos(end))
}

#[test]
fn a_day_of_berlin_has_23_24_or_25_hours() {
    let length = |day: u64| {
        let noon = Timestamp::from_nanos((1_774_742_400 + day * 86_400 + 43_200) * SECOND);
        let (start, end) = window("Europe/Berlin", Span::from_days(1), noon);
        end.since(start)
    };
    assert_eq!([0, 1, 210].map(length), [23, 24, 25].map(Span::from_hours));
}
