//! One rule's account at one meter: its state, what is promised ahead, and its low points.

use super::RuleUse;
use super::step::earlier;
use super::words::Words;
use crate::rule::{Opening, Rule, RuleState};
use crate::time::{Now, Span, Timestamp};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::VecDeque;

/// Most promises at one rule: a reservation beyond that is refused until one has started.
const PROMISES_MAX: usize = 1024;
/// Most low points kept; beyond, refunds are a little smaller than they could be.
const LOWS_MAX: usize = 32;

#[derive(Debug, Clone)]
pub(super) struct Ledger {
    pub(super) state: RuleState,
    /// Weights of reserved calls, but for those that a bucket owes: paid when they start, and whatever
    /// passes before leaves them enough. Ascending by time.
    promises: VecDeque<Promise>,
    lows: Lows,
}

#[derive(Debug, Clone, Copy)]
struct Promise {
    starts: Timestamp,
    weight: u64,
}

impl Ledger {
    /// What is promised and its low points.
    pub(super) fn to_words(&self, words: &mut Vec<u64>) {
        words.push(self.promises.len() as u64);
        let promises = self.promises.iter();
        words.extend(promises.flat_map(|promise| [promise.starts.as_nanos(), promise.weight]));
        let lows = &self.lows.points;
        words.push(lows.len() as u64);
        words.extend(lows.iter().flat_map(|low| [low.at.as_nanos(), low.to_full.as_nanos()]));
    }

    pub(super) fn from_words(state: RuleState, words: &mut Words<'_>) -> Option<Self> {
        let promises = words
            .list(|words| Some(Promise { starts: words.timestamp()?, weight: words.take()? }))?;
        let points =
            words.list(|words| Some(Low { at: words.timestamp()?, to_full: words.span()? }))?;
        let lows = Lows { points: points.into() };
        Some(Self { state, promises: promises.into(), lows })
    }

    pub(super) fn new(state: RuleState) -> Self {
        Self { state, promises: VecDeque::new(), lows: Lows::default() }
    }

    /// Goes on under another rule: what was promised stays promised.
    pub(super) fn with_state(&self, state: RuleState) -> Self {
        Self { promises: self.promises.clone(), ..Self::new(state) }
    }

    /// Dates what is promised, and its low points, earlier by so much.
    pub(super) fn set_back(&mut self, by: Span) {
        for promise in &mut self.promises {
            promise.starts = earlier(promise.starts, by);
        }
        for low in &mut self.lows.points {
            low.at = earlier(low.at, by);
        }
    }

    /// When `weight` passes so that all that is promised can still be kept.
    pub(super) fn opens(&self, rule: &Rule, weight: u64, now: Now) -> Opening {
        if self.promises.is_empty() {
            return rule.opens(&self.state, weight, now);
        }
        let (mut state, mut from) = (self.state.clone(), now);
        let mut passed = 0;
        while let Some(next) = self.promises.get(passed) {
            // Between two promises the first moment is the best: a later one leaves less time for
            // what is paid to come back. So one that is in the way from here is so until it starts.
            let opening = rule.opens(&state, weight, from).max(Opening::At(from.at));
            let in_the_way = match opening {
                Opening::At(at) if at < next.starts => {
                    let at = from.moved_to(at);
                    let broken = self.first_broken(rule, &state, (weight, at), passed);
                    let begins = broken.and_then(|_| rule.begins(&state, at));
                    if let Some(length) = begins {
                        let later = self.later_window(rule, &state, (weight, at, length), passed);
                        if let Some(later) = later {
                            return Opening::At(later);
                        }
                        // Windows from here on lie otherwise once the next promise begins its own.
                        Some(passed)
                    } else {
                        broken
                    }
                }
                _ => Some(passed),
            };
            let Some(in_the_way) = in_the_way else { return opening };
            for promise in self.promises.range(passed..=in_the_way) {
                rule.pay(&mut state, promise.weight, now.moved_to(promise.starts));
                from = now.moved_to(promise.starts.max(from.at));
            }
            passed = in_the_way + 1;
        }
        rule.opens(&state, weight, from).max(Opening::At(from.at))
    }

