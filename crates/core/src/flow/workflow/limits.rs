//! The limits that a workflow defines, and that tasks of one type agree about theirs.

use super::WorkflowSpec;
use super::error::WorkflowError;
use super::task::Task;
use crate::limit::{Definition, Limit};
use crate::name::LimitName;
use crate::time::Span;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The rate of a type, as one of its tasks says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeRate {
    limit: u64,
    per: Span,
    pub(super) burst: u64,
    is_keyed: bool,
}

impl TypeRate {
    /// `None` if the task has no rate, or two.
    pub(super) fn of(task: &Task) -> Option<Self> {
        let (limit, per, is_keyed) = match (&task.rate, &task.keyed) {
            (Some(rate), None) => (rate.limit, rate.per, false),
            (None, Some(keyed)) => (keyed.limit, keyed.per, true),
            _ => return None,
        };
        Some(Self { limit, per, burst: task.burst.unwrap_or(limit), is_keyed })
    }

    fn definition(self, task: &Task) -> Result<Definition, WorkflowError> {
        let limit = Limit::per(self.limit, self.per).burst(self.burst);
        Definition::new(limit)
            .map_err(|source| WorkflowError::Limit { task: task.name.clone(), source })
    }
}

/// The limit of a type's rate.
pub(super) fn rate_name(task: &Task) -> Result<LimitName, WorkflowError> {
    name_of_type("task", task)
}

/// The limit of how many of a type run at a time.
pub(super) fn slots_name(task: &Task) -> Result<LimitName, WorkflowError> {
    name_of_type("task-slots", task)
}

/// The limit of how many tasks of a run do.
pub(super) fn run_name(workflow: &str) -> Result<LimitName, WorkflowError> {
    let too_long = |_| WorkflowError::WorkflowNameTooLong { bytes: workflow.len() };
    LimitName::new(&format!("run-tasks/{workflow}")).map_err(too_long)
}

fn name_of_type(of: &str, task: &Task) -> Result<LimitName, WorkflowError> {
    let (type_name, name) = (&task.type_name, &task.name);
    let too_long = |_| WorkflowError::TypeTooLong { task: name.clone(), bytes: type_name.len() };
    LimitName::new(&format!("{of}/{type_name}")).map_err(too_long)
}

/// All limits of a workflow, those of types in the order in which these come.
///
/// Tasks of one type say the same or the workflow is refused, also if one of them says nothing: a rate is
/// for all of a type, and a task that does not pay it would break it unseen.
pub(super) fn limits_of(
    spec: &WorkflowSpec,
) -> Result<Vec<(LimitName, Definition)>, WorkflowError> {
    let mut limits = Vec::new();
    let mut types: BTreeMap<&str, &Task> = BTreeMap::new();
    for task in &spec.tasks {
        match types.entry(&task.type_name) {
            Entry::Occupied(first) => check_agree(first.get(), task)?,
            Entry::Vacant(place) => {
                place.insert(task);
                if let Some(rate) = TypeRate::of(task) {
                    limits.push((rate_name(task)?, rate.definition(task)?));
                }
                if let Some(slots) = task.concurrency {
                    let refused = |source| WorkflowError::Limit { task: task.name.clone(), source };
                    let definition = Definition::new(Limit::concurrency(slots));
                    limits.push((slots_name(task)?, definition.map_err(refused)?));
                }
            }
        }
    }
    if let Some(tasks) = spec.tasks_max {
        let refused = |source| WorkflowError::CapTooLarge { workflow: spec.name.clone(), source };
        let definition = Definition::new(Limit::concurrency(tasks)).map_err(refused)?;
        limits.push((run_name(&spec.name)?, definition));
    }
    Ok(limits)
}

fn check_agree(first: &Task, second: &Task) -> Result<(), WorkflowError> {
    let names = || (first.type_name.clone(), first.name.clone(), second.name.clone());
    if TypeRate::of(first) != TypeRate::of(second) {
        let (type_name, first, second) = names();
        return Err(WorkflowError::TypeRates { type_name, first, second });
    }
    if first.concurrency != second.concurrency {
        let (type_name, first, second) = names();
        return Err(WorkflowError::TypeConcurrency { type_name, first, second });
    }
    Ok(())
}
