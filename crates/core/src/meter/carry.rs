//! A change of the definition: at once, keeping what was spent.

use super::ledger::Ledger;
use super::{Meter, pairs_mut};
use crate::limit::Definition;
use crate::rule::Rule;
use crate::time::Now;

impl Meter {
    /// Goes over from the definition it was used with to another. What is missing from full is
    /// missing afterwards, in units: the first rate rule takes over from the first, the second from
    /// the second, and slots stay held. A rule without a predecessor starts as new.
    pub fn carry(&mut self, old: &Definition, new: &Definition, now: Now) {
        for (rule, ledger) in pairs_mut(&mut self.ledgers, old) {
            ledger.fold(rule, now);
        }
        let pairs = || old.rules().iter().zip(&self.ledgers);
        let mut rates = pairs().filter(|(rule, _)| rule.is_rate());
        let mut slots = pairs().filter(|(rule, _)| !rule.is_rate());
        let ledgers = new.rules().iter().map(|rule| {
            let before = if rule.is_rate() { rates.next() } else { slots.next() };
            before.map_or_else(
                || Ledger::new(rule.fresh()),
                |(was, ledger)| taken_over(rule, was, ledger, now),
            )
        });
        self.ledgers = ledgers.collect();
        // Receipts from before the change were paid under other rules: they are owed nothing back.
        self.changed = self.sequence;
    }

    /// Forgets everything that was spent: an operator's act. Slots stay held and closures stay.
    pub fn reset(&mut self, definition: &Definition, _now: Now) {
        for (rule, ledger) in pairs_mut(&mut self.ledgers, definition) {
            if rule.is_rate() {
                *ledger = Ledger::new(rule.fresh());
            }
        }
        self.changed = self.sequence;
    }
}

fn taken_over(rule: &Rule, was: &Rule, ledger: &Ledger, now: Now) -> Ledger {
    if rule == was {
        return ledger.clone();
    }
    ledger.with_state(match (rule, was) {
        (Rule::Slots(_), Rule::Slots(_)) => ledger.state.clone(),
        // The entries and their dates are facts, whatever the window's length is now.
        (Rule::Sliding(_), Rule::Sliding(_)) => ledger.state.clone(),
        _ => rule.carried(was.missing(&ledger.state, now), now),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::time::{Span, Timestamp};

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(seconds)))
    }

    #[test]
    fn what_is_promised_stays_promised() {
        let ten_in = |seconds| Definition::new(Limit::per(10, Span::from_secs(seconds))).unwrap();
        let (old, new) = (ten_in(10), ten_in(20));
        let mut meter = Meter::new(&old, at(0).at);
        let _ = meter.pay(&old, 10, (at(0), at(100).at), None);
        meter.carry(&old, &new, at(0));
        assert_eq!(meter.standing(&new, at(100)).remaining, 0);
    }
}
