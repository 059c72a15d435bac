//! The busiest lanes and meters, and what happened at limits.

use super::{Backend, Tollgate};
use std::cmp::Reverse;
use tollgate_core::LimitName;
use tollgate_core::contract::{Among, BusyLanes, BusyLimit, LimitTotals, Meters, PAGE_MAX};
use tollgate_engine::{Error, MeterState, StoreError};

impl Tollgate {
    /// The queues among those, and up to so many of their lanes (1,000 at most), those with most calls that
    /// wait first. With `most` 0 no lane is looked at. The store is asked in slices, and does other things in
    /// between. Before the names of heads are handed on, [`Self::lasting`] is awaited.
    pub async fn busiest_lanes(&self, among: &Among, most: usize) -> Result<BusyLanes, Error> {
        self.engine()?.busiest_lanes(among, most).await
    }

    /// Waits until all lasts that was seen before.
    pub async fn lasting(&self) -> Result<(), Error> {
        self.engine()?.lasting().await
    }

    /// Up to so many meters of the limits among those (1,000 at most), where most wait first. A store that
    /// lists no meters tells of the global ones of the first 1,000 limits.
    pub async fn busiest_meters(
        &self,
        among: &Among,
        most: usize,
    ) -> Result<Vec<MeterState>, Error> {
        let engine = match (&self.backend, among) {
            (Backend::Memory(limiter), _) => return Ok(limiter.busiest_meters(among, most)),
            (Backend::Kept(engine), _) => return engine.busiest_meters(among, most).await,
            (Backend::Shared(_), Among::One(_)) => return Err(StoreError::MetersNotListed.into()),
            (Backend::Shared(engine), Among::All { .. }) => engine,
        };
        let limits = engine.limits_after(None, PAGE_MAX).await?.into_iter();
        let names = limits.map(|limit| limit.name).filter(|name| among.has(name));
        let names: Vec<_> = names.filter_map(|name| LimitName::new(&name).ok()).collect();
        let asked = names.iter().map(|name| (name.clone(), None)).collect();
        let seen = names.into_iter().zip(engine.store().inspect(asked).await?);
        let seen = seen.filter_map(|(name, meter)| Some((meter?, name)));
        let biting = seen.filter(|(meter, _)| meter.waiting > 0 || meter.closed.is_some());
        let mut biting: Vec<_> = biting.map(|(meter, name)| (meter.waiting, name)).collect();
        biting.sort_by_key(|(waiting, _)| Reverse(*waiting));
        let mut meters = Vec::new();
        for (_, name) in biting.into_iter().take(most) {
            meters.push(engine.meter(&name, None).await?);
        }
        Ok(meters)
    }

    /// Limits with who is at their meters, up to about so many, and what happened at all there ever were; in
    /// memory nothing is counted. A store that lists no meters tells nothing.
    pub async fn busy_limits(
        &self,
        most: usize,
    ) -> Result<(Vec<BusyLimit>, Option<LimitTotals>), Error> {
        match &self.backend {
            Backend::Memory(limiter) => Ok((limiter.busy_limits(most), None)),
            Backend::Kept(engine) => {
                let (limits, totals) = engine.busy_limits(most).await?;
                Ok((limits, Some(totals)))
            }
            Backend::Shared(_) => Err(StoreError::MetersNotListed.into()),
        }
    }
}
