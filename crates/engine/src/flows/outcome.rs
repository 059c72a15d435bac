//! What comes of a step.

use super::record;
use super::start::NewRun;
use crate::ask::Toll;
use crate::error::{AskError, Error};
use crate::flows::FlowError;
use serde::Serialize;
use tollgate_core::flow::run::{CHILDREN_MAX, NAMES_MAX, Plan};
use tollgate_core::{LimitName, Partition, Priority, Span, Toll as Owed, Tolls};

/// The limit of steps that go alone: its partitions are their keys, and one passes at a time. It comes along
/// with the steps that owe there.
pub const ALONE: &str = "tollgate:alone";

/// What comes of a step. What it says of tolls, priority and delay is of the step that follows.
#[derive(Debug, Clone)]
#[must_use = "a step that is not settled is made again"]
pub struct StepOutcome {
    pub(super) what: What,
    pub(super) then: Then,
    pub(super) actual: Vec<(String, u64)>,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Next,
    Retry(Span),
    Limited(Span),
    Wait { names: Vec<String>, timeout: Option<Span> },
    Children(Vec<NewRun>),
    Done,
    Stop(String),
}

/// What follows, as it was said.
#[derive(Debug, Clone)]
pub(super) struct Then {
    pub(super) step: String,
    /// The state, or what the run gave, or why it cannot be written.
    pub(super) json: Result<Box<[u8]>, FlowError>,
    /// What it owes, or why that cannot be.
    tolls: Result<Tolls, AskError>,
    pub(super) priority: Priority,
    pub(super) delay: Span,
}

impl Then {
    pub(super) fn new(step: &str, what: &'static str, json: impl Serialize) -> Self {
        let not_json =
            |error: serde_json::Error| FlowError::NotJson { what, reason: error.to_string() };
        Self {
            step: step.to_owned(),
            json: record::as_json(&json).map_err(not_json),
            tolls: Ok(Tolls::new()),
            priority: Priority::default(),
            delay: Span::ZERO,
        }
    }

    pub(super) fn pay(&mut self, toll: Toll<'_>) {
        self.owe(toll.name(), toll.partition(), toll.weight);
    }

    pub(super) fn alone(&mut self, key: &str) {
        self.owe(ALONE, Some(key), 1);
    }

    fn owe(&mut self, limit: &str, partition: Option<&str>, weight: u64) {
        let Ok(tolls) = &mut self.tolls else { return };
        let owed = || -> Result<_, AskError> {
            let limit = LimitName::new(limit)?;
            let partition = partition.map(Partition::new).transpose()?;
            Ok(Owed { limit, partition, weight, hears_feedback: false })
        };
        match owed() {
            Ok(owed) => tolls.push(owed),
            Err(error) => self.tolls = Err(error),
        }
    }

    pub(super) fn into_plan(self) -> Result<Plan, Error> {
        Ok(Plan {
            step: self.step.into(),
            state: self.json?,
            tolls: self.tolls?,
            priority: self.priority,
            delay: self.delay,
        })
    }
}

/// This step follows.
pub fn next(step: &str, state: impl Serialize) -> StepOutcome {
    StepOutcome::of(What::Next, Then::new(step, "the state", state))
}

/// This step is made again after so long, as it was: with the same state, and it pays the same again.
pub fn retry(after: impl Into<Span>) -> StepOutcome {
    StepOutcome::of(What::Retry(after.into()), Then::new("", "the state", ()))
}

/// The upstream asked for a pause: the meter of this step's first toll closes for so long, and the step is
/// made again then.
pub fn limited(pause: impl Into<Span>) -> StepOutcome {
    StepOutcome::of(What::Limited(pause.into()), Then::new("", "the state", ()))
}

/// This step follows when a signal of one of these names is there, which it is given with all others of
/// these names.
pub fn wait_for<N: Into<String>>(
    names: impl IntoIterator<Item = N>,
    step: &str,
    state: impl Serialize,
) -> StepOutcome {
    let names = names.into_iter().map(Into::into).collect();
    StepOutcome::of(What::Wait { names, timeout: None }, Then::new(step, "the state", state))
}

/// These runs begin, and this step follows when all of them have ended, however that is.
pub fn children(
    runs: impl IntoIterator<Item = NewRun>,
    step: &str,
    state: impl Serialize,
) -> StepOutcome {
    let runs = runs.into_iter().collect();
    StepOutcome::of(What::Children(runs), Then::new(step, "the state", state))
}

/// The run ends and gives this.
pub fn done(value: impl Serialize) -> StepOutcome {
    StepOutcome::of(What::Done, Then::new("", "what the run gives", value))
}

/// The run ends: it failed, for this reason.
pub fn stop(reason: impl Into<String>) -> StepOutcome {
    StepOutcome::of(What::Stop(reason.into()), Then::new("", "the state", ()))
}

impl StepOutcome {
    fn of(what: What, then: Then) -> Self {
        Self { what, then, actual: Vec::new() }
    }

    /// The step that follows owes this when it starts: all tolls are paid or none. A limit that nobody defined
    /// holds the run before that step until it is defined.
    pub fn pays(mut self, toll: Toll<'_>) -> Self {
        self.then.pay(toll);
        self
    }

    /// The step that follows goes alone among all of this key: a toll at the limit [`ALONE`].
    pub fn alone(mut self, key: impl Into<String>) -> Self {
        self.then.alone(&key.into());
        self
    }

    /// The step that follows goes before those of lower priority at its meters, from 0 to 9; 0 by default.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.then.priority = priority;
        self
    }

    /// The step that follows starts so long after this one ended, or after it has what it waits for.
    pub fn delay(mut self, delay: impl Into<Span>) -> Self {
        self.then.delay = delay.into();
        self
    }

    /// How long signals are waited for: then the step that follows is made without any, and is told so.
    pub fn timeout(mut self, span: impl Into<Span>) -> Self {
        if let What::Wait { timeout, .. } = &mut self.what {
            *timeout = Some(span.into());
        }
        self
    }

    /// What this step cost in truth at a limit where it paid an estimate.
    pub fn actual(mut self, limit: impl Into<String>, units: u64) -> Self {
        self.actual.push((limit.into(), units));
        self
    }

    /// What is wrong with it, if something is.
    pub(super) fn check(&self) -> Result<(), FlowError> {
        match &self.what {
            What::Wait { names, .. } if names.is_empty() || names.len() > NAMES_MAX => {
                return Err(FlowError::Names { given: names.len() });
            }
            What::Children(runs) if runs.len() > CHILDREN_MAX => {
                return Err(FlowError::TooManyChildren { given: runs.len() });
            }
            What::Children(runs) if runs.iter().any(|run| run.correlation.is_some()) => {
                return Err(FlowError::ChildWithKey);
            }
            _ => {}
        }
        self.then.json.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// How it is called in the timeline of a run.
    pub(super) fn name(&self) -> &'static str {
        match self.what {
            What::Next => "next",
            What::Retry(_) => "retry",
            What::Limited(_) => "limited",
            What::Wait { .. } => "await",
            What::Children(_) => "children",
            What::Done => "done",
            What::Stop(_) => "stop",
        }
    }
}
