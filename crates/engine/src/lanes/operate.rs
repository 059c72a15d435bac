//! Looking at meters that a store keeps, and acting on them.

use super::{Engine, Parts};
use crate::error::{AskError, Error};
use crate::limiter::operate::{MeterState, PartitionPage};
use tollgate_core::contract::{self, Lanes, MeterName, Meters, PAGE_MAX, REASON_CHARS_MAX};
use tollgate_core::{LimitName, Opening, Partition, Span};

impl<S: Meters + 'static> Engine<S> {
    /// How one meter stands. One that was never used, or is as good as new, stands full.
    pub async fn meter(&self, limit: &str, partition: Option<&str>) -> Result<MeterState, Error> {
        let meter = named(limit, partition)?;
        let kept = self.parts.known_meter(&meter).await?;
        let next_admission_after = self.parts.next_admission(meter).await?;
        let now = self.parts.store.now().await?.at;
        Ok(MeterState {
            limit: limit.into(),
            partition: partition.map(str::to_owned),
            definition: kept.definition.limit().clone(),
            standing: kept.standing,
            rules: kept.rules,
            in_flight: kept.in_flight,
            waiting: kept.waiting,
            is_paused: kept.is_paused,
            next_admission_after,
            closed: kept.closed.map(|(until, reason)| (until.since(now), reason)),
            admitted: Some(kept.admitted),
        })
    }

    /// Lets nothing pass a meter for `span`, at most a day: what an upstream's `429` asks for. The audit log
    /// does not tell of it: see [`Operation::Close`](super::Operation::Close).
    pub async fn close(
        &self,
        limit: &str,
        partition: Option<&str>,
        span: impl Into<Span>,
        reason: &str,
    ) -> Result<(), Error> {
        let (meter, span) = (named(limit, partition)?, span.into());
        self.parts.known_meter(&meter).await?;
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        Ok(self.parts.store.close(meter, span, reason).await??)
    }

    /// Ends a closure before its time. The audit log does not tell of it: see
    /// [`Operation::Reopen`](super::Operation::Reopen).
    pub async fn reopen(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        let meter = named(limit, partition)?;
        self.parts.known_meter(&meter).await?;
        self.parts.reopen(meter).await
    }

    /// Forgets what was spent at a meter. The audit log does not tell of it: see
    /// [`Operation::Reset`](super::Operation::Reset).
    pub async fn reset(&self, limit: &str, partition: Option<&str>) -> Result<(), Error> {
        let meter = named(limit, partition)?;
        self.parts.known_meter(&meter).await?;
        self.parts.reset(meter).await
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// The partitions of a limit that have a meter, sorted, `most` at a time, after `after`.
    pub async fn partitions(
        &self,
        limit: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<PartitionPage, Error> {
        let name = LimitName::new(limit)?;
        let mut after = after.map(Partition::new).transpose()?;
        let mut partitions = Vec::new();
        // One more tells whether there are more.
        while partitions.len() <= most {
            let found = self.parts.store.meters(name.clone(), after, PAGE_MAX).await?;
            let found = found.ok_or_else(|| unknown(limit))?;
            let is_last = found.len() < PAGE_MAX;
            after = found.last().and_then(|(partition, _)| partition.clone());
            let names = found.into_iter().filter_map(|(partition, _)| partition);
            partitions.extend(names.map(|name| name.as_str().to_owned()));
            if is_last {
                break;
            }
        }
        let has_more = partitions.len() > most;
        partitions.truncate(most);
        let next = partitions.last().cloned().filter(|_| has_more);
        Ok(PartitionPage { partitions, next })
    }
}

impl<S: Meters + 'static> Parts<S> {
    /// How a meter stands, of a limit that there is.
    pub(super) async fn known_meter(
        &self,
        meter: &MeterName,
    ) -> Result<contract::MeterState, Error> {
        self.meter_of(meter).await?.ok_or_else(|| unknown(&meter.0))
    }

    pub(super) async fn meter_of(
        &self,
        meter: &MeterName,
    ) -> Result<Option<contract::MeterState>, Error> {
        Ok(self.store.inspect(vec![meter.clone()]).await?.pop().flatten())
    }

    pub(super) async fn reopen(&self, meter: MeterName) -> Result<(), Error> {
        self.store.reopen(meter.clone()).await?;
        self.crowds.wake(&meter.0, meter.1.as_ref());
        Ok(())
    }

    pub(super) async fn reset(&self, meter: MeterName) -> Result<(), Error> {
        self.store.reset(meter.clone()).await??;
        self.crowds.wake(&meter.0, meter.1.as_ref());
        Ok(())
    }

    /// When a call of weight 1 would pass, if nobody else asks; `None` if no one can know.
    async fn next_admission(&self, (limit, partition): MeterName) -> Result<Option<Span>, Error> {
        let toll = tollgate_core::Toll { limit, partition, weight: 1, hears_feedback: false };
        let (priority, delay_max, life) = (tollgate_core::Priority::default(), None, Span::ZERO);
        let ask = contract::Ask { tolls: [toll].into(), priority, delay_max, life };
        let answer = self.store.peek(vec![ask]).await?.pop();
        Ok(match answer {
            Some(Err(contract::AskError::Refused(refusal))) => match refusal.opening {
                Opening::At(at) => Some(at.since(refusal.now)),
                Opening::OnRelease => None,
            },
            _ => Some(Span::ZERO),
        })
    }
}

fn named(limit: &str, partition: Option<&str>) -> Result<MeterName, Error> {
    Ok((LimitName::new(limit)?, partition.map(Partition::new).transpose()?))
}

fn unknown(limit: &str) -> Error {
    AskError::UnknownLimit { name: limit.chars().take(128).collect() }.into()
}
