//! The model: what becomes of each task, found by looking at all of them until nothing changes, in trees of
//! values.

use super::world::{Plan, PlannedTask, Reads};
use crate::flow::workflow::Comparison;
use serde_json::{Map, Value, json};

/// What becomes of a task, whatever the others do at what time.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fate {
    Unknown,
    Done(Value),
    Skipped,
    Fails,
    /// It never gets its turn.
    Blocked,
}

pub(super) fn fates(plan: &Plan) -> Vec<Fate> {
    let mut fates = vec![Fate::Unknown; plan.tasks.len()];
    // As often as there are tasks: each time at least the next one is known.
    for _ in 0..plan.tasks.len() {
        for task in 0..plan.tasks.len() {
            fates[task] = fate(plan, &fates, task);
        }
    }
    fates
}

fn fate(plan: &Plan, fates: &[Fate], number: usize) -> Fate {
    let task = &plan.tasks[number];
    let needs: Vec<&Fate> = task.needs.iter().map(|need| &fates[*need]).collect();
    if needs.iter().any(|need| matches!(need, Fate::Fails | Fate::Blocked)) {
        return Fate::Blocked;
    }
    if needs.contains(&&Fate::Unknown) {
        return Fate::Unknown;
    }
    if !needs.is_empty() && needs.iter().all(|need| **need == Fate::Skipped) {
        return Fate::Skipped;
    }
    let input = input(plan, fates, number);
    if !holds(task, &input) {
        return Fate::Skipped;
    }
    let items = match &task.map {
        None => None,
        Some(reads) => match at(reads, &input).and_then(Value::as_array) {
            Some(items) => Some(items),
            None => return Fate::Fails,
        },
    };
    match items {
        Some(items) if items.is_empty() => Fate::Done(json!([])),
        _ if task.fails => Fate::Fails,
        Some(items) => Fate::Done(items.iter().map(|item| task.given(item)).collect()),
        None => Fate::Done(task.given(&input)),
    }
}

/// What a task gets.
pub(super) fn input(plan: &Plan, fates: &[Fate], task: usize) -> Value {
    match &*plan.tasks[task].needs {
        [] => plan.input.clone(),
        [need] => match &fates[*need] {
            Fate::Done(value) => value.clone(),
            other => panic!("task {task} does not start after {other:?}"),
        },
        needs => object(plan, fates, needs.iter().copied()),
    }
}

pub(super) fn given_by_run(plan: &Plan, fates: &[Fate]) -> Value {
    let is_last = |task: &usize| plan.tasks.iter().all(|other| !other.needs.contains(task));
    let last: Vec<usize> = (0..fates.len()).filter(is_last).collect();
    match &last[..] {
        [one] => match &fates[*one] {
            Fate::Done(value) => value.clone(),
            _ => Value::Null,
        },
        several => object(plan, fates, several.iter().copied()),
    }
}

fn object(plan: &Plan, fates: &[Fate], tasks: impl Iterator<Item = usize>) -> Value {
    let mut fields = Map::new();
    for task in tasks {
        if let Fate::Done(value) = &fates[task] {
            fields.insert(plan.tasks[task].name(), value.clone());
        }
    }
    Value::Object(fields)
}

fn at<'v>(reads: &Reads, input: &'v Value) -> Option<&'v Value> {
    let within = match &reads.need {
        Some(need) => input.get(need)?,
        None => input,
    };
    match reads.field {
        Some(field) => within.get(field),
        None => Some(within),
    }
}

fn holds(task: &PlannedTask, input: &Value) -> bool {
    let Some((reads, is, value)) = &task.when else { return true };
    let found = at(reads, input).filter(|found| !found.is_null());
    if *is == Comparison::Exists {
        return found.is_some() == (*value == 1);
    }
    let Some(found) = found.and_then(Value::as_i64) else { return false };
    match is {
        Comparison::Eq => found == *value,
        Comparison::Ne => found != *value,
        Comparison::Lt => found < *value,
        Comparison::Le => found <= *value,
        Comparison::Gt => found > *value,
        Comparison::Ge => found >= *value,
        Comparison::Exists => false,
    }
}
