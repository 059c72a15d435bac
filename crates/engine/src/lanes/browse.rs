//! Looking at what a store has, page by page.

use super::Engine;
use crate::error::Error;
use tollgate_core::contract::{CallView, CallsQuery, LaneState, Lanes, PAGE_MAX, QueueState};
use tollgate_core::lanes::CallId;
use tollgate_core::{LaneName, QueueName};

impl<S: Lanes + 'static> Engine<S> {
    /// Queues by name, after one, up to 1,000.
    pub async fn queues(&self, after: Option<&str>, most: usize) -> Result<Vec<QueueState>, Error> {
        let after = after.map(QueueName::new).transpose()?;
        Ok(self.parts.store.queues(after, most).await?)
    }

    /// A queue, and how much is in it; `None` if there is none of that name.
    pub async fn queue_state(&self, queue: &str) -> Result<Option<QueueState>, Error> {
        let (queue, mut after) = (QueueName::new(queue)?, None);
        loop {
            let page = self.parts.store.queues(after, PAGE_MAX).await?;
            let (is_last, last) = (page.len() < PAGE_MAX, page.last().map(|it| it.name.clone()));
            if let Some(found) = page.into_iter().find(|state| state.name == queue) {
                return Ok(Some(found));
            }
            if is_last || last.as_ref().is_none_or(|last| *last > queue) {
                return Ok(None);
            }
            after = last;
        }
    }

    /// Lanes of a queue by name, after one, up to 1,000; `None` if there is no such queue.
    pub async fn lanes(
        &self,
        queue: &str,
        after: Option<&str>,
        most: usize,
    ) -> Result<Option<Vec<LaneState>>, Error> {
        let (queue, after) = (QueueName::new(queue)?, after.map(LaneName::new).transpose()?);
        Ok(self.parts.store.lanes(queue, after, most).await?)
    }

    /// Calls of a queue in the order in which they were accepted, up to 1,000.
    pub async fn calls(&self, query: CallsQuery) -> Result<Vec<CallView>, Error> {
        Ok(self.parts.store.calls(query).await?)
    }

    /// A call as it is; `None` if it ended for good or never was.
    pub async fn call(&self, call: CallId) -> Result<Option<CallView>, Error> {
        Ok(self.parts.store.look(vec![call]).await?.pop().flatten())
    }

    /// What was handed in with a call; `None` if it ended for good or never was.
    pub async fn body(&self, call: CallId) -> Result<Option<Box<[u8]>>, Error> {
        Ok(self.parts.store.bodies(vec![call]).await?.pop().flatten())
    }
}
