//! What the call of a step carries: which step it is, the state, and what let the run go on.

use super::record::{Draft, SignalRecord, not_ours};
use crate::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tollgate_core::flow::run::{Plan, Signal};
use tollgate_core::lanes::Payload;

/// What a body begins with: its step stands before all else, so that who reads a little of it knows it.
const STEP_FIRST: &[u8] = b"{\"step\":";

/// What let a run go on to a step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Woken {
    /// The step before it, or the start of the run.
    #[default]
    Plainly,
    /// Signals that it waited for.
    Signals(Vec<Signal>),
    /// The time of a wait is over, if nothing else lets it go on meanwhile.
    Timeout {
        /// Of which wait.
        turn: u64,
        /// Where the step pays, for if something did.
        limits: Vec<String>,
    },
    /// All children of a wait have ended.
    Children {
        /// Of which wait.
        turn: u64,
        /// How many.
        children: u32,
    },
}

/// What the call of a step carries.
pub(super) struct Body<'a> {
    pub(super) step: Cow<'a, str>,
    /// JSON.
    pub(super) state: &'a [u8],
    pub(super) woken: Woken,
}

#[derive(Deserialize)]
struct BodyRecord<'a> {
    #[serde(borrow)]
    step: Cow<'a, str>,
    #[serde(borrow)]
    state: &'a RawValue,
    #[serde(default)]
    woken: WokenRecord,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WokenRecord {
    #[default]
    Plainly,
    Signals(Vec<SignalRecord>),
    Timeout {
        turn: u64,
        limits: Vec<String>,
    },
    Children {
        turn: u64,
        children: u32,
    },
}

impl<'a> Body<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let BodyRecord { step, state, woken } =
            serde_json::from_slice(bytes).map_err(|error| not_ours(&error))?;
        Ok(Self { step, state: state.get().as_bytes(), woken: woken.into() })
    }
}

impl WokenRecord {
    pub(super) fn new(woken: &Woken) -> Result<Self, Error> {
        Ok(match woken {
            Woken::Plainly => Self::Plainly,
            Woken::Signals(signals) => {
                Self::Signals(signals.iter().map(SignalRecord::new).collect::<Result<_, _>>()?)
            }
            Woken::Timeout { turn, limits } => {
                Self::Timeout { turn: *turn, limits: limits.clone() }
            }
            Woken::Children { turn, children } => {
                Self::Children { turn: *turn, children: *children }
            }
        })
    }
}

impl From<WokenRecord> for Woken {
    fn from(record: WokenRecord) -> Self {
        match record {
            WokenRecord::Plainly => Self::Plainly,
            WokenRecord::Signals(signals) => {
                Self::Signals(signals.into_iter().map(Into::into).collect())
            }
            WokenRecord::Timeout { turn, limits } => Self::Timeout { turn, limits },
            WokenRecord::Children { turn, children } => Self::Children { turn, children },
        }
    }
}

/// The step of a call whose body begins so; `None` if it is not named there whole.
pub(super) fn step_in(begins: &[u8]) -> Option<String> {
    let named = begins.strip_prefix(STEP_FIRST)?;
    serde_json::Deserializer::from_slice(named).into_iter().next()?.ok()
}

/// The body of a call for what follows. The state is JSON already, and stands there as it is.
pub(super) fn write(plan: &Plan, woken: &Woken) -> Result<Payload, Error> {
    let mut body = Draft::with_capacity(plan.state.len() + plan.step.len() + 32);
    body.extend_from_slice(STEP_FIRST);
    serde_json::to_writer(&mut body, &plan.step).map_err(|error| not_ours(&error))?;
    body.extend_from_slice(b",\"state\":");
    body.extend_from_slice(&plan.state);
    if *woken != Woken::Plainly {
        let woken = WokenRecord::new(woken)?;
        body.extend_from_slice(b",\"woken\":");
        serde_json::to_writer(&mut body, &woken).map_err(|error| not_ours(&error))?;
    }
    body.push(b'}');
    Ok(Payload::body_alone(&body))
}
