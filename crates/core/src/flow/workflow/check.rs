//! Checking a workflow: every mistake is found here, and none when it runs.

use super::condition::Condition;
use super::error::{WorkflowError, reads};
use super::graph::{Places, check_cycles, dependents_of, needs_of};
use super::input_path::InputPath;
use super::limits::{TypeRate, limits_of, run_name};
use super::owed::{Owed, owed_of, path_of};
use super::task::Task;
use super::{ATTEMPTS_MAX, NAME_BYTES_MAX, Node, TASKS_MAX, TIMEOUT_MAX, Workflow, WorkflowSpec};
use crate::name::LimitName;

/// How much of a value a message shows.
const SHOWN_CHARS_MAX: usize = 64;

/// Checks the whole, then each task, then how they hang together.
pub(super) fn build(spec: WorkflowSpec) -> Result<Workflow, WorkflowError> {
    check_workflow(&spec)?;
    let by_name = places_of(&spec.tasks)?;
    spec.tasks.iter().try_for_each(check_task)?;
    let needs = needs_of(&spec.tasks, &by_name)?;
    let dependents = dependents_of(&needs);
    check_cycles(&spec.tasks, &needs, &dependents)?;
    let is_last = |task: &usize| dependents[*task].is_empty();
    let last = (0..spec.tasks.len()).filter(is_last).collect();
    let limits = limits_of(&spec)?.into();
    let run_tasks = spec.tasks_max.map(|_| run_name(&spec.name)).transpose()?;
    let edges = needs.into_iter().zip(dependents);
    let nodes = spec.tasks.iter().zip(edges).map(|(task, (needs, dependents))| {
        let (when, map, owed) = reading_of(task, run_tasks.as_ref())?;
        Ok(Node { needs: needs.into(), dependents: dependents.into(), when, map, owed })
    });
    let nodes = nodes.collect::<Result<_, WorkflowError>>()?;
    let idempotency = idempotency_of(&spec)?;
    Ok(Workflow { nodes, by_name, last, limits, idempotency, spec })
}

fn check_workflow(spec: &WorkflowSpec) -> Result<(), WorkflowError> {
    let name = || spec.name.clone();
    let is_bad = |character: &char| *character == '/' || character.is_control();
    let (bytes, bad) = (spec.name.len(), spec.name.chars().find(is_bad));
    match (bytes, bad) {
        (0, _) => return Err(WorkflowError::WorkflowNameEmpty),
        (1..=NAME_BYTES_MAX, None) => {}
        (1..=NAME_BYTES_MAX, Some(character)) => {
            return Err(WorkflowError::WorkflowNameCharacter { name: name(), character });
        }
        _ => return Err(WorkflowError::WorkflowNameTooLong { bytes }),
    }
    match spec.tasks.len() {
        0 => return Err(WorkflowError::NoTasks { workflow: name() }),
        1..=TASKS_MAX => {}
        count => return Err(WorkflowError::TooManyTasks { workflow: name(), count }),
    }
    match spec.timeout {
        Some(timeout) if timeout.is_zero() => {
            return Err(WorkflowError::RunTimeoutZero { workflow: name() });
        }
        Some(timeout) if timeout > TIMEOUT_MAX => {
            return Err(WorkflowError::RunTimeoutTooLong { workflow: name(), timeout });
        }
        _ => {}
    }
    if spec.runs_max == Some(0) {
        return Err(WorkflowError::RunsMaxZero { workflow: name() });
    }
    if spec.tasks_max == Some(0) {
        return Err(WorkflowError::TasksMaxZero { workflow: name() });
    }
    Ok(())
}

fn places_of(tasks: &[Task]) -> Result<Places, WorkflowError> {
    let mut places = Places::new();
    for (place, task) in tasks.iter().enumerate() {
        check_task_name(place + 1, &task.name)?;
        if places.insert(task.name.as_str().into(), place).is_some() {
            return Err(WorkflowError::TaskTwice { task: task.name.clone() });
        }
    }
    Ok(places)
}

fn check_task_name(number: usize, name: &str) -> Result<(), WorkflowError> {
    // A path leads to what a task gave by its name, and the key of it is made of the name.
    let is_bad =
        |character: &char| ['.', '[', ']', '/'].contains(character) || character.is_control();
    match (name.len(), name.chars().find(is_bad)) {
        (0, _) => Err(WorkflowError::TaskNameEmpty { number }),
        (1..=NAME_BYTES_MAX, None) => Ok(()),
        (1..=NAME_BYTES_MAX, Some(character)) => {
            Err(WorkflowError::TaskNameCharacter { task: name.to_owned(), character })
        }
        (bytes, _) => Err(WorkflowError::TaskNameTooLong { number, bytes }),
    }
}

/// What can be wrong with a task by itself.
fn check_task(task: &Task) -> Result<(), WorkflowError> {
    let name = || task.name.clone();
    match task.type_name.len() {
        0 => return Err(WorkflowError::TypeEmpty { task: name() }),
        1..=NAME_BYTES_MAX => {}
        bytes => return Err(WorkflowError::TypeTooLong { task: name(), bytes }),
    }
    if task.timeout.is_zero() {
        return Err(WorkflowError::TimeoutZero { task: name() });
    }
    if task.timeout > TIMEOUT_MAX {
        return Err(WorkflowError::TimeoutTooLong { task: name(), timeout: task.timeout });
    }
    if task.concurrency == Some(0) {
        return Err(WorkflowError::ConcurrencyZero { task: name() });
    }
    check_retry(task)?;
    check_rate(task)
}

