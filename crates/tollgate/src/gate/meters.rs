//! Meters: looked at, closed, reopened, reset.

use super::{Backend, Tollgate};
use tollgate_core::contract::Meters;
use tollgate_core::{LimitName, RuleUse, Span};
use tollgate_engine::{Error, MeterState, PartitionPage};

/// How busy the global meter of a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    /// Heads of lanes that stand there; in memory the weight of the calls that wait.
    pub waiting: u64,
    /// Slots that are held.
    pub in_flight: u64,
    /// Nothing passes: an upstream or an operator asked for it.
    pub is_closed: bool,
}

impl Tollgate {
    /// How busy the global meters of limits are; `None` for those that are not defined. Cheaper than
    /// [`Self::meter`] for each.
    pub async fn loads(&self, limits: &[&str]) -> Result<Vec<Option<Load>>, Error> {
        let engine = match &self.backend {
            Backend::Memory(limiter) => {
                let meters = limits.iter().map(|limit| limiter.meter(limit, None).ok());
                return Ok(meters.map(|meter| meter.as_ref().map(Load::in_memory)).collect());
            }
            Backend::Embedded(engine) => engine,
        };
        let meters = limits.iter().map(|limit| Ok((LimitName::new(limit)?, None)));
        let meters = meters.collect::<Result<_, Error>>()?;
        let meters = engine.store().inspect(meters).await?;
        let load = |meter: tollgate_core::contract::MeterState| Load {
            waiting: meter.waiting,
            in_flight: meter.in_flight,
            is_closed: meter.closed.is_some(),
        };
        Ok(meters.into_iter().map(|meter| meter.map(load)).collect())
    }

    /// What counts at each rule of the global meters of limits; `None` for those that are not defined.
    /// Cheaper than [`Self::meter`] for each.
    pub async fn uses(&self, limits: &[&str]) -> Result<Vec<Option<Vec<RuleUse>>>, Error> {
        let engine = match &self.backend {
            Backend::Memory(limiter) => {
                let meters = limits.iter().map(|limit| limiter.meter(limit, None).ok());
                return Ok(meters.map(|meter| meter.map(|meter| meter.rules)).collect());
            }
            Backend::Embedded(engine) => engine,
        };
        let meters = limits.iter().map(|limit| Ok((LimitName::new(limit)?, None)));
        let meters = meters.collect::<Result<_, Error>>()?;
        let meters = engine.store().inspect(meters).await?;
        Ok(meters.into_iter().map(|meter| meter.map(|meter| meter.rules)).collect())
    }

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

impl Load {
    fn in_memory(meter: &MeterState) -> Self {
        let is_closed = meter.closed.is_some();
        Self { waiting: meter.waiting, in_flight: meter.in_flight, is_closed }
    }
}
