//! `/v1/queues/{queue}/claim`: calls that a worker starts now, as soon as there are some.

use super::body::{Json, Large};
use super::caller::Caller;
use super::path::InPath;
use super::problem::{Problem, invalid_field};
use super::queues::unknown;
use super::settle::settle_all;
use super::wire::claim::{ClaimAnswerWire, ClaimWire, ClaimedWire, Task, attempt};
use super::wire::instant::InstantWire;
use super::wire::items::Items;
use super::wire::units::Units;
use super::{App, Shared};
use crate::handed_out::HandedOut;
use crate::threads::at_length;
use crate::traces::{Attempt, Start};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tokio::time::Instant;
use tollgate::flows::{ClaimedTask, type_of};
use tollgate::lanes::Claimed;
use tollgate::lanes::claim::CLAIM_MAX;
use tollgate::lanes::queue::LEASE_MAX;
use tollgate::{AskError, Envelope, Error, Span, Tollgate};

/// Longest wait: a connection is kept open for it.
const WAIT_MAX: Span = Span::from_minutes(10);
/// Longest name of a worker: it goes into the log.
const WORKER_CHARS_MAX: usize = 128;
/// A call that is not started within so long after the answer is to be handed back.
const START_WITHIN: Span = Span::from_secs(1);

/// Settles what the worker has done, and starts calls for it. If the client goes while it waits, or
/// before it has the answer, its calls wait again.
pub(super) async fn claim(
    State(app): Shared,
    caller: Caller,
    InPath(queue): InPath<String>,
    body: Large,
) -> Result<Response, Problem> {
    let (began, seal) = (Instant::now(), app.seal().await?);
    let (wanted, settled, first, claiming) = {
        let request: ClaimWire<'_> = if body.bytes.is_empty() { none() } else { body.one()? };
        let wanted = Wanted::new(&request)?;
        let settles = settle_all(&app, &caller, &request.settle.0);
        let mut claiming = wanted.claim(&app, &caller, &queue);
        let (settled, first) = side_by_side(&app.gate, settles, &mut claiming).await;
        (wanted, settled?, first, claiming)
    };
    // Who waits needs no room for what was sent.
    drop(body);
    let claimed = match first {
        Some(claimed) => claimed,
        None => claiming.await,
    };
    let (Started { calls: claimed, tasks, handed_out }, problem) = match claimed {
        Ok(started) => (started, None),
        // What was settled is told, whatever comes of the claim.
        Err(problem) if !settled.is_empty() => {
            (Started::default(), Some(problem.into_wire(&caller)))
        }
        Err(problem) => return Err(problem),
    };
    // Rounded down: a worker counts from no later than it was.
    let waited_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    if let Some(worker) = &wanted.worker {
        tracing::debug!(%queue, %worker, calls = claimed.len(), "calls claimed");
    }
    let traced = traced(&app, &caller, &queue, &claimed).await;
    let calls = claimed.iter().enumerate().map(|(nth, claimed)| {
        let traced = traced.get(nth).and_then(Option::as_ref);
        ClaimedWire::new((claimed, tasks.get(nth)), traced, seal, &caller)
    });
    let start_within_ms = START_WITHIN.as_millis_ceil();
    let bytes = claimed.iter().map(|claimed| claimed.payload.bytes()).sum();
    let mut response = at_length(bytes, || {
        let calls = calls.collect();
        let answer = ClaimAnswerWire { calls, start_within_ms, waited_ms, settled, problem };
        Json(answer).into_response()
    });
    // The connection lets go of it when it has written the answer.
    if let Some(handed_out) = handed_out {
        response.extensions_mut().insert(handed_out);
    }
    Ok(response)
}

/// Calls that were started.
#[derive(Default)]
struct Started {
    calls: Vec<Claimed>,
    /// What they are tasks of, one of each; none if they are no tasks.
    tasks: Vec<Task>,
    /// Hands them back unless the answer arrives.
    handed_out: Option<Arc<HandedOut>>,
}

impl Started {
    fn new(gate: &Tollgate, calls: Vec<Claimed>, tasks: Vec<Task>) -> Self {
        let handed_out = HandedOut::new(gate, &calls);
        Self { calls, tasks, handed_out }
    }
}

/// A claim under way.
type Claiming = Pin<Box<dyn Future<Output = Result<Started, Problem>> + Send>>;

/// What a worker wants, within bounds.
struct Wanted {
    max: usize,
    wait: Span,
    lease: Option<Span>,
    /// Who it is, for the log.
    worker: Option<String>,
}

