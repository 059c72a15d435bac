//! The limiter in memory: exact limits for one process, at memory speed.

mod busiest;
mod consume;
mod define;
mod many;
pub(crate) mod operate;
mod plain;
mod settle;

pub(crate) use consume::{Tracking, refusal};

use crate::clock::{Clock, Dial, SystemClock};
use crate::limits::Limits;
use crate::turns::Turns;
use settle::Settled;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::rule::slots::HoldId;

/// Most calls that may wait at once, unless it is said otherwise.
pub(crate) const WAITING_MAX: usize = 1_000_000;

/// What a limiter is made with.
#[derive(Clone)]
pub struct Settings {
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Most limits that are defined at once.
    pub limits_max: usize,
    /// Most meters that are kept: a new partition beyond is refused, for forgetting a spent meter
    /// would give its units away twice.
    pub meters_max: usize,
    /// Most calls that may wait at once.
    pub waiting_max: usize,
    /// Most settled receipts that are remembered until they would have expired.
    pub receipts_max: usize,
}

impl Default for Settings {
    /// The exact clock; ten million meters, about half a gigabyte; a million waiting calls.
    fn default() -> Self {
        Self {
            clock: Arc::new(SystemClock::new()),
            limits_max: 1_000_000,
            meters_max: 10_000_000,
            waiting_max: WAITING_MAX,
            receipts_max: 1_000_000,
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("limits_max", &self.limits_max)
            .field("meters_max", &self.meters_max)
            .field("waiting_max", &self.waiting_max)
            .field("receipts_max", &self.receipts_max)
            .finish_non_exhaustive()
    }
}

/// Limits and their meters in this process. Clones share them; the last one that goes ends the
/// thread that wakes waiting calls.
///
/// ```
/// use tollgate_core::Limit;
/// use tollgate_engine::{Limiter, toll};
///
/// let limiter = Limiter::default();
/// limiter.define("api", Limit::per_second(1))?;
/// assert!(limiter.consume(toll("api", "acme")).is_ok());
/// assert!(limiter.consume(toll("api", "acme")).is_err());
/// assert!(limiter.consume(toll("api", "other")).is_ok());
/// # Ok::<(), tollgate_engine::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Limiter {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) limits: Limits,
    pub(crate) settings: Settings,
    dial: Dial,
    pub(crate) turns: Turns,
    pub(crate) settled: Settled,
    arrivals: AtomicU64,
    holds: AtomicU64,
}

impl Limiter {
    /// A limiter without limits.
    pub fn new(settings: Settings) -> Self {
        Self { inner: Arc::new(Inner::new(settings)) }
    }

    /// How many meters are kept: those that are not as good as new, and a few more.
    pub fn meters_kept(&self) -> usize {
        self.inner.limits.meters()
    }

    /// The clock it was made with.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.inner.settings.clock
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("meters_kept", &self.meters_kept()).finish_non_exhaustive()
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Inner {
    fn new(settings: Settings) -> Self {
        Self {
            limits: Limits::default(),
            turns: Turns::default(),
            settled: Settled::new(settings.receipts_max),
            arrivals: AtomicU64::new(0),
            holds: AtomicU64::new(1),
            dial: Dial::of(&settings.clock),
            settings,
        }
    }

    /// Whether it goes by the exact clock.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.dial, Dial::Exact(_))
    }

    /// The next place in the order of arrival.
    pub(crate) fn next_arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }

    fn next_hold(&self) -> HoldId {
        HoldId(self.holds.fetch_add(1, Ordering::Relaxed))
    }
}
