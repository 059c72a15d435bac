//! Fixed window: a counter that starts anew with each window.
//!
//! The window opens at the first call, or on a calendar. Its seam may see twice the limit: the end
//! of one window and the start of the next. Debt spills into the windows that follow.

use super::Opening;
use super::calendar::{Bounds, Calendar};
use crate::limit::{Align, LimitError, checked_limit, checked_period};
use crate::time::{Now, Span, Timestamp};

/// `limit` units in each window of `per`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowRule {
    limit: u64,
    per: Span,
    /// The window's real length: the period and the guard.
    length: Span,
    calendar: Option<Calendar>,
}

/// State of a fixed window: the newest window that was paid in. On a calendar its end is an instant
/// of the wall clock, else of limit time. The default ended at the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    /// The first instant after the window.
    pub ends: Timestamp,
    /// Units paid in it, over the limit under debt.
    pub spent: u64,
}

impl WindowRule {
    pub(super) fn new(
        limit: u64,
        per: Span,
        align: &Align,
        guard: Span,
    ) -> Result<Self, LimitError> {
        checked_limit(limit)?;
        checked_period(per, guard)?;
        let calendar = match align {
            Align::FirstCall => None,
            Align::Calendar { .. } if !guard.is_zero() => return Err(LimitError::GuardOnCalendar),
            Align::Calendar { zone } => Some(Calendar::new(zone, per)?),
        };
        Ok(Self { limit, per, length: per.plus(guard), calendar })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn per(&self) -> Span {
        self.per
    }

    /// How long a window is: the period and the guard.
    pub fn length(&self) -> Span {
        self.length
    }

    /// Whether the windows follow the wall clock.
    pub fn is_on_calendar(&self) -> bool {
        self.calendar.is_some()
    }

    /// Pays if the weight passes now, and says when it passes otherwise; not on a calendar.
    #[inline]
    pub fn admit(&self, state: &mut Window, weight: u64, now: Timestamp) -> Result<(), Timestamp> {
        let now = Now::both(now);
        match self.opens(state, weight, now) {
            Opening::At(opens) if opens > now.at => Err(opens),
            _ => {
                self.pay(state, weight, now);
                Ok(())
            }
        }
    }

    /// The first instant at which `weight` passes.
    pub fn opens(&self, state: &Window, weight: u64, now: Now) -> Opening {
        let window = self.current(*state, now);
        let over = window.spent.saturating_add(weight).saturating_sub(self.limit);
        // So many windows must end before the rest fits.
        let windows = over.div_ceil(self.limit);
        let opens = match windows {
            0 => self.start(window),
            1 => window.ends,
            more => self.end_after(window.ends, more - 1),
        };
        Opening::At(self.limit_time(opens, now))
    }

    /// Takes `weight` in the window of `at`.
    pub fn pay(&self, state: &mut Window, weight: u64, at: Now) {
        let window = self.current(*state, at);
        *state = Window { spent: window.spent.saturating_add(weight), ..window };
    }

    /// Units missing from full: what was spent in this window, also if the wall clock was set back
    /// since and it has yet to begin.
    pub fn missing(&self, state: &Window, now: Now) -> u64 {
        self.current(*state, now).spent
    }

    /// When the window that counts opened: the one that was paid in, or one that follows with its debt.
    /// On a calendar windows open by themselves, and none is told.
    pub fn opened(&self, state: &Window, now: Now) -> Option<Timestamp> {
        let window = self.current(*state, now);
        let counts = now.at < state.ends || window.spent > 0;
        (self.calendar.is_none() && counts).then(|| self.start(window))
    }

    /// The length of the window that a payment at `at` would begin. On a calendar none does.
    pub fn begins(&self, state: &Window, at: Now) -> Option<Span> {
        (self.calendar.is_none() && at.at >= state.ends).then_some(self.length)
    }

    /// When the window and the debt it leaves have passed.
    pub fn fresh_at(&self, state: &Window, now: Now) -> Opening {
        let more = state.spent.div_ceil(self.limit).saturating_sub(1);
        Opening::At(self.limit_time(self.end_after(state.ends, more), now))
    }

    /// Gives back `units` that were paid at `started`, if that window is still the newest.
    pub fn refund(&self, state: &mut Window, units: u64, started: Now) {
        let at = self.clock(started);
        if self.start(*state) <= at && at < state.ends {
            state.spent = state.spent.saturating_sub(units);
        }
    }

    /// The window in force at `now`: the stored one, or the one that follows with the debt.
    fn current(&self, state: Window, now: Now) -> Window {
        let at = self.clock(now);
        if at < state.ends {
            return state;
        }
        let passed = match &self.calendar {
            // Most often nothing is left for later windows, whatever their number is.
            _ if state.spent <= self.limit => 1,
            Some(calendar) => calendar.windows_up_to(state.ends, at),
            None => at.since(state.ends).as_nanos() / self.length.as_nanos() + 1,
        };
        let debt = state.spent.saturating_sub(self.limit.saturating_mul(passed));
        if debt == 0 {
            return Window { ends: self.opened_at(at).end, spent: 0 };
        }
        Window { ends: self.end_after(state.ends, passed), spent: debt }
    }

    fn opened_at(&self, at: Timestamp) -> Bounds {
        match &self.calendar {
            Some(calendar) => calendar.bounds(at),
            None => Bounds { start: at, end: at.plus(self.length) },
        }
    }

    fn start(&self, window: Window) -> Timestamp {
        match &self.calendar {
            Some(calendar) => calendar.bounds(window.ends.minus(Span::from_nanos(1))).start,
            None => window.ends.minus(self.length),
        }
    }

    /// The end of the window that is `count` windows after the one that ends at `end`.
    fn end_after(&self, end: Timestamp, count: u64) -> Timestamp {
        match &self.calendar {
            Some(calendar) => calendar.end_after(end, count),
            None => end.plus(Span::from_nanos(self.length.as_nanos().saturating_mul(count))),
        }
    }

    fn clock(&self, now: Now) -> Timestamp {
        if self.calendar.is_some() { now.wall } else { now.at }
    }

    fn limit_time(&self, instant: Timestamp, now: Now) -> Timestamp {
        match self.calendar {
            Some(_) if instant <= now.wall => now.at,
            Some(_) => now.at.plus(instant.since(now.wall)),
            None => instant,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(seconds)))
    }

