//! The floor: a bare `AtomicU64` that counts up to the burst, and an array of them, one for each key.
//!
//! It forgets nothing and reads no clock, so it is no rate limiter. It shows what the processor
//! asks for an atomic write and a cache miss, and what the scheduler adds to the longest call.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::contender::{Contender, Direct, Keyed, Limit, each, repeat};

pub(crate) const ATOMIC: Contender = Contender {
    name: "AtomicU64",
    clock: "none",
    direct: Some(|limit| Box::new(Counters::open(limit, 1))),
    integers: Some(|limit, keys| Box::new(Counters::open(limit, keys))),
    strings: None,
    waiters: None,
};

struct Counters {
    counts: Vec<AtomicU64>,
    burst: u64,
}

impl Counters {
    fn open(limit: Limit, keys: usize) -> Self {
        let counts = (0..keys).map(|_| AtomicU64::new(0)).collect();
        Self { counts, burst: u64::from(limit.burst.get()) }
    }

    fn decide(&self, count: &AtomicU64) -> bool {
        count.fetch_add(1, Ordering::Relaxed) < self.burst
    }
}

impl Direct for Counters {
    fn decide(&self, times: usize) -> usize {
        let count = &self.counts[0];
        repeat(times, || self.decide(count))
    }
}

impl Keyed<u64> for Counters {
    #[expect(clippy::cast_possible_truncation, reason = "a key is below the number of keys")]
    fn decide_each(&self, keys: &[u64]) -> usize {
        each(keys, |key| self.decide(&self.counts[*key as usize]))
    }

    fn clean_up(&self) -> bool {
        false
    }
}
