//! Why a task, or a run, fails by its input.

use super::ITEMS_MAX;
use super::input_path::InputPath;
use crate::lanes::act::BODY_BYTES_MAX;
use crate::name::{LimitName, NameError};

/// Why a task cannot start with its input: it has failed for good, for its input stays what it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// There is no such task.
    #[error("the workflow has no task {task}: it was changed under its run")]
    Unknown {
        /// Which.
        task: String,
    },
    /// Something is to be read from its input, which is not JSON.
    #[error("task {task} reads its input, which is not JSON: send JSON")]
    InputNotJson {
        /// Which.
        task: String,
    },
    /// What a task gave is not JSON, and cannot be put together with what others gave.
    #[error("task {task} needs what {need} gave, which is not JSON: let {need} give JSON")]
    OutputNotJson {
        /// Which needs it.
        task: String,
        /// Which gave it.
        need: String,
    },
    /// What the tasks before gave is too much together.
    #[error(
        "the input of task {task} has {bytes} bytes, and the most is {BODY_BYTES_MAX}: let the tasks before give where it is, and not all of it"
    )]
    InputTooLong {
        /// Which.
        task: String,
        /// How much.
        bytes: usize,
    },
    /// Its input does not say at which partition it owes.
    #[error(
        "task {task} reads its partition at {limit} from {path}, where its input has {found}: send a text of 1 to 512 bytes or a whole number there"
    )]
    NoPartition {
        /// Which.
        task: String,
        /// At which limit.
        limit: LimitName,
        /// From where it is read.
        path: InputPath,
        /// What is there.
        found: String,
    },
    /// Its input does not say how much it owes.
    #[error(
        "task {task} reads its weight at {limit} from {path}, where its input has {found}: send a whole number from 1 on there"
    )]
    NoWeight {
        /// Which.
        task: String,
        /// At which limit.
        limit: LimitName,
        /// From where it is read.
        path: InputPath,
        /// What is there.
        found: String,
    },
    /// Its input does not have the list.
    #[error(
        "task {task} maps over {path}, where its input has {found}: send a list there, [] for nothing to do"
    )]
    NoList {
        /// Which.
        task: String,
        /// Where the list was to be.
        path: InputPath,
        /// What is there.
        found: String,
    },
    /// The list is too long.
    #[error(
        "task {task} maps over {path}, a list of {items} items, and the most is {ITEMS_MAX}: split the list, or put several into an item"
    )]
    TooManyItems {
        /// Which.
        task: String,
        /// Where the list is.
        path: InputPath,
        /// How many.
        items: usize,
    },
    /// One of the items of its map cannot start.
    #[error("item [{item}] of the list: {source}")]
    Item {
        /// Which, counted from 0 as in paths.
        item: usize,
        /// Why not.
        source: Box<TaskError>,
    },
    /// The run's id names no partition.
    #[error("task {task} counts for its run, whose id cannot be a partition: {source}")]
    Run {
        /// Which.
        task: String,
        /// Why not.
        source: NameError,
    },
}

impl TaskError {
    pub(super) fn of_item(self, item: usize) -> Self {
        Self::Item { item, source: Box::new(self) }
    }
}

/// Why a run cannot start with its input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It is not JSON.
    #[error("the workflow {workflow} reads the input of its runs, which is not JSON: send JSON")]
    InputNotJson {
        /// Which workflow.
        workflow: String,
    },
    /// It does not have the idempotency key.
    #[error(
        "the workflow {workflow} reads its idempotency key from {path}, where the input has {found}: send a text of 1 to 512 bytes or a whole number there"
    )]
    NoKey {
        /// Which workflow.
        workflow: String,
        /// From where it is read.
        path: InputPath,
        /// What is there.
        found: String,
    },
}
