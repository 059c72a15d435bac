//! What the calls of queues met at limits, by both.

use super::catalog as metric;
use super::exposition::Exposition;
use super::table::{Column, OTHER, Row, Table};
use crate::http::caller::Caller;
use std::collections::BTreeMap;
use tollgate::lanes::{LimitCounts, QueueTotals};

/// A row for each queue and limit where something was met.
pub(super) fn write(queues: &[(&QueueTotals, &str)], caller: &Caller, page: &mut Exposition) {
    let rows = queues.iter().flat_map(|(queue, name)| {
        let mut limits = BTreeMap::<&str, [u64; COLUMNS]>::new();
        let named = queue.counts.limits.iter().map(|(limit, counts)| (caller.shown(limit), counts));
        let others = (OTHER, &queue.counts.other_limits);
        for (limit, counts) in named.chain([others]) {
            // What is not the caller's to know has no name, and goes with the others.
            let limit = if limit.is_empty() { OTHER } else { limit };
            let sums = limits.entry(limit).or_default();
            sums.iter_mut()
                .zip(values(counts))
                .for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        let met = limits.into_iter().filter(|(_, sums)| *sums != [0; COLUMNS]);
        met.map(|(limit, sums)| Row {
            name: (*name).to_owned(),
            at: Some(limit.to_owned()),
            values: sums.into_iter().map(u128::from).collect(),
            histograms: Vec::new(),
        })
    });
    let columns = [&metric::QUEUE_UNKNOWN, &metric::QUEUE_WANTED, &metric::QUEUE_GRANTED]
        .map(Column::of)
        .into();
    Table { label: "queue", columns, histograms: &[], rows: rows.collect() }.write(page);
}

/// How many values [`values`] gives.
const COLUMNS: usize = 3;

/// In the order of the columns.
fn values(counts: &LimitCounts) -> [u64; COLUMNS] {
    let LimitCounts { unknown, wanted, granted } = *counts;
    [unknown, wanted, granted]
}
