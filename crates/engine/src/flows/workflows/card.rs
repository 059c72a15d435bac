//! What the call of a task carries in its envelope: of which run it is.

use super::KEEPER;
use crate::envelope::Envelope;
use crate::error::Error;
use crate::flows::record::not_ours;
use serde::{Deserialize, Serialize};
use tollgate_core::LaneName;
use tollgate_core::QueueName;
use tollgate_core::lanes::{NewCall, Payload};

/// Of which run and task a call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// Of which workflow.
    pub workflow: String,
    /// Of which version of it.
    pub version: u32,
    /// Of which run.
    pub run: String,
    /// How often the run was begun again before.
    pub turn: u64,
    /// Which task.
    pub task: String,
    /// Which item of a map, from 0, and of how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<(u32, u32)>,
}

impl Card {
    /// That of a call; `None` if it is not of a task.
    pub fn of(envelope: &Envelope) -> Option<Self> {
        serde_json::from_slice(&envelope.card).ok()
    }

    /// An input with this.
    pub(super) fn around(&self, input: &[u8]) -> Result<Payload, Error> {
        let card = serde_json::to_vec(self).map_err(|error| not_ours(&error))?;
        Envelope { card: card.into(), ..Envelope::default() }.around(input)
    }
}

/// What is to be done without a worker's hand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Chore {
    pub(super) run: String,
    pub(super) turn: u64,
    pub(super) what: ChoreKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChoreKind {
    /// All items of a map are done.
    Items { task: String },
    /// The time of the run is over.
    Timeout,
    /// The run had to wait for others, and begins.
    Begin,
}

impl Chore {
    /// The call that does it.
    pub(super) fn call(&self) -> Result<NewCall, Error> {
        let body = serde_json::to_vec(self).map_err(|error| not_ours(&error))?;
        let call = NewCall::new(QueueName::new(KEEPER)?, LaneName::new(&self.run)?);
        Ok(NewCall { payload: Payload::body_alone(&body), ..call })
    }

    pub(super) fn read(body: &[u8]) -> Result<Self, Error> {
        serde_json::from_slice(body).map_err(|error| not_ours(&error))
    }
}
