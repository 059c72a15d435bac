//! Why a workflow cannot be built: each mistake with the task and the cure.

use super::condition::CONDITION_BYTES_MAX;
use super::{ATTEMPTS_MAX, NAME_BYTES_MAX, TASKS_MAX, TIMEOUT_MAX};
use crate::limit::LimitError;
use crate::name::NameError;
use crate::time::Span;
use crate::toll::TOLLS_MAX;

/// Why a workflow cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkflowError {
    /// The workflow has no name.
    #[error("a workflow needs a name: give it 1 to {NAME_BYTES_MAX} bytes")]
    WorkflowNameEmpty,
    /// The workflow's name is too long.
    #[error("a workflow's name has {bytes} bytes: shorten it to {NAME_BYTES_MAX}")]
    WorkflowNameTooLong {
        /// How long.
        bytes: usize,
    },
    /// The workflow's name has a character that means something in keys.
    #[error(
        "the workflow {name:?} has {character:?} in its name: leave out / and control characters, for keys are made of it"
    )]
    WorkflowNameCharacter {
        /// The name.
        name: String,
        /// Which character.
        character: char,
    },
    /// There is nothing to do.
    #[error("the workflow {workflow} has no tasks: add one")]
    NoTasks {
        /// Which workflow.
        workflow: String,
    },
    /// There is too much to do.
    #[error(
        "the workflow {workflow} has {count} tasks, and the most is {TASKS_MAX}: use a map, or split it"
    )]
    TooManyTasks {
        /// Which workflow.
        workflow: String,
        /// How many.
        count: usize,
    },
    /// No run could end in time.
    #[error(
        "the workflow {workflow} gives its runs no time: leave its timeout out, or make it longer"
    )]
    RunTimeoutZero {
        /// Which workflow.
        workflow: String,
    },
    /// A run might take for ever.
    #[error(
        "the workflow {workflow} gives its runs {timeout}, and the most is {TIMEOUT_MAX}: shorten it, or leave it out"
    )]
    RunTimeoutTooLong {
        /// Which workflow.
        workflow: String,
        /// How long.
        timeout: Span,
    },
    /// No run could ever start.
    #[error(
        "the workflow {workflow} allows no run at a time: leave runs_max out, or allow at least 1"
    )]
    RunsMaxZero {
        /// Which workflow.
        workflow: String,
    },
    /// No task of a run could ever start.
    #[error(
        "the workflow {workflow} allows a run no task at a time: leave tasks_max out, or allow at least 1"
    )]
    TasksMaxZero {
        /// Which workflow.
        workflow: String,
    },
    /// A number of runs or tasks at a time is too large.
    #[error("the workflow {workflow} cannot count so many at a time: {source}")]
    CapTooLarge {
        /// Which workflow.
        workflow: String,
        /// Why not.
        source: LimitError,
    },
    /// The idempotency key is at no path.
    #[error(
        "the workflow {workflow} has {path:?} for the path of its idempotency key: write it as in order.id, items[0].id, or . for all of the input"
    )]
    IdempotencyPath {
        /// Which workflow.
        workflow: String,
        /// What was given.
        path: String,
    },
    /// A task has no name.
    #[error("task number {number} has no name: give it 1 to {NAME_BYTES_MAX} bytes")]
    TaskNameEmpty {
        /// Which one, counted from 1.
        number: usize,
    },
    /// A task's name is too long.
    #[error("the name of task number {number} has {bytes} bytes: shorten it to {NAME_BYTES_MAX}")]
    TaskNameTooLong {
        /// Which one, counted from 1.
        number: usize,
        /// How long.
        bytes: usize,
    },
    /// A task's name has a character that means something in paths or keys.
    #[error(
        "the task {task:?} has {character:?} in its name: leave out . [ ] / and control characters, for paths and keys are made of it"
    )]
    TaskNameCharacter {
        /// The name.
        task: String,
        /// Which character.
        character: char,
    },
    /// Two tasks have one name.
    #[error("there are two tasks {task}: name one of them otherwise")]
    TaskTwice {
        /// The name.
        task: String,
    },
    /// A task has no type.
    #[error(
        "task {task} has no type, so no worker would do it: give it 1 to {NAME_BYTES_MAX} bytes"
    )]
    TypeEmpty {
        /// Which task.
        task: String,
    },
    /// A task's type is too long.
    #[error("the type of task {task} has {bytes} bytes: shorten it to {NAME_BYTES_MAX}")]
    TypeTooLong {
        /// Which task.
        task: String,
        /// How long.
        bytes: usize,
    },
    /// A task comes after one that is not there.
    #[error(
        "task {task} comes after {need}, which is no task of the workflow: add it, or correct the name"
    )]
    NeedUnknown {
        /// Which task.
        task: String,
        /// After what.
        need: String,
    },
    /// A task comes after itself.
    #[error("task {task} comes after itself: leave that out")]
    NeedItself {
        /// Which task.
        task: String,
    },
    /// A task says twice after what it comes.
    #[error("task {task} says twice that it comes after {need}: say it once")]
    NeedTwice {
        /// Which task.
        task: String,
        /// After what.
        need: String,
    },
    /// Tasks wait for each other.
    #[error("tasks wait for each other in a circle, {}: leave out one of these dependencies", tasks.join(", then "))]
    Cycle {
        /// The circle: each comes after the one before it, and the first after the last.
        tasks: Vec<String>,
    },
    /// No attempt could end in time.
    #[error(
        "task {task} has no time: give it a timeout of more than nothing, or leave it at the default"
    )]
    TimeoutZero {
        /// Which task.
        task: String,
    },
    /// An attempt might take for ever.
    #[error("task {task} has a timeout of {timeout}, and the most is {TIMEOUT_MAX}: shorten it")]
    TimeoutTooLong {
        /// Which task.
        task: String,
        /// How long.
        timeout: Span,
    },
    /// It would fail before it is tried.
    #[error("task {task} has no attempts: give it at least 1")]
    AttemptsZero {
        /// Which task.
        task: String,
    },
    /// It would be tried for ever.
    #[error("task {task} has {attempts} attempts, and the most is {ATTEMPTS_MAX}: allow fewer")]
    AttemptsTooMany {
        /// Which task.
        task: String,
        /// How many.
        attempts: u32,
    },
    /// It would have failed before it is tried.
    #[error("task {task} fails after no death of its worker: allow at least 1")]
    CrashesZero {
        /// Which task.
        task: String,
    },
    /// It would kill workers for ever.
    #[error(
        "task {task} may have its worker die {crashes_max} times, and the most is {ATTEMPTS_MAX}: allow fewer"
    )]
    CrashesTooMany {
        /// Which task.
        task: String,
        /// How often.
        crashes_max: u32,
    },
    /// The longest wait is shorter than the first.
    #[error(
        "task {task} waits {first} after a failure, and at most {most}: make the longest wait at least the first"
    )]
    RetryOrder {
        /// Which task.
        task: String,
        /// The first wait.
        first: Span,
        /// The longest.
        most: Span,
    },
    /// A wait is too long.
    #[error(
        "task {task} waits up to {most} after a failure, and the most is {TIMEOUT_MAX}: shorten it"
    )]
    RetryTooLong {
        /// Which task.
        task: String,
        /// The longest wait.
        most: Span,
    },
    /// A task has both short forms of a rate.
    #[error(
        "task {task} has rate_limit and keyed_rate_limit, and the limit of its type is one of them: keep one, and say the other with tolls"
    )]
    BothRates {
        /// Which task.
        task: String,
    },
    /// Nothing would ever start.
    #[error("task {task} has a rate of 0: give a limit of at least 1")]
    LimitZero {
        /// Which task.
        task: String,
    },
    /// A rate without a period.
    #[error(
        "task {task} has a rate per no time: give a period longer than nothing; for so many at a time use concurrency"
    )]
    PeriodZero {
        /// Which task.
        task: String,
    },
    /// Nothing would ever start.
    #[error("task {task} has a burst of 0: give at least 1, or leave it out")]
    BurstZero {
        /// Which task.
        task: String,
    },
    /// A burst of no rate.
    #[error(
        "task {task} has a burst and no rate: add rate_limit or keyed_rate_limit, or leave the burst out"
    )]
    BurstAlone {
        /// Which task.
        task: String,
    },
    /// A start that takes nothing.
    #[error("task {task} takes 0 units of its rate: let it take at least 1, or leave the rate out")]
    UnitsZero {
        /// Which task.
        task: String,
    },
    /// A start that could never be.
    #[error(
        "task {task} takes {units} units, and {most} can be there at once: take fewer, or raise the limit or the burst"
    )]
    UnitsOverLimit {
        /// Which task.
        task: String,
        /// How many it takes.
        units: u64,
        /// How many there can be.
        most: u64,
    },
    /// A key of nothing.
    #[error(
        "task {task} has a keyed_rate_limit with an empty key: name the path of the key in its input, or use rate_limit"
    )]
    KeyEmpty {
        /// Which task.
        task: String,
    },
    /// The rate or the concurrency is none that a limit can have.
    #[error("task {task} has a rate or a concurrency that cannot be: {source}")]
    Limit {
        /// Which task.
        task: String,
        /// Why not.
        source: LimitError,
    },
    /// Nothing would ever start.
    #[error(
        "task {task} allows none of its type at a time: leave concurrency out, or allow at least 1"
    )]
    ConcurrencyZero {
        /// Which task.
        task: String,
    },
    /// A path is not written as one is.
    #[error(
        "task {task} has {path:?} for its {what}, which is no path: write it as in config.provider.name, items[0].price or items.length, or . for all of the input"
    )]
    PathMalformed {
        /// Which task.
        task: String,
        /// What is to be read there.
        what: &'static str,
        /// What was given.
        path: String,
    },
    /// A path to what can never be there.
    #[error(
        "task {task} has the path {path} for its {what}, but its input is an object of what the tasks gave that it comes after: begin with the name of one of these"
    )]
    PathOutsideNeeds {
        /// Which task.
        task: String,
        /// What is to be read there.
        what: &'static str,
        /// What was given.
        path: String,
    },
    /// A map over what is never a list.
    #[error(
        "task {task} maps over all of its input, but comes after several tasks, so that this is an object: map over a list in what one of them gave"
    )]
    MapOfObject {
        /// Which task.
        task: String,
    },
    /// A condition that reads one item of the list that is mapped over.
    #[error(
        "task {task} maps over {map}, and its condition reads {path}, one item of it: a condition is asked once, of the whole input; leave items out in the task before"
    )]
    ConditionOnItems {
        /// Which task.
        task: String,
        /// Where the list is.
        map: String,
        /// What the condition reads.
        path: String,
    },
    /// A condition that compares with nothing that it could.
    #[error(
        "task {task} cannot compare by {comparison} with {value}: eq and ne take a text of up to {CONDITION_BYTES_MAX} bytes, a number or a truth, an order takes a number, and exists takes true or false"
    )]
    ConditionValue {
        /// Which task.
        task: String,
        /// How it compares.
        comparison: &'static str,
        /// With what, cut short.
        value: String,
    },
    /// A toll at no limit.
    #[error("task {task} has a toll without a limit's name: {source}")]
    TollLimit {
        /// Which task.
        task: String,
        /// Why it is none.
        source: NameError,
    },
    /// A toll at no partition.
    #[error("task {task} has a toll at {limit} without a partition's name: {source}")]
    TollPartition {
        /// Which task.
        task: String,
        /// At which limit.
        limit: String,
        /// Why it is none.
        source: NameError,
    },
    /// A toll of nothing.
    #[error(
        "task {task} has a toll at {limit} that weighs nothing: leave it out, or give it a weight"
    )]
    TollWeightZero {
        /// Which task.
        task: String,
        /// At which limit.
        limit: String,
    },
    /// More tolls than a call may owe.
    #[error(
        "task {task} owes {count} tolls, those of its type and its workflow among them, and the most is {TOLLS_MAX}: leave some out"
    )]
    TooManyTolls {
        /// Which task.
        task: String,
        /// How many.
        count: usize,
    },
    /// Two tasks of a type do not agree about its rate.
    #[error(
        "tasks {first} and {second} are both of type {type_name}, whose rate is one: give both the same limit, period and burst, keyed or not, or another type to one of them"
    )]
    TypeRates {
        /// The type.
        type_name: String,
        /// One task.
        first: String,
        /// The other.
        second: String,
    },
    /// Two tasks of a type do not agree how many of it may run.
    #[error(
        "tasks {first} and {second} are both of type {type_name}, of which so many may run at a time: give both the same concurrency, or another type to one of them"
    )]
    TypeConcurrency {
        /// The type.
        type_name: String,
        /// One task.
        first: String,
        /// The other.
        second: String,
    },
}

/// What a task reads from its input, as a message names it.
pub(super) mod reads {
    pub(in super::super) const KEY: &str = "key";
    pub(in super::super) const MAP: &str = "map";
    pub(in super::super) const WHEN: &str = "when";
    pub(in super::super) const PARTITION: &str = "partition of a toll";
    pub(in super::super) const WEIGHT: &str = "weight of a toll";
}
