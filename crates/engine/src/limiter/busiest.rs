//! The busiest meters in memory.

use super::Limiter;
use super::operate::MeterState;
use crate::limits::Entry;
use crate::table::Whole;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use tollgate_core::contract::{Among, BusyLimit, LimitTotals};
use tollgate_core::{LimitName, Now};

/// A meter in the order of all: by who waits there, then by whether it is closed, then by name.
type Placed = (Reverse<u64>, bool, Arc<str>, String);

impl Limiter {
    /// Up to so many meters of the limits among those, where most wait first. Costs a look at each meter.
    pub fn busiest_meters(&self, among: &Among, most: usize) -> Vec<MeterState> {
        let now = self.clock().both();
        let mut first = BinaryHeap::new();
        for entry in self.among(among) {
            for shard in entry.shards() {
                for (key, whole) in shard.meters() {
                    let waiting = whole.map_or(0, |whole| whole.ahead);
                    let is_closed = |whole: &Whole| whole.meter.closed(now.at).is_some();
                    let is_open = !whole.is_some_and(is_closed);
                    let is_later = |last: &Placed| {
                        (Reverse(waiting), is_open, &*entry.name, key)
                            > (last.0, last.1, &last.2, &last.3)
                    };
                    if first.len() >= most && first.peek().is_none_or(is_later) {
                        continue;
                    }
                    first.push((Reverse(waiting), is_open, entry.name.clone(), key.to_owned()));
                    if first.len() > most {
                        first.pop();
                    }
                }
            }
        }
        let found = first.into_sorted_vec().into_iter();
        let meter = |(.., limit, key): Placed| {
            let partition = Some(key.as_str()).filter(|key| !key.is_empty());
            // It may have been removed meanwhile.
            self.meter(&limit, partition).ok()
        };
        found.filter_map(meter).collect()
    }

    /// Limits with who is at their meters, up to so many, whichever they are. Nothing that happened is counted.
    pub fn busy_limits(&self, most: usize) -> Vec<BusyLimit> {
        let now = self.clock().both();
        let entries = self.inner.limits.some(most).into_iter().filter(|entry| entry.is_defined());
        entries.filter_map(|entry| busy(&entry, now)).collect()
    }

    fn among(&self, among: &Among) -> Vec<Arc<Entry>> {
        let limits = &self.inner.limits;
        let mut entries = match among {
            Among::One(name) => limits.find(name).into_iter().collect(),
            Among::All { .. } => limits.all(),
        };
        entries.retain(|entry| among.has(&entry.name) && entry.is_defined());
        entries
    }
}

fn busy(entry: &Entry, now: Now) -> Option<BusyLimit> {
    let (mut waiting, mut in_flight) = (0, 0);
    for shard in entry.shards() {
        for (key, whole) in shard.meters() {
            let Some((whole, rules)) = whole.zip(shard.definition(key)) else { continue };
            waiting += whole.ahead;
            in_flight += whole.meter.in_flight(rules, now);
        }
    }
    let (name, totals) = (LimitName::new(&entry.name).ok()?, LimitTotals::default());
    Some(BusyLimit { name, totals, waiting, in_flight })
}
