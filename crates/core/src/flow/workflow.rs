//! Workflows: tasks that come one after the other, as far as they depend on each other.
//!
//! A workflow is data that was checked once. What follows when a task ends is a pure function of it, of
//! the [`Progress`] of a run and of what tasks gave: nothing here waits, starts or keeps anything.

mod advance;
mod check;
mod condition;
mod decimal;
mod error;
mod graph;
mod input;
mod input_path;
mod limits;
mod owed;
mod picture;
mod progress;
#[cfg(test)]
mod properties;
mod task;
mod task_error;
#[cfg(test)]
mod tests;

pub use advance::{
    AdvanceError, Advanced, Happened, Read, RunEnd, RunView, Source, Start, TaskCall, Work,
};
pub use condition::CONDITION_BYTES_MAX;
pub use error::WorkflowError;
pub use input::list_of;
pub use input_path::InputPath;
pub use progress::{Progress, ProgressError, TaskState};
pub use task::{
    Comparison, KeyedRateLimit, RateLimit, Retry, RetryKind, TASK_TIMEOUT_DEFAULT, Task,
    TaskPartition, TaskToll, TaskWeight, When,
};
pub use task_error::{RunError, TaskError};

use crate::limit::Definition;
use crate::name::LimitName;
use crate::rule::PERIOD_MAX;
use crate::time::Span;
use crate::tolls::Tolls;
use condition::Condition;
use owed::Owed;
use std::collections::BTreeMap;

/// Most tasks of a workflow: a run's record holds the state of each, and a picture shows them.
pub const TASKS_MAX: usize = 1_000;
/// Most items of a map: all of them are enqueued at once.
pub const ITEMS_MAX: usize = 10_000;
/// Longest name of a workflow, a task or a type: keys and names of limits are made of them.
pub const NAME_BYTES_MAX: usize = 128;
/// Most attempts of a task: with a wait of a minute, these are two months.
pub const ATTEMPTS_MAX: u32 = 100_000;
/// Longest timeout and longest wait after a failure.
pub const TIMEOUT_MAX: Span = PERIOD_MAX;

/// A workflow as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowSpec {
    /// Its name.
    pub name: String,
    /// Its tasks, in the order in which they are shown.
    pub tasks: Vec<Task>,
    /// How long a run may take; `None`: as long as its tasks do.
    pub timeout: Option<Span>,
    /// How many runs of it may live at a time.
    pub runs_max: Option<u64>,
    /// How many tasks of one run may run at a time; each item of a map is one.
    pub tasks_max: Option<u64>,
    /// Where the run's input has the key that makes a second run of the same answer with the first.
    pub idempotency: Option<String>,
}

/// A workflow that was checked: every path can be read, every dependency is there, and none waits for
/// itself.
///
/// ```
/// use tollgate_core::Span;
/// use tollgate_core::flow::workflow::{Task, Workflow};
///
/// let summarise = Workflow::new("summarise")
///     .task(
///         Task::new("call-llm", "llm.chat")
///             .timeout(Span::from_secs(60))
///             .rate_limit(10, Span::from_minutes(1)),
///     )
///     .task(Task::new("mail", "mail.send").after("call-llm"))
///     .build()?;
/// assert_eq!(summarise.limits()[0].0.as_str(), "task/llm.chat");
/// # Ok::<(), tollgate_core::flow::workflow::WorkflowError>(())
/// ```
// Invariant: `nodes` stand in the order of the tasks, `by_name` has their places, and what they need
// makes no circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    spec: WorkflowSpec,
    nodes: Box<[Node]>,
    by_name: BTreeMap<Box<str>, usize>,
    /// The tasks that none comes after: what they give is what a run gives.
    last: Box<[usize]>,
    limits: Box<[(LimitName, Definition)]>,
    idempotency: Option<InputPath>,
}

/// What was found out about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    needs: Box<[usize]>,
    /// Those that need it.
    dependents: Box<[usize]>,
    when: Option<Condition>,
    map: Option<InputPath>,
    owed: Box<[Owed]>,
}

impl WorkflowSpec {
    /// One task more.
    #[must_use]
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// How long a run may take.
    #[must_use]
    pub fn timeout(self, timeout: impl Into<Span>) -> Self {
        Self { timeout: Some(timeout.into()), ..self }
    }

    /// How many runs may live at a time.
    #[must_use]
    pub fn runs_max(self, runs: u64) -> Self {
        Self { runs_max: Some(runs), ..self }
    }

    /// How many tasks of one run may run at a time.
    #[must_use]
    pub fn tasks_max(self, tasks: u64) -> Self {
        Self { tasks_max: Some(tasks), ..self }
    }

    /// Where the run's input has the key that makes a second run of the same answer with the first.
    #[must_use]
    pub fn idempotency(self, path: &str) -> Self {
        Self { idempotency: Some(path.to_owned()), ..self }
    }

    /// Checks all of it.
    pub fn build(self) -> Result<Workflow, WorkflowError> {
        check::build(self)
    }
}

impl Workflow {
    /// The start of a sentence that ends with [`build`](WorkflowSpec::build).
    #[expect(clippy::new_ret_no_self, reason = "a workflow is there once it was checked")]
    pub fn new(name: &str) -> WorkflowSpec {
        WorkflowSpec {
            name: name.to_owned(),
            tasks: Vec::new(),
            timeout: None,
            runs_max: None,
            tasks_max: None,
            idempotency: None,
        }
    }

    /// As it was written.
    pub fn spec(&self) -> &WorkflowSpec {
        &self.spec
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// Its tasks.
    pub fn tasks(&self) -> &[Task] {
        &self.spec.tasks
    }

    /// The task of a name.
    pub fn task(&self, name: &str) -> Option<&Task> {
        self.place_of(name).and_then(|place| self.spec.tasks.get(place))
    }

    /// The limits that it defines: `task/<type>` for the rate of a type, `task-slots/<type>` for how many of it
    /// run at a time, `run-tasks/<workflow>`, partitioned by run, for how many tasks of a run do. How
    /// many runs live is not among them: a run holds no lease that could hold a slot.
    pub fn limits(&self) -> &[(LimitName, Definition)] {
        &self.limits
    }

    /// What a call of a task owes; with a map each item, which then is the input.
    ///
    /// Retries are attempts of the call and pay again. What the input does not say is a failure of the task
    /// with what was found: it never pays at another's meter instead.
    pub fn tolls(&self, task: &str, input: &[u8], run: &str) -> Result<Tolls, TaskError> {
        let unknown = || TaskError::Unknown { task: task.to_owned() };
        let node = self.place_of(task).and_then(|place| self.nodes.get(place));
        owed::resolve(task, &node.ok_or_else(unknown)?.owed, input, run)
    }

    /// The idempotency key of a run with this input; `None` if the workflow has none.
    ///
    /// An input that lacks it is refused: a run without its key would be made twice unseen.
    pub fn idempotency_key(&self, input: &[u8]) -> Result<Option<String>, RunError> {
        let key = |path| owed::idempotency_key(self.name(), path, input);
        self.idempotency.as_ref().map(key).transpose()
    }

    fn place_of(&self, task: &str) -> Option<usize> {
        self.by_name.get(task).copied()
    }

    fn name_at(&self, place: usize) -> &str {
        &self.spec.tasks[place].name
    }
}
