//! Flows: durable step machines and workflows, with the limit on the step.
//!
//! A run is a record, and a call for its next step in a lane of its own. The call carries the state, so a step costs
//! what a call costs: a claim, and one act that settles it and hands in what follows. The record is looked at when the
//! run comes to wait, when something arrives for it, and when it ends; each of these is one act, too, made again if
//! somebody else was faster.

mod awaiting;
mod body;
mod browse;
mod cancel;
mod ending;
mod error;
#[cfg(feature = "test-kit")]
mod kit;
mod machine;
mod moves;
mod outcome;
mod panics;
mod record;
mod rerun;
mod result;
mod retention;
mod signal;
mod start;
mod timeline;
mod worker;
mod workflows;

pub use awaiting::AwaitingStep;
pub use browse::{RunState, RunView};
pub use cancel::Cancelled;
pub use error::FlowError;
#[cfg(feature = "test-kit")]
pub use kit::{Kit, KitError, WaitsFor};
pub use machine::{Child, Failure, Machine, Step, StepError};
pub use outcome::{ALONE, StepOutcome, children, done, limited, next, retry, stop, wait_for};
pub use record::{Ended, Ending};
pub use retention::ENDED_KEPT;
pub use signal::{Signal, Signalled};
pub use start::{Begun, NewRun};
pub use timeline::Attempt;
pub use worker::MachineWorker;
pub use workflows::{
    ClaimedTask, Registered, TaskCard, TaskFailure, TaskJob, TaskOutcome, TaskWorker, WorkflowText,
};

pub(crate) use retention::Sweeps;
pub(crate) use workflows::AtHand;

use crate::error::Error;
use crate::lanes::Engine;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::Run;
use tollgate_core::lanes::{Record, Revision, Write};
use tollgate_core::{Key, NameError, QueueName, Timestamp};

/// How the queues of steps begin.
const STEPS: &str = "machine/";
/// How often an act is made again because somebody else was faster.
const TRIES_MAX: u32 = 100;

/// The runs of a store.
pub struct Flows<S> {
    engine: Engine<S>,
}

impl<S> std::fmt::Debug for Flows<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flows").finish_non_exhaustive()
    }
}

impl<S> Clone for Flows<S> {
    fn clone(&self) -> Self {
        Self { engine: self.engine.clone() }
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// Those of a store.
    pub fn new(engine: &Engine<S>) -> Self {
        Self { engine: engine.clone() }
    }

    /// A machine's run that has not ended, and the revision of its record.
    async fn live(&self, run: &str) -> Result<Option<(Run, Revision)>, Error> {
        let Some(record) = self.engine.record(&run_key(run)).await? else { return Ok(None) };
        Ok(Some((ending::read(run, &record)?, record.revision)))
    }

    async fn records(&self, keys: Vec<Key>) -> Result<Vec<Option<Record>>, Error> {
        Ok(self.engine.store().records(keys).await?)
    }
}

/// Where a live run is.
fn run_key(run: &str) -> String {
    ["tollgate/run/", run].concat()
}

/// Where a run is that ended.
fn ended_key(run: &str) -> String {
    ["tollgate/ended/", run].concat()
}

/// Where the run of a correlation key is named.
fn correlation_key(machine: &str, key: &str) -> String {
    format!("tollgate/correlation/{machine}/{key}")
}

/// The join of the children of a run's wait.
fn join_key(run: &str, turn: u64) -> String {
    format!("tollgate/join/{run}/{turn}")
}

/// What a child is called.
fn child_id(run: &str, turn: u64, at: usize) -> String {
    format!("{run}.{turn}.{at}")
}

/// Where the calls of a machine's steps are.
fn queue_of(machine: &str, version: u32) -> Result<QueueName, NameError> {
    QueueName::new(&format!("{STEPS}{machine}@{version}"))
}

/// Whether the calls of a queue are those of runs: nobody else hands in there, and what becomes of them is said by
/// their machine or workflow.
pub fn is_of_runs(queue: &str) -> bool {
    queue.starts_with(STEPS) || queue.starts_with(workflows::TASKS) || queue == workflows::KEEPER
}

/// The type of the tasks of a queue; `None` if it has no tasks.
pub fn type_of(queue: &str) -> Option<&str> {
    queue.strip_prefix(workflows::TASKS)
}

/// A change of a record.
fn write(key: &str, expected: Revision, bytes: Option<Box<[u8]>>) -> Result<Write, NameError> {
    Ok(Write { key: Key::new(key)?, expected, bytes })
}

/// A name for a run that no other has: the time, so that runs stand in the order in which they began, and
/// chance. Twenty-three characters, as many as a name has without memory of its own.
fn new_id(wall: Timestamp) -> String {
    static CHANCE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let chance = CHANCE.hash_one(COUNT.fetch_add(1, Ordering::Relaxed)) >> 16;
    format!("{:011x}{chance:012x}", wall.as_nanos() / 1_000_000)
}
