//! The door Rust users come through.

use std::future::Future;
use std::sync::Arc;
use tollgate_core::{Limit, Span, Standing};
use tollgate_engine::{
    Acquire, Asking, Clock, Error, LimitRef, LimitState, Limiter, MeterState, PartitionPage, Pass,
    Receipt, Settings, Toll, TryError,
};

/// One set of limits. Clones share it.
#[derive(Debug, Clone)]
pub struct Tollgate {
    limiter: Limiter,
}

/// How a gate in memory is made, where the defaults do not do.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Another clock: coarse for speed, manual for tests.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Most meters that are kept; a new partition beyond is refused.
    pub fn meters_max(mut self, meters: usize) -> Self {
        self.settings.meters_max = meters;
        self
    }

    /// Most calls that may wait at once; one more is refused.
    pub fn waiting_max(mut self, calls: usize) -> Self {
        self.settings.waiting_max = calls;
        self
    }

    /// The gate.
    pub fn memory(self) -> Tollgate {
        Tollgate { limiter: Limiter::new(self.settings) }
    }
}

impl Tollgate {
    /// Limits in the memory of this process: exact, fast, and gone when it ends.
    pub fn memory() -> Self {
        Self::builder().memory()
    }

    /// Starts from the defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The limiter underneath, for code that cannot await: the same limits, the same meters.
    pub fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Defines a limit, or changes it: at once, for waiting calls too, keeping what was spent.
    pub async fn limit(&self, name: &str, limit: Limit) -> Result<LimitRef, Error> {
        self.limiter.define(name, limit)
    }

    /// Defines a limit and writes into its history who did.
    pub async fn limit_as(&self, who: &str, name: &str, limit: Limit) -> Result<LimitRef, Error> {
        self.limiter.define_as(who, name, limit)
    }

    /// Removes a limit with all its meters.
    pub async fn remove(&self, who: &str, name: &str) -> Result<(), Error> {
        Ok(self.limiter.remove(who, name)?)
    }

    /// Gives one partition a definition of its own; `None` takes it away.
    pub async fn override_partition(
        &self,
        name: &str,
        partition: &str,
        limit: Option<Limit>,
    ) -> Result<(), Error> {
        Ok(self.limiter.override_partition(name, partition, limit)?)
    }

    /// Puts a value over what callers define (`None`: takes it away again).
    pub async fn pin(&self, who: &str, name: &str, limit: Option<Limit>) -> Result<(), Error> {
        match limit {
            Some(limit) => self.limiter.pin(who, name, limit)?,
            None => self.limiter.unpin(who, name)?,
        }
        Ok(())
    }

    /// A limit as it stands, with its history.
    pub async fn limit_state(&self, name: &str) -> Result<Option<LimitState>, Error> {
        Ok(self.limiter.limit(name))
    }

    /// All limits, sorted by name.
    pub async fn limits(&self) -> Result<Vec<LimitState>, Error> {
        Ok(self.limiter.limits())
    }

    /// Pays all tolls now, or none. Never overtakes a call that waits.
    pub async fn consume<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, Error> {
        self.limiter.consume(ask)
    }

    /// Pays now for a start at the first instant the limits allow; the pass says how long to wait.
    /// Refused if that is over `max_wait`.
    pub async fn consume_delayed<'a>(
        &self,
        ask: impl Asking<'a>,
        max_wait: impl Into<Span>,
    ) -> Result<Pass, Error> {
        self.limiter.consume_delayed(ask, max_wait)
    }

    /// Decides each toll on its own; faster than one by one.
    pub async fn consume_many(&self, tolls: &[Toll<'_>]) -> Vec<Result<Pass, TryError>> {
        self.limiter.consume_many(tolls)
    }

    /// Waits until all tolls can be paid, in turn.
    pub fn acquire<'a>(&self, ask: impl Asking<'a>) -> Acquire<'a> {
        self.limiter.acquire(ask)
    }

    /// Runs a future once its tolls are paid; slots are held until it ends.
    pub async fn throttle<'a, F: Future>(
        &self,
        ask: impl Asking<'a>,
        future: F,
    ) -> Result<F::Output, Error> {
        self.limiter.throttle(ask, future).await
    }

    /// Says what `consume` would, and pays nothing.
    pub async fn peek<'a>(&self, ask: impl Asking<'a>) -> Result<Standing, Error> {
        self.limiter.peek(ask)
    }

    /// Settles a receipt: each limit named at its true cost, all others at what they paid. Once.
    pub async fn settle(&self, receipt: &Receipt, actual: &[(&str, u64)]) -> Result<(), Error> {
        self.limiter.settle(receipt, actual)
    }

    /// Hands back a call that was never started. Once.
    pub async fn hand_back(&self, receipt: &Receipt) -> Result<(), Error> {
        self.limiter.hand_back(receipt)
    }

    /// Holds a receipt's slots for `life` from now.
    pub async fn renew(&self, receipt: &Receipt, life: impl Into<Span>) -> Result<Receipt, Error> {
        self.limiter.renew(receipt, life)
    }

    /// How one meter stands.
    pub async fn meter(&self, limit: &str, partition: Option<&str>) -> Result<MeterState, Error> {
        self.limiter.meter(limit, partition)
    }

    /// The partitions of a limit that have a meter, sorted, `most` at a time.
    pub async fn partitions(
        &self,
        limit: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<PartitionPage, Error> {
        self.limiter.partitions(limit, after, most)
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for.
    pub async fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), Error> {
        self.limiter.close(limit, partition, span, reason)
    }

    /// Ends a closure before its time.
    pub async fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        self.limiter.reopen(limit, partition)
    }

    /// Forgets what was spent at a meter: an operator's act.
    pub async fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        self.limiter.reset(limit, partition)
    }
}