    /// The first instant after `at`, before the promise at `next`, at which a window may begin that
    /// breaks none: a window that is paid for later takes in more of the promises that follow, and
    /// those that it leaves may then fit into theirs.
    fn later_window(
        &self,
        rule: &Rule,
        state: &RuleState,
        (weight, at, length): (u64, Now, Span),
        next: usize,
    ) -> Option<Timestamp> {
        let before = self.promises.get(next)?.starts;
        let takes_in = |promise: &Promise| promise.starts.minus(length).plus(Span::from_nanos(1));
        let begins = self.promises.range(next..).map(takes_in);
        let mut begins = begins.skip_while(|begin| *begin <= at.at).take_while(|b| *b < before);
        begins.find(|begin| {
            self.first_broken(rule, state, (weight, at.moved_to(*begin)), next).is_none()
        })
    }

    /// The first promise, from the one at `next` on, that finds too much missing if `weight` is paid
    /// at `at`, and would not otherwise. Debt, or a smaller limit, may have broken one already: then
    /// no more may be missing than is anyway.
    fn first_broken(
        &self,
        rule: &Rule,
        state: &RuleState,
        (weight, at): (u64, Now),
        next: usize,
    ) -> Option<usize> {
        let (mut without, mut with) = (state.clone(), state.clone());
        rule.pay(&mut with, weight, at);
        let is_broken = |promise: &Promise| {
            let starts = at.moved_to(promise.starts);
            let [anyway, missing] = [&mut without, &mut with].map(|state| {
                rule.pay(state, promise.weight, starts);
                rule.missing(state, starts)
            });
            missing > anyway.max(rule.capacity())
        };
        self.promises.range(next..).position(is_broken).map(|place| next + place)
    }

    /// Records a payment for a start at `starts`; says whether it became a promise.
    pub(super) fn pay(&mut self, rule: &Rule, weight: u64, (now, starts): (Now, Now)) -> bool {
        self.fold(rule, now);
        let is_promise = starts.at > now.at && self.is_ahead(rule, weight, (now, starts.at));
        if is_promise {
            self.promise(weight, starts.at);
        } else {
            self.take(rule, weight, starts);
        }
        is_promise
    }

    /// Whether what is paid now for a later start has to be remembered apart. A bucket can owe it, if
    /// the start is no later than the bucket makes it and behind no promise: what is promised first
    /// is paid first. Windows know only what has started.
    fn is_ahead(&self, rule: &Rule, weight: u64, (now, starts): (Now, Timestamp)) -> bool {
        !matches!(rule, Rule::Bucket(_))
            || self.promises.front().is_some_and(|first| first.starts <= starts)
            || self.opens(rule, weight, now) < Opening::At(starts)
    }

    /// Charges what a call cost beyond its estimate, into debt if need be.
    pub(super) fn charge(&mut self, rule: &Rule, units: u64, now: Now) {
        self.fold(rule, now);
        self.take(rule, units, now);
    }

    /// Gives back what a call did not cost, at most what the meter would hold had it never paid it.
    pub(super) fn refund(&mut self, rule: &Rule, units: u64, (started, now): (Now, Now)) {
        match (rule, &mut self.state) {
            (Rule::Bucket(rule), RuleState::Bucket(bucket)) => {
                let most = self.lows.after(started.at).min(rule.refilling(bucket, now.at));
                rule.refund(bucket, units, most);
                // The bucket would have been as much fuller at every point since.
                self.lows.lower(started.at, rule.time_for(units).min(most));
            }
            (Rule::Window(rule), RuleState::Window(window)) => rule.refund(window, units, started),
            (Rule::Sliding(rule), RuleState::Sliding(sliding)) => {
                rule.refund(sliding, units, started.at);
            }
            _ => {}
        }
    }

    /// Takes back up to `units` of a promise that has not started. Says whether there was one.
    pub(super) fn withdraw(&mut self, units: u64, starts: Timestamp) -> bool {
        let place = self.promises.iter().position(|promise| promise.starts == starts);
        let Some(place) = place else { return false };
        let promise = &mut self.promises[place];
        promise.weight = promise.weight.saturating_sub(units);
        if promise.weight == 0 {
            self.promises.remove(place);
        }
        true
    }

