//! Limits as people write them, and as the gate uses them once they are checked.

mod error;
mod shown;

pub use error::LimitError;

use crate::rule::{PERIOD_MAX, Rule, UNITS_MAX};
use crate::time::Span;

/// Most rules under one name: a second, a minute, a day and a concurrency.
pub const RULES_MAX: usize = 4;

/// A limit as written: one rule, or several that must all admit. Checked when it is defined.
///
/// ```
/// use tollgate_core::{Definition, Limit};
///
/// let stripe = Limit::per_minute(100).burst(150).and(Limit::concurrency(20));
/// assert_eq!(Definition::new(stripe)?.capacity(), 20);
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Limit {
    rules: Vec<RuleSpec>,
    /// For how long a process may hold units that it took ahead, where several share the limit.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_nothing"))]
    ahead: Span,
    /// Its meters may lie apart from each other, where several share the limit.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "is_not"))]
    spread: bool,
    /// A setting that was given to a rule that has none such.
    #[cfg_attr(feature = "serde", serde(skip))]
    misplaced: Option<LimitError>,
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_nothing(span: &Span) -> bool {
    span.is_zero()
}

#[cfg(feature = "serde")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_not(flag: &bool) -> bool {
    !flag
}

/// One rule as written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum RuleSpec {
    /// Continuous refill of `limit` per `per`; starts full, with `burst` units.
    TokenBucket {
        /// Units per period.
        limit: u64,
        /// The period.
        per: Span,
        /// Units at once.
        burst: u64,
        /// Jitter between our start and the upstream's count, taken off the burst.
        guard: Span,
    },
    /// `limit` units in each window of `per`. The seam between two windows may see twice that.
    FixedWindow {
        /// Units per window.
        limit: u64,
        /// The window's length.
        per: Span,
        /// Where windows start.
        align: Align,
        /// Jitter, added to the window.
        guard: Span,
    },
    /// At most `limit` units in any interval of length `per`.
    SlidingWindow {
        /// Units per interval.
        limit: u64,
        /// The interval's length.
        per: Span,
        /// Jitter, added to the window.
        guard: Span,
    },
    /// At most `limit` units at a time.
    Concurrency {
        /// Units at a time.
        limit: u64,
    },
}

/// Where fixed windows start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Align {
    /// At the first call after the last window.
    #[default]
    FirstCall,
    /// On the calendar of a time zone: at local midnight, on Mondays, or at parts of a day.
    Calendar {
        /// Its name in the IANA database, as in `Europe/Berlin`.
        zone: String,
    },
}

impl RuleSpec {
    /// The rule's name in JSON, commands and messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TokenBucket { .. } => "token_bucket",
            Self::FixedWindow { .. } => "fixed_window",
            Self::SlidingWindow { .. } => "sliding_window",
            Self::Concurrency { .. } => "concurrency",
        }
    }

    /// Whether it counts over time, and not calls at a time.
    pub fn is_rate(&self) -> bool {
        !matches!(self, Self::Concurrency { .. })
    }

    /// The rule with a guard that is longer by so much.
    fn guarded(&self, by: Span) -> Result<Self, LimitError> {
        let mut rule = self.clone();
        match &mut rule {
            Self::TokenBucket { guard, .. }
            | Self::FixedWindow { guard, align: Align::FirstCall, .. }
            | Self::SlidingWindow { guard, .. } => *guard = guard.plus(by),
            Self::FixedWindow { .. } => return Err(LimitError::AheadOnCalendar),
            Self::Concurrency { .. } => return Err(LimitError::AheadWithSlots),
        }
        Ok(rule)
    }
}

impl Limit {
    /// The rules given, all of which must admit.
    pub fn of(rules: Vec<RuleSpec>) -> Self {
        Self { rules, ahead: Span::ZERO, spread: false, misplaced: None }
    }

    /// A token bucket of `limit` per `per`; its burst is `limit` unless set.
    pub fn per(limit: u64, per: impl Into<Span>) -> Self {
        let per = per.into();
        Self::of(vec![RuleSpec::TokenBucket { limit, per, burst: limit, guard: Span::ZERO }])
    }

