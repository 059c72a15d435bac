//! A queue: a named set of lanes with shared defaults.

use super::call::CallId;
use super::payload::ENVELOPE_BYTES_MAX;
use super::queue_toll::{QueueToll, WHEN_BYTES_MAX};
use crate::name::LimitName;
use crate::time::Span;
use crate::toll::TOLLS_MAX;

/// Most calls of one lane that may be in flight.
pub const PARALLEL_MAX: u32 = 1_000_000;
/// Largest weight of a lane: it is served so many times as much as one of weight 1.
pub const LANE_WEIGHT_MAX: u32 = 100;
/// Longest lease: a dead worker's calls return within a day.
pub const LEASE_MAX: Span = Span::from_days(1);
/// The shortest lease of a worker that renews it: a heartbeat must reach the disk in time.
pub const RENEWED_LEASE_MIN: Span = Span::from_millis(100);

/// How many dead calls a queue keeps unless it says otherwise: a bad day's, at some 100 bytes each and
/// their bodies on disk.
pub const DEAD_MAX_DEFAULT: u64 = 100_000;

/// How a queue's lanes behave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// How many calls of a lane are in flight.
    pub order: Order,
    /// How long a lease lasts unless the claim says otherwise.
    pub lease: Span,
    /// Failures after which a call is dead.
    pub failures_max: u32,
    /// Crashes after which a call is dead.
    pub crashes_max: u32,
    /// Pauses asked for by the upstream after which a call is dead.
    pub limited_max: u32,
    /// How long a failed call waits unless the worker says otherwise.
    pub backoff: Backoff,
    /// What a dead call does to its lane.
    pub on_dead: OnDead,
    /// Most calls of the queue that have not ended.
    pub depth_max: u64,
    /// Most calls that are kept among the dead: beyond it, the one that died first is dropped for good.
    pub dead_max: u64,
    /// How long a dedupe key is remembered.
    pub dedupe: Span,
    /// What its calls owe besides their own tolls, as it stands when they are enqueued.
    pub tolls: Vec<QueueToll>,
    /// How its calls are delivered; `None`: workers claim them. No decision looks into it: it is the
    /// engine's.
    pub delivery: Option<Box<[u8]>>,
    /// Whether history keeps that a call was started, and that it was accepted, with its envelope and a short
    /// body; the latter not for calls without an envelope.
    pub tells_accepted: bool,
}

/// How many calls of a lane are in flight, and what a call in backoff does to those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One, and a call once started stays first until it ends.
    Strict,
    /// So many, and a call in backoff steps aside.
    Parallel(u32),
}

/// What a dead call does to its lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDead {
    /// The lane goes on.
    Skip,
    /// The lane waits for an operator.
    Hold,
}

/// Twice as long after each failure, up to a bound, less a part by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure.
    pub first: Span,
    /// At most.
    pub most: Span,
    /// By up to so many hundredths a wait is shorter, differently for each call: those that failed
    /// together come again apart.
    pub jitter: u8,
}

impl Backoff {
    /// Twice as long each time, without chance.
    pub fn doubling(first: Span, most: Span) -> Self {
        Self { first, most, jitter: 0 }
    }

    /// How long a call waits after its failure number `failures`, counted from 1. Chance is a function
    /// of both: who asks again is told the same.
    pub fn delay(&self, call: CallId, failures: u32) -> Span {
        let doublings = failures.saturating_sub(1);
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let whole = self.first.as_nanos().saturating_mul(factor).min(self.most.as_nanos());
        let most_off = u128::from(whole) * u128::from(self.jitter) / 100;
        let off = (most_off * u128::from(chance(call, failures))) >> u64::BITS;
        let off = u64::try_from(off);
        Span::from_nanos(whole.saturating_sub(off.unwrap_or(whole)))
    }
}

