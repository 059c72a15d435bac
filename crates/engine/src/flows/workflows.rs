//! Workflows: tasks that depend on each other, each a call of its type's queue, under the limits of its type.
//!
//! A workflow is registered as data, and a run of it is a record: how far each task is. When a task ends, what
//! follows is decided by the core over that record and what tasks gave, and made in one act with the settlement.
//! Items of a map do not touch the record: each counts down a join. What is to be done without a worker's hand (all
//! items are done, the time is over, a run may begin that had to wait) is a call in a queue of its own, which every
//! worker of tasks serves as well.

mod card;
mod foreign;
mod keeper;
mod moved;
mod record;
mod register;
mod rerun;
mod settled;
mod start;
mod tasks;
mod written;

pub use card::Card as TaskCard;
pub use foreign::ClaimedTask;
pub use register::Registered;
pub use tasks::{TaskFailure, TaskJob, TaskOutcome, TaskWorker};
pub use written::WorkflowText;

#[cfg(feature = "test-kit")]
pub(super) use keeper::done as kept;
pub(super) use record::{StateRecord, WorkflowRun};
#[cfg(feature = "test-kit")]
pub(super) use tasks::made as tasked;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tollgate_core::flow::workflow::Workflow;
use tollgate_core::{NameError, QueueName};

/// Where that is which needs no worker's hand.
pub(super) const KEEPER: &str = "tollgate:runs";
/// How the queues of tasks begin.
pub(super) const TASKS: &str = "task/";
/// How many runs may be changed at a time.
const CHANGING: u64 = 1_024;
/// How many workflows are kept at hand.
const AT_HAND_MAX: usize = 1_000;

/// Workflows by name and version, as they were read: a version never changes.
pub(crate) struct AtHand {
    workflows: Mutex<HashMap<(String, u32), Arc<Workflow>>>,
    /// Held by whoever changes a run; runs that share one are seldom changed at once.
    changing: Vec<tokio::sync::Mutex<()>>,
    hashing: RandomState,
}

impl Default for AtHand {
    fn default() -> Self {
        let changing = (0..CHANGING).map(|_| tokio::sync::Mutex::default()).collect();
        Self { workflows: Mutex::default(), changing, hashing: RandomState::new() }
    }
}

impl AtHand {
    /// Lets no one else of this process change a run.
    async fn change(&self, run: &str) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let place = self.hashing.hash_one(run) % CHANGING;
        let changing = self.changing.get(usize::try_from(place).ok()?)?;
        Some(changing.lock().await)
    }

    fn find(&self, name: &str, version: u32) -> Option<Arc<Workflow>> {
        self.workflows.lock().get(&(name.to_owned(), version)).cloned()
    }

    fn keep(&self, version: u32, workflow: &Arc<Workflow>) {
        let mut kept = self.workflows.lock();
        if kept.len() >= AT_HAND_MAX {
            kept.clear();
        }
        kept.insert((workflow.name().to_owned(), version), workflow.clone());
    }
}

/// Where a workflow is, of its last version or of one.
fn workflow_key(name: &str, version: Option<u32>) -> String {
    match version {
        Some(version) => format!("tollgate/workflow/{name}/{version}"),
        None => format!("tollgate/workflow/{name}"),
    }
}

/// Where the input of a run is, or what a task of it gave.
pub(super) fn output_key(run: &str, task: Option<&str>) -> String {
    match task {
        Some(task) => format!("tollgate/output/{run}/{task}"),
        None => format!("tollgate/output/{run}"),
    }
}

/// Where that is which an item of a map gave.
fn item_key(run: &str, task: &str, turn: u64, item: u32) -> String {
    format!("tollgate/output/{run}/{task}/{turn}.{item}")
}

/// The join of a map's items.
fn items_key(run: &str, task: &str, turn: u64) -> String {
    format!("tollgate/join/{run}/{turn}/{task}")
}

/// Which run of a workflow has an idempotency key.
pub(super) fn idempotency_key(workflow: &str, key: &str) -> String {
    format!("tollgate/idempotency/{workflow}/{key}")
}

/// How many runs of a workflow live, where that is bounded.
fn live_key(workflow: &str) -> String {
    format!("tollgate/live/{workflow}")
}

/// The runs of a workflow that wait to begin are named so, in their order.
fn pending_key(workflow: &str, run: &str) -> String {
    format!("tollgate/pending/{workflow}/{run}")
}

/// Where the calls of tasks of a type are.
pub(super) fn task_queue(type_name: &str) -> Result<QueueName, NameError> {
    QueueName::new(&format!("{TASKS}{type_name}"))
}
