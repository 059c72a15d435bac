//! Workflows as they travel.

use serde::Serialize;
use tollgate::flows::{Registered, WorkflowError, WorkflowSpec, WorkflowText};

/// A workflow that is registered.
#[derive(Debug, Serialize)]
pub(in crate::http) struct WorkflowWire {
    name: String,
    version: u32,
    definition: WorkflowText,
}

/// A workflow that was just registered.
#[derive(Debug, Serialize)]
pub(in crate::http) struct DefinedWire {
    #[serde(flatten)]
    pub(in crate::http) workflow: WorkflowWire,
    /// Whether this is a version that was not there before.
    pub(in crate::http) new: bool,
}

/// Some workflows.
#[derive(Debug, Serialize)]
pub(in crate::http) struct WorkflowPageWire {
    pub(in crate::http) workflows: Vec<WorkflowWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

impl From<&Registered> for WorkflowWire {
    fn from(registered: &Registered) -> Self {
        let Registered { workflow, version } = registered;
        let definition = WorkflowText::from(workflow.spec());
        Self { name: workflow.name().to_owned(), version: *version, definition }
    }
}

/// Where in the definition a mistake is.
pub(in crate::http) fn field_of(error: &WorkflowError, spec: &WorkflowSpec) -> String {
    use WorkflowError as E;
    match error {
        E::WorkflowNameEmpty | E::WorkflowNameTooLong { .. } | E::WorkflowNameCharacter { .. } => {
            "name".to_owned()
        }
        E::RunTimeoutZero { .. } | E::RunTimeoutTooLong { .. } => "timeout".to_owned(),
        E::RunsMaxZero { .. } => "runs_max".to_owned(),
        E::TasksMaxZero { .. } => "tasks_max".to_owned(),
        E::IdempotencyPath { .. } => "idempotency".to_owned(),
        E::TaskNameEmpty { number } | E::TaskNameTooLong { number, .. } => {
            format!("tasks[{}].name", number.saturating_sub(1))
        }
        E::Cycle { tasks } => match tasks.first() {
            Some(task) => field_of_task(spec, task, ".after"),
            None => "tasks".to_owned(),
        },
        E::TypeRates { second, .. } | E::TypeConcurrency { second, .. } => {
            field_of_task(spec, second, "")
        }
        other => match task_of(other) {
            Some((task, part)) => field_of_task(spec, task, part),
            None => "tasks".to_owned(),
        },
    }
}

/// The task that has a mistake, and where in it that is.
fn task_of(error: &WorkflowError) -> Option<(&str, &'static str)> {
    use WorkflowError as E;
    Some(match error {
        E::TaskNameCharacter { task, .. } | E::TaskTwice { task } => (task, ".name"),
        E::TypeEmpty { task } | E::TypeTooLong { task, .. } => (task, ".type"),
        E::NeedUnknown { task, .. } | E::NeedItself { task } | E::NeedTwice { task, .. } => {
            (task, ".after")
        }
        E::TimeoutZero { task } | E::TimeoutTooLong { task, .. } => (task, ".timeout"),
        E::AttemptsZero { task } | E::AttemptsTooMany { task, .. } => (task, ".retry.attempts"),
        E::RetryOrder { task, .. } | E::RetryTooLong { task, .. } => (task, ".retry"),
        E::BurstZero { task } | E::BurstAlone { task } => (task, ".burst"),
        E::KeyEmpty { task } => (task, ".keyed_rate_limit.key"),
        E::ConcurrencyZero { task } => (task, ".concurrency"),
        E::MapOfObject { task } => (task, ".map"),
        E::ConditionOnItems { task, .. } | E::ConditionValue { task, .. } => (task, ".when"),
        E::TollLimit { task, .. }
        | E::TollPartition { task, .. }
        | E::TollWeightZero { task, .. }
        | E::TooManyTolls { task, .. } => (task, ".tolls"),
        // What is wrong there is in one of several places: the task must do.
        E::BothRates { task }
        | E::LimitZero { task }
        | E::PeriodZero { task }
        | E::UnitsZero { task }
        | E::UnitsOverLimit { task, .. }
        | E::Limit { task, .. }
        | E::PathMalformed { task, .. }
        | E::PathOutsideNeeds { task, .. } => (task, ""),
        _ => return None,
    })
}

/// The last task of that name: of two that are called alike it is the one too many.
fn field_of_task(spec: &WorkflowSpec, task: &str, part: &str) -> String {
    match spec.tasks.iter().rposition(|other| other.name == task) {
        Some(place) => format!("tasks[{place}]{part}"),
        None => "tasks".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_told_with_its_place() {
        for (definition, place) in [
            (r#"{"tasks":[]}"#, "tasks"),
            (r#"{"tasks":[{"name":"a","type":"t"},{"name":"a","type":"t"}]}"#, "tasks[1].name"),
            (r#"{"tasks":[{"name":"a","type":"t","after":["b"]}]}"#, "tasks[0].after"),
            (
                r#"{"tasks":[{"name":"a","type":"t","after":["b"]},{"name":"b","type":"t","after":["a"]}]}"#,
                "tasks[1].after",
            ),
            (
                r#"{"tasks":[{"name":"a","type":"t"},{"name":"b","type":"","timeout":"1s"}]}"#,
                "tasks[1].type",
            ),
            (r#"{"tasks":[{"name":"a","type":"t"}],"runs_max":0}"#, "runs_max"),
        ] {
            let text: WorkflowText = serde_json::from_str(definition).unwrap();
            let spec = WorkflowSpec::from(text.named("w"));
            let error = spec.clone().build().unwrap_err();
            assert_eq!(field_of(&error, &spec), place, "{error}");
        }
    }
}
