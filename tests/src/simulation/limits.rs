//! The kinds of limits of a random world. Their numbers change while it runs.

use super::catalog::OWED_MAX;
use super::random::Random;
use tollgate_core::{Definition, Limit, Span};

/// Which rules a limit has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bucket,
    Sliding,
    Window,
    Slots,
    BucketAndSlots,
    SlidingAndWindow,
    Calendar(Windows),
    CalendarAndSlots(Windows),
}

/// Windows on the calendar of a zone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    zone: &'static str,
    /// In seconds.
    lengths: [u64; 3],
}

/// One whose clocks are changed, one that is no whole hours away, and the plain one.
const ZONES: [&str; 3] = ["Europe/Berlin", "Asia/Kathmandu", "UTC"];

/// Windows that end while a world runs, and windows for worlds whose wall clock is set by days. A
/// clock that is set back counts every window until it is there again as spent.
const SHORT: [u64; 3] = [1, 5, 60];
const LONG: [u64; 3] = [7_200, 86_400, 86_400];

impl Kind {
    pub(super) fn any(random: &mut Random, is_long: bool) -> Self {
        let lengths = if is_long { LONG } else { SHORT };
        let windows = Windows { zone: ZONES[random.index(3)], lengths };
        *random.pick(&[
            Self::Bucket,
            Self::Bucket,
            Self::Sliding,
            Self::Window,
            Self::Slots,
            Self::BucketAndSlots,
            Self::SlidingAndWindow,
            Self::Calendar(windows),
            Self::CalendarAndSlots(windows),
        ])
    }

    /// This kind of limit with some numbers.
    pub(super) fn definition(self, random: &mut Random) -> Definition {
        // Odd lengths, so that nothing divides evenly.
        let per = Span::from_nanos(random.between(200_000_001, 3_000_000_007));
        let (limit, burst) = (random.between(1, 5), random.between(1, 6));
        let guard = if random.one_in(4) { Span::from_nanos(50_000_003) } else { Span::ZERO };
        let (slots, length) = (Limit::concurrency(limit), random.index(3));
        let made = match self {
            Self::Bucket => Limit::per(limit, per).burst(burst + 1).guard(guard),
            Self::Sliding => Limit::sliding_window(burst, per).guard(guard),
            Self::Window => Limit::fixed_window(burst, per).guard(guard),
            Self::Slots => slots,
            Self::BucketAndSlots => Limit::per(limit, per).burst(burst).and(slots),
            Self::SlidingAndWindow => Limit::sliding_window(limit, per)
                .and(Limit::fixed_window(burst, Span::from_nanos(per.as_nanos() * 3))),
            Self::Calendar(windows) => windows.limit(burst, windows.lengths[length]),
            Self::CalendarAndSlots(windows) => {
                windows.limit(burst, windows.lengths[length]).and(slots)
            }
        };
        Definition::new(made)
            .unwrap_or_else(|_| Definition::new(Limit::per(limit, per).burst(burst)).unwrap())
    }

    /// This kind of limit, large enough for so many calls at once.
    pub(super) fn large(self, calls: u64) -> Definition {
        let (most, second) = (OWED_MAX * calls, Span::from_secs(1));
        Definition::new(match self {
            Self::Bucket => Limit::per(most, second),
            Self::Sliding => Limit::sliding_window(most, second),
            Self::Window => Limit::fixed_window(most, second),
            Self::Slots => Limit::concurrency(most),
            Self::BucketAndSlots => Limit::per(most, second).and(Limit::concurrency(most)),
            Self::SlidingAndWindow => {
                Limit::sliding_window(most, second).and(Limit::fixed_window(most * 2, second))
            }
            Self::Calendar(windows) => windows.limit(most, 1),
            Self::CalendarAndSlots(windows) => windows.limit(most, 1).and(Limit::concurrency(most)),
        })
        .unwrap()
    }
}

impl Windows {
    fn limit(self, limit: u64, seconds: u64) -> Limit {
        Limit::fixed_window(limit, Span::from_secs(seconds)).on_calendar(self.zone)
    }
}
