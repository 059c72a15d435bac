//! Ours: the limiter in memory, on the exact clock and on the coarse one, one by one and in batches.

use std::sync::Arc;

use tollgate_engine::{Clock, CoarseClock, LimitRef, Limiter, Settings, SystemClock, global, toll};

use crate::contender::{Contender, Direct, Keyed, Limit, Waiting, each, repeat};

/// Asks that one call of `consume_many` takes.
const BATCH: usize = 32;

pub(crate) const EXACT: Contender = Contender {
    name: "tollgate",
    clock: "exact (monotonic)",
    direct: Some(|limit| Box::new(Opened::new(limit, SystemClock::new()))),
    integers: Some(|limit, _keys| Box::new(OneByOne(Opened::new(limit, SystemClock::new())))),
    strings: Some(|limit, _keys| Box::new(OneByOne(Opened::new(limit, SystemClock::new())))),
    waiters: Some(|crowd| crowd.wait_on(Opened::new(crowd.limit, SystemClock::new()))),
};

pub(crate) const COARSE: Contender = Contender {
    name: "tollgate coarse",
    clock: "coarse (kernel tick)",
    direct: Some(|limit| Box::new(Opened::new(limit, CoarseClock::new()))),
    integers: Some(|limit, _keys| Box::new(OneByOne(Opened::new(limit, CoarseClock::new())))),
    strings: Some(|limit, _keys| Box::new(OneByOne(Opened::new(limit, CoarseClock::new())))),
    waiters: None,
};

pub(crate) const BATCHED: Contender = Contender {
    name: "tollgate batches of 32",
    clock: "exact, once a batch",
    direct: None,
    integers: Some(|limit, _keys| Box::new(Batched(Opened::new(limit, SystemClock::new())))),
    strings: Some(|limit, _keys| Box::new(Batched(Opened::new(limit, SystemClock::new())))),
    waiters: None,
};

struct Opened {
    limiter: Limiter,
    limit: LimitRef,
}

impl Opened {
    fn new(limit: Limit, clock: impl Clock) -> Self {
        let limiter = Limiter::new(Settings { clock: Arc::new(clock), ..Settings::default() });
        let rule = tollgate_core::Limit::per(1, limit.interval).burst(limit.burst.get().into());
        let defined = limiter.define("bench", rule);
        assert!(defined.is_ok(), "the plan's limits are valid");
        match defined {
            Ok(limit) => Self { limiter, limit },
            Err(error) => unreachable!("{error}"),
        }
    }
}

struct OneByOne(Opened);
struct Batched(Opened);

impl Direct for Opened {
    fn decide(&self, times: usize) -> usize {
        repeat(times, || self.limiter.try_consume(global(&self.limit)).is_ok())
    }
}

impl Keyed<String> for OneByOne {
    fn decide_each(&self, keys: &[String]) -> usize {
        each(keys, |key| self.0.limiter.try_consume(toll(&self.0.limit, key)).is_ok())
    }

    fn clean_up(&self) -> bool {
        false
    }
}

/// A partition is text: the integer is written out for each decision, and that is measured too.
impl Keyed<u64> for OneByOne {
    fn decide_each(&self, keys: &[u64]) -> usize {
        each(keys, |key| {
            let mut digits = itoa::Buffer::new();
            self.0.limiter.try_consume(toll(&self.0.limit, digits.format(*key))).is_ok()
        })
    }

    fn clean_up(&self) -> bool {
        false
    }
}

impl Keyed<String> for Batched {
    fn decide_each(&self, keys: &[String]) -> usize {
        let Opened { limiter, limit } = &self.0;
        keys.chunks(BATCH)
            .map(|chunk| {
                let tolls: Vec<_> = chunk.iter().map(|key| toll(limit, key)).collect();
                let outcomes = limiter.consume_many(&tolls);
                outcomes.iter().filter(|outcome| outcome.is_ok()).count()
            })
            .sum()
    }

    fn clean_up(&self) -> bool {
        false
    }
}

impl Keyed<u64> for Batched {
    fn decide_each(&self, keys: &[u64]) -> usize {
        let Opened { limiter, limit } = &self.0;
        let mut buffers = [itoa::Buffer::new(); BATCH];
        keys.chunks(BATCH)
            .map(|chunk| {
                let texts = chunk.iter().zip(&mut buffers);
                let texts = texts.map(|(key, buffer)| buffer.format(*key));
                let tolls: Vec<_> = texts.map(|text| toll(limit, text)).collect();
                let outcomes = limiter.consume_many(&tolls);
                outcomes.iter().filter(|outcome| outcome.is_ok()).count()
            })
            .sum()
    }

    fn clean_up(&self) -> bool {
        false
    }
}

impl Waiting for Opened {
    async fn acquire(&self) {
        let _pass = self.limiter.acquire(global(&self.limit)).await;
    }
}
