//! What lasts, written out: two schedulers to which the same has happened say the same.

use super::Scheduler;
use crate::time::Now;

impl Scheduler {
    /// All that a journal must bring back, as text, in a fixed order.
    pub(crate) fn lasting(&self, now: Now) -> String {
        let calls = self.calls.lasting();
        let mut records: Vec<_> = self.records.iter().map(|kept| format!("{kept:?}")).collect();
        let mut joins: Vec<_> = self.joins.iter().map(|kept| format!("{kept:?}")).collect();
        // By name, for a queue may be kept in another place.
        let dedupes = self.dedupes.iter().map(|((queue, key), kept)| {
            format!("{} {key} {kept:?}", self.lanes.queue(*queue).name)
        });
        let mut dedupes: Vec<_> = dedupes.collect();
        let mut settled: Vec<_> = self.settled.iter().map(|kept| format!("{kept:?}")).collect();
        let mut allowed: Vec<_> = self.allowed.iter().map(|kept| format!("{kept:?}")).collect();
        for sorted in [&mut records, &mut joins, &mut dedupes, &mut settled, &mut allowed] {
            sorted.sort_unstable();
        }
        let counters = (self.ids, self.tokens, self.arrivals, self.revisions);
        format!(
            "{counters:?} {calls:?} {:?} {records:?} {joins:?} {dedupes:?} {settled:?} {allowed:?}",
            self.meters.lasting(now)
        )
    }
}
