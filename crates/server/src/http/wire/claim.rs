//! Claims as they travel.

use super::call::{AttemptsWire, BodyWire, traceparent};
use super::id::IdWire;
use super::items::Items;
use super::object::Object;
use super::problem::ProblemWire;
use super::settle::{SettledWire, SettlementWire};
use super::span::SpanWire;
use super::units::Units;
use crate::http::caller::Caller;
use crate::lease;
use crate::seal::Seal;
use crate::traces::Attempt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tollgate::lanes::Claimed;

/// A worker asks for calls that it starts now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ClaimWire<'a> {
    /// At most so many: the worker's free hands.
    pub(in crate::http) max: Option<Units>,
    pub(in crate::http) wait: Option<SpanWire>,
    pub(in crate::http) lease: Option<SpanWire>,
    /// Who it is, for the log.
    #[serde(borrow)]
    pub(in crate::http) worker: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(in crate::http) settle: Items<Object<SettlementWire<'a>>>,
}

/// Calls to be started now.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ClaimAnswerWire<'a> {
    pub(in crate::http) calls: Vec<ClaimedWire<'a>>,
    /// What is not started by then is to be handed back.
    pub(in crate::http) start_within_ms: u64,
    /// How long the request was here before they were let go: who gets the answer late knows it.
    pub(in crate::http) waited_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) settled: Vec<SettledWire>,
    /// Why nothing was claimed, where something was settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) problem: Option<ProblemWire>,
}

/// A call to be started now.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ClaimedWire<'a> {
    id: IdWire,
    lane: &'a str,
    #[serde(flatten)]
    body: BodyWire<'a>,
    lease: String,
    /// When the lease ends unless it is renewed.
    lease_ms: u64,
    /// Which attempt this is, from 1 on.
    attempt: u32,
    /// What came of those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<AttemptsWire>,
    /// Of which trace it is a part.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
}

impl<'a> ClaimedWire<'a> {
    pub(in crate::http) fn new(
        claimed: &'a Claimed,
        traced: Option<&Attempt>,
        seal: &Seal,
        caller: &Caller,
    ) -> Self {
        let (started, attempt) = (&claimed.started, attempt(claimed));
        let before = started.attempts;
        let carried = traced.map(Attempt::to_bytes).unwrap_or_default();
        Self {
            id: IdWire(started.lease.call),
            lane: &started.lane,
            body: BodyWire::new(claimed.payload.body()),
            lease: lease::encode(started.lease, &carried, caller.namespace(), seal),
            lease_ms: started.expires.since(started.at).as_millis_ceil(),
            attempt,
            attempts: (attempt > 1).then(|| before.into()),
            traceparent: match traced {
                Some(attempt) => Some(attempt.context.as_str().to_owned()),
                None => traceparent(&claimed.payload),
            },
        }
    }
}

/// Which attempt a start is, from 1 on.
pub(in crate::http) fn attempt(claimed: &Claimed) -> u32 {
    let before = claimed.started.attempts;
    let before = [before.failures, before.crashes, before.limited];
    before.into_iter().fold(1, u32::saturating_add)
}
