//! `leaky-bucket`, fair as by default: one budget behind a mutex, with a queue of waiters.
//!
//! It has no keys of its own, so integer keys are places in a `Vec` with one limiter for each.

use std::future::Future;
use std::time::Duration;

use leaky_bucket::RateLimiter;

use crate::contender::{Contender, Direct, Keyed, Limit, Waiting, each, repeat};

pub(crate) const LEAKY_BUCKET: Contender = Contender {
    name: "leaky-bucket",
    clock: "Instant",
    direct: Some(|limit| Box::new(open(limit))),
    integers: Some(|limit, keys| Box::new(Row((0..keys).map(|_| open(limit)).collect()))),
    strings: None,
    waiters: Some(|crowd| crowd.wait_on(open(crowd.limit))),
};

/// The shortest refill interval given to it. It counts in whole milliseconds and loses what is
/// left over at each refill: at 10 ms it delivers more of the rate than at 1 ms.
const REFILL_INTERVAL_MIN: Duration = Duration::from_millis(10);

fn open(limit: Limit) -> RateLimiter {
    let interval = limit.interval.max(REFILL_INTERVAL_MIN);
    let burst = limit.burst.get() as usize;
    RateLimiter::builder()
        .interval(interval)
        .refill((interval.as_nanos() / limit.interval.as_nanos()) as usize)
        .initial(burst)
        .max(burst)
        .build()
}

struct Row(Vec<RateLimiter>);

impl Direct for RateLimiter {
    fn decide(&self, times: usize) -> usize {
        repeat(times, || self.try_acquire(1))
    }
}

impl Keyed<u64> for Row {
    #[expect(clippy::cast_possible_truncation, reason = "a key is below the number of keys")]
    fn decide_each(&self, keys: &[u64]) -> usize {
        each(keys, |key| self.0[*key as usize].try_acquire(1))
    }

    fn clean_up(&self) -> bool {
        false
    }
}

impl Waiting for RateLimiter {
    fn acquire(&self) -> impl Future<Output = ()> + Send {
        self.acquire_one()
    }
}
