//! What the store counts of itself, and all that is counted.

use super::state::State;
use std::time::Duration;
use tollgate_core::Span;
use tollgate_core::contract::Totals;

impl State {
    pub(crate) fn totals(&self) -> Totals {
        Totals { store: self.totals.clone(), ..self.scheduler.totals() }
    }

    /// Counts a batch that lasts.
    pub(crate) fn count_commit(&mut self, bytes: usize, took: Duration) {
        self.totals.commits += 1;
        self.totals.bytes += bytes as u64;
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.totals.commit_time.add(Span::from_nanos(took));
    }
}
