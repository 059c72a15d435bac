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
use crate::lease::{self, Held};
use crate::seal::Seal;
use crate::traces::Attempt;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tollgate::Timestamp;
use tollgate::flows::TaskCard;
use tollgate::lanes::Claimed;

/// What is known of a task besides its call.
#[derive(Debug)]
pub(in crate::http) struct Task {
    pub(in crate::http) card: TaskCard,
    /// Until when it may be held, in limit time.
    pub(in crate::http) until: Timestamp,
}

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
    /// Of which run it is, if it is a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<TaskWire<'a>>,
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

/// Of which run a task is.
#[derive(Debug, Serialize)]
pub(in crate::http) struct TaskWire<'a> {
    run: &'a str,
    workflow: &'a str,
    version: u32,
    name: &'a str,
    /// Which item of a map, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<u32>,
}

impl<'a> From<&'a TaskCard> for TaskWire<'a> {
    fn from(card: &'a TaskCard) -> Self {
        let TaskCard { workflow, version, run, task, item, .. } = card;
        Self { run, workflow, version: *version, name: task, item: item.map(|(item, _)| item) }
    }
}

impl<'a> ClaimedWire<'a> {
    pub(in crate::http) fn new(
        (claimed, task): (&'a Claimed, Option<&'a Task>),
        traced: Option<&Attempt>,
        seal: &Seal,
        caller: &Caller,
    ) -> Self {
        let (started, attempt) = (&claimed.started, attempt(claimed));
        let before = started.attempts;
        let held = Held {
            lease: started.lease,
            until: task.map(|task| task.until),
            trace: traced.map(Attempt::to_bytes).unwrap_or_default().into(),
        };
        Self {
            id: IdWire(started.lease.call),
            lane: &started.lane,
            body: BodyWire::new(claimed.payload.body()),
            task: task.map(|task| (&task.card).into()),
            lease: lease::encode(&held, caller.namespace(), seal),
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