impl Wanted {
    fn new(request: &ClaimWire<'_>) -> Result<Self, Problem> {
        let max = request.max.map_or(1, |Units(max)| max);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        if max > CLAIM_MAX {
            let why =
                format!("a claim has up to {CLAIM_MAX} calls: as many as you have free hands");
            return Err(invalid_field("max", &why));
        }
        let wait = request.wait.map_or(Span::ZERO, |wait| wait.0);
        if wait > WAIT_MAX {
            return Err(invalid_field("wait", &format!("{wait} is over the longest, {WAIT_MAX}")));
        }
        let worker = request.worker.as_deref().unwrap_or_default();
        if worker.chars().count() > WORKER_CHARS_MAX {
            let why = format!("the name of a worker has up to {WORKER_CHARS_MAX} characters");
            return Err(invalid_field("worker", &why));
        }
        let lease = request.lease.map(|lease| lease.0);
        if lease.is_some_and(|lease| lease.is_zero() || lease > LEASE_MAX) {
            return Err(invalid_field("lease", "a lease lasts for up to 1d, as in \"30s\""));
        }
        let worker = request.worker.as_deref().map(str::to_owned);
        Ok(Self { max, wait, lease, worker })
    }

    /// Asks for calls; waits until there are some, it was long enough, or the server ends. In a box of
    /// its own: it stays when the request is gone.
    fn claim(&self, app: &App, caller: &Caller, shown: &str) -> Claiming {
        let (gate, shutdown) = (app.gate.clone(), app.shutdown.clone());
        let (queue, shown) = (caller.inner(shown).into_owned(), shown.to_owned());
        let Self { max, wait, lease, .. } = *self;
        Box::pin(async move {
            // Known here as a rule: the claim is on its way right behind what is settled.
            match gate.is_pushed(&queue).await.map_err(Problem::from)? {
                None => return Err(unknown(&shown)),
                Some(true) => return Err(Error::from(AskError::QueuePushed { queue }).into()),
                Some(false) => {}
            }
            let claim = async {
                if let Some(type_name) = type_of(&queue) {
                    let claimed = gate.flows().claim_tasks(type_name, max, wait, lease).await?;
                    let tasks = claimed
                        .into_iter()
                        .map(|ClaimedTask { call, card, until }| (call, Task { card, until }));
                    return Ok(tasks.unzip());
                }
                let claimed = match lease {
                    Some(lease) => gate.claim_for(&queue, max, wait, lease).await,
                    None => gate.claim(&queue, max, wait).await,
                };
                Ok::<_, Error>((claimed?, Vec::new()))
            };
            let (calls, tasks) = tokio::select! {
                // The claim first: who has calls when the server ends still gets them.
                biased;
                claimed = claim => claimed.map_err(Problem::from)?,
                () = shutdown.begun(), if !wait.is_zero() => (Vec::new(), Vec::new()),
            };
            Ok(Started::new(&gate, calls, tasks))
        })
    }
}

/// The attempts that begin, of each call that is traced; nothing at all if nobody traces.
async fn traced(
    app: &App,
    caller: &Caller,
    queue: &str,
    claimed: &[Claimed],
) -> Vec<Option<Attempt>> {
    if !app.traces.is_on() || claimed.is_empty() {
        return Vec::new();
    }
    // The calls are the worker's, whatever comes of their spans.
    let Ok(now) = app.gate.now().await else { return Vec::new() };
    let begin = |claimed: &Claimed| {
        app.traces.start(Start {
            call: claimed.started.lease.call,
            envelope: &Envelope::of(&claimed.payload).ok()?,
            queue,
            namespace: caller.namespace(),
            lane: &claimed.started.lane,
            at: InstantWire::of(claimed.started.at, now).0,
            attempt: attempt(claimed),
        })
    };
    claimed.iter().map(begin).collect()
}

/// Settles, and lets the claim go on beside it; says what that gave if it is over as well. In this order,
/// and together: what is settled makes room for what is claimed, in one commit.
async fn side_by_side<S: Future>(
    gate: &Tollgate,
    settles: S,
    claiming: &mut Claiming,
) -> (S::Output, Option<Result<Started, Problem>>) {
    let (mut settles, mut claimed) = (pin!(settles), None);
    poll_fn(|context| {
        gate.together(|| {
            let settled = settles.as_mut().poll(context);
            if claimed.is_none()
                && let Poll::Ready(answer) = claiming.as_mut().poll(context)
            {
                claimed = Some(answer);
            }
            settled.map(|settled| (settled, claimed.take()))
        })
    })
    .await
}

/// A claim that says nothing.
fn none() -> ClaimWire<'static> {
    ClaimWire { max: None, wait: None, lease: None, worker: None, settle: Items::default() }
}
