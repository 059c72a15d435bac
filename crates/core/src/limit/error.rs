//! Why a limit cannot be defined.

use super::RULES_MAX;
use crate::rule::UNITS_MAX;
use crate::time::Span;

/// Why a limit cannot be defined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// It has no rule.
    #[error(
        "a limit needs at least one rule: token_bucket, fixed_window, sliding_window or concurrency"
    )]
    NoRule,
    /// It has too many rules.
    #[error(
        "a limit takes up to {RULES_MAX} rules, and this one has {count}: split it into two limits and let calls owe both"
    )]
    TooManyRules {
        /// How many were given.
        count: usize,
    },
    /// It counts slots twice.
    #[error("a limit takes one concurrency rule: keep the smaller one")]
    TwoConcurrencies,
    /// A number of units is zero.
    #[error(
        "{setting} is 0, and nothing would ever pass: give at least 1, or close the limit to stop it for a while"
    )]
    Zero {
        /// Which setting.
        setting: &'static str,
    },
    /// A number of units is too large.
    #[error("{setting} is {value}, and the most is {UNITS_MAX}: count in a larger unit")]
    TooLarge {
        /// Which setting.
        setting: &'static str,
        /// What was given.
        value: u64,
    },
    /// The period is zero or too long.
    #[error("a period of {per} is not between 1ns and 366d: for a count at a time use concurrency")]
    Period {
        /// What was given.
        per: Span,
    },
    /// The guard is as long as the period.
    #[error(
        "a guard of {guard} is not shorter than the period of {per}: it covers jitter, tens of milliseconds"
    )]
    GuardTooLong {
        /// The guard.
        guard: Span,
        /// The period.
        per: Span,
    },
    /// The guard leaves nothing of the burst.
    #[error(
        "a guard of {guard} takes all of a burst of {burst}: raise the burst or shorten the guard"
    )]
    GuardTakesTheBurst {
        /// The burst as written.
        burst: u64,
        /// The guard.
        guard: Span,
    },
    /// Calendar windows cannot be made longer.
    #[error(
        "a window on a calendar takes no guard: its ends are fixed; lower the limit a little instead"
    )]
    GuardOnCalendar,
    /// Units of a calendar's window cannot be held over its end.
    #[error("a window on a calendar lends nothing ahead: its ends are fixed; leave ahead out")]
    AheadOnCalendar,
    /// Slots are held until they are let go.
    #[error(
        "calls at a time are not lent ahead: leave ahead out, or give the rate a limit of its own"
    )]
    AheadWithSlots,
    /// The burst would take years to fill.
    #[error(
        "a burst of {burst} at {limit} per {per} takes over ten years to fill: lower the burst or raise the limit"
    )]
    BurstFillsTooSlowly {
        /// The burst.
        burst: u64,
        /// Units per period.
        limit: u64,
        /// The period.
        per: Span,
    },
    /// No such time zone.
    #[error(
        "{zone:?} is no time zone: use a name from the IANA database, as in Europe/Berlin or UTC"
    )]
    UnknownZone {
        /// What was given.
        zone: String,
    },
    /// No calendar has such a period.
    #[error("a period of {per} does not fit a calendar: use 1d, 1w, or a part of a day such as 1h")]
    NotACalendarPeriod {
        /// What was given.
        per: Span,
    },
    /// The rule has no such setting.
    #[error("{rule} has no {setting}: remove it, or choose the rule that has")]
    Misplaced {
        /// The setting.
        setting: &'static str,
        /// The rule.
        rule: &'static str,
    },
}