    /// The most that passes now; negative by the debt and the promises that the next unit waits for.
    pub(super) fn remaining(&self, rule: &Rule, now: Now) -> i64 {
        if self.promises.is_empty() {
            return left(rule, &self.state, now);
        }
        let mut seen = self.clone();
        seen.fold(rule, now);
        let free = left(rule, &seen.state, now);
        let (mut passes, mut fails) = (0, u64::try_from(free).unwrap_or(0) + 1);
        while fails - passes > 1 {
            let weight = passes + (fails - passes) / 2;
            if seen.opens(rule, weight, now) <= Opening::At(now.at) {
                passes = weight;
            } else {
                fails = weight;
            }
        }
        if passes > 0 {
            return i64::try_from(passes).unwrap_or(i64::MAX);
        }
        let opens = seen.opens(rule, 1, now);
        let before = seen.promises.iter().take_while(|p| Opening::At(p.starts) <= opens);
        let promised = before.fold(0, |sum: u64, promise| sum.saturating_add(promise.weight));
        free.saturating_sub_unsigned(promised).min(0)
    }

    /// What counts now, with the promises whose time has come.
    pub(super) fn usage(&self, rule: &Rule, now: Now) -> RuleUse {
        let has_started = self.promises.front().is_some_and(|first| first.starts <= now.at);
        let state = match has_started {
            false => Cow::Borrowed(&self.state),
            true => {
                let mut seen = self.clone();
                seen.fold(rule, now);
                Cow::Owned(seen.state)
            }
        };
        RuleUse {
            limit: rule.limit(),
            per: rule.per(),
            used: rule.missing(&state, now),
            opened: rule.opened(&state, now),
        }
    }

    pub(super) fn fresh_at(&self, rule: &Rule, now: Now) -> Opening {
        if self.promises.is_empty() {
            return rule.fresh_at(&self.state, now);
        }
        let mut state = self.state.clone();
        for promise in &self.promises {
            rule.pay(&mut state, promise.weight, now.moved_to(promise.starts));
        }
        rule.fresh_at(&state, now)
    }

    pub(super) fn is_fresh(&self, rule: &Rule, now: Now) -> bool {
        self.fresh_at(rule, now) <= Opening::At(now.at)
    }

    /// Pays the promises whose time has come.
    pub(super) fn fold(&mut self, rule: &Rule, now: Now) {
        while let Some(&promise) = self.promises.front().filter(|p| p.starts <= now.at) {
            self.take(rule, promise.weight, now.moved_to(promise.starts));
            self.promises.pop_front();
        }
    }

    /// How many starts are promised.
    pub(super) fn promised(&self) -> usize {
        self.promises.len()
    }

    pub(super) fn is_full_of_promises(&self, now: Timestamp) -> bool {
        let started = self.promises.partition_point(|promise| promise.starts <= now);
        self.promises.len() - started >= PROMISES_MAX
    }

    fn promise(&mut self, weight: u64, starts: Timestamp) {
        let place = self.promises.partition_point(|promise| promise.starts < starts);
        if let Some(same) = self.promises.get_mut(place).filter(|p| p.starts == starts) {
            same.weight = same.weight.saturating_add(weight);
            return;
        }
        self.promises.insert(place, Promise { starts, weight });
    }

    fn take(&mut self, rule: &Rule, weight: u64, at: Now) {
        if let (Rule::Bucket(rule), RuleState::Bucket(bucket)) = (rule, &self.state) {
            self.lows.note(at.at, rule.refilling(bucket, at.at));
        }
        rule.pay(&mut self.state, weight, at);
    }
}

/// What is left of a rule's capacity; negative under debt.
fn left(rule: &Rule, state: &RuleState, now: Now) -> i64 {
    let capacity = i64::try_from(rule.capacity()).unwrap_or(i64::MAX);
    capacity.saturating_sub(i64::try_from(rule.missing(state, now)).unwrap_or(i64::MAX))
}

/// The points at which a bucket was fullest: had a call paid less, what it saved would have
/// overflowed there. A payment is noted before it is taken, at the instant of its start.
#[derive(Debug, Clone, Default)]
struct Lows {
    // Invariant: instants and spans ascend strictly, so that each span is the least from there on.
    // Most often there is one, or two.
    points: SmallVec<[Low; 2]>,
}

