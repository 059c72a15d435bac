//! Counting what happens at limits. Only what is decided is counted, not what is applied again: so
//! totals begin when the store is opened.

use super::Scheduler;
use super::calls::{CallSlot, MeterSlot};
use super::limits::Home;
use super::meters::Meters;
use crate::contract::{Ask, LimitTotals, MeterName, Refusal};
use crate::lanes::event::LineWaits;
use crate::time::Span;
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
                self.meters.wait_at(line.meter, *span);
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
        self.limit(limit).map_or_else(LimitTotals::default, |limit| self.book(limit).totals())
    }

    /// Whether an operator holds a limit back.
    pub(super) fn is_held_back(&self, limit: &str) -> bool {
        self.limit(limit).is_some_and(|limit| self.book(limit).is_paused())
    }

    fn admit(&mut self, meter: MeterSlot, weight: u64) {
        let book = &mut self[meter];
        book.admitted.add(weight);
        if let Home::Book(at) = book.limit.home() {
            self.limits[at].totals.admitted.add(weight);
        }
        self.all_totals.admitted.add(weight);
    }

    fn wait_at(&mut self, meter: MeterSlot, span: Span) {
        self.all_totals.waited_ns += u128::from(span.as_nanos());
        let book = &mut self[meter];
        let limit = book.limit;
        match (limit.home(), book.waited_ns.checked_add(span.as_nanos())) {
            (Home::Meter(_), Some(sum)) => book.waited_ns = sum,
            // In a book there is room for more than centuries.
            _ => self.book_mut(limit).totals.waited_ns += u128::from(span.as_nanos()),
        }
    }
}
