//! What a task owes: checked when its workflow is built, read from its input when it starts.

use super::error::{WorkflowError, reads};
use super::input_path::InputPath;
use super::limits;
use super::task::{Task, TaskPartition, TaskToll, TaskWeight};
use super::task_error::{RunError, TaskError};
use crate::lanes::path::{Found, read};
use crate::name::{LimitName, Partition};
use crate::toll::{TOLLS_MAX, Toll};
use crate::tolls::Tolls;
use smallvec::SmallVec;

/// A toll of a task that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owed {
    limit: LimitName,
    partition: OwedPartition,
    weight: OwedWeight,
    /// The first toll that is no slot: an upstream that wants a pause means that one.
    hears_feedback: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum OwedPartition {
    Global,
    Fixed(Partition),
    Path(InputPath),
    /// That of the run.
    Run,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum OwedWeight {
    Fixed(u64),
    Path(InputPath),
}

impl Owed {
    fn one(limit: LimitName, partition: OwedPartition) -> Self {
        Self { limit, partition, weight: OwedWeight::Fixed(1), hears_feedback: false }
    }

    /// Where in the input it is told where and how much.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&'static str, &InputPath)> {
        let partition = match &self.partition {
            OwedPartition::Path(path) => Some((reads::PARTITION, path)),
            _ => None,
        };
        let weight = match &self.weight {
            OwedWeight::Path(path) => Some((reads::WEIGHT, path)),
            OwedWeight::Fixed(_) => None,
        };
        [partition, weight].into_iter().flatten()
    }
}

/// A path of a task, or why it is none.
pub(super) fn path_of(
    task: &Task,
    what: &'static str,
    path: &str,
) -> Result<InputPath, WorkflowError> {
    let malformed =
        |_| WorkflowError::PathMalformed { task: task.name.clone(), what, path: path.to_owned() };
    InputPath::new(path).map_err(malformed)
}

/// What a task owes: the rate of its type first, then its own tolls, then slots.
pub(super) fn owed_of(task: &Task, runs: Option<&LimitName>) -> Result<Vec<Owed>, WorkflowError> {
    let mut owed = Vec::new();
    if task.rate.is_some() {
        owed.push(Owed::one(limits::rate_name(task)?, OwedPartition::Global));
    }
    if let Some(keyed) = &task.keyed {
        let path = path_of(task, reads::KEY, &keyed.key)?;
        let one = Owed::one(limits::rate_name(task)?, OwedPartition::Path(path));
        owed.push(Owed { weight: OwedWeight::Fixed(keyed.units), ..one });
    }
    for toll in &task.tolls {
        owed.push(checked(task, toll)?);
    }
    if let Some(first) = owed.first_mut() {
        first.hears_feedback = true;
    }
    if task.concurrency.is_some() {
        owed.push(Owed::one(limits::slots_name(task)?, OwedPartition::Global));
    }
    owed.extend(runs.map(|limit| Owed::one(limit.clone(), OwedPartition::Run)));
    if owed.len() > TOLLS_MAX {
        return Err(WorkflowError::TooManyTolls { task: task.name.clone(), count: owed.len() });
    }
    Ok(owed)
}

fn checked(task: &Task, toll: &TaskToll) -> Result<Owed, WorkflowError> {
    let name = || task.name.clone();
    let limit = LimitName::new(&toll.limit)
        .map_err(|source| WorkflowError::TollLimit { task: name(), source })?;
    let partition = match &toll.partition {
        TaskPartition::Global => OwedPartition::Global,
        TaskPartition::Fixed(partition) => {
            let refused = |source| {
                let (task, limit) = (name(), toll.limit.clone());
                WorkflowError::TollPartition { task, limit, source }
            };
            OwedPartition::Fixed(Partition::new(partition).map_err(refused)?)
        }
        TaskPartition::Path(path) => OwedPartition::Path(path_of(task, reads::PARTITION, path)?),
    };
    let weight = match &toll.weight {
        TaskWeight::Fixed(0) => {
            let (task, limit) = (name(), toll.limit.clone());
            return Err(WorkflowError::TollWeightZero { task, limit });
        }
        TaskWeight::Fixed(weight) => OwedWeight::Fixed(*weight),
        TaskWeight::Path(path) => OwedWeight::Path(path_of(task, reads::WEIGHT, path)?),
    };
    Ok(Owed { limit, partition, weight, hears_feedback: false })
}

