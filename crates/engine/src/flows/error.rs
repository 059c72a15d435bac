//! Why something is not done to a run.

use tollgate_core::flow::run::{CHILDREN_MAX, NAMES_MAX, SignalError};
use tollgate_core::flow::workflow::{RunError, WorkflowError};
use tollgate_core::lanes::CallId;

/// Why something is not done to a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// There is no such run, or it ended and is forgotten.
    #[error("there is no run {run:?}: it never was, or it ended and is not kept any more")]
    UnknownRun {
        /// What was named.
        run: String,
    },
    /// It ended, and takes nothing any more.
    #[error("run {run} has ended: it takes no signals")]
    HasEnded {
        /// Which.
        run: String,
    },
    /// It has not ended yet.
    #[error("run {run} has not ended: cancel it first, or wait")]
    HasNotEnded {
        /// Which.
        run: String,
    },
    /// It ended otherwise than by a step or a task that failed.
    #[error("run {run} did not fail at a step or a task: say from which it is to go on")]
    DidNotFail {
        /// Which.
        run: String,
    },
    /// What a step was handed is not known any more.
    #[error(
        "of run {run} the state of step {step:?} is not kept;{kept} hand one in with `rerun_with`"
    )]
    StateNotKept {
        /// Which run.
        run: String,
        /// Which step.
        step: String,
        /// Which state is.
        kept: String,
    },
    /// Its second life would begin in the middle of the first.
    #[error(
        "a step of run {run} is still being made: wait until that is over, or its worker has lost its lease"
    )]
    StepUnderWay {
        /// Which.
        run: String,
    },
    /// Its parent counts it among those that ended.
    #[error(
        "run {run} is a child of {parent}, which lives and counts it as ended: wait until that has ended, too"
    )]
    ParentLives {
        /// Which.
        run: String,
        /// Its parent.
        parent: String,
    },
    /// A child that the step was given is not kept, or lives again.
    #[error(
        "the step of run {run} was given what its children gave, and {child} is not kept or lives again: hand in a step with `rerun_with`"
    )]
    ChildGone {
        /// Which.
        run: String,
        /// Which child.
        child: String,
    },
    /// As many runs live as may.
    #[error(
        "as many runs of workflow {workflow} live as may: begin run {run} again when one of them has ended"
    )]
    NoPlace {
        /// Which run.
        run: String,
        /// Of which workflow.
        workflow: String,
    },
    /// Another run has its key.
    #[error(
        "run {run} had the correlation key {key:?}, which is that of {other} now: wait until that has ended"
    )]
    KeyTaken {
        /// Which.
        run: String,
        /// Which key.
        key: String,
        /// Who has it.
        other: String,
    },
    /// Something else than a step that follows was handed in.
    #[error("a run goes on with a step: hand in what `next` gives")]
    NotNext,
    /// It takes no signal now.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// What it is to be given cannot be written as JSON.
    #[error("{what} cannot be written as JSON: {reason}")]
    NotJson {
        /// What it is.
        what: &'static str,
        /// Why.
        reason: String,
    },
    /// More children than begin in one act.
    #[error(
        "a step begins up to {CHILDREN_MAX} children, and this one {given}: begin them in several steps"
    )]
    TooManyChildren {
        /// How many.
        given: usize,
    },
    /// A child that another run may stand for.
    #[error("a child is known by its parent, and takes no correlation key: leave it out")]
    ChildWithKey,
    /// It would wait for nothing, or for too much.
    #[error("a run waits for 1 to {NAMES_MAX} names of signals, and this one for {given}")]
    Names {
        /// How many.
        given: usize,
    },
    /// There is no such workflow.
    #[error("there is no workflow {name:?}: register it first")]
    UnknownWorkflow {
        /// What was named.
        name: String,
    },
    /// A workflow cannot be so.
    #[error(transparent)]
    Definition(#[from] WorkflowError),
    /// A run cannot begin with its input.
    #[error(transparent)]
    Input(#[from] RunError),
    /// Another workflow says otherwise.
    #[error(
        "limit {limit} is {says} in workflow {workflow}, and would be {wanted} here: tasks of one type share it, so say the same in both"
    )]
    Disagrees {
        /// Of which limit.
        limit: String,
        /// Which other one.
        workflow: String,
        /// What it says.
        says: String,
        /// What this one says.
        wanted: String,
    },
    /// What follows in a run cannot be said.
    #[error("{reason}")]
    Workflow {
        /// Why.
        reason: String,
    },
    /// It is the run of a machine.
    #[error("run {run} is that of a machine, and has no tasks")]
    NotOfWorkflow {
        /// Which.
        run: String,
    },
    /// It is the run of a workflow.
    #[error("run {run} is that of a workflow, and takes no signals and no steps")]
    OfWorkflow {
        /// Which.
        run: String,
    },
    /// A call that is no task.
    #[error("call {} is not that of a task", call.0)]
    NotOfTask {
        /// Which.
        call: CallId,
    },
    /// Others changed the run all the time.
    #[error("run {run} is changed by others all the time: try again")]
    Busy {
        /// Which.
        run: String,
    },
}
