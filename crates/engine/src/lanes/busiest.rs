//! The busiest lanes and meters of a store, found slice by slice.

use super::Engine;
use crate::error::Error;
use crate::limiter::operate::MeterState;
use tollgate_core::contract::{
    Among, BusyLanes, BusyLimit, BusyMeter, BusyMeters, Lanes, LimitTotals, Onward,
};
use tollgate_core::lanes::Act;
use tollgate_core::{Opening, Span, Timestamp};

impl<S: Lanes + 'static> Engine<S> {
    /// The queues among those, and up to so many of their lanes, those with most calls that wait first. With
    /// `most` 0 no lane is looked at.
    pub async fn busiest_lanes(&self, among: &Among, most: usize) -> Result<BusyLanes, Error> {
        let (mut all, mut next) = (BusyLanes::default(), Some(Onward::default()));
        while let Some(from) = next {
            let slice = self.parts.store.busiest_lanes(among.clone(), most, from).await?;
            next = slice.next;
            all.join(slice, most);
        }
        Ok(all)
    }

    /// Waits until all lasts that was seen before: so the names of heads are good.
    pub async fn lasting(&self) -> Result<(), Error> {
        // What only looks is answered at once, also where others wrote it a moment ago.
        self.parts.store.act(vec![Act::default()]).await?;
        Ok(())
    }

    /// Up to so many meters of the limits among those, where most stand first.
    pub async fn busiest_meters(
        &self,
        among: &Among,
        most: usize,
    ) -> Result<Vec<MeterState>, Error> {
        let (mut all, mut next) = (BusyMeters::default(), Some(Onward::default()));
        // With none at all limits would be told.
        while let Some(from) = next.filter(|_| most > 0) {
            let slice = self.parts.store.busiest_meters(among.clone(), most, from).await?;
            next = slice.next;
            all.join(slice, most);
        }
        let now = self.parts.store.now().await?.at;
        Ok(all.meters.into_iter().map(|meter| shown(meter, now)).collect())
    }

    /// Limits with who is at their meters, up to about so many, and what happened at all there ever were.
    pub async fn busy_limits(&self, most: usize) -> Result<(Vec<BusyLimit>, LimitTotals), Error> {
        let (mut all, mut next) = (BusyMeters::default(), Some(Onward::default()));
        while let Some(from) = next.filter(|_| all.limits.len() < most) {
            let slice = self.parts.store.busiest_meters(Among::EVERYTHING, 0, from).await?;
            next = slice.next;
            all.join(slice, 0);
        }
        Ok((all.limits, all.totals))
    }
}

fn shown(BusyMeter { name, state, blocker }: BusyMeter, now: Timestamp) -> MeterState {
    let next_admission_after = match blocker.map(|blocker| blocker.opening) {
        _ if state.is_paused => None,
        None => Some(Span::ZERO),
        Some(Opening::At(at)) => Some(at.since(now)),
        Some(Opening::OnRelease) => None,
    };
    MeterState {
        limit: name.0.as_str().into(),
        partition: name.1.map(|partition| partition.as_str().to_owned()),
        definition: state.definition.limit().clone(),
        standing: state.standing,
        rules: state.rules,
        in_flight: state.in_flight,
        waiting: state.waiting,
        is_paused: state.is_paused,
        next_admission_after,
        closed: state.closed.map(|(until, reason)| (until.since(now), reason)),
        admitted: Some(state.admitted),
    }
}
