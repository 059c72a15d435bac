//! Consuming ahead of the journal: so much may be consumed at a meter before that is written down, and
//! after a crash it counts as consumed.

use super::Scheduler;
use crate::contract::MeterName;
use crate::lanes::effect::Effect;
use crate::time::Now;

/// Names of receipts that a crash may have taken with it: they are not given again.
const TOKENS_LOST_MAX: u64 = 1 << 20;

impl Scheduler {
    /// Lets so many units be consumed at a meter before that is written down, in place of what was
    /// allowed before; 0 ends it.
    pub fn allow(&mut self, meter: MeterName, units: u64) {
        self.emit(Effect::Allowed { meter, units });
    }

    pub(super) fn allowed(&mut self, meter: &MeterName, units: u64) {
        match units {
            0 => self.allowed.remove(meter),
            units => self.allowed.insert(meter.clone(), units),
        };
    }

    /// Counts all that may have been consumed and was not written down as consumed now. Nobody can
    /// know when it was, and later is never too early.
    pub fn charge_allowed(&mut self, now: Now) {
        let mut owed: Vec<_> =
            self.allowed.iter().map(|(meter, units)| (meter.clone(), *units)).collect();
        if owed.is_empty() {
            return;
        }
        owed.sort_unstable();
        let id = self.tokens.saturating_add(TOKENS_LOST_MAX);
        let meters: Vec<_> = owed.iter().map(|(meter, _)| meter.clone()).collect();
        let (owed, starts, expires) = (owed.into(), now.at, now.at);
        self.emit(Effect::Paid { id, owed, now, starts, expires });
        meters.into_iter().for_each(|meter| self.allow(meter, 0));
    }

    /// The most that can ever pass at a meter where what is consumed ahead is remembered; `None` if its
    /// limit is not defined, or goes with its calls.
    pub fn capacity(&self, (limit, partition): &MeterName) -> Option<u64> {
        let book = self.meters.book(self.meters.limit(limit)?);
        if book.is_transient() {
            return None;
        }
        Some(book.definition_of(partition.as_ref())?.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Ask;
    use crate::limit::{Definition, Limit};
    use crate::name::LimitName;
    use crate::time::{Span, Timestamp};
    use crate::toll::Toll;
    use crate::turn::Priority;

    #[test]
    fn what_was_allowed_is_consumed_after_a_crash_and_no_receipt_is_given_twice() {
        let (limit, now) = (LimitName::new("l").unwrap(), Now::both(Timestamp::default()));
        let mut live = Scheduler::new();
        live.define_limit(&limit, Some(Definition::new(Limit::per_hour(100)).unwrap()), now);
        live.allow((limit.clone(), None), 6);
        let mut after = Scheduler::new();
        live.take_effects().iter().for_each(|effect| after.replay(effect));
        let toll = Toll { limit: limit.clone(), partition: None, weight: 5, hears_feedback: false };
        let (tolls, life) = (vec![toll], Span::from_secs(1));
        let ask = Ask { tolls: tolls.into(), priority: Priority::default(), delay_max: None, life };
        let lost = live.consume(&ask, now).unwrap().receipt;
        after.charge_allowed(now);
        let meter = (limit, None);
        assert_eq!(after.inspect(&meter, now).unwrap().standing.remaining, 94);
        assert!(after.consume(&ask, now).unwrap().receipt.id > lost.id);
        after.charge_allowed(now);
        assert_eq!(after.inspect(&meter, now).unwrap().standing.remaining, 89, "once");
    }
}
