//! A run of a workflow as it is written down.

use crate::error::Error;
use crate::flows::record::not_ours;
use serde::{Deserialize, Serialize};
use tollgate_core::Timestamp;
use tollgate_core::contract::StoreError;
use tollgate_core::flow::workflow::{Progress, TaskState, Workflow};

/// How far a task is, and how many items it has if it maps.
pub(crate) type StateRecord = (String, Option<u32>);

/// A run of a workflow that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkflowRun {
    pub(crate) workflow: String,
    pub(crate) version: u32,
    pub(crate) began: Timestamp,
    /// How often it was begun again.
    #[serde(default)]
    pub(crate) turn: u64,
    /// Its idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// It waits for others to end.
    #[serde(default)]
    pub(crate) is_pending: bool,
    /// It is counted among those that live, where only so many may.
    #[serde(default)]
    pub(crate) has_place: bool,
    pub(crate) states: Vec<StateRecord>,
}

impl WorkflowRun {
    pub(crate) fn written(&self) -> Result<Box<[u8]>, Error> {
        Ok(serde_json::to_vec(self).map_err(|error| not_ours(&error))?.into())
    }

    /// A run of a workflow, if that is what is written here.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    pub(super) fn progress(&self, workflow: &Workflow) -> Result<Progress, Error> {
        progress(workflow, &self.states)
    }
}

/// How a run stands.
pub(super) fn progress(workflow: &Workflow, states: &[StateRecord]) -> Result<Progress, Error> {
    let broken = |reason: String| Error::from(StoreError::Failed { reason });
    let state = |(name, items): &StateRecord| TaskState::from_words(name, *items);
    let states: Option<Vec<_>> = states.iter().map(state).collect();
    let states = states.ok_or_else(|| broken("a run's record has an unknown state".to_owned()))?;
    Progress::from_states(workflow, states).map_err(|error| broken(error.to_string()))
}

/// As it is written down.
pub(super) fn states(progress: &Progress) -> Vec<StateRecord> {
    let state = |state: &TaskState| (state.as_str().to_owned(), state.items());
    progress.states().iter().map(state).collect()
}
