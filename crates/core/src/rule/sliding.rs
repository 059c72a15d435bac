//! Sliding window: in any interval of the window's length at most `limit`, exactly.
//!
//! What was admitted is remembered until it is older than the window. A limit over
//! [`ENTRIES_MAX`] groups admissions into cells of 1/256 of the window and dates each to the end of
//! its cell: memory stays bounded, and at most 1/257 of the rate is lost, never gained.

use super::Opening;
use crate::limit::{LimitError, checked_limit, checked_period};
use crate::meter::Words;
use crate::time::{Now, Span, Timestamp};
use std::collections::VecDeque;

/// Most entries a meter keeps: 4 KiB, for a sliver of 0.4 % of the rate.
pub const ENTRIES_MAX: u64 = 256;

/// At most `limit` units in any interval of `per`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlidingRule {
    limit: u64,
    per: Span,
    /// The window's real length: the period and the guard.
    length: Span,
    /// Admissions are dated to the next multiple of this.
    grain: u64,
}

/// State of a sliding window: what was admitted, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sliding {
    // Invariant: dates ascend, weights are above zero, and `total` is their sum.
    entries: VecDeque<Entry>,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    at: Timestamp,
    weight: u64,
}

impl Sliding {
    pub(crate) fn to_words(&self, words: &mut Vec<u64>) {
        words.push(self.entries.len() as u64);
        words.extend(self.entries.iter().flat_map(|entry| [entry.at.as_nanos(), entry.weight]));
    }

    /// Dates what was admitted earlier by so much.
    pub(super) fn set_back(&mut self, by: Span) {
        for entry in &mut self.entries {
            entry.at = entry.at.minus(by);
        }
    }

    pub(crate) fn from_words(words: &mut Words<'_>) -> Option<Self> {
        let entries =
            words.list(|words| Some(Entry { at: words.timestamp()?, weight: words.take()? }))?;
        let total = entries.iter().try_fold(0_u64, |sum, entry| sum.checked_add(entry.weight))?;
        Some(Self { entries: entries.into(), total })
    }
}