/// What a call of a task owes, by its input.
pub(super) fn resolve(
    task: &str,
    owed: &[Owed],
    input: &[u8],
    run: &str,
) -> Result<Tolls, TaskError> {
    let paths = owed.iter().flat_map(|owed| owed.paths().map(|(_, path)| path.in_body()));
    let paths: SmallVec<[_; 4]> = paths.collect();
    let not_json = |_| TaskError::InputNotJson { task: task.to_owned() };
    // What is not read may be anything.
    let found =
        if paths.is_empty() { Vec::new() } else { read(input, &paths).map_err(not_json)? };
    // Each takes as many as it has paths, in their order.
    let mut found = found.iter();
    let resolve = |owed: &Owed| {
        let limit = owed.limit.clone();
        let partition = match &owed.partition {
            OwedPartition::Global => None,
            OwedPartition::Fixed(partition) => Some(partition.clone()),
            OwedPartition::Run => Some(partition_of_run(task, run)?),
            OwedPartition::Path(path) => Some(partition_at(task, owed, path, found.next())?),
        };
        let weight = match &owed.weight {
            OwedWeight::Fixed(weight) => *weight,
            OwedWeight::Path(path) => weight_at(task, owed, path, found.next())?,
        };
        Ok(Toll { limit, partition, weight, hears_feedback: owed.hears_feedback })
    };
    owed.iter().map(resolve).collect()
}

fn partition_of_run(task: &str, run: &str) -> Result<Partition, TaskError> {
    Partition::new(run).map_err(|source| TaskError::Run { task: task.to_owned(), source })
}

fn partition_at(
    task: &str,
    owed: &Owed,
    path: &InputPath,
    found: Option<&Found<'_>>,
) -> Result<Partition, TaskError> {
    let found = found.unwrap_or(&Found::Nothing);
    let missing = || TaskError::NoPartition {
        task: task.to_owned(),
        limit: owed.limit.clone(),
        path: path.clone(),
        found: found.to_string(),
    };
    word_in(found).and_then(|word| Partition::new(&word).ok()).ok_or_else(missing)
}

fn weight_at(
    task: &str,
    owed: &Owed,
    path: &InputPath,
    found: Option<&Found<'_>>,
) -> Result<u64, TaskError> {
    let found = found.unwrap_or(&Found::Nothing);
    let missing = || TaskError::NoWeight {
        task: task.to_owned(),
        limit: owed.limit.clone(),
        path: path.clone(),
        found: found.to_string(),
    };
    match found {
        Found::Whole(number) => {
            u64::try_from(*number).ok().filter(|weight| *weight > 0).ok_or_else(missing)
        }
        _ => Err(missing()),
    }
}

/// What a partition or a key is named by: a text, or a whole number in its digits.
fn word_in(found: &Found<'_>) -> Option<String> {
    match found {
        Found::Text(text) => Some(text.to_string()),
        Found::Whole(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The key that the input of a run has at a path.
pub(super) fn idempotency_key(
    workflow: &str,
    path: &InputPath,
    input: &[u8],
) -> Result<String, RunError> {
    let workflow = || workflow.to_owned();
    let found = read(input, &[path.in_body()])
        .map_err(|_| RunError::InputNotJson { workflow: workflow() })?;
    let found = found.first().unwrap_or(&Found::Nothing);
    let key = word_in(found).filter(|key| Partition::new(key).is_ok());
    key.ok_or_else(|| RunError::NoKey {
        workflow: workflow(),
        path: path.clone(),
        found: found.to_string(),
    })
}