    fn rule(align: Align) -> WindowRule {
        WindowRule::new(5, Span::from_minutes(1), &align, Span::ZERO).unwrap()
    }

    fn opens(rule: &WindowRule, state: &Window, weight: u64, now: Now) -> u64 {
        let Opening::At(opens) = rule.opens(state, weight, now) else { panic!("computed") };
        opens.as_nanos() / 1_000_000_000
    }

    #[test]
    fn opens_at_the_first_call_and_ends_a_period_later() {
        let (rule, mut state) = (rule(Align::FirstCall), Window::default());
        rule.pay(&mut state, 5, at(1_000));
        assert_eq!(opens(&rule, &state, 1, at(1_030)), 1_060);
        assert_eq!(rule.missing(&state, at(1_060)), 0);
    }

    #[test]
    fn debt_spills_into_the_windows_that_follow() {
        let (rule, mut state) = (rule(Align::FirstCall), Window::default());
        rule.pay(&mut state, 12, at(1_000));
        assert_eq!(rule.missing(&state, at(1_060)), 7);
        assert_eq!(opens(&rule, &state, 1, at(1_000)), 1_120);
        assert_eq!(opens(&rule, &state, 4, at(1_000)), 1_180);
        assert_eq!(rule.missing(&state, at(1_180)), 0);
    }

    #[test]
    fn a_window_counts_from_its_first_call_until_it_is_over() {
        let (rule, mut state) = (rule(Align::FirstCall), Window::default());
        assert_eq!(rule.opened(&state, at(1_000)), None);
        rule.pay(&mut state, 5, at(1_000));
        rule.pay(&mut state, 7, at(1_030));
        assert_eq!(rule.opened(&state, at(1_059)), Some(at(1_000).at));
        assert_eq!(rule.opened(&state, at(1_060)), Some(at(1_060).at), "with the debt");
        assert_eq!(rule.opened(&state, at(1_180)), None);
        rule.refund(&mut state, 12, at(1_000));
        assert_eq!(rule.opened(&state, at(1_059)), Some(at(1_000).at), "nothing is spent in it");
    }

    #[test]
    fn is_as_new_once_its_debt_has_passed() {
        let (rule, mut state) = (rule(Align::FirstCall), Window::default());
        rule.pay(&mut state, 12, at(1_000));
        assert_eq!(rule.fresh_at(&state, at(1_000)), Opening::At(at(1_180).at));
        assert_eq!(rule.fresh_at(&state, at(9_000)), Opening::At(at(1_180).at));
    }

    #[test]
    fn debt_lasts_through_all_of_a_day_with_25_hours() {
        let align = Align::Calendar { zone: "Europe/Berlin".into() };
        let rule = WindowRule::new(5, Span::from_days(1), &align, Span::ZERO).unwrap();
        let (mut state, midnight) = (Window::default(), 1_792_879_200);
        rule.pay(&mut state, 8, at(midnight - 60));
        assert_eq!(rule.missing(&state, at(midnight + 24 * 3_600 + 1_800)), 3);
        assert_eq!(rule.missing(&state, at(midnight + 25 * 3_600)), 0);
    }

    #[test]
    fn a_calendar_window_follows_the_wall_clock_that_is_set() {
        let rule = rule(Align::Calendar { zone: "UTC".into() });
        let mut state = Window::default();
        rule.pay(&mut state, 5, at(1_000));
        // Set forward past the minute: the next window is there at once.
        let set = Now { at: at(1_001).at, wall: at(1_030).wall };
        assert_eq!(rule.missing(&state, set), 0);
        // Set back before the minute: the newer window stays, nothing is minted.
        let back = Now { at: at(1_001).at, wall: at(900).wall };
        assert!(opens(&rule, &state, 1, back) > 1_001);
    }
}