    /// A token bucket of `limit` per second.
    pub fn per_second(limit: u64) -> Self {
        Self::per(limit, Span::from_secs(1))
    }

    /// A token bucket of `limit` per minute.
    pub fn per_minute(limit: u64) -> Self {
        Self::per(limit, Span::from_minutes(1))
    }

    /// A token bucket of `limit` per hour.
    pub fn per_hour(limit: u64) -> Self {
        Self::per(limit, Span::from_hours(1))
    }

    /// A token bucket of `limit` per 24 hours. For a quota that resets at midnight, see
    /// [`Limit::on_calendar`].
    pub fn per_day(limit: u64) -> Self {
        Self::per(limit, Span::from_days(1))
    }

    /// `limit` in each window of `per` that opens at the first call.
    pub fn fixed_window(limit: u64, per: impl Into<Span>) -> Self {
        let (per, align, guard) = (per.into(), Align::FirstCall, Span::ZERO);
        Self::of(vec![RuleSpec::FixedWindow { limit, per, align, guard }])
    }

    /// At most `limit` in any interval of `per`.
    pub fn sliding_window(limit: u64, per: impl Into<Span>) -> Self {
        Self::of(vec![RuleSpec::SlidingWindow { limit, per: per.into(), guard: Span::ZERO }])
    }

    /// At most `limit` at a time.
    pub fn concurrency(limit: u64) -> Self {
        Self::of(vec![RuleSpec::Concurrency { limit }])
    }

    /// How many units a token bucket lets through at once.
    #[must_use]
    pub fn burst(self, units: u64) -> Self {
        self.set("burst", |rule| match rule {
            RuleSpec::TokenBucket { burst, .. } => {
                *burst = units;
                true
            }
            _ => false,
        })
    }

    /// Keeps the upstream's window whole although our start and its count are up to `span` apart.
    #[must_use]
    pub fn guard(self, span: impl Into<Span>) -> Self {
        let span = span.into();
        self.set("guard", |rule| match rule {
            RuleSpec::TokenBucket { guard, .. }
            | RuleSpec::FixedWindow { guard, .. }
            | RuleSpec::SlidingWindow { guard, .. } => {
                *guard = span;
                true
            }
            RuleSpec::Concurrency { .. } => false,
        })
    }

    /// Starts fixed windows on the calendar of a time zone, as in `Europe/Berlin`.
    #[must_use]
    pub fn on_calendar(self, zone: &str) -> Self {
        self.set("align", |rule| match rule {
            RuleSpec::FixedWindow { align, .. } => {
                *align = Align::Calendar { zone: zone.to_owned() };
                true
            }
            _ => false,
        })
    }

    /// Where several processes share the limit in a store: lets each take units ahead, deducted before
    /// use, and decide by itself for up to `span`. So that the limit is kept in any case, it counts as a
    /// [guard](Self::guard) of so long there: a burst is smaller by what flows in within it, a window
    /// longer by it. Means nothing to a limit that one process has to itself.
    #[must_use]
    pub fn ahead(self, span: impl Into<Span>) -> Self {
        Self { ahead: span.into(), ..self }
    }

    /// For how long units may be held that were taken ahead; zero if none are.
    pub fn taken_ahead(&self) -> Span {
        self.ahead
    }

    /// Where several processes share the limit in Redis Cluster: lets its meters lie on all servers of
    /// it, each meter on one, and not on the one server that all other limits share. An ask cannot
    /// combine it with others, and it stays so for good. Means nothing to a limit that one process has to
    /// itself.
    #[must_use]
    pub fn spread(self) -> Self {
        Self { spread: true, ..self }
    }

    /// Whether its meters may lie apart from each other.
    pub fn is_spread(&self) -> bool {
        self.spread
    }