/// A number that says nothing about its neighbours: splitmix64 of what it is a function of.
fn chance(call: CallId, failures: u32) -> u64 {
    let mut mixed =
        call.0.wrapping_add(u64::from(failures) << 48).wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Default for QueueSpec {
    /// Strict; 30 s; 20 failures with a backoff of 1 s to 5 minutes; 3 crashes; 100 pauses; a million
    /// calls, and 100,000 dead ones; 10 minutes of dedupe.
    fn default() -> Self {
        Self {
            order: Order::Strict,
            lease: Span::from_secs(30),
            failures_max: 20,
            crashes_max: 3,
            limited_max: 100,
            backoff: Backoff::doubling(Span::from_secs(1), Span::from_minutes(5)),
            on_dead: OnDead::Skip,
            depth_max: 1_000_000,
            dead_max: DEAD_MAX_DEFAULT,
            dedupe: Span::from_minutes(10),
            tolls: Vec::new(),
            delivery: None,
            tells_accepted: false,
        }
    }
}

/// Why a queue cannot be so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// No call could ever be in flight, or too many.
    #[error("a lane may have 1 to {PARALLEL_MAX} calls in flight, and this is {given}")]
    Parallel {
        /// What was asked for.
        given: u32,
    },
    /// A lease of no time, or of too much.
    #[error("a lease lasts up to a day and longer than nothing, and this is {given}")]
    Lease {
        /// What was asked for.
        given: Span,
    },
    /// A call would be dead before its first start.
    #[error("at least one failure, crash and pause must be allowed before a call is dead")]
    NoAttempts,
    /// A wait that is shorter by more than all of it.
    #[error("a wait is shorter by up to 100 hundredths, and this says {given}")]
    Jitter {
        /// What was asked for.
        given: u8,
    },
    /// A delivery that is too long to be kept with the queue.
    #[error(
        "how a queue delivers its calls is told in 1 to {ENVELOPE_BYTES_MAX} bytes, and this has {bytes}: give it fewer headers"
    )]
    Delivery {
        /// How many.
        bytes: usize,
    },
    /// Nothing could ever be enqueued.
    #[error("a queue needs a depth of at least 1")]
    NoDepth,
    /// More tolls than a call may owe.
    #[error("a queue may ask for {TOLLS_MAX} tolls of its calls, and this one asks for {given}")]
    TooManyTolls {
        /// How many.
        given: usize,
    },
    /// A toll that could weigh nothing.
    #[error(
        "the toll at {limit}: its weight, the default and the max are at least 1, and the default is no more than the max"
    )]
    TollWeight {
        /// Where.
        limit: LimitName,
    },
    /// A toll that is like another and has more of its own.
    #[error(
        "the toll at {limit} is like another: it has its partition and its weight from there, and takes none of its own"
    )]
    TollLike {
        /// Where.
        limit: LimitName,
    },
    /// A toll that depends on a text which is too long.
    #[error(
        "the toll at {limit} is for bodies with a text of {bytes} bytes: compare with up to {WHEN_BYTES_MAX}"
    )]
    TollWhen {
        /// Where.
        limit: LimitName,
        /// How long.
        bytes: usize,
    },
    /// It has calls, and cannot be removed.
    #[error(
        "the queue has calls ({waiting} wait, {in_flight} are in flight, {dead} are dead): drain it, or cancel them, then remove it"
    )]
    NotEmpty {
        /// How many wait.
        waiting: u64,
        /// How many are in flight.
        in_flight: u64,
        /// How many are dead.
        dead: u64,
    },
}

impl QueueSpec {
    /// Says what is wrong with it, if anything is.
    pub fn check(&self) -> Result<(), QueueError> {
        match self.order {
            Order::Parallel(given) if !(1..=PARALLEL_MAX).contains(&given) => {
                return Err(QueueError::Parallel { given });
            }
            _ => {}
        }
        if self.lease.is_zero() || self.lease > LEASE_MAX {
            return Err(QueueError::Lease { given: self.lease });
        }
        if self.failures_max == 0 || self.crashes_max == 0 || self.limited_max == 0 {
            return Err(QueueError::NoAttempts);
        }
        if self.backoff.jitter > 100 {
            return Err(QueueError::Jitter { given: self.backoff.jitter });
        }
        let delivery = self.delivery.as_ref().map(|delivery| delivery.len());
        if let Some(bytes) = delivery.filter(|bytes| !(1..=ENVELOPE_BYTES_MAX).contains(bytes)) {
            return Err(QueueError::Delivery { bytes });
        }
        if self.depth_max == 0 {
            return Err(QueueError::NoDepth);
        }
        if self.tolls.len() > TOLLS_MAX {
            return Err(QueueError::TooManyTolls { given: self.tolls.len() });
        }
        self.tolls.iter().try_for_each(QueueToll::check)
    }

    /// Most calls of one lane in flight.
    pub fn in_flight_max(&self) -> u32 {
        match self.order {
            Order::Strict => 1,
            Order::Parallel(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backs_off_twice_as_long_each_time_up_to_the_bound() {
        let backoff = Backoff::doubling(Span::from_secs(1), Span::from_secs(60));
        let delays = [1, 2, 3, 6, 7, 40, 64, 65, u32::MAX].map(|n| backoff.delay(CallId(7), n));
        assert_eq!(delays, [1, 2, 4, 32, 60, 60, 60, 60, 60].map(Span::from_secs));
    }

    #[test]
    fn calls_that_failed_together_come_again_apart_and_never_late() {
        let whole = Span::from_secs(8);
        let backoff = Backoff { jitter: 25, ..Backoff::doubling(whole, whole) };
        let delays: Vec<_> = (0..1_000).map(|id| backoff.delay(CallId(id), 1)).collect();
        assert!(delays.iter().all(|it| (Span::from_secs(6)..=whole).contains(it)));
        let distinct: std::collections::BTreeSet<_> = delays.iter().collect();
        assert_eq!(distinct.len(), delays.len());
        let early = delays.iter().filter(|it| **it < Span::from_secs(7)).count();
        assert!((400..600).contains(&early), "{early} of 1,000 in the earlier half");
        let all = Backoff { jitter: 100, ..backoff };
        assert!((0..1_000).all(|id| all.delay(CallId(id), u32::MAX) <= whole));
    }

    #[test]
    fn refuses_a_queue_that_could_start_nothing() {
        assert_eq!(QueueSpec::default().check(), Ok(()));
        let none = QueueSpec { order: Order::Parallel(0), ..QueueSpec::default() };
        assert_eq!(none.check(), Err(QueueError::Parallel { given: 0 }));
        let no_lease = QueueSpec { lease: Span::ZERO, ..QueueSpec::default() };
        assert!(matches!(no_lease.check(), Err(QueueError::Lease { .. })));
    }
}
