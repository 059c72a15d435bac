//! How much is measured, and under which limits.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::contender::Limit;

/// The size of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Keys in the rows with many keys.
    pub(crate) keys: usize,
    /// Decisions in one round of the rows with one budget.
    pub(crate) hot_round: usize,
    pub(crate) hot_rounds: usize,
    /// Visits in one round of the rows with many keys; divides `keys`. As many as throttlecrab's adaptive store
    /// does between two sweeps, so that every round carries its share of them.
    pub(crate) cold_round: usize,
    pub(crate) cold_rounds: usize,
    /// Passes of the longest call; the best of them is told.
    pub(crate) passes: usize,
    pub(crate) wait_ms: u64,
}

pub(crate) const FULL: Plan = Plan {
    keys: 1_000_000,
    hot_round: 20_000,
    hot_rounds: 200,
    cold_round: 100_000,
    cold_rounds: 20,
    passes: 3,
    wait_ms: 3_000,
};

pub(crate) const QUICK: Plan = Plan {
    keys: 100_000,
    hot_round: 20_000,
    hot_rounds: 10,
    cold_round: 50_000,
    cold_rounds: 4,
    passes: 1,
    wait_ms: 200,
};

/// So high that every decision on one budget is granted: one each nanosecond.
pub(crate) const OPEN: Limit = limit(Duration::from_nanos(1), 1_000_000_000);

/// So low that every decision but the first is denied.
pub(crate) const SHUT: Limit = limit(Duration::from_secs(3_600), 1);

/// Grants every visit of the rows with many keys, and keeps each key alive over the run.
pub(crate) const MANY_KEYS: Limit = limit(Duration::from_secs(1), 1_000_000);

/// A key is as good as new, and so may be cleaned up, after a few milliseconds.
pub(crate) const SHORT_LIVED: Limit = limit(Duration::from_millis(1), 10);

/// What the waiters share: 5,000 a second, with 10 ms worth of burst.
pub(crate) const AWAITED: Limit = limit(Duration::from_micros(200), 50);

/// How many tasks wait at a time.
pub(crate) const CROWDS: [usize; 2] = [1_000, 10_000];

/// How many threads share a limiter.
pub(crate) const THREADS: [usize; 2] = [1, 2];

const fn limit(interval: Duration, burst: u32) -> Limit {
    assert!(burst > 0, "a limit has a burst");
    Limit { interval, burst: NonZeroU32::MIN.saturating_add(burst - 1) }
}
