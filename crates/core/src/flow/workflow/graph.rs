//! What depends on what, and that nothing waits for itself.

use super::error::WorkflowError;
use super::task::Task;
use std::collections::BTreeMap;

/// The places of tasks by their names.
pub(super) type Places = BTreeMap<Box<str>, usize>;

/// For each task those that it needs, in the order in which it names them.
pub(super) fn needs_of(tasks: &[Task], places: &Places) -> Result<Vec<Vec<usize>>, WorkflowError> {
    let mut all = Vec::with_capacity(tasks.len());
    for task in tasks {
        let mut needs: Vec<usize> = Vec::with_capacity(task.needs.len());
        // One mark a task, so that a task with many dependencies is not compared with itself.
        let mut is_needed = vec![false; tasks.len()];
        for need in &task.needs {
            let (name, need_name) = (|| task.name.clone(), || need.clone());
            if *need == task.name {
                return Err(WorkflowError::NeedItself { task: name() });
            }
            let Some(place) = places.get(need.as_str()).copied() else {
                return Err(WorkflowError::NeedUnknown { task: name(), need: need_name() });
            };
            if std::mem::replace(&mut is_needed[place], true) {
                return Err(WorkflowError::NeedTwice { task: name(), need: need_name() });
            }
            needs.push(place);
        }
        all.push(needs);
    }
    Ok(all)
}

/// For each task those that need it, in the order of the workflow.
pub(super) fn dependents_of(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut dependents = vec![Vec::new(); needs.len()];
    for (task, needs) in needs.iter().enumerate() {
        for need in needs {
            dependents[*need].push(task);
        }
    }
    dependents
}

/// Refuses tasks that wait for each other in a circle.
pub(super) fn check_cycles(
    tasks: &[Task],
    needs: &[Vec<usize>],
    dependents: &[Vec<usize>],
) -> Result<(), WorkflowError> {
    let mut waits: Vec<usize> = needs.iter().map(Vec::len).collect();
    let is_free = |task: &usize| waits[*task] == 0;
    let mut free: Vec<usize> = (0..tasks.len()).filter(is_free).collect();
    let mut left = tasks.len();
    while let Some(task) = free.pop() {
        left -= 1;
        for dependent in &dependents[task] {
            waits[*dependent] -= 1;
            if waits[*dependent] == 0 {
                free.push(*dependent);
            }
        }
    }
    if left == 0 {
        return Ok(());
    }
    let names = cycle_in(needs, &waits).into_iter().map(|task| tasks[task].name.clone());
    Err(WorkflowError::Cycle { tasks: names.collect() })
}

/// A circle among those that still wait: each of them waits for one that does, so who goes from one
/// to the next comes back to where they were.
fn cycle_in(needs: &[Vec<usize>], waits: &[usize]) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut next = waits.iter().position(|waits| *waits > 0);
    while let Some(task) = next {
        if let Some(start) = path.iter().position(|seen| *seen == task) {
            path.drain(..start);
            // They went against the order.
            path.reverse();
            return path;
        }
        path.push(task);
        next = needs[task].iter().copied().find(|need| waits[*need] > 0);
    }
    path
}
