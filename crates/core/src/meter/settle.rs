//! Settling: the true cost of what was paid as an estimate, and handing back what never started.

use super::{Meter, Payment, pairs_mut};
use crate::limit::Definition;
use crate::rule::RuleState;
use crate::rule::slots::HoldId;
use crate::time::{Now, Timestamp};
use std::cmp::Ordering;

impl Meter {
    /// Settles a payment at its true cost and frees its slots. The caller sees to it that a payment
    /// settles once.
    ///
    /// Less than was paid: rate rules get back at most what they would hold had it paid the true
    /// cost from the start. More: charged now, into debt, which later calls pay first.
    pub fn settle(&mut self, definition: &Definition, paid: &Payment, actual: u64, now: Now) {
        if let Some(hold) = paid.hold {
            self.release(hold);
        }
        match actual.cmp(&paid.weight) {
            Ordering::Greater => self.charge(definition, actual - paid.weight, now),
            Ordering::Less if self.remembers(paid) => {
                self.give_back(definition, paid, paid.weight - actual, now);
            }
            _ => {}
        }
    }

    fn give_back(&mut self, definition: &Definition, paid: &Payment, units: u64, now: Now) {
        for (index, (rule, ledger)) in pairs_mut(&mut self.ledgers, definition).enumerate() {
            ledger.fold(rule, now);
            let was_promised = paid.promised & (1 << index) != 0;
            if !(was_promised && ledger.withdraw(units, paid.starts.at)) {
                ledger.refund(rule, units, (paid.starts, now));
            }
        }
    }

    /// Whether the payment is part of what is missing. A meter that was as good as new since, or
    /// went over to other rules, has nothing of it to give back.
    fn remembers(&self, paid: &Payment) -> bool {
        paid.paid_at >= self.born && paid.sequence > self.changed
    }

    /// Lets go of slots; says whether they were still held.
    pub fn release(&mut self, hold: HoldId) -> bool {
        self.slots().is_some_and(|slots| slots.release(hold))
    }

    /// Holds slots until `expires`; says whether they were still held.
    pub fn renew(&mut self, hold: HoldId, expires: Timestamp, now: Timestamp) -> bool {
        self.slots().is_some_and(|slots| slots.renew(hold, expires, now))
    }

    /// As [`Meter::renew`], but never for shorter than they are held: a copy of a receipt may have
    /// been told a later end.
    pub fn extend(&mut self, hold: HoldId, expires: Timestamp, now: Timestamp) -> bool {
        self.slots().is_some_and(|slots| slots.extend(hold, expires, now))
    }

    /// Whether slots are held under this name.
    pub fn holds(&self, hold: HoldId, now: Timestamp) -> bool {
        self.held_until(hold).is_some_and(|until| until > now)
    }

    /// Until when slots are held under this name.
    pub fn held_until(&self, hold: HoldId) -> Option<Timestamp> {
        self.ledgers.iter().find_map(|ledger| match &ledger.state {
            RuleState::Slots(slots) => slots.held_until(hold),
            _ => None,
        })
    }

    /// Whether a reservation can still be promised here.
    pub fn takes_promises(&self, now: Timestamp) -> bool {
        !self.ledgers.iter().any(|ledger| ledger.is_full_of_promises(now))
    }

    fn charge(&mut self, definition: &Definition, units: u64, now: Now) {
        for (rule, ledger) in pairs_mut(&mut self.ledgers, definition) {
            ledger.charge(rule, units, now);
        }
    }

