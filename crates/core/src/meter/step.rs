//! A clock that was set back: what a meter knows goes back with it.

use super::{CLOSED_MAX, Meter, pairs_mut};
use crate::limit::Definition;
use crate::time::{Span, Timestamp};

impl Meter {
    /// Dates all that it knows earlier by so much: what was spent stays spent, and everything stays as
    /// far from its latest payment as it was. What a calendar's window counts stays, for that is dated
    /// by the wall clock, which says what was meant by it.
    ///
    /// Payments from before are given nothing back: they name instants that are no more.
    pub fn set_back(&mut self, definition: &Definition, by: Span) {
        for (rule, ledger) in pairs_mut(&mut self.ledgers, definition) {
            rule.set_back(&mut ledger.state, by);
            ledger.set_back(by);
        }
        (self.born, self.paid) = (self.born.minus(by), self.paid.minus(by));
        if let Some(closed) = &mut self.closed {
            // It was closed after it was paid last, for a day at most.
            closed.until = earlier(closed.until, by).min(self.paid.plus(CLOSED_MAX));
        }
        self.changed = self.sequence;
    }
}

/// The instant so much earlier; the end of time stays where it is.
pub(crate) fn earlier(at: Timestamp, by: Span) -> Timestamp {
    if at == Timestamp::MAX { at } else { at.minus(by) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::meter::Holding;
    use crate::rule::slots::HoldId;
    use crate::time::Now;

    const HOUR: Span = Span::from_hours(1);

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(1_000_000 + seconds)))
    }

    fn hour_before(now: Now) -> Now {
        Now::both(now.at.minus(HOUR))
    }

    #[test]
    fn a_meter_that_is_set_back_stands_as_it_stood() {
        let ten = Span::from_secs(10);
        let limits = [
            Limit::per(10, ten),
            Limit::fixed_window(10, ten),
            Limit::sliding_window(10, ten),
            Limit::sliding_window(1_000, ten).and(Limit::concurrency(20)),
        ];
        for limit in limits.map(|limit| Definition::new(limit).unwrap()) {
            let mut meter = Meter::new(&limit, at(0).at);
            for seconds in [0, 3, 5] {
                let holding = Holding { id: HoldId(seconds + 1), expires: at(60 + seconds).at };
                let _ = meter.pay(&limit, 2, (at(seconds), at(seconds).at), Some(holding));
            }
            let _ = meter.pay(&limit, 1, (at(5), at(8).at), None);
            meter.close(at(7).at, "429", at(5).at);
            let mut back = meter.clone();
            back.set_back(&limit, HOUR);
            for now in [5, 6, 8, 12, 14, 16, 62, 70].map(at) {
                let then = hour_before(now);
                assert_eq!(back.standing(&limit, then), meter.standing(&limit, now), "{limit:?}");
                assert_eq!(back.in_flight(&limit, then), meter.in_flight(&limit, now));
                assert_eq!(back.closed(then.at).is_some(), meter.closed(now.at).is_some());
            }
        }
    }

    #[test]
    fn a_window_on_a_calendar_stays_where_it_is() {
        let day = Limit::fixed_window(5, Span::from_days(1)).on_calendar("UTC");
        let limit = Definition::new(day).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        let _ = meter.pay(&limit, 5, (at(0), at(0).at), None);
        let blocker = meter.blocker(&limit, 1, hour_before(at(0)));
        meter.set_back(&limit, HOUR);
        assert_eq!(meter.blocker(&limit, 1, hour_before(at(0))), blocker);
        assert_eq!(meter.standing(&limit, hour_before(at(0))).remaining, 0);
    }

    #[test]
    fn what_was_paid_before_is_not_given_back() {
        let limit = Definition::new(Limit::per(10, Span::from_secs(10))).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        let before = meter.pay(&limit, 10, (at(0), at(0).at), None);
        meter.set_back(&limit, HOUR);
        let now = hour_before(at(5));
        let after = meter.pay(&limit, 5, (now, now.at), None);
        meter.settle(&limit, &before, 0, now);
        assert_eq!(meter.standing(&limit, now).remaining, 0);
        meter.settle(&limit, &after, 0, now);
        assert_eq!(meter.standing(&limit, now).remaining, 5);
    }

    #[test]
    fn a_closure_lasts_a_day_at_most() {
        let limit = Definition::new(Limit::per_second(1)).unwrap();
        let mut meter = Meter::new(&limit, at(0).at);
        let _ = meter.pay(&limit, 1, (at(0), at(0).at), None);
        let later = Now::both(at(0).at.plus(CLOSED_MAX));
        meter.close(later.at.plus(CLOSED_MAX), "429", later.at);
        meter.set_back(&limit, HOUR);
        let (until, _) = meter.closed(hour_before(at(0)).at).unwrap();
        assert_eq!(until, hour_before(at(0)).at.plus(CLOSED_MAX));
    }
}
