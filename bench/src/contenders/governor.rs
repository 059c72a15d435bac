//! `governor`: one budget in an atomic, or one for each key in a `DashMap`; callers sleep and retry.

use std::future::Future;
use std::hash::Hash;

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::contender::{Contender, Direct, Keyed, Limit, Waiting, each, repeat};

pub(crate) const GOVERNOR: Contender = Contender {
    name: "governor",
    clock: "quanta (TSC)",
    direct: Some(|limit| Box::new(RateLimiter::direct(quota(limit)))),
    integers: Some(|limit, _keys| Box::new(RateLimiter::<u64, _, _>::keyed(quota(limit)))),
    strings: Some(|limit, _keys| Box::new(RateLimiter::<String, _, _>::keyed(quota(limit)))),
    waiters: Some(|crowd| crowd.wait_on(RateLimiter::direct(quota(crowd.limit)))),
};

fn quota(limit: Limit) -> Quota {
    let quota = Quota::with_period(limit.interval);
    assert!(quota.is_some(), "the plan's intervals are over zero");
    quota.map_or(Quota::per_second(limit.burst), |quota| quota.allow_burst(limit.burst))
}

impl Direct for DefaultDirectRateLimiter {
    fn decide(&self, times: usize) -> usize {
        repeat(times, || self.check().is_ok())
    }
}

impl<Key: Hash + Eq + Clone + Send + Sync> Keyed<Key> for DefaultKeyedRateLimiter<Key> {
    fn decide_each(&self, keys: &[Key]) -> usize {
        each(keys, |key| self.check_key(key).is_ok())
    }

    fn clean_up(&self) -> bool {
        self.retain_recent();
        true
    }
}

impl Waiting for DefaultDirectRateLimiter {
    fn acquire(&self) -> impl Future<Output = ()> + Send {
        self.until_ready()
    }
}
