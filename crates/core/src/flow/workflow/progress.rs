//! How far a run is: the state of each task, and nothing of what they gave.

use super::Workflow;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskState {
    /// Something that it needs has not ended.
    #[default]
    Waiting,
    /// It was started.
    Running {
        /// How many items it has; `None`: it maps over nothing.
        items: Option<u32>,
    },
    /// It gave something.
    Done {
        /// How many items it had; `None`: it maps over nothing.
        items: Option<u32>,
    },
    /// It was not to be done: its condition was false, or all that it needs was skipped.
    Skipped,
    /// It failed for good, and with it the run.
    Failed,
    /// The run ended before it did.
    Cancelled,
}

impl TaskState {
    /// Whether nothing more comes of it in this run.
    pub fn is_ended(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running { .. })
    }

    /// Whether those that need it may go on.
    pub fn lets_go_on(self) -> bool {
        matches!(self, Self::Done { .. } | Self::Skipped)
    }

    /// The state of a name, as [`as_str`](Self::as_str) says it, with its items; `None` if there is none such.
    pub fn from_words(name: &str, items: Option<u32>) -> Option<Self> {
        let states = [
            Self::Waiting,
            Self::Running { items },
            Self::Done { items },
            Self::Skipped,
            Self::Failed,
            Self::Cancelled,
        ];
        states.into_iter().find(|state| state.as_str() == name && state.items() == items)
    }

    /// Its name in JSON, pictures and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running { .. } => "running",
            Self::Done { .. } => "done",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// How many items it has, if it is a map that was started.
    pub fn items(self) -> Option<u32> {
        match self {
            Self::Running { items } | Self::Done { items } => items,
            _ => None,
        }
    }
}

/// How far each task of a run is.
///
/// It is of one workflow: with another one it means nothing. A caller keeps the states and makes it from
/// them again.
// Invariant: `states` stand in the order of the tasks; `waits` is how many of those that a task needs do not
// let go on; `left` is how many states have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    pub(super) states: Box<[TaskState]>,
    pub(super) waits: Box<[usize]>,
    pub(super) left: usize,
}

/// Why states are not those of a run of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// There are more or fewer than tasks.
    #[error(
        "there are {states} states for the {tasks} tasks of {workflow}: they are of another version of it"
    )]
    Count {
        /// Of which workflow.
        workflow: String,
        /// How many states.
        states: usize,
        /// How many tasks.
        tasks: usize,
    },
    /// A task is further than what it needs.
    #[error(
        "task {task} is {state}, but {need}, which it needs, is {need_state}: the states are of another version of the workflow"
    )]
    Ahead {
        /// Which.
        task: String,
        /// How far it is.
        state: &'static str,
        /// What it needs.
        need: String,
        /// How far that is.
        need_state: &'static str,
    },
    /// A task has items and maps over nothing, or the other way round.
    #[error(
        "task {task} and its state do not agree on whether it maps over a list: the states are of another version of the workflow"
    )]
    Items {
        /// Which.
        task: String,
    },
}

impl Progress {
    /// That of a run that has not started.
    pub fn new(workflow: &Workflow) -> Self {
        Self::of(workflow, vec![TaskState::Waiting; workflow.tasks().len()].into())
    }

    /// That of a run whose tasks are so far, in the order of the workflow.
    pub fn from_states(workflow: &Workflow, states: Vec<TaskState>) -> Result<Self, ProgressError> {
        let tasks = workflow.tasks().len();
        if states.len() != tasks {
            let (workflow, states) = (workflow.name().to_owned(), states.len());
            return Err(ProgressError::Count { workflow, states, tasks });
        }
        for (place, state) in states.iter().enumerate() {
            check_state(workflow, &states, place, *state)?;
        }
        Ok(Self::of(workflow, states.into()))
    }

    /// How far the tasks are, in the order of the workflow.
    pub fn states(&self) -> &[TaskState] {
        &self.states
    }

    /// How far a task is; `None` if there is no such task.
    pub fn state(&self, workflow: &Workflow, task: &str) -> Option<TaskState> {
        self.states.get(workflow.place_of(task)?).copied()
    }

    /// Whether every task has ended, and so the run.
    pub fn is_over(&self) -> bool {
        self.left == 0
    }

    pub(super) fn of(workflow: &Workflow, states: Box<[TaskState]>) -> Self {
        let waits = workflow
            .nodes
            .iter()
            .map(|node| node.needs.iter().filter(|need| !states[**need].lets_go_on()).count());
        let waits = waits.collect();
        let left = states.iter().filter(|state| !state.is_ended()).count();
        Self { states, waits, left }
    }
}

/// Refuses a state that no run could have come to.
fn check_state(
    workflow: &Workflow,
    states: &[TaskState],
    place: usize,
    state: TaskState,
) -> Result<(), ProgressError> {
    let (node, task) = (&workflow.nodes[place], || workflow.name_at(place).to_owned());
    if matches!(state, TaskState::Running { .. } | TaskState::Done { .. })
        && state.items().is_some() != node.map.is_some()
    {
        return Err(ProgressError::Items { task: task() });
    }
    if matches!(state, TaskState::Waiting | TaskState::Cancelled) {
        return Ok(());
    }
    match node.needs.iter().find(|need| !states[**need].lets_go_on()) {
        None => Ok(()),
        Some(need) => Err(ProgressError::Ahead {
            task: task(),
            state: state.as_str(),
            need: workflow.name_at(*need).to_owned(),
            need_state: states[*need].as_str(),
        }),
    }
}
