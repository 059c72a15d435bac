//! Asking for calls: one long poll at a time, for as many as there are free hands.

use super::settling::Unsettled;
use super::{Job, Setup};
use crate::calls::{CallId, Lease};
use crate::client::{Asked, Client};
use crate::error::{ClientError, Problem};
use crate::path::path;
use crate::tasks::TaskOf;
use crate::transport::Times;
use crate::wire::call::{bytes, raw};
use crate::wire::outcome::{SettledWire, SettlementWire};
use crate::wire::time::SpanWire;
use hyper::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::Span;
use tollgate_engine::TraceParent;

/// How long one claim waits before it is made anew.
const CLAIM_WAIT: Span = Span::from_secs(20);
/// The same for a worker that ends when there is nothing left: others may have the last call.
const DRAIN_WAIT: Span = Span::from_secs(1);
/// Most calls of one claim: unless their bodies are among the largest, they fit into one answer.
pub(super) const CLAIM_MAX: usize = 100;

#[derive(Serialize)]
struct ClaimWire<'a> {
    max: usize,
    wait: SpanWire,
    lease: SpanWire,
    worker: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    settle: Vec<&'a SettlementWire>,
}

#[derive(Deserialize)]
struct ClaimAnswerWire {
    calls: Vec<ClaimedWire>,
    #[serde(default)]
    start_within_ms: u64,
    waited_ms: Option<u64>,
    #[serde(default)]
    settled: Vec<SettledWire>,
    /// Why there are no calls, though what came along was settled.
    problem: Option<Problem>,
}

#[derive(Deserialize)]
struct ClaimedWire {
    id: CallId,
    lane: String,
    #[serde(default, deserialize_with = "raw")]
    body: Option<Box<RawValue>>,
    body_base64: Option<String>,
    task: Option<TaskOf>,
    lease: Lease,
    lease_ms: u64,
    attempt: u32,
    traceparent: Option<String>,
}

/// What a claim gave.
#[derive(Debug)]
pub(super) struct Claimed {
    /// When the calls were let go, or earlier.
    pub(super) let_go: Instant,
    /// Calls to be started by then, and how long they are leased.
    pub(super) jobs: Vec<(Job, Span)>,
    pub(super) start_within: Span,
    pub(super) settled: Vec<SettledWire>,
    /// Why there are no calls, though what came along was settled.
    pub(super) problem: Option<Problem>,
}

/// How long a claim waits that has nothing else to tell.
pub(super) fn wait(setup: &Setup) -> Span {
    if setup.is_draining { DRAIN_WAIT } else { CLAIM_WAIT }
}

/// The request for up to so many calls, which takes along what is to be settled.
pub(super) fn ask(
    setup: &Setup,
    most: usize,
    wait: Span,
    settle: &[Unsettled],
) -> Result<Asked, ClientError> {
    let wire = ClaimWire {
        max: most,
        wait: SpanWire(wait),
        lease: SpanWire(setup.lease),
        worker: &setup.name,
        settle: settle.iter().map(|it| &it.wire).collect(),
    };
    let asked = Asked::new(Method::POST, path(&["queues", &setup.queue, "claim"]));
    Ok(asked.json(&wire)?.waits(wait).ahead())
}

/// When a server let calls go that had the request for so long. The answer may have been here for a while
/// before anyone looked, if the runtime had other things to do, or on its way.
fn let_go(times: Times, waited_ms: Option<u64>) -> Instant {
    let waited = waited_ms.map(Duration::from_millis);
    waited
        .and_then(|waited| times.sent.checked_add(waited))
        .map_or(times.came, |at| at.min(times.came))
}

/// Sends it. Never sent again by itself: if the answer is lost, its calls wait until their leases end.
pub(super) async fn claim(client: Client, asked: Asked) -> Result<Claimed, ClientError> {
    let answer = client.send(asked).await?;
    let wire: ClaimAnswerWire = answer.read()?;
    let job = |call: ClaimedWire| -> Result<_, String> {
        let job = Job {
            id: call.id,
            lane: call.lane,
            body: bytes(call.body.as_deref(), call.body_base64.as_deref())?,
            attempt: call.attempt,
            trace: call.traceparent.as_deref().and_then(TraceParent::new),
            task: call.task,
            lease: call.lease,
        };
        Ok((job, Span::from_millis(call.lease_ms)))
    };
    let jobs: Result<Vec<_>, _> = wire.calls.into_iter().map(job).collect();
    let unread = |reason| ClientError::Protocol { url: client.url().to_owned(), reason };
    Ok(Claimed {
        let_go: let_go(answer.times, wire.waited_ms),
        jobs: jobs.map_err(unread)?,
        start_within: Span::from_millis(wire.start_within_ms),
        settled: wire.settled,
        problem: wire.problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_let_go_when_the_server_says_and_not_when_someone_looks() {
        let sent = crate::clock::now();
        let after = |ms| sent + Duration::from_millis(ms);
        let times = Times { sent, came: after(5_000) };
        assert_eq!(let_go(times, Some(2_000)), after(2_000));
        assert_eq!(let_go(times, Some(9_000)), after(5_000), "not later than it came");
        assert_eq!(let_go(times, None), after(5_000), "a server that does not say");
        assert_eq!(let_go(times, Some(u64::MAX)), after(5_000));
    }
}
