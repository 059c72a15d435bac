//! Counting what happens at limits and to calls. How long anything took, and which claims left how many
//! waiting where, is not among it: only the scheduler knows.

use super::{MeterKey, Naive};
use crate::contract::{Ask, LimitTotals, QueueState, QueueTotals, Refusal, StoreTotals, Totals};
use crate::lanes::call::Attempts;
use crate::lanes::event::{Outcome, What};
use crate::name::{LimitName, QueueName};

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

    /// All that was counted, by name.
    pub fn totals(&self) -> Totals {
        let queues = self.queues(None, usize::MAX).into_iter().map(|queue| {
            let QueueState { name, waiting, in_flight, dead, .. } = queue;
            let counts = self.counts.get(&name).cloned().unwrap_or_default();
            QueueTotals { name, waiting, in_flight, dead, counts }
        });
        let limits = self.limits.iter().filter(|(name, _)| self.common(name).is_some());
        let limits = limits.map(|(name, _)| (name.clone(), self.limit_totals(name)));
        let store = StoreTotals::default();
        Totals { queues: queues.collect(), limits: limits.collect(), store }
    }

    /// Counts what happened to a call that had been tried so often.
    pub(super) fn count_event(&mut self, queue: &QueueName, tried: Attempts, what: &What) {
        let counts = self.counts.entry(queue.clone()).or_default();
        match what {
            What::Enqueued { .. } => counts.enqueued += 1,
            What::Unknown { limit, .. } => counts.at_limit(limit).unknown += 1,
            What::Throttled { .. } => {}
            What::Started { .. } => {
                counts.started += 1;
                counts.retries += u64::from(tried != Attempts::default());
            }
            What::Settled { outcome, .. } => {
                let settled = &mut counts.settled;
                *match outcome {
                    Outcome::Done => &mut settled.done,
                    Outcome::Failed { .. } => &mut settled.failed,
                    Outcome::Released => &mut settled.released,
                    Outcome::Dead => &mut settled.dead,
                    Outcome::Limited { .. } => &mut settled.limited,
                    Outcome::Crashed => &mut settled.crashed,
                    Outcome::Cancelled => &mut settled.cancelled,
                } += 1;
            }
            What::Ended { end, .. } => counts.ended.add(*end),
            What::Revived => counts.revived += 1,
        }
    }
}
