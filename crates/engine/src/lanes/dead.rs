//! Dead calls: looked at, revived or deleted, one by one or in bulk.
//!
//! In bulk at a rate is a row of instants: each call is told when it joins its lane again. So the rate
//! holds over a restart, and those that are not revived yet stay where they are seen.

use super::{Engine, Parts};
use crate::error::Error;
use tollgate_core::contract::{CallState, CallView, CallsQuery, Lanes};
use tollgate_core::lanes::{Act, CallId, Revive};
use tollgate_core::{LaneName, QueueName, Span};

/// How many are changed in one act.
const PAGE: usize = 1_000;

impl<S: Lanes + 'static> Engine<S> {
    /// The dead calls of a queue, or of one of its lanes, after one, up to 1,000.
    pub async fn dead(
        &self,
        queue: &str,
        lane: Option<&str>,
        after: Option<CallId>,
        most: usize,
    ) -> Result<Vec<CallView>, Error> {
        let (queue, lane) = (QueueName::new(queue)?, lane.map(LaneName::new).transpose()?);
        self.parts.dead(&queue, lane.as_ref(), after, most).await
    }

    /// Lets dead calls wait again, as if they were new; says of each whether it was dead.
    pub async fn revive(&self, calls: Vec<CallId>) -> Result<Vec<bool>, Error> {
        let revive = calls.into_iter().map(|call| Revive { call, not_before: None }).collect();
        Ok(self.act(Act { revive, ..Act::default() }).await?.revived)
    }

    /// Lets all dead calls of a queue, or of one of its lanes, wait again, one every so often; says how
    /// many. If the queue is full on the way, the rest stays dead, and that is said instead.
    pub async fn revive_all(
        &self,
        queue: &str,
        lane: Option<&str>,
        every: impl Into<Span>,
    ) -> Result<u64, Error> {
        let (every, start) = (every.into(), self.now().await?.wall);
        self.for_dead(queue, lane, |nth, call| {
            let after = Span::from_nanos(every.as_nanos().saturating_mul(nth));
            let not_before = (!after.is_zero()).then(|| start.plus(after));
            Change::Revive(Revive { call, not_before })
        })
        .await
    }

    /// Deletes all dead calls of a queue, or of one of its lanes; says how many.
    pub async fn delete_dead(&self, queue: &str, lane: Option<&str>) -> Result<u64, Error> {
        self.for_dead(queue, lane, |_, call| Change::Delete(call)).await
    }

    /// Changes each dead call, in the order in which they were accepted; says of how many that came true.
    async fn for_dead(
        &self,
        queue: &str,
        lane: Option<&str>,
        mut change: impl FnMut(u64, CallId) -> Change + Send,
    ) -> Result<u64, Error> {
        let (queue, lane) = (QueueName::new(queue)?, lane.map(LaneName::new).transpose()?);
        let (mut after, mut found, mut changed) = (None, 0, 0);
        loop {
            let dead = self.parts.dead(&queue, lane.as_ref(), after, PAGE).await?;
            let Some(last) = dead.last() else { return Ok(changed) };
            after = Some(last.id);
            let mut act = Act::default();
            for call in &dead {
                match change(found, call.id) {
                    Change::Revive(revive) => act.revive.push(revive),
                    Change::Delete(call) => act.delete.push(call),
                }
                found += 1;
            }
            let acted = self.act(act).await?;
            let is_so = acted.deleted.iter().chain(&acted.revived).filter(|was_dead| **was_dead);
            changed += is_so.count() as u64;
        }
    }
}

enum Change {
    Revive(Revive),
    Delete(CallId),
}

impl<S: Lanes> Parts<S> {
    async fn dead(
        &self,
        queue: &QueueName,
        lane: Option<&LaneName>,
        after: Option<CallId>,
        most: usize,
    ) -> Result<Vec<CallView>, Error> {
        let (queue, lane) = (queue.clone(), lane.cloned());
        let query = CallsQuery { queue, lane, state: Some(CallState::Dead), after, most };
        Ok(self.store.calls(query).await?)
    }
}