#[derive(Debug, Clone, Copy)]
struct Low {
    at: Timestamp,
    to_full: Span,
}

impl Lows {
    /// At `at` the bucket was `to_full` away from full.
    fn note(&mut self, mut at: Timestamp, to_full: Span) {
        while let Some(&last) = self.points.last() {
            // Debt may come before a start that is reserved: noted late, it counts for more calls.
            at = at.max(last.at);
            if last.to_full < to_full {
                break;
            }
            self.points.pop();
        }
        if self.points.last().is_none_or(|last| last.at < at) {
            self.points.push(Low { at, to_full });
        }
        if self.points.len() > LOWS_MAX {
            self.join_nearest();
        }
    }

    /// The least time to full after `started`. A call itself leaves at least its own cost missing,
    /// so points at the same instant do not count.
    fn after(&self, started: Timestamp) -> Span {
        let first = self.first_after(started);
        self.points.get(first).map_or(Span::from_nanos(u64::MAX), |low| low.to_full)
    }

    /// A call that started at `started` turns out to have cost less, by what flows in within `by`.
    fn lower(&mut self, started: Timestamp, by: Span) {
        let mut first = self.first_after(started);
        for low in &mut self.points[first..] {
            low.to_full = Span::from_nanos(low.to_full.as_nanos().saturating_sub(by.as_nanos()));
        }
        let Some(least) = self.points.get(first).map(|low| low.to_full) else { return };
        while first > 0 && self.points[first - 1].to_full >= least {
            first -= 1;
            self.points.remove(first);
        }
    }

    /// Forgets the point that makes the least difference: the next one takes its span.
    fn join_nearest(&mut self) {
        let span = |place: usize| self.points[place].to_full.as_nanos();
        let nearest = (1..self.points.len()).min_by_key(|place| span(*place) - span(*place - 1));
        if let Some(place) = nearest {
            self.points[place].to_full = self.points[place - 1].to_full;
            self.points.remove(place - 1);
        }
    }

    fn first_after(&self, started: Timestamp) -> usize {
        self.points.partition_point(|low| low.at <= started)
    }
}

#[cfg(test)]
mod tests {
    use crate::limit::{Definition, Limit};
    use crate::meter::Meter;
    use crate::rule::Opening;
    use crate::time::{Now, Span, Timestamp};

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(seconds)))
    }

    #[test]
    fn a_start_behind_a_promise_is_paid_after_it() {
        let limit = Definition::new(Limit::per(10, Span::from_secs(10))).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        for starts in [100, 110] {
            let _ = meter.pay(&limit, 10, (at(0), at(starts).at), None);
        }
        let blocker = meter.blocker(&limit, 10, at(105)).unwrap();
        assert_eq!(blocker.opening, Opening::At(at(120).at));
        assert_eq!(meter.standing(&limit, at(115)).remaining, 5);
    }

    #[test]
    fn a_promise_whose_time_has_come_counts() {
        let limit = Definition::new(Limit::fixed_window(3, Span::from_secs(10))).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        let _ = meter.pay(&limit, 2, (at(0), at(5).at), None);
        let counts = |now| {
            let rules = meter.rules(&limit, now);
            (rules[0].used, rules[0].opened)
        };
        assert_eq!(counts(at(4)), (0, None));
        assert_eq!(counts(at(6)), (2, Some(at(5).at)));
        assert_eq!(counts(at(15)), (0, None));
    }

    #[test]
    fn a_window_begins_later_where_an_earlier_one_would_break_a_promise() {
        let limit = Definition::new(Limit::fixed_window(3, Span::from_secs(10))).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        for (weight, starts) in [(1, 12), (1, 16), (3, 22)] {
            let _ = meter.pay(&limit, weight, (at(0), at(starts).at), None);
        }
        // From 5 to 15 it would leave 16 and 22 to one window; from just after 6, it takes in 16.
        let blocker = meter.blocker(&limit, 1, at(5)).unwrap();
        assert_eq!(blocker.opening, Opening::At(at(6).at.plus(Span::from_nanos(1))));
    }
}
