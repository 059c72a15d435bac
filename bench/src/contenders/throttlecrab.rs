//! `throttlecrab`, the library: a `HashMap` of string keys, in the mutex its documentation asks for.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use throttlecrab::{AdaptiveStore, PeriodicStore, RateLimiter, Store};

use crate::contender::{Contender, Keyed, Limit, each};

pub(crate) const PERIODIC: Contender = Contender {
    name: "throttlecrab periodic",
    clock: "SystemTime",
    direct: None,
    integers: None,
    strings: Some(|limit, keys| {
        let store = PeriodicStore::builder().capacity(keys).cleanup_interval(SWEEP_INTERVAL);
        Box::new(Shared::open(limit, store.build()))
    }),
    waiters: None,
};

pub(crate) const ADAPTIVE: Contender = Contender {
    name: "throttlecrab adaptive",
    clock: "SystemTime",
    direct: None,
    integers: None,
    // Without the capacity it would sweep at every insert while its table is over three quarters
    // full of live keys, and a million inserts would take hours.
    strings: Some(|limit, keys| {
        Box::new(Shared::open(limit, AdaptiveStore::builder().capacity(keys).build()))
    }),
    waiters: None,
};

/// The default is a minute; this lets a pass of a second contain a sweep.
const SWEEP_INTERVAL: Duration = Duration::from_millis(500);

struct Shared<Kept: Store> {
    limiter: Mutex<RateLimiter<Kept>>,
    burst: i64,
    count: i64,
    period_seconds: i64,
}

impl<Kept: Store> Shared<Kept> {
    fn open(limit: Limit, store: Kept) -> Self {
        let interval_ns = limit.interval.as_nanos();
        let second_ns = Duration::from_secs(1).as_nanos();
        let whole = |number: u128| i64::try_from(number.max(1)).unwrap_or(i64::MAX);
        Self {
            limiter: Mutex::new(RateLimiter::new(store)),
            burst: i64::from(limit.burst.get()),
            count: whole(second_ns / interval_ns),
            period_seconds: whole(interval_ns / second_ns),
        }
    }

    fn decide(&self, key: &str) -> bool {
        let now = SystemTime::now();
        let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        limiter
            .rate_limit(key, self.burst, self.count, self.period_seconds, 1, now)
            .is_ok_and(|(granted, _)| granted)
    }
}

impl<Kept: Store + Send> Keyed<String> for Shared<Kept> {
    fn decide_each(&self, keys: &[String]) -> usize {
        each(keys, |key| self.decide(key))
    }

    fn clean_up(&self) -> bool {
        false
    }
}
