//! The four rules, checked and ready to compute: each a file of its own, dispatched here.

pub mod bucket;
mod calendar;
pub mod sliding;
pub mod slots;
pub mod window;

use crate::limit::{LimitError, RuleSpec};
use crate::time::{Now, Span, Timestamp};
use bucket::{Bucket, BucketRule};
use sliding::{Sliding, SlidingRule};
use slots::{Slots, SlotsRule};
use window::{Window, WindowRule};

/// Largest limit, burst and weight: what JSON carries exactly.
pub const UNITS_MAX: u64 = (1 << 53) - 1;
/// Longest period: a leap year. Longer ones are contracts, not rates.
pub const PERIOD_MAX: Span = Span::from_days(366);
/// Of a window that begins so small a part of its length late, half a percent of the rate is lost.
const LATE_PART: u64 = 200;
/// Longest time a burst may take to fill, so that every instant stays inside 64 bits.
pub const FILL_MAX: Span = Span::from_days(3660);

/// A checked rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// Continuous refill.
    Bucket(BucketRule),
    /// A counter that starts anew with each window.
    Window(WindowRule),
    /// At most so much in any interval.
    Sliding(SlidingRule),
    /// So many at a time.
    Slots(SlotsRule),
}

/// What a meter remembers for one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleState {
    /// Of a token bucket.
    Bucket(Bucket),
    /// Of a fixed window.
    Window(Window),
    /// Of a sliding window.
    Sliding(Sliding),
    /// Of a concurrency rule.
    Slots(Slots),
}

/// When a rule lets a weight pass. Ordered: what comes later is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Opening {
    /// At this instant of limit time, or now if that has passed.
    At(Timestamp),
    /// When a slot is freed, which no one can compute.
    OnRelease,
}

impl Rule {
    /// Checks what was written.
    pub fn new(spec: &RuleSpec) -> Result<Self, LimitError> {
        match spec {
            RuleSpec::TokenBucket { limit, per, burst, guard } => {
                BucketRule::new(*limit, *per, *burst, *guard).map(Self::Bucket)
            }
            RuleSpec::FixedWindow { limit, per, align, guard } => {
                WindowRule::new(*limit, *per, align, *guard).map(Self::Window)
            }
            RuleSpec::SlidingWindow { limit, per, guard } => {
                SlidingRule::new(*limit, *per, *guard).map(Self::Sliding)
            }
            RuleSpec::Concurrency { limit } => SlotsRule::new(*limit).map(Self::Slots),
        }
    }

    /// The largest weight that can ever pass.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::Bucket(rule) => rule.burst(),
            Self::Window(rule) => rule.limit(),
            Self::Sliding(rule) => rule.limit(),
            Self::Slots(rule) => rule.limit(),
        }
    }

    /// The number in the rule's name: so many per period, or at a time.
    pub fn limit(&self) -> u64 {
        match self {
            Self::Bucket(rule) => rule.limit(),
            Self::Window(rule) => rule.limit(),
            Self::Sliding(rule) => rule.limit(),
            Self::Slots(rule) => rule.limit(),
        }
    }

    /// The period; none for concurrency.
    pub fn per(&self) -> Option<Span> {
        match self {
            Self::Bucket(rule) => Some(rule.per()),
            Self::Window(rule) => Some(rule.per()),
            Self::Sliding(rule) => Some(rule.per()),
            Self::Slots(_) => None,
        }
    }

    /// How much later than it could a call of that weight may start without the rate being lost: the
    /// time until a bucket that holds just that overflows. The next window is as much later as the call
    /// is, which does not count while that is little beside its length; slots lose nothing.
    pub fn slack(&self, weight: u64) -> Span {
        match self {
            Self::Bucket(rule) => rule.overflows_after(weight),
            Self::Window(_) | Self::Sliding(_) | Self::Slots(_) => {
                let part = |per: Span| Span::from_nanos(per.as_nanos() / LATE_PART);
                self.per().map_or(Span::from_secs(1), part)
            }
        }
    }

    /// Whether it counts per time rather than at a time.
    pub fn is_rate(&self) -> bool {
        !matches!(self, Self::Slots(_))
    }

    /// A state from which nothing is missing.
    pub fn fresh(&self) -> RuleState {
        match self {
            Self::Bucket(_) => RuleState::Bucket(Bucket::default()),
            Self::Window(_) => RuleState::Window(Window::default()),
            Self::Sliding(_) => RuleState::Sliding(Sliding::default()),
            Self::Slots(_) => RuleState::Slots(Slots::default()),
        }
    }

    /// A state from which `units` are missing, as after a change of the kind of rule.
    pub fn carried(&self, units: u64, now: Now) -> RuleState {
        let mut state = self.fresh();
        if units > 0 && self.is_rate() {
            self.pay(&mut state, units, now);
        }
        state
    }
}

