//! Counting what happens at limits. Only what is decided is counted, not what is applied again: so
//! totals begin when the store is opened.

use super::Scheduler;
use super::calls::{CallSlot, MeterSlot};
use super::meters::Meters;
use crate::contract::{Ask, LimitTotals, MeterName, Refusal, Tally};
use crate::lanes::event::LineWaits;
use crate::toll::Toll;

impl Scheduler {
    /// Counts a call that starts at each of its meters, and what it waited there.
    pub(super) fn count_start(&mut self, call: CallSlot, waits: &LineWaits) {
        let lines = self.calls.lines_at(call);
        for line in lines {
            self.meters.admit(line.meter, line.weight);
        }
        for (line, span) in waits.iter() {
            if let Some(line) = lines.get(*line) {
                let waited_ns = u128::from(span.as_nanos());
                self.meters.totals_mut(line.meter).waited_ns += waited_ns;
                self.meters.all_totals.waited_ns += waited_ns;
            }
        }
    }

    /// Counts an ask that was paid, by meter.
    pub(super) fn count_paid(&mut self, owed: &[(MeterName, u64)]) {
        for ((limit, partition), weight) in owed {
            if let Some(meter) = self.meters.find(limit, partition.as_ref()) {
                self.meters.admit(meter, *weight);
            }
        }
    }

    /// Counts an ask that was refused, at the limit that was in its way.
    pub(super) fn count_refused(&mut self, ask: &Ask, refusal: &Refusal) {
        let Some(limit) = self.meters.limit(&refusal.limit) else { return };
        let is_there =
            |toll: &&Toll| toll.limit == refusal.limit && toll.partition == refusal.partition;
        let wanted = ask.tolls.iter().filter(is_there).map(|toll| toll.weight);
        let wanted = wanted.fold(0, u64::saturating_add);
        self.meters.book_mut(limit).totals.refused.add(wanted);
        self.meters.all_totals.refused.add(wanted);
    }
}

impl Meters {
    /// What was counted at a limit; nothing if there is none.
    pub(super) fn totals(&self, limit: &str) -> LimitTotals {
        self.limit(limit).map_or_else(LimitTotals::default, |limit| self.book(limit).totals)
    }

    /// Whether an operator holds a limit back.
    pub(super) fn is_held_back(&self, limit: &str) -> bool {
        self.limit(limit).is_some_and(|limit| self.book(limit).is_paused)
    }

    fn totals_mut(&mut self, meter: MeterSlot) -> &mut LimitTotals {
        let limit = self[meter].limit;
        &mut self.book_mut(limit).totals
    }

    fn admit(&mut self, meter: MeterSlot, weight: u64) {
        let admitted: &mut Tally = &mut self[meter].admitted;
        admitted.add(weight);
        self.totals_mut(meter).admitted.add(weight);
        self.all_totals.admitted.add(weight);
    }
}
