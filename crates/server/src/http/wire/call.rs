//! Calls as they are shown.

use super::destination::DestinationWire;
use super::event::EventWire;
use super::explanation::ExplanationWire;
use super::id::IdWire;
use super::instant::InstantWire;
use super::priority::PriorityWire;
use crate::http::caller::Caller;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tollgate::lanes::{Attempts, CallState, CallView, DeathCause, End, Payload, Toll};
use tollgate::{Envelope, Now};

/// A call as it is.
#[derive(Debug, Serialize)]
pub(in crate::http) struct CallViewWire {
    id: IdWire,
    queue: String,
    lane: String,
    state: CallStateWire,
    priority: PriorityWire,
    tolls: Vec<TollViewWire>,
    attempts: AttemptsWire,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rests_until: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_expires_at: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died_at: Option<InstantWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    died_of: Option<&'static str>,
}

/// Some calls.
#[derive(Debug, Serialize)]
pub(in crate::http) struct CallPageWire {
    pub(in crate::http) calls: Vec<CallViewWire>,
    /// Send it as `after` to get the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) next: Option<IdWire>,
}

/// A call with all that is known of it.
#[derive(Debug, Serialize)]
pub(in crate::http) struct WholeCallWire<'a> {
    #[serde(flatten)]
    pub(in crate::http) call: CallViewWire,
    #[serde(flatten)]
    pub(in crate::http) body: BodyWire<'a>,
    /// How it is delivered, as far as that is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) destination: Option<DestinationWire>,
    /// Of which trace it is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) traceparent: Option<String>,
    /// Why it waits, and until when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) waiting: Option<ExplanationWire>,
    pub(in crate::http) history: Vec<EventWire>,
}

/// A call that ended, as long as that is kept.
#[derive(Debug, Serialize)]
pub(in crate::http) struct EndedCallWire {
    pub(in crate::http) id: IdWire,
    pub(in crate::http) queue: String,
    pub(in crate::http) lane: String,
    pub(in crate::http) state: &'static str,
    pub(in crate::http) history: Vec<EventWire>,
}

/// Where a call is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum CallStateWire {
    Waiting,
    NotDue,
    Resting,
    InFlight,
    Dead,
}

/// What was handed in with a call: as JSON if it is JSON, and nothing if there is none.
#[derive(Debug, Default, Serialize)]
pub(in crate::http) struct BodyWire<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    /// How long it is, in place of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_bytes: Option<usize>,
}

#[derive(Debug, Serialize)]
struct TollViewWire {
    limit: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    weight: u64,
    feedback: bool,
}

/// How often a call was tried, by what came of it.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in crate::http) struct AttemptsWire {
    failures: u32,
    crashes: u32,
    limited: u32,
}

impl<'a> BodyWire<'a> {
    /// What those are told who look: all, or how long it is.
    pub(in crate::http) fn looked_at(bytes: &'a [u8], is_hidden: bool) -> Self {
        if is_hidden {
            return Self { body_bytes: Some(bytes.len()), ..Self::default() };
        }
        Self::new(bytes)
    }

    pub(in crate::http) fn new(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        // With anything around it, it would not come out as it went in.
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(json) if json.get().len() == bytes.len() => {
                Self { body: Some(json), ..Self::default() }
            }
            _ => Self { body_base64: Some(STANDARD.encode(bytes)), ..Self::default() },
        }
    }
}

impl CallViewWire {
    pub(in crate::http) fn new(view: &CallView, caller: &Caller, now: Now) -> Self {
        let in_limit_time = |at: Option<_>| at.map(|at| InstantWire::of(at, now));
        Self {
            id: IdWire(view.id),
            queue: caller.shown(&view.queue).to_owned(),
            lane: view.lane.as_str().to_owned(),
            state: view.state.into(),
            priority: PriorityWire(view.priority),
            tolls: view.tolls.iter().map(|toll| TollViewWire::new(toll, caller)).collect(),
            attempts: view.attempts.into(),
            not_before: view.not_before.map(InstantWire),
            expires_at: view.expires.map(InstantWire),
            rests_until: in_limit_time(view.rests_until),
            lease_expires_at: in_limit_time(view.lease_expires),
            died_at: in_limit_time(view.death.map(|death| death.at)),
            died_of: view.death.map(|death| died_of(death.cause)),
        }
    }
}

impl TollViewWire {
    fn new(toll: &Toll, caller: &Caller) -> Self {
        Self {
            limit: caller.shown(&toll.limit).to_owned(),
            partition: toll.partition.as_ref().map(|name| name.as_str().to_owned()),
            weight: toll.weight,
            feedback: toll.hears_feedback,
        }
    }
}

impl From<CallState> for CallStateWire {
    fn from(state: CallState) -> Self {
        match state {
            CallState::Waiting => Self::Waiting,
            CallState::NotDue => Self::NotDue,
            CallState::Resting => Self::Resting,
            CallState::InFlight => Self::InFlight,
            CallState::Dead => Self::Dead,
        }
    }
}

impl From<CallStateWire> for CallState {
    fn from(state: CallStateWire) -> Self {
        match state {
            CallStateWire::Waiting => Self::Waiting,
            CallStateWire::NotDue => Self::NotDue,
            CallStateWire::Resting => Self::Resting,
            CallStateWire::InFlight => Self::InFlight,
            CallStateWire::Dead => Self::Dead,
        }
    }
}

impl From<Attempts> for AttemptsWire {
    fn from(attempts: Attempts) -> Self {
        let Attempts { failures, crashes, limited } = attempts;
        Self { failures, crashes, limited }
    }
}

/// Of which trace a call is a part. One whose envelope cannot be read is told without.
pub(in crate::http) fn traceparent(payload: &Payload) -> Option<String> {
    let trace = Envelope::of(payload).ok()?.trace?;
    Some(trace.as_str().to_owned())
}

/// How a call ended, in a word.
pub(in crate::http) fn end(end: End) -> &'static str {
    match end {
        End::Done => "done",
        End::Dead => "dead",
        End::Cancelled => "cancelled",
        End::Expired => "expired",
        End::Superseded => "superseded",
        End::Dropped => "dropped",
    }
}

fn died_of(cause: DeathCause) -> &'static str {
    match cause {
        DeathCause::Failed => "failed",
        DeathCause::Crashed => "crashed",
        DeathCause::Limited => "limited",
        DeathCause::GivenUp => "given_up",
    }
}
