//! Queues and their lanes: defined, looked at, held back and removed.

use crate::calls::{CallId, Page};
use crate::client::Client;
use crate::error::ClientError;
use crate::limits::{PAGE, if_known};
use crate::path::{path, with_query};
use crate::wire::queue::{QueuePageWire, QueueStateWire, QueueWire};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use tollgate_core::QueueName;
use tollgate_core::contract::QueueState;
use tollgate_core::lanes::QueueSpec;

/// A lane of which something is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct LaneState {
    /// Its name.
    pub name: String,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// An operator holds it back.
    #[serde(rename = "paused")]
    pub is_paused: bool,
    /// A dead call holds it.
    #[serde(rename = "held")]
    pub is_held: bool,
    /// How many times as much it is served as others.
    pub weight: u32,
    /// The call that may start next.
    pub head: Option<CallId>,
}

#[derive(Deserialize)]
struct LanePageWire {
    lanes: Vec<LaneState>,
    next: Option<String>,
}

impl Client {
    /// Defines a queue, or changes it: at once, for waiting calls, too.
    pub async fn queue(&self, name: &str, spec: QueueSpec) -> Result<(), ClientError> {
        let wire = QueueWire::try_from(&spec)
            .map_err(|error| ClientError::Invalid { reason: error.to_string() })?;
        let _: IgnoredAny = self.put(path(&["queues", name]), &wire).await?;
        Ok(())
    }

    /// Removes a queue that has no calls.
    pub async fn remove_queue(&self, name: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.delete(path(&["queues", name])).await?;
        Ok(())
    }

    /// A queue, and how much is in it; `None` if there is none of that name.
    pub async fn queue_state(&self, queue: &str) -> Result<Option<QueueState>, ClientError> {
        let answer = self.fetch(path(&["queues", queue])).await;
        let state: Option<QueueStateWire> = if_known(answer, "unknown_queue")?;
        state.map(|state| self.read_queue(state)).transpose()
    }

    /// All queues, sorted by name.
    pub async fn queues(&self) -> Result<Vec<QueueState>, ClientError> {
        let mut queues = Vec::new();
        let mut after = None;
        loop {
            let query = [("after", after.as_deref()), ("limit", Some(PAGE))];
            let page: QueuePageWire = self.fetch(with_query(path(&["queues"]), &query)).await?;
            for state in page.queues {
                queues.push(self.read_queue(state)?);
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(queues),
            }
        }
    }

    fn read_queue(&self, wire: QueueStateWire) -> Result<QueueState, ClientError> {
        let read = |wire: QueueStateWire| -> Result<_, String> {
            Ok(QueueState {
                name: QueueName::new(&wire.name).map_err(|error| error.to_string())?,
                spec: wire.definition.try_into()?,
                is_paused: wire.paused,
                waiting: wire.waiting,
                in_flight: wire.in_flight,
                dead: wire.dead,
                lanes: wire.lanes,
            })
        };
        read(wire)
            .map_err(|error| ClientError::Protocol { url: self.url().to_owned(), reason: error })
    }

    /// Lanes of a queue by name, after one.
    pub async fn lanes(
        &self,
        queue: &str,
        after: Option<&str>,
    ) -> Result<Page<LaneState>, ClientError> {
        let query = [("after", after), ("limit", Some(PAGE))];
        let page: LanePageWire =
            self.fetch(with_query(path(&["queues", queue, "lanes"]), &query)).await?;
        Ok(Page { items: page.lanes, next: page.next })
    }

    /// Holds back a queue: none of its calls start.
    pub async fn pause_queue(&self, queue: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["queues", queue, "pause"])).await?;
        Ok(())
    }

    /// Lets a queue go on.
    pub async fn resume_queue(&self, queue: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["queues", queue, "resume"])).await?;
        Ok(())
    }

    /// Holds back a lane.
    pub async fn pause_lane(&self, queue: &str, lane: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["queues", queue, "lanes", lane, "pause"])).await?;
        Ok(())
    }

    /// Lets a lane go on, also one that a dead call holds.
    pub async fn resume_lane(&self, queue: &str, lane: &str) -> Result<(), ClientError> {
        let _: IgnoredAny = self.act(path(&["queues", queue, "lanes", lane, "resume"])).await?;
        Ok(())
    }

    /// Serves a lane so many times as much as others at meters where both wait.
    pub async fn weigh(&self, queue: &str, lane: &str, weight: u32) -> Result<(), ClientError> {
        let path = path(&["queues", queue, "lanes", lane]);
        let _: IgnoredAny = self.put(path, &json!({"weight": weight})).await?;
        Ok(())
    }
}
