//! Runs as they travel.

use super::event::outcome_of;
use super::id::IdWire;
use super::instant::InstantWire;
use super::span::SpanWire;
use crate::http::App;
use crate::http::problem::{Problem, invalid_field};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tollgate::flows::{Attempt, Ended, Ending, RunState, RunView, Signal, Signalled};

/// Longest name or key of a signal.
const NAME_BYTES_MAX: usize = 512;

/// A run that was begun, or was there.
#[derive(Debug, Serialize)]
pub(in crate::http) struct BegunWire {
    pub(in crate::http) run: String,
    /// Whether one of its idempotency key was there, and is this.
    pub(in crate::http) known: bool,
}

/// A run as it is.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RunWire {
    run: String,
    name: String,
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation: Option<String>,
    began_at: InstantWire,
    #[serde(flatten)]
    state: StateWire,
}

#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum StateWire {
    Going {
        #[serde(skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        call: Option<IdWire>,
    },
    Awaiting {
        names: Vec<String>,
        then: String,
    },
    Joining {
        children: u32,
        then: String,
    },
    Working {
        tasks: Vec<TaskStateWire>,
        pending: bool,
    },
    Ended {
        ended_at: InstantWire,
        ending: EndingWire,
    },
}

#[derive(Debug, Serialize)]
struct TaskStateWire {
    task: String,
    state: String,
}

#[derive(Debug, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum EndingWire {
    Done {
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<Box<RawValue>>,
        /// How long it is, in place of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        value_bytes: Option<usize>,
    },
    Failed {
        reason: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        step: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        given: Option<Box<RawValue>>,
        /// How long it is, in place of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        given_bytes: Option<usize>,
    },
    Cancelled,
}

/// Some runs.
#[derive(Debug, Serialize)]
pub(in crate::http) struct RunPageWire {
    pub(in crate::http) runs: Vec<RunWire>,
    /// Send it as `after` to get the next page, which is there even if this one is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<String>,
}

/// A run that goes on.
#[derive(Debug, Serialize)]
pub(in crate::http) struct NotEndedWire {
    pub(in crate::http) run: String,
    pub(in crate::http) ended: bool,
}

/// What happened in a run.
#[derive(Debug, Serialize)]
pub(in crate::http) struct TimelineWire {
    run: String,
    attempts: Vec<AttemptWire>,
}

#[derive(Debug, Serialize)]
struct AttemptWire {
    #[serde(skip_serializing_if = "String::is_empty")]
    step: String,
    attempt: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<String>,
    started_at: InstantWire,
    settled_at: InstantWire,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    waits: BTreeMap<String, SpanWire>,
    settlement: &'static str,
    call: IdWire,
}

/// Something that a run is told.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct SignalWire {
    name: String,
    payload: Option<Box<RawValue>>,
    dedupe: Option<String>,
}

/// What became of a signal.
#[derive(Debug, Serialize)]
pub(in crate::http) struct SignalledWire {
    run: String,
    signalled: &'static str,
}

/// From where a run begins again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RerunWire {
    /// Which task or step; where it failed if it is left out.
    pub(in crate::http) from: Option<String>,
}

impl RunWire {
    /// A run as those see it who look: what it gave is told as bodies of calls are.
    pub(in crate::http) fn new(view: RunView, app: &App) -> Self {
        let RunView { run, name, version, correlation, began, state } = view;
        let state = match state {
            RunState::Going { step, call } => StateWire::Going { step, call: call.map(IdWire) },
            RunState::Awaiting { names, then } => StateWire::Awaiting { names, then },
            RunState::Joining { children, then } => StateWire::Joining { children, then },
            RunState::Working { tasks, is_pending } => {
                let tasks = tasks.into_iter();
                let tasks = tasks.map(|(task, state)| TaskStateWire { task, state }).collect();
                StateWire::Working { tasks, pending: is_pending }
            }
            RunState::Ended { at, ending } => StateWire::Ended {
                ended_at: InstantWire(at),
                ending: EndingWire::new(ending, app.redact_bodies),
            },
        };
        Self { run, name, version, correlation, began_at: InstantWire(began), state }
    }

    /// A run that ended, for who waited for what it gave.
    pub(in crate::http) fn ended(run: String, ended: Ended) -> Self {
        let Ended { name, version, correlation, began, ended, ending, .. } = ended;
        let ending = EndingWire::new(ending, false);
        let state = StateWire::Ended { ended_at: InstantWire(ended), ending };
        Self { run, name, version, correlation, began_at: InstantWire(began), state }
    }
}

impl EndingWire {
    fn new(ending: Ending, hides: bool) -> Self {
        match ending {
            Ending::Done(value) => {
                let (value, value_bytes) = shown(&value, hides);
                Self::Done { value, value_bytes }
            }
            Ending::Failed { reason, step, state } => {
                let (given, given_bytes) = shown(&state, hides);
                Self::Failed { reason, step, given, given_bytes }
            }
            Ending::Cancelled => Self::Cancelled,
        }
    }
}

/// JSON that was kept, or how long it is.
fn shown(json: &[u8], hides: bool) -> (Option<Box<RawValue>>, Option<usize>) {
    match hides {
        true => (None, Some(json.len())),
        // It was read as JSON before it was kept.
        false => (serde_json::from_slice(json).ok(), None),
    }
}

impl TimelineWire {
    pub(in crate::http) fn new(run: String, attempts: &[Attempt]) -> Self {
        Self { run, attempts: attempts.iter().map(AttemptWire::new).collect() }
    }
}

impl AttemptWire {
    fn new(attempt: &Attempt) -> Self {
        let waits = attempt.waits.iter();
        let waits = waits.map(|(limit, span)| (limit.as_str().to_owned(), SpanWire(*span)));
        Self {
            step: attempt.step.clone(),
            attempt: attempt.attempt,
            outcome: attempt.outcome.clone(),
            then: attempt.then.clone(),
            started_at: InstantWire(attempt.started.wall),
            settled_at: InstantWire(attempt.settled.wall),
            waits: waits.collect(),
            settlement: outcome_of(&attempt.settlement, attempt.settled).0,
            call: IdWire(attempt.call),
        }
    }
}

impl SignalWire {
    /// The signal, within bounds.
    pub(in crate::http) fn signal(self) -> Result<Signal, Problem> {
        let check = |field: &str, text: &str| match text.len() {
            1..=NAME_BYTES_MAX => Ok(()),
            bytes => {
                let why = format!("it has {bytes} bytes: give it 1 to {NAME_BYTES_MAX}");
                Err(invalid_field(field, &why))
            }
        };
        check("name", &self.name)?;
        if let Some(key) = &self.dedupe {
            check("dedupe", key)?;
        }
        let payload = self.payload.as_ref().map_or("null", |payload| payload.get());
        Ok(Signal { name: self.name, payload: payload.as_bytes().into(), key: self.dedupe })
    }
}

impl SignalledWire {
    pub(in crate::http) fn new(run: String, signalled: Signalled) -> Self {
        let signalled = match signalled {
            Signalled::Woken => "woken",
            Signalled::Kept => "kept",
            Signalled::Known => "known",
        };
        Self { run, signalled }
    }
}
