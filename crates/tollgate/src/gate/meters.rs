//! Meters: looked at, closed, reopened, reset.

use super::{Backend, Tollgate};
use tollgate_core::Span;
use tollgate_engine::{Error, MeterState, PartitionPage};

impl Tollgate {
    /// How one meter stands.
    pub async fn meter(&self, limit: &str, partition: Option<&str>) -> Result<MeterState, Error> {
        match &self.backend {
            Backend::Memory(limiter) => limiter.meter(limit, partition),
            Backend::Embedded(engine) => engine.meter(limit, partition).await,
        }
    }

    /// The partitions of a limit that have a meter, sorted, `most` at a time.
    pub async fn partitions(
        &self,
        limit: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<PartitionPage, Error> {
        match &self.backend {
            Backend::Memory(limiter) => limiter.partitions(limit, after, most),
            Backend::Embedded(engine) => engine.partitions(limit, after, most).await,
        }
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for.
    pub async fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), Error> {
        match &self.backend {
            Backend::Memory(limiter) => limiter.close(limit, partition, span, reason),
            Backend::Embedded(engine) => engine.close(limit, partition, span, reason).await,
        }
    }

    /// Ends a closure before its time.
    pub async fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        match &self.backend {
            Backend::Memory(limiter) => limiter.reopen(limit, partition),
            Backend::Embedded(engine) => engine.reopen(limit, partition).await,
        }
    }

    /// Forgets what was spent at a meter: an operator's act.
    pub async fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        match &self.backend {
            Backend::Memory(limiter) => limiter.reset(limit, partition),
            Backend::Embedded(engine) => engine.reset(limit, partition).await,
        }
    }
}