    fn slots(&mut self) -> Option<&mut crate::rule::slots::Slots> {
        self.ledgers.iter_mut().find_map(|ledger| match &mut ledger.state {
            RuleState::Slots(slots) => Some(slots),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;

    /// A bucket of ten that takes ten seconds to fill.
    fn ten() -> Definition {
        Definition::new(Limit::per(10, crate::time::Span::from_secs(10))).unwrap()
    }

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::from_nanos(seconds * 1_000_000_000))
    }

    fn remaining(meter: &Meter, seconds: u64) -> i64 {
        meter.standing(&ten(), at(seconds)).remaining
    }

    #[test]
    fn what_would_have_overflowed_stays_lost() {
        let (mut meter, limit) = (Meter::new(&ten(), at(100).at), ten());
        let estimate = meter.pay(&limit, 10, (at(100), at(100).at), None);
        let _ = meter.pay(&limit, 1, (at(107), at(107).at), None);
        meter.settle(&limit, &estimate, 0, at(107));
        assert_eq!(remaining(&meter, 107), 9);
    }

    #[test]
    fn what_would_have_overflowed_is_not_given_back_to_another_call() {
        let (mut meter, limit) = (Meter::new(&ten(), at(100).at), ten());
        let estimates = [0, 1].map(|_| meter.pay(&limit, 5, (at(100), at(100).at), None));
        let _ = meter.pay(&limit, 1, (at(107), at(107).at), None);
        for estimate in estimates {
            meter.settle(&limit, &estimate, 0, at(107));
        }
        assert_eq!(remaining(&meter, 107), 9);
    }

    #[test]
    fn what_is_given_back_does_not_overflow_before_a_reserved_start() {
        let (mut meter, limit) = (Meter::new(&ten(), at(100).at), ten());
        let estimate = meter.pay(&limit, 10, (at(100), at(100).at), None);
        let _ = meter.pay(&limit, 10, (at(100), at(110).at), None);
        meter.settle(&limit, &estimate, 0, at(105));
        // Seven now and ten at 110 would be more than ten and what flows in between.
        assert!(meter.blocker(&limit, 7, at(107)).is_some());
    }

    #[test]
    fn a_promise_that_has_started_is_given_back_like_any_payment() {
        let (mut meter, limit) = (Meter::new(&ten(), at(100).at), ten());
        let promise = meter.pay(&limit, 8, (at(100), at(130).at), None);
        assert_eq!(promise.promised, 1);
        meter.settle(&limit, &promise, 2, at(131));
        assert_eq!(remaining(&meter, 131), 9);
    }

    #[test]
    fn forty_calls_under_way_each_get_theirs_back() {
        let limit = Definition::new(Limit::per_minute(600)).unwrap();
        let mut meter = Meter::new(&limit, at(100).at);
        let at = |nanos: u64| Now::both(Timestamp::from_nanos(100_000_000_000 + nanos));
        let pay = |nanos: u64| meter.pay(&limit, 10, (at(nanos), at(nanos).at), None);
        let estimates: Vec<_> = (0..40).map(pay).collect();
        for estimate in &estimates {
            meter.settle(&limit, estimate, 5, at(50));
        }
        assert!(meter.standing(&limit, at(50)).remaining >= 600 - 40 * 5 - 5);
    }

    #[test]
    fn a_receipt_from_before_the_meter_was_as_new_gives_nothing_back() {
        let limit = ten();
        let estimate = Meter::new(&limit, at(100).at).pay(&limit, 10, (at(100), at(100).at), None);
        let mut plain = crate::meter::plain::Plain::default();
        assert!(limit.plain().unwrap().admit(&mut plain, 9, at(200).at).is_ok());
        let mut meter = Meter::from_plain(&limit, plain, at(200).at);
        let _ = meter.pay(&limit, 1, (at(200), at(200).at), None);
        meter.settle(&limit, &estimate, 0, at(200));
        assert_eq!(remaining(&meter, 200), 0);
    }

    #[test]
    fn a_receipt_from_after_a_change_settles_in_the_same_instant() {
        let (mut meter, limit) = (Meter::new(&ten(), at(100).at), ten());
        let before = meter.pay(&limit, 4, (at(100), at(100).at), None);
        meter.carry(&limit, &limit, at(100));
        let after = meter.pay(&limit, 4, (at(100), at(100).at), None);
        meter.settle(&limit, &before, 0, at(100));
        assert_eq!(remaining(&meter, 100), 2);
        meter.settle(&limit, &after, 0, at(100));
        assert_eq!(remaining(&meter, 100), 6);
    }
}
