//! Looking at what a store has, page by page.

use super::{Engine, Parts};
use crate::error::Error;
use tollgate_core::contract::{CallView, CallsQuery, LaneState, Lanes, QueueState, Totals};
use tollgate_core::lanes::{CallId, Payload};
use tollgate_core::{LaneName, QueueName};

/// How many queues are looked at for one: it is the first, but for names that nobody has.
const FEW: usize = 4;

impl<S: Lanes + 'static> Engine<S> {
    /// Queues by name, after one, up to 1,000.
    pub async fn queues(&self, after: Option<&str>, most: usize) -> Result<Vec<QueueState>, Error> {
        let after = after.map(QueueName::new).transpose()?;
        Ok(self.parts.store.queues(after, most).await?)
    }

    /// A queue, and how much is in it; `None` if there is none of that name.
    pub async fn queue_state(&self, queue: &str) -> Result<Option<QueueState>, Error> {
        self.parts.queue_named(&QueueName::new(queue)?).await
    }

    /// How many claims wait for calls of a queue, here.
    pub fn asking(&self, queue: &str) -> usize {
        self.parts.claims.count(queue, self.parts.pulse.clock.now())
    }

    /// What was counted since the store was opened, for each queue and each limit there is.
    pub async fn totals(&self) -> Result<Totals, Error> {
        Ok(self.parts.store.totals().await?)
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

    /// One lane of a queue; `None` if there is no such queue, or nothing is known of the lane.
    pub async fn lane(&self, queue: &str, lane: &str) -> Result<Option<LaneState>, Error> {
        Ok(self.parts.store.lane(QueueName::new(queue)?, LaneName::new(lane)?).await?)
    }

    /// Calls of a queue in the order in which they were accepted, up to 1,000.
    pub async fn calls(&self, query: CallsQuery) -> Result<Vec<CallView>, Error> {
        Ok(self.parts.store.calls(query).await?)
    }

    /// A call as it is; `None` if it ended for good or never was.
    pub async fn call(&self, call: CallId) -> Result<Option<CallView>, Error> {
        Ok(self.parts.store.look(vec![call]).await?.pop().flatten())
    }

    /// What was handed in with a call; `None` if it ended for good or never was, or if that is damaged.
    pub async fn payload(&self, call: CallId) -> Result<Option<Payload>, Error> {
        Ok(self.payloads(vec![call]).await?.pop().flatten())
    }

    /// The same of each of these: all of them are in memory at once.
    pub async fn payloads(&self, calls: Vec<CallId>) -> Result<Vec<Option<Payload>>, Error> {
        match calls.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.parts.store.payloads(calls).await?),
        }
    }
}

impl<S: Lanes> Parts<S> {
    /// The queue of that name.
    pub(super) async fn queue_named(&self, queue: &QueueName) -> Result<Option<QueueState>, Error> {
        // From just before it on, it is among the first.
        let mut after = just_before(queue);
        loop {
            let page = self.store.queues(after, FEW).await?;
            let (is_last, last) = (page.len() < FEW, page.last().map(|it| it.name.clone()));
            if let Some(found) = page.into_iter().find(|state| state.name == *queue) {
                return Ok(Some(found));
            }
            if is_last || last.as_ref().is_none_or(|last| last > queue) {
                return Ok(None);
            }
            after = last;
        }
    }
}

/// A name before this one, with next to none in between; `None` where that is the beginning.
fn just_before(name: &QueueName) -> Option<QueueName> {
    let mut text = name.to_string();
    let last = text.pop()?;
    let before = (0..u32::from(last)).rev().find_map(char::from_u32);
    if let Some(before) = before {
        text.push(before);
        text.push(char::MAX);
    }
    // Too long by the last letter: its page begins a little sooner.
    QueueName::new(&text).or_else(|_| QueueName::new(text.trim_end_matches(char::MAX))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_before_is_before() {
        let long = "x".repeat(512);
        for text in ["a", "b", "ab", "a\0", "\0", "\u{e000}", "ü", "a/b", &long] {
            let name = QueueName::new(text).unwrap();
            let before = just_before(&name);
            assert!(before.is_none_or(|before| before < name), "{text:?}");
        }
        let before = just_before(&QueueName::new("q").unwrap()).unwrap();
        assert!(before > QueueName::new("pzzz").unwrap());
    }
}
