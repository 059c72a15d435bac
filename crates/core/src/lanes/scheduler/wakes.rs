//! When queues look at meters again. Those that open shortly one after the other are looked at
//! together, so that one claim brings what many would.

use super::calls::MeterSlot;
use super::meters::QueueSlot;
use crate::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// A meter that a queue looks at again, and the instant from which on it may be open.
pub(super) type Wake = (Timestamp, MeterSlot, QueueSlot);

/// How many are looked at to find one of a queue.
const LOOKED_AT: usize = 64;

/// All of them, the first first.
#[derive(Debug, Clone, Default)]
pub(super) struct Wakes {
    /// How long one may be put off for those that follow it.
    within: Span,
    /// Those that can be.
    patient: BTreeSet<Wake>,
    /// Those whose rate would be lost.
    prompt: BTreeSet<Wake>,
}

impl Wakes {
    /// From now on, wakes that come within so long of the first are one.
    pub(super) fn gather(&mut self, within: Span) {
        self.within = within;
    }

    /// Adds one that may be late by `slack`.
    pub(super) fn insert(&mut self, wake: Wake, slack: Span) {
        let among = if slack < self.within { &mut self.prompt } else { &mut self.patient };
        among.insert(wake);
    }

    pub(super) fn remove(&mut self, wake: Wake) {
        if !self.patient.remove(&wake) {
            self.prompt.remove(&wake);
        }
    }

    /// When some are due next: at once for one that is alone, or else with the last that comes within
    /// the span of the first.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let prompt = self.prompt.first().map(|wake| wake.0);
        prompt.into_iter().chain(self.gathered()).min()
    }

    /// When a queue has looked at a meter again that may be open by then, at the latest; of many, the first are
    /// looked at.
    pub(super) fn next_of(&self, queue: QueueSlot, by: Timestamp) -> Option<Timestamp> {
        let first = |wakes: &BTreeSet<Wake>| {
            let mut soon = wakes.range(..=(by, MeterSlot::MAX, QueueSlot::MAX)).take(LOOKED_AT);
            soon.find(|wake| wake.2 == queue).map(|wake| wake.0)
        };
        let patient = first(&self.patient).map(|at| at.plus(self.within));
        first(&self.prompt).into_iter().chain(patient).min()
    }

    /// All that may be open now, the first first, if they are due.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Wake> {
        if self.next().is_none_or(|next| next > now) {
            return Vec::new();
        }
        // Who is woken for one takes along what else is open.
        let mut due = until(&mut self.patient, now);
        due.extend(until(&mut self.prompt, now));
        due.sort_unstable();
        due
    }

    fn gathered(&self) -> Option<Timestamp> {
        let latest = self.patient.first()?.0.plus(self.within);
        let last = self.patient.range(..=(latest, MeterSlot::MAX, QueueSlot::MAX)).next_back();
        last.map(|wake| wake.0)
    }
}

fn until(wakes: &mut BTreeSet<Wake>, now: Timestamp) -> Vec<Wake> {
    let mut due = Vec::new();
    while wakes.first().is_some_and(|wake| wake.0 <= now) {
        due.extend(wakes.pop_first());
    }
    due
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAIN: Span = Span::from_millis(1);

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_nanos(1_000 * micros)
    }

    /// Wakes at these microseconds, gathered within a millisecond.
    fn gathered(micros: &[u64]) -> Wakes {
        let mut wakes = Wakes::default();
        wakes.gather(GRAIN);
        for (meter, micros) in (0..).zip(micros) {
            wakes.insert((at(*micros), meter, 0), Span::from_secs(1));
        }
        wakes
    }

    fn meters(wakes: &[Wake]) -> Vec<MeterSlot> {
        wakes.iter().map(|wake| wake.1).collect()
    }

    #[test]
    fn one_that_is_alone_is_due_at_its_instant() {
        let mut wakes = gathered(&[5_000, 6_001]);
        assert_eq!(wakes.next(), Some(at(5_000)));
        assert_eq!(wakes.take_due(at(4_999)), []);
        assert_eq!(meters(&wakes.take_due(at(5_000))), [0]);
        assert_eq!(wakes.next(), Some(at(6_001)));
    }

    #[test]
    fn those_within_the_span_of_the_first_are_due_with_the_last_of_them() {
        let mut wakes = gathered(&[5_000, 5_400, 6_000, 6_200]);
        assert_eq!(wakes.next(), Some(at(6_000)));
        assert_eq!(wakes.take_due(at(5_999)), []);
        assert_eq!(meters(&wakes.take_due(at(6_000))), [0, 1, 2]);
        assert_eq!(meters(&wakes.take_due(at(6_200))), [3]);
    }

    #[test]
    fn nobody_is_put_off_by_more_than_the_span_however_many_follow() {
        let all: Vec<u64> = (0..99).map(|nth| 5_000 + 100 * nth).collect();
        let mut wakes = gathered(&all);
        while let Some(next) = wakes.next() {
            let due = wakes.take_due(next);
            assert!(due.iter().all(|wake| wake.0 <= next && next.since(wake.0) <= GRAIN));
            assert_eq!(due.len(), 11, "a tenth of a millisecond apart");
        }
    }

    #[test]
    fn one_whose_rate_would_be_lost_waits_for_nobody_and_takes_along_who_is_open() {
        let mut wakes = gathered(&[5_000, 5_900]);
        wakes.insert((at(5_300), 7, 0), Span::from_nanos(999_999));
        assert_eq!(wakes.next(), Some(at(5_300)));
        assert_eq!(meters(&wakes.take_due(at(5_300))), [0, 7]);
        assert_eq!(wakes.next(), Some(at(5_900)));
    }

    #[test]
    fn what_was_removed_wakes_nobody() {
        let mut wakes = gathered(&[5_000, 5_900]);
        wakes.insert((at(5_300), 7, 0), Span::ZERO);
        wakes.remove((at(5_300), 7, 0));
        wakes.remove((at(5_900), 1, 0));
        assert_eq!(wakes.next(), Some(at(5_000)));
        assert_eq!(meters(&wakes.take_due(at(9_000))), [0]);
        assert_eq!(wakes.next(), None);
    }

    #[test]
    fn a_queue_finds_its_own_among_the_first() {
        let mut wakes = Wakes::default();
        wakes.insert((at(5), 0, 1), Span::ZERO);
        wakes.insert((at(7), 0, 2), GRAIN);
        assert_eq!([wakes.next_of(1, at(5)), wakes.next_of(1, at(4))], [Some(at(5)), None]);
        let others = [wakes.next_of(2, at(9)), wakes.next_of(2, at(6)), wakes.next_of(3, at(9))];
        assert_eq!(others, [Some(at(7)), None, None]);
        // One that may be late is so by as much as is gathered.
        wakes.gather(GRAIN);
        assert_eq!(wakes.next_of(2, at(9)), Some(at(7).plus(GRAIN)));
    }
}
