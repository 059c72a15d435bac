//! Why a call waits, and until when, as it travels.

use super::instant::InstantWire;
use super::problem::cause;
use crate::http::caller::Caller;
use serde::Serialize;
use tollgate::lanes::{Explanation, Reason};
use tollgate::{Now, Opening};

/// Everything that is in a call's way.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ExplanationWire {
    /// How many calls of its lane go before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<u64>,
    reasons: Vec<ReasonWire>,
    /// It does not start before, whatever the workers do; left out if no one can compute it.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<InstantWire>,
    /// When it starts if workers ask at all times, those before it start as soon as their meters let
    /// them and end at once, and nobody comes in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<InstantWire>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
enum ReasonWire {
    InFlight {
        lease_expires_at: InstantWire,
    },
    QueuePaused,
    LanePaused,
    LaneHeld,
    NotDue {
        until: InstantWire,
    },
    Resting {
        until: InstantWire,
    },
    LaneBusy {
        in_flight: u32,
    },
    Behind {
        calls: u64,
    },
    Meter {
        limit: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        partition: Option<String>,
        cause: &'static str,
        /// Left out if that hangs on a call that ends.
        #[serde(skip_serializing_if = "Option::is_none")]
        opens_at: Option<InstantWire>,
    },
    /// Nothing is in its way but that nobody asks for calls of its queue.
    NoWorker,
    Other,
}

impl ExplanationWire {
    /// All that is in a call's way, and that nobody asks for it, if nothing else is.
    pub(in crate::http) fn new(
        explanation: &Explanation,
        asking: usize,
        caller: &Caller,
        now: Now,
    ) -> Self {
        let told = |at: Option<_>| at.map(|at| InstantWire::of(at, now));
        let reasons = explanation.reasons.iter();
        let mut reasons: Vec<_> = reasons.map(|it| ReasonWire::new(it, caller, now)).collect();
        if reasons.is_empty() && asking == 0 {
            reasons.push(ReasonWire::NoWorker);
        }
        Self {
            position: explanation.position,
            reasons,
            not_before: told(explanation.not_before),
            expected: told(explanation.expected),
        }
    }
}

impl ReasonWire {
    fn new(reason: &Reason, caller: &Caller, now: Now) -> Self {
        match reason {
            Reason::InFlight { expires } => {
                Self::InFlight { lease_expires_at: InstantWire::of(*expires, now) }
            }
            Reason::QueuePaused => Self::QueuePaused,
            Reason::LanePaused => Self::LanePaused,
            Reason::LaneHeld => Self::LaneHeld,
            Reason::NotDue { wall } => Self::NotDue { until: InstantWire(*wall) },
            Reason::Resting { until } => Self::Resting { until: InstantWire::of(*until, now) },
            Reason::LaneBusy { in_flight } => Self::LaneBusy { in_flight: *in_flight },
            Reason::Behind { calls } => Self::Behind { calls: *calls },
            Reason::Meter { limit, partition, blocker } => Self::Meter {
                limit: caller.shown(limit).to_owned(),
                partition: partition.as_ref().map(|name| name.as_str().to_owned()),
                cause: cause(blocker.cause),
                opens_at: match blocker.opening {
                    Opening::At(at) => Some(InstantWire::of(at, now)),
                    Opening::OnRelease => None,
                },
            },
            _ => Self::Other,
        }
    }
}
