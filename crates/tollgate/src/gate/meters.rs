//! Meters: looked at, closed, reopened.

use super::{Backend, Tollgate, on_store};
use tollgate_core::contract::{self, Meters};
use tollgate_core::{LimitName, RuleUse, Span};
use tollgate_engine::{Error, MeterState, PartitionPage, StoreError};

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
        let meters = self.global_meters(limits).await?;
        Ok(meters.into_iter().map(|meter| meter.map(|seen| seen.load)).collect())
    }

    /// What counts at each rule of the global meters of limits; `None` for those that are not defined.
    /// Cheaper than [`Self::meter`] for each.
    pub async fn uses(&self, limits: &[&str]) -> Result<Vec<Option<Vec<RuleUse>>>, Error> {
        let meters = self.global_meters(limits).await?;
        Ok(meters.into_iter().map(|meter| meter.map(|seen| seen.rules)).collect())
    }

    async fn global_meters(&self, limits: &[&str]) -> Result<Vec<Option<Seen>>, Error> {
        let names = limits.iter().map(|limit| Ok((LimitName::new(limit)?, None)));
        let names = names.collect::<Result<_, Error>>()?;
        on_store! {
            &self.backend,
            limiter => {
                let meters = limits.iter().map(|limit| limiter.meter(limit, None).ok());
                Ok(meters.map(|meter| meter.map(Seen::in_memory)).collect())
            },
            engine => {
                let meters = engine.store().inspect(names).await?;
                Ok(meters.into_iter().map(|meter| meter.map(Seen::kept)).collect())
            },
        }
    }

    /// How one meter stands.
    pub async fn meter(&self, limit: &str, partition: Option<&str>) -> Result<MeterState, Error> {
        on_store! {
            &self.backend,
            limiter => limiter.meter(limit, partition),
            engine => engine.meter(limit, partition).await,
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
            Backend::Kept(engine) => engine.partitions(limit, after, most).await,
            Backend::Shared(_) => Err(StoreError::MetersNotListed.into()),
        }
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for. A program does
    /// that; what an operator does is told in the audit log: [`Operation::Close`](crate::Operation::Close).
    pub async fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.close(limit, partition, span, reason),
            engine => engine.close(limit, partition, span, reason).await,
        }
    }

    /// Ends a closure before its time, as a program does; see [`Operation::Reopen`](crate::Operation::Reopen).
    pub async fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.reopen(limit, partition),
            engine => engine.reopen(limit, partition).await,
        }
    }
}

/// What is told of many meters at a time.
struct Seen {
    load: Load,
    rules: Vec<RuleUse>,
}

impl Seen {
    fn in_memory(meter: MeterState) -> Self {
        let (waiting, in_flight) = (meter.waiting, meter.in_flight);
        let load = Load { waiting, in_flight, is_closed: meter.closed.is_some() };
        Self { load, rules: meter.rules }
    }

    fn kept(meter: contract::MeterState) -> Self {
        let (waiting, in_flight) = (meter.waiting, meter.in_flight);
        let load = Load { waiting, in_flight, is_closed: meter.closed.is_some() };
        Self { load, rules: meter.rules }
    }
}
