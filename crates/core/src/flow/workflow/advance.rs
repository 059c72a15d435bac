//! What follows when something happened in a run.
//!
//! The rules are decisions, each made so that what a run gives depends on its workflow and on what its tasks
//! gave, and not on the order in which they ended:
//!
//! - A task starts when all that it needs is done or skipped, and something of it is done. If all of it was
//!   skipped, so is the task: a branch that was not taken is not taken to its end.
//! - Its input is the run's input if it needs nothing, what the one task gave that it needs, or an object of
//!   what several gave, by name, without those that were skipped. It is an object also if one is left: who
//!   reads it need not know what was skipped.
//! - A condition that is false skips the task. One that cannot be read, for the input is not JSON, fails it.
//! - A map over an empty list is done with `[]`. One over no list fails.
//! - A task whose input does not say what it owes fails before any call of it is there.
//! - A task that failed for good fails the run: what has not started never does, what runs is cancelled.
//! - A run gives what the one task gave that none needs, null if that was skipped; or an object of what
//!   several gave, by name.

mod run;

use super::Workflow;
use super::progress::{Progress, TaskState};
use super::task::Task;
use crate::tolls::Tolls;
use run::Move;
use std::borrow::Cow;

/// What happened in a run.
///
/// What comes again, or too late, has happened already and changes nothing: a task that is not running
/// does not end. Whoever runs a task a second time ([`Progress::rerun_from`]) tells the ends of the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happened<'e> {
    /// It began.
    Started,
    /// A task that maps over nothing is done.
    Done {
        /// Which.
        task: &'e str,
    },
    /// All items of a map are done.
    ItemsDone {
        /// Of which task.
        task: &'e str,
    },
    /// A task, or an item of its map, failed for good.
    Failed {
        /// Which.
        task: &'e str,
        /// Why.
        reason: &'e str,
    },
    /// The run is to end: somebody wants it, or its time is over.
    Cancelled,
}

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source<'s> {
    /// The run's input.
    Run,
    /// What a task gave: of a map [the list](super::list_of).
    Task(&'s str),
}

/// Reads what a run was given and what its tasks gave; `None`: it was not loaded.
pub type Read<'a, 'r> = &'a dyn Fn(Source<'_>) -> Option<&'r [u8]>;

/// What is known of a run beside its progress.
#[derive(Clone, Copy)]
pub struct RunView<'a, 'r> {
    /// Its id: what its tasks owe for their run they owe at this partition.
    pub id: &'a str,
    /// What can be read of it.
    pub read: Read<'a, 'r>,
}

/// What is to be done now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Advanced<'w, 'r> {
    /// Tasks that start, in the order of the workflow.
    pub start: Vec<Start<'w, 'r>>,
    /// Tasks that run and are to stop. A map of which one item failed is among them, for its others may
    /// run on.
    pub cancel: Vec<&'w str>,
    /// How the run ended, told once.
    pub end: Option<RunEnd<'w, 'r>>,
}

/// A task that starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start<'w, 'r> {
    /// Which.
    pub task: &'w Task,
    /// With what.
    pub work: Work<'r>,
}

/// What a task has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work<'r> {
    /// One call.
    One(TaskCall<'r>),
    /// A call for each item, at least one, in their order.
    Items(Vec<TaskCall<'r>>),
}

/// A call that a task makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCall<'r> {
    /// What it gets.
    pub input: Cow<'r, [u8]>,
    /// What it owes each time it starts, as [`Workflow::tolls`] says.
    pub tolls: Tolls,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEnd<'w, 'r> {
    /// All tasks are done or skipped.
    Done {
        /// What it gave.
        output: Cow<'r, [u8]>,
    },
    /// A task failed for good.
    Failed {
        /// Which.
        task: &'w str,
        /// Why.
        reason: String,
    },
    /// It was to end.
    Cancelled,
}

/// Why a run did not move; it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError<'w> {
    /// Something is needed that was not loaded.
    #[error("{} things are to be read first: load them and ask again", sources.len())]
    Unread {
        /// What, each once.
        sources: Vec<Source<'w>>,
    },
    /// There is no such task.
    #[error("the workflow has no task {task}: it is of another version")]
    UnknownTask {
        /// Which.
        task: String,
    },
}

impl Progress {
    /// Moves a run on by what happened, and tells what is to be done. Costs what depends on the task that
    /// ended, not what the workflow has; a run's end costs all of it once.
    ///
    /// The same progress, outputs and thing that happened always give the same answer.
    pub fn advance<'w, 'r>(
        &mut self,
        workflow: &'w Workflow,
        happened: Happened<'_>,
        run: RunView<'_, 'r>,
    ) -> Result<Advanced<'w, 'r>, AdvanceError<'w>> {
        let mut going = Move::new(workflow, self, run);
        match happened {
            Happened::Started => going.consider_all(),
            Happened::Done { task } => {
                let place = place_of(workflow, task)?;
                if going.state(place) == (TaskState::Running { items: None }) {
                    going.done(place, None);
                }
            }
            Happened::ItemsDone { task } => {
                let place = place_of(workflow, task)?;
                if let TaskState::Running { items: Some(items) } = going.state(place) {
                    going.done(place, Some(items));
                }
            }
            Happened::Failed { task, reason } => {
                let place = place_of(workflow, task)?;
                if matches!(going.state(place), TaskState::Running { .. }) {
                    going.fail(place, reason.to_owned());
                }
            }
            Happened::Cancelled => return Ok(going.cancel()),
        }
        going.finish()
    }

    /// Does a task again, and with it all that depends on it, and what a failed or cancelled run had left;
    /// the rest stays as it is. What of it runs is to stop first.
    ///
    /// Without the last part a run that failed could never end.
    pub fn rerun_from<'w, 'r>(
        &mut self,
        workflow: &'w Workflow,
        task: &str,
        run: RunView<'_, 'r>,
    ) -> Result<Advanced<'w, 'r>, AdvanceError<'w>> {
        let mut states = self.states.clone();
        let mut cancel = Vec::new();
        let mut again = vec![place_of(workflow, task)?];
        let mut is_again = vec![false; states.len()];
        while let Some(place) = again.pop() {
            if !std::mem::replace(&mut is_again[place], true) {
                again.extend(&*workflow.nodes[place].dependents);
            }
        }
        for (place, state) in states.iter_mut().enumerate() {
            if is_again[place] || matches!(state, TaskState::Failed | TaskState::Cancelled) {
                if matches!(state, TaskState::Running { .. }) {
                    cancel.push(workflow.name_at(place));
                }
                *state = TaskState::Waiting;
            }
        }
        let mut progress = Self::of(workflow, states);
        let mut going = Move::new(workflow, &mut progress, run);
        going.consider_all();
        let mut advanced = going.finish()?;
        advanced.cancel.append(&mut cancel);
        *self = progress;
        Ok(advanced)
    }
}

fn place_of<'w>(workflow: &Workflow, task: &str) -> Result<usize, AdvanceError<'w>> {
    let unknown = || AdvanceError::UnknownTask { task: task.to_owned() };
    workflow.place_of(task).ok_or_else(unknown)
}
