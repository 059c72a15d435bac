//! A store that is closed and opened again.

use super::Naive;
use crate::lanes::learned::Learned;
use crate::time::{Now, Timestamp};

impl Naive {
    /// Forgets what no store writes down: whose turn it is, for whom someone asks, what was counted and
    /// what was learned.
    pub fn begin_again(&mut self, now: Now) {
        self.advance(now);
        self.vtimes.clear();
        self.rounds.clear();
        self.finishes.clear();
        self.admitted.clear();
        self.totals.clear();
        self.counts.clear();
        self.learned = Learned::default();
        self.queues.values_mut().for_each(|queue| queue.asks_until = Timestamp::default());
        self.heads.clear();
        self.refresh_heads();
    }
}