    /// Both limits under one name: all their rules must admit.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.ahead = self.ahead.max(other.ahead);
        self.spread |= other.spread;
        self.rules.extend(other.rules);
        self.misplaced = self.misplaced.or(other.misplaced);
        self
    }

    /// This limit with another pinned over it: where the other says a rate, that counts and no rate of
    /// this one, and so for calls at a time. What the other does not say is as it was.
    #[must_use]
    pub fn under(&self, pinned: &Self) -> Self {
        let is_pinned =
            |rule: &RuleSpec| pinned.rules.iter().any(|other| other.is_rate() == rule.is_rate());
        let own = self.rules.iter().filter(|rule| !is_pinned(rule));
        let mut rules: Vec<_> = pinned.rules.iter().chain(own).cloned().collect();
        rules.sort_by_key(|rule| !rule.is_rate());
        // More would be none: what is pinned counts in any case.
        if rules.len() > RULES_MAX {
            return Self { spread: self.spread, ..pinned.clone() };
        }
        let ahead = self.ahead.max(pinned.ahead);
        // Where its meters are is not for an operator to change.
        let lent = Self { ahead, spread: self.spread, ..Self::of(rules) };
        // What cannot lend does not: what is pinned counts in any case.
        if lent.lends() { lent } else { Self { ahead: Span::ZERO, ..lent } }
    }

    /// Whether each rule can be kept while units are taken ahead.
    fn lends(&self) -> bool {
        let guarded = |rule: &RuleSpec| Rule::new(&rule.guarded(self.ahead)?);
        self.rules.iter().all(|rule| guarded(rule).is_ok())
    }

    /// One of so many equal parts: of each number the part, at least one, for less is none. Periods and
    /// guards stay as they are. It lends nothing: whoever has a part has it alone.
    pub fn part_of(&self, parts: u32) -> Self {
        let part = |units: u64| (units / u64::from(parts.max(1))).max(1);
        let mut limit = Self { ahead: Span::ZERO, ..self.clone() };
        for rule in &mut limit.rules {
            match rule {
                RuleSpec::TokenBucket { limit, burst, .. } => {
                    (*limit, *burst) = (part(*limit), part(*burst));
                }
                RuleSpec::FixedWindow { limit, .. }
                | RuleSpec::SlidingWindow { limit, .. }
                | RuleSpec::Concurrency { limit } => *limit = part(*limit),
            }
        }
        limit
    }

    /// The rules as written.
    pub fn rules(&self) -> &[RuleSpec] {
        &self.rules
    }

    /// Changes the rule written last, or remembers that it has no such setting: `change` says so.
    fn set(mut self, setting: &'static str, change: impl Fn(&mut RuleSpec) -> bool) -> Self {
        if let Some(rule) = self.rules.last_mut()
            && !change(rule)
        {
            self.misplaced = Some(LimitError::Misplaced { setting, rule: rule.kind() });
        }
        self
    }
}

/// A checked limit, ready to decide.
// Invariant: 1 to RULES_MAX rules, at most one of them a concurrency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    limit: Limit,
    rules: Box<[Rule]>,
    capacity: u64,
}

impl Definition {
    /// Checks what was written.
    pub fn new(limit: Limit) -> Result<Self, LimitError> {
        if let Some(error) = limit.misplaced {
            return Err(error);
        }
        match limit.rules.len() {
            0 => return Err(LimitError::NoRule),
            1..=RULES_MAX => {}
            count => return Err(LimitError::TooManyRules { count }),
        }
        let rules = limit.rules.iter().map(Rule::new).collect::<Result<Box<[_]>, _>>()?;
        if rules.iter().filter(|rule| !rule.is_rate()).count() > 1 {
            return Err(LimitError::TwoConcurrencies);
        }
        if !limit.ahead.is_zero() {
            let guarded = limit.rules.iter().map(|rule| Rule::new(&rule.guarded(limit.ahead)?));
            guarded.collect::<Result<Vec<_>, _>>()?;
        }
        let capacity = rules.iter().map(Rule::capacity).min().unwrap_or(0);
        Ok(Self { limit, rules, capacity })
    }