impl SlidingRule {
    pub(super) fn new(limit: u64, per: Span, guard: Span) -> Result<Self, LimitError> {
        checked_limit(limit)?;
        checked_period(per, guard)?;
        let length = per.plus(guard);
        let grain = if limit <= ENTRIES_MAX { 1 } else { length.as_nanos().div_ceil(ENTRIES_MAX) };
        Ok(Self { limit, per, length, grain })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn per(&self) -> Span {
        self.per
    }

    /// How long what was admitted counts: the period and the guard.
    pub fn length(&self) -> Span {
        self.length
    }

    /// What is admitted is dated to the next multiple of so many nanoseconds.
    pub fn grain(&self) -> u64 {
        self.grain
    }

    /// The first instant at which `weight` passes.
    pub fn opens(&self, state: &Sliding, weight: u64, now: Now) -> Opening {
        // What no window can hold at once passes a window at a time.
        let windows = weight.saturating_sub(1) / self.limit;
        let last = weight - windows.saturating_mul(self.limit).min(weight);
        let far = Span::from_nanos(self.length.as_nanos().saturating_mul(windows));
        Opening::At(self.opening(state, last, now.at).plus(far))
    }

    fn opening(&self, state: &Sliding, weight: u64, now: Timestamp) -> Timestamp {
        let mut total = state.total;
        let mut opens = now;
        for entry in &state.entries {
            let leaves = entry.at.plus(self.length);
            if leaves > now && total.saturating_add(weight) <= self.limit {
                break;
            }
            total -= entry.weight;
            opens = opens.max(leaves);
        }
        opens
    }

    /// Takes `weight` at `at`, into debt if need be.
    pub fn pay(&self, state: &mut Sliding, weight: u64, at: Now) {
        self.forget(state, at.at);
        let date = self.date(at.at);
        // A debt beyond counting stays there: the total is the sum of the entries.
        let weight = weight.min(u64::MAX - state.total);
        state.total += weight;
        match state.entries.back_mut() {
            // Debt may come between: it is dated late rather than kept apart.
            Some(last) if last.at >= date => last.weight += weight,
            _ => state.entries.push_back(Entry { at: date, weight }),
        }
        self.merge(state);
    }

    /// Units missing from full.
    pub fn missing(&self, state: &Sliding, now: Now) -> u64 {
        let gone = state.entries.iter().take_while(|entry| entry.at.plus(self.length) <= now.at);
        state.total - gone.map(|entry| entry.weight).sum::<u64>()
    }

    /// When the last admission leaves the window.
    pub fn fresh_at(&self, state: &Sliding, _now: Now) -> Opening {
        let last = state.entries.back().map(|entry| entry.at.plus(self.length));
        Opening::At(last.unwrap_or_default())
    }

    /// Gives back `units` that were paid at `started`, if they are still remembered.
    pub fn refund(&self, state: &mut Sliding, units: u64, started: Timestamp) {
        let date = self.date(started);
        let place = state.entries.partition_point(|entry| entry.at < date);
        if let Some(entry) = state.entries.get_mut(place).filter(|entry| entry.at == date) {
            let back = units.min(entry.weight);
            entry.weight -= back;
            state.total -= back;
            if entry.weight == 0 {
                state.entries.remove(place);
            }
        }
    }

    fn date(&self, at: Timestamp) -> Timestamp {
        let cells = at.as_nanos().div_ceil(self.grain);
        Timestamp::from_nanos(cells.saturating_mul(self.grain))
    }

    fn forget(&self, state: &mut Sliding, now: Timestamp) {
        while let Some(entry) = state.entries.front().filter(|e| e.at.plus(self.length) <= now) {
            state.total -= entry.weight;
            state.entries.pop_front();
        }
    }

    /// Keeps to the bound when debts made more entries than admissions could: the two oldest leave
    /// together, at the later date.
    fn merge(&self, state: &mut Sliding) {
        while state.entries.len() as u64 > ENTRIES_MAX + 1 {
            let oldest = state.entries.pop_front().map_or(0, |entry| entry.weight);
            if let Some(next) = state.entries.front_mut() {
                next.weight += oldest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Now {
        Now::both(Timestamp::from_nanos(nanos))
    }

    fn opens(rule: &SlidingRule, state: &Sliding, weight: u64, now: u64) -> u64 {
        let Opening::At(opens) = rule.opens(state, weight, at(now)) else { panic!("computed") };
        opens.as_nanos()
    }

    #[test]
    fn twenty_per_window_is_never_twenty_one() {
        let rule = SlidingRule::new(20, Span::from_nanos(1_000), Span::ZERO).unwrap();
        let mut state = Sliding::default();
        for now in 0..20 {
            assert_eq!(opens(&rule, &state, 1, now), now);
            rule.pay(&mut state, 1, at(now));
        }
        assert_eq!(opens(&rule, &state, 1, 20), 1_000);
        assert_eq!(opens(&rule, &state, 3, 20), 1_002);
        assert_eq!(rule.missing(&state, at(1_001)), 18);
    }

    #[test]
    fn a_large_limit_keeps_a_bounded_memory_and_most_of_the_rate() {
        let length = 256_000;
        let rule = SlidingRule::new(100_000, Span::from_nanos(length), Span::ZERO).unwrap();
        let (mut state, mut now, mut admitted) = (Sliding::default(), 0, 0_u64);
        while now < 100 * length {
            let next = opens(&rule, &state, 100, now);
            if next <= now {
                rule.pay(&mut state, 100, at(now));
                admitted += 100;
                assert!(state.entries.len() <= 257);
            }
            now = next.max(now + 1);
        }
        assert!(admitted <= 100_000 * 101);
        assert!(admitted >= 100_000 * 99, "{admitted}");
    }

    #[test]
    fn nothing_is_forgotten_a_nanosecond_early() {
        let rule = SlidingRule::new(2, Span::from_nanos(10), Span::ZERO).unwrap();
        let mut state = Sliding::default();
        rule.pay(&mut state, 1, at(0));
        rule.pay(&mut state, 1, at(9));
        assert_eq!(opens(&rule, &state, 1, 9), 10);
    }

    #[test]
    fn a_debt_beyond_counting_neither_panics_nor_wraps() {
        let rule = SlidingRule::new(1, Span::from_nanos(10), Span::ZERO).unwrap();
        let mut state = Sliding::default();
        rule.pay(&mut state, u64::MAX, at(0));
        rule.pay(&mut state, u64::MAX, at(5));
        rule.pay(&mut state, 1, at(10));
        rule.pay(&mut state, 1, at(100));
        assert_eq!(rule.missing(&state, at(100)), 1);
    }

    #[test]
    fn the_guard_makes_the_window_longer() {
        let rule = SlidingRule::new(1, Span::from_nanos(1_000), Span::from_nanos(50)).unwrap();
        let mut state = Sliding::default();
        rule.pay(&mut state, 1, at(0));
        assert_eq!(opens(&rule, &state, 1, 1), 1_050);
    }
}
