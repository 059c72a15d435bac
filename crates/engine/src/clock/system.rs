//! The machine's clocks: exact, and coarse for those who count nanoseconds.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reads the time")]

use super::{Bell, Clock};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tollgate_core::{Span, Timestamp};

/// The exact clock: nanoseconds at monotonic speed, from the wall time at which it was made. Reads
/// the processor's counter where that is stable, the operating system's clock elsewhere.
#[derive(Debug, Clone)]
pub struct SystemClock {
    source: quanta::Clock,
    /// What the counter said at `epoch`, in nanoseconds of wall time.
    started: u64,
    epoch: u64,
    /// Nanoseconds in [`TICKS`].
    rate: u64,
}

/// The ticks in which the speed of a counter is told: a day or so.
const TICKS: u64 = 1 << TICKS_LOG2;
const TICKS_LOG2: u32 = 48;
/// How far the counters of two cores may be apart, in ticks: time is counted from so long before the first reading.
const APART: u64 = 1 << 32;

impl SystemClock {
    /// Limit time starts at the present wall time and goes on at monotonic speed.
    pub fn new() -> Self {
        Self::of(quanta::Clock::new())
    }

    fn of(source: quanta::Clock) -> Self {
        let (rate, raw) = (source.delta_as_nanos(0, TICKS), source.raw());
        let started = raw.saturating_sub(APART);
        let apart = source.delta_as_nanos(started, raw);
        Self { started, epoch: read_wall().as_nanos().saturating_sub(apart), rate, source }
    }

    /// As quanta's `delta_as_nanos`, without its branches, which a refusal takes a tenth longer with.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "as timestamps end, in 2554")]
    fn nanos(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.rate)) >> TICKS_LOG2) as u64
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let ticks = self.source.raw().saturating_sub(self.started);
        Timestamp::from_nanos(self.epoch.wrapping_add(self.nanos(ticks)))
    }

    fn wall(&self) -> Timestamp {
        read_wall()
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        bell.wait(deadline.map(|deadline| deadline.since(self.now()).into()));
    }

    fn exact(&self) -> Option<SystemClock> {
        Some(self.clone())
    }
}

/// A clock that moves in the kernel's ticks of 1 to 10 ms and costs a quarter of an exact reading.
///
/// It is never ahead of the operating system's monotonic clock. An interval between two readings
/// may look up to one tick longer than it was, so a rate rule may admit `limit · tick / per` more
/// in an interval than it says; what the rule says over many ticks holds. Calls that wait start up
/// to two ticks late. Where the system has no such clock, this is the exact one.
#[derive(Debug, Clone)]
pub struct CoarseClock {
    #[cfg(target_os = "linux")]
    started: u64,
    #[cfg(target_os = "linux")]
    epoch: Timestamp,
    #[cfg(not(target_os = "linux"))]
    exact: SystemClock,
}

#[cfg(target_os = "linux")]
fn read(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(target_os = "linux")]
impl CoarseClock {
    /// Starts at the present wall time.
    pub fn new() -> Self {
        // From the exact reading, so that the first tick does not run ahead of it.
        Self { started: read(rustix::time::ClockId::Monotonic), epoch: read_wall() }
    }

    #[inline]
    fn read_now(&self) -> Timestamp {
        let coarse = read(rustix::time::ClockId::MonotonicCoarse);
        self.epoch.plus(Span::from_nanos(coarse.saturating_sub(self.started)))
    }
}

#[cfg(not(target_os = "linux"))]
impl CoarseClock {
    /// Starts at the present wall time.
    pub fn new() -> Self {
        Self { exact: SystemClock::new() }
    }

    fn read_now(&self) -> Timestamp {
        self.exact.now()
    }
}

impl Default for CoarseClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Timestamp {
        self.read_now()
    }

    fn wall(&self) -> Timestamp {
        read_wall()
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        bell.wait(deadline.map(|deadline| deadline.since(self.now()).into()));
    }
}

fn read_wall() -> Timestamp {
    // A clock set before 1970 counts as 1970: limits do not depend on it.
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::default().plus(Span::from(since_epoch))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_behind_makes_no_leap() {
        let (source, counter) = quanta::Clock::mock();
        counter.increment(1_u64 << 40);
        let clock = SystemClock::of(source);
        let began = clock.now();
        counter.increment(5_000_u64);
        assert_eq!(clock.now().since(began), Span::from_nanos(5_000));
        for behind in [6_000_u64, 1 << 39] {
            counter.decrement(behind);
            assert!(clock.now() < began, "of another core, or begun anew as a machine woke up");
        }
        counter.increment(1_u64 << 40);
        assert!(clock.now() > began);
    }

    #[test]
    fn the_exact_clock_goes_as_fast_as_its_source() {
        let wall = read_wall();
        let clock = SystemClock::new();
        assert!(wall.since(clock.now()) < Span::from_millis(1), "it begins at wall time");
        for log in 0..62 {
            let ticks = (1 << log) + 12_345;
            let off = clock.nanos(ticks).abs_diff(clock.source.delta_as_nanos(0, ticks));
            assert!(off <= 1 + (ticks >> 47), "{off} ns after {ticks} ticks");
        }
    }

    #[test]
    fn the_coarse_clock_never_runs_ahead_of_the_exact_one() {
        let clock = CoarseClock::new();
        for _ in 0..100_000 {
            let coarse = clock.now().since(clock.epoch).as_nanos();
            assert!(coarse <= read(rustix::time::ClockId::Monotonic) - clock.started);
        }
    }
}