/// Binds the rule to the state of its own kind. A meter is only ever read under the definition
/// that wrote it, so another kind is a broken invariant of the meter.
macro_rules! each {
    ($rule:expr, $state:expr, $bound:ident, $with:ident => $do:expr) => {
        match ($rule, $state) {
            (Rule::Bucket($bound), RuleState::Bucket($with)) => $do,
            (Rule::Window($bound), RuleState::Window($with)) => $do,
            (Rule::Sliding($bound), RuleState::Sliding($with)) => $do,
            (Rule::Slots($bound), RuleState::Slots($with)) => $do,
            _ => unreachable!("a meter's states are of the kinds of its definition's rules"),
        }
    };
}

impl Rule {
    /// The first instant at which `weight` passes; for more than the capacity, the first at which
    /// the last part of it does.
    pub fn opens(&self, state: &RuleState, weight: u64, now: Now) -> Opening {
        each!(self, state, rule, with => rule.opens(with, weight, now))
    }

    /// Takes `weight` at the instant `at`, whether it fits or not.
    pub fn pay(&self, state: &mut RuleState, weight: u64, at: Now) {
        each!(self, state, rule, with => rule.pay(with, weight, at));
    }

    /// Units missing from full, rounded up; more than the capacity under debt.
    pub fn missing(&self, state: &RuleState, now: Now) -> u64 {
        each!(self, state, rule, with => rule.missing(with, now))
    }

    /// Dates what is remembered earlier by so much; of a calendar's window nothing, which is dated by the
    /// wall clock.
    pub fn set_back(&self, state: &mut RuleState, by: Span) {
        match (self, state) {
            (_, RuleState::Bucket(bucket)) => bucket.full_at = bucket.full_at.minus(by),
            (Self::Window(rule), RuleState::Window(window)) if !rule.is_on_calendar() => {
                window.ends = window.ends.minus(by);
            }
            (_, RuleState::Window(_)) => {}
            (_, RuleState::Sliding(sliding)) => sliding.set_back(by),
            (_, RuleState::Slots(slots)) => slots.set_back(by),
        }
    }

    /// The length of the window that a payment at `at` would begin, if it would begin one.
    pub fn begins(&self, state: &RuleState, at: Now) -> Option<Span> {
        match (self, state) {
            (Self::Window(rule), RuleState::Window(window)) => rule.begins(window, at),
            _ => None,
        }
    }

    /// When the window that counts opened, in limit time, of a rule whose windows open with a call.
    pub fn opened(&self, state: &RuleState, now: Now) -> Option<Timestamp> {
        match (self, state) {
            (Self::Window(rule), RuleState::Window(window)) => rule.opened(window, now),
            _ => None,
        }
    }

    /// The first instant from which the state is as good as new, if nothing more is paid.
    pub fn fresh_at(&self, state: &RuleState, now: Now) -> Opening {
        each!(self, state, rule, with => rule.fresh_at(with, now))
    }
}