fn check_retry(task: &Task) -> Result<(), WorkflowError> {
    let (name, retry) = (|| task.name.clone(), task.retry);
    let (attempts, first, most) = (retry.attempts, retry.first, retry.most);
    match attempts {
        0 => return Err(WorkflowError::AttemptsZero { task: name() }),
        1..=ATTEMPTS_MAX => {}
        _ => return Err(WorkflowError::AttemptsTooMany { task: name(), attempts }),
    }
    match retry.crashes_max {
        0 => return Err(WorkflowError::CrashesZero { task: name() }),
        1..=ATTEMPTS_MAX => {}
        crashes_max => return Err(WorkflowError::CrashesTooMany { task: name(), crashes_max }),
    }
    if first > most {
        return Err(WorkflowError::RetryOrder { task: name(), first, most });
    }
    if most > TIMEOUT_MAX {
        return Err(WorkflowError::RetryTooLong { task: name(), most });
    }
    Ok(())
}

fn check_rate(task: &Task) -> Result<(), WorkflowError> {
    let name = || task.name.clone();
    let (limit, per, units) = match (&task.rate, &task.keyed) {
        (Some(_), Some(_)) => return Err(WorkflowError::BothRates { task: name() }),
        (Some(rate), None) => (rate.limit, rate.per, 1),
        (None, Some(keyed)) => {
            if keyed.key.is_empty() {
                return Err(WorkflowError::KeyEmpty { task: name() });
            }
            (keyed.limit, keyed.per, keyed.units)
        }
        (None, None) if task.burst.is_some() => {
            return Err(WorkflowError::BurstAlone { task: name() });
        }
        (None, None) => return Ok(()),
    };
    if limit == 0 {
        return Err(WorkflowError::LimitZero { task: name() });
    }
    if per.is_zero() {
        return Err(WorkflowError::PeriodZero { task: name() });
    }
    if task.burst == Some(0) {
        return Err(WorkflowError::BurstZero { task: name() });
    }
    if units == 0 {
        return Err(WorkflowError::UnitsZero { task: name() });
    }
    match TypeRate::of(task).map(|rate| rate.burst) {
        Some(most) if units > most => {
            Err(WorkflowError::UnitsOverLimit { task: name(), units, most })
        }
        _ => Ok(()),
    }
}

type Reading = (Option<Condition>, Option<InputPath>, Box<[Owed]>);

/// What a task reads from its input, and that it can be there.
fn reading_of(task: &Task, run_tasks: Option<&LimitName>) -> Result<Reading, WorkflowError> {
    let when = condition_of(task)?;
    let map = task.map.as_ref().map(|path| path_of(task, reads::MAP, path)).transpose()?;
    let owed = owed_of(task, run_tasks)?;
    if let (Some(map), Some(when)) = (&map, &when)
        && when.path.is_in_item_of(map)
    {
        let (task, map, path) = (task.name.clone(), map.to_string(), when.path.to_string());
        return Err(WorkflowError::ConditionOnItems { task, map, path });
    }
    let of_input = [
        when.as_ref().map(|when| (reads::WHEN, &when.path)),
        map.as_ref().map(|map| (reads::MAP, map)),
    ];
    for (what, path) in of_input.into_iter().flatten() {
        check_reach(task, what, path)?;
    }
    // With a map these are read from items, of which nothing is known.
    if map.is_none() {
        for (what, path) in owed.iter().flat_map(Owed::paths) {
            check_reach(task, what, path)?;
        }
    }
    Ok((when, map, owed.into()))
}

fn condition_of(task: &Task) -> Result<Option<Condition>, WorkflowError> {
    let Some(when) = &task.when else { return Ok(None) };
    let path = path_of(task, reads::WHEN, &when.path)?;
    let refused = || WorkflowError::ConditionValue {
        task: task.name.clone(),
        comparison: when.is.as_str(),
        value: when.value.to_string().chars().take(SHOWN_CHARS_MAX).collect(),
    };
    Condition::new(path, when).map(Some).ok_or_else(refused)
}

/// The input of a task that comes after several is an object by their names: no other path leads
/// anywhere.
fn check_reach(task: &Task, what: &'static str, path: &InputPath) -> Result<(), WorkflowError> {
    if task.needs.len() < 2 {
        return Ok(());
    }
    match (path.as_str(), what) {
        (".", reads::MAP) => {
            return Err(WorkflowError::MapOfObject { task: task.name.clone() });
        }
        (".", reads::WHEN) => return Ok(()),
        _ => {}
    }
    let is_need = |field: &str| task.needs.iter().any(|need| need == field);
    if path.first_field().is_some_and(is_need) {
        return Ok(());
    }
    let (task, path) = (task.name.clone(), path.to_string());
    Err(WorkflowError::PathOutsideNeeds { task, what, path })
}

fn idempotency_of(spec: &WorkflowSpec) -> Result<Option<InputPath>, WorkflowError> {
    let checked = |path: &String| {
        let malformed =
            |_| WorkflowError::IdempotencyPath { workflow: spec.name.clone(), path: path.clone() };
        InputPath::new(path).map_err(malformed)
    };
    spec.idempotency.as_ref().map(checked).transpose()
}