    /// This definition where units are taken ahead: each rule has that for a guard, too.
    pub fn with_ahead(&self) -> Result<Self, LimitError> {
        let ahead = self.limit.ahead;
        if ahead.is_zero() {
            return Ok(self.clone());
        }
        let rules = self.limit.rules.iter().map(|rule| rule.guarded(ahead));
        let guarded = Self::new(Limit::of(rules.collect::<Result<_, _>>()?))?;
        Ok(Self { limit: self.limit.clone(), ..guarded })
    }

    /// The limit as it was written.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// The rules, in the order in which they were written.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The largest weight that can ever pass.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// How much later than it could a call of that weight may start without a rate being lost.
    pub fn slack(&self, weight: u64) -> Span {
        self.rules.iter().map(|rule| rule.slack(weight)).min().unwrap_or(Span::ZERO)
    }

    /// Whether one of the rules counts slots.
    pub fn has_slots(&self) -> bool {
        self.rules.iter().any(|rule| !rule.is_rate())
    }

    /// Whether one of the rules follows the wall clock.
    pub fn follows_wall(&self) -> bool {
        let follows_wall =
            |rule: &Rule| matches!(rule, Rule::Window(rule) if rule.is_on_calendar());
        self.rules.iter().any(follows_wall)
    }
}

pub(crate) fn checked_limit(limit: u64) -> Result<(), LimitError> {
    checked_units("limit", limit)
}

pub(crate) fn checked_units(setting: &'static str, value: u64) -> Result<(), LimitError> {
    match value {
        0 => Err(LimitError::Zero { setting }),
        1..=UNITS_MAX => Ok(()),
        _ => Err(LimitError::TooLarge { setting, value }),
    }
}

pub(crate) fn checked_period(per: Span, guard: Span) -> Result<(), LimitError> {
    if per.is_zero() || per > PERIOD_MAX {
        return Err(LimitError::Period { per });
    }
    if guard >= per {
        return Err(LimitError::GuardTooLong { guard, per });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pinned_counts_for_its_kind_alone() {
        let (second, hour) = (Limit::per_second(5), Limit::per_hour(900));
        let defined = second.clone().and(Limit::concurrency(7)).and(hour);
        let slots = Limit::concurrency(2);
        let told = |limit: Limit| limit.rules().iter().map(RuleSpec::kind).collect::<Vec<_>>();
        let under = defined.under(&slots);
        assert_eq!(under.rules().last(), slots.rules().last());
        assert_eq!(told(under), ["token_bucket", "token_bucket", "concurrency"]);
        let both = defined.under(&Limit::fixed_window(1, Span::from_secs(1)));
        assert_eq!(told(both), ["fixed_window", "concurrency"]);
        assert_eq!(second.under(&Limit::per_minute(3)), Limit::per_minute(3));
        let many = Limit::of(vec![Limit::per_second(1).rules()[0].clone(); RULES_MAX]);
        assert_eq!(Limit::concurrency(1).under(&many), many, "what is pinned counts in any case");
    }

    #[test]
    fn a_part_lends_nothing_and_so_can_be_small() {
        let whole = Limit::per_second(1_000).ahead(Span::from_millis(10));
        assert_eq!(whole.part_of(100), Limit::per_second(10));
        assert!(Definition::new(whole.part_of(100)).is_ok());
        let lent = Limit::per_second(10).ahead(Span::from_millis(1_000));
        assert!(Definition::new(lent).is_err(), "as much flows in as the burst has");
    }

    #[test]
    fn what_is_pinned_counts_though_it_cannot_lend() {
        let ahead = Span::from_millis(10);
        let lent = Limit::per_second(1_000).ahead(ahead);
        assert_eq!(lent.under(&Limit::per_minute(600)), Limit::per_minute(600).ahead(ahead));
        let day = Limit::fixed_window(9, Span::from_days(1)).on_calendar("UTC");
        for pinned in [Limit::concurrency(3), day, Limit::per(1, Span::from_millis(5))] {
            let under = lent.under(&pinned);
            assert_eq!(under.taken_ahead(), Span::ZERO, "{under:?}");
            assert!(Definition::new(under).is_ok(), "{pinned:?}");
        }
    }
}
