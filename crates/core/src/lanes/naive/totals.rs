//! Counting what happens at limits. What calls waited is not among it: only the scheduler knows.

use super::{MeterKey, Naive};
use crate::contract::{Ask, LimitTotals, Refusal};
use crate::name::LimitName;

impl Naive {
    pub(super) fn admit(&mut self, meter: &MeterKey, weight: u64) {
        self.admitted.entry(meter.clone()).or_default().add(weight);
        self.totals.entry(meter.0.clone()).or_default().admitted.add(weight);
    }

    pub(super) fn count_refused(&mut self, ask: &Ask, refusal: &Refusal) {
        let meter = (&refusal.limit, &refusal.partition);
        let tolls = ask.tolls.iter().filter(|toll| (&toll.limit, &toll.partition) == meter);
        let wanted = tolls.map(|toll| toll.weight).sum();
        self.totals.entry(refusal.limit.clone()).or_default().refused.add(wanted);
    }

    pub(super) fn limit_totals(&self, limit: &LimitName) -> LimitTotals {
        self.totals.get(limit).copied().unwrap_or_default()
    }
}
