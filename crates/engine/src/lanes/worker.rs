//! A worker: claims calls as it has hands free, runs a handler for each, and settles what comes of it.

mod following;
mod handling;
mod held;
mod settling;

pub(crate) use following::{Following, Next};
#[cfg(feature = "test-kit")]
pub(crate) use settling::settle as settle_all;

use super::{Engine, Outcome, Parts};
use crate::envelope::Envelope;
use crate::error::Error;
use handling::{Handler, Handling};
use held::{Held, Renewed};
use settling::Settling;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::{Id, JoinError, JoinSet};
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::queue::{LEASE_MAX, RENEWED_LEASE_MIN};
use tollgate_core::lanes::{Attempts, CallId, Claimed, Lease};
use tollgate_core::{LaneName, QueueName, Span, Timestamp};

/// How long one claim waits before it is made anew.
const CLAIM_WAIT: Span = Span::from_secs(60);
/// The same for a worker that ends when there is nothing left: others may have the last call.
const DRAIN_WAIT: Span = Span::from_secs(1);
/// A claim means *start now*: what comes later than this is handed back.
const START_BY: Span = Span::from_secs(1);
/// It counts from before the commit of the start: with less, a slow disk would let no call reach its handler in time.
const START_BY_MIN: Span = Span::from_millis(100);
/// Leases are renewed so many times before they would end.
const HEARTBEATS: u64 = 3;
/// Most calls that may wait to be settled, beyond as many as there are hands.
const UNSETTLED_MAX: usize = 1_000;
/// How long a store without room is left alone.
const AGAIN: Span = Span::from_millis(250);
/// How long a lease of a worker lasts unless it says otherwise.
const LEASE: Span = Span::from_secs(30);

/// A worker of a queue, to be set up and run.
#[must_use = "nothing is claimed until it runs"]
pub struct Worker<S> {
    engine: Engine<S>,
    queue: String,
    concurrency: usize,
    lease: Span,
    start_by: Span,
    stop: Stop,
    is_draining: bool,
    /// Its calls are those of runs.
    is_own: bool,
}

type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, concurrency, lease, start_by, .. } = self;
        let mut shown = f.debug_struct("Worker");
        shown.field("queue", queue).field("concurrency", concurrency);
        shown.field("lease", lease).field("start_by", start_by).finish_non_exhaustive()
    }
}

/// A call that a handler is to make now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which call.
    pub id: CallId,
    /// The lane it is of.
    pub lane: LaneName,
    /// What was handed in with it.
    pub body: Box<[u8]>,
    /// What goes with that: the trace it is part of, and how it is delivered.
    pub envelope: Envelope,
    /// Which start of it, from 1: failures, crashes and pauses before it are counted.
    pub attempt: u32,
    /// What came of those before.
    pub tried: Attempts,
    /// What it is settled with. Its token is higher than that of every start before: an upstream that
    /// remembers the highest can refuse a worker that lost its lease.
    pub lease: Lease,
    /// When it was let go.
    pub started: Timestamp,
}

impl Job {
    pub(crate) fn new(claimed: Claimed) -> Self {
        let Claimed { started, payload } = claimed;
        let tried = started.attempts;
        let before = tried.failures.saturating_add(tried.crashes).saturating_add(tried.limited);
        Self {
            id: started.lease.call,
            lane: started.lane,
            body: payload.body().into(),
            envelope: Envelope::of(&payload).unwrap_or_default(),
            attempt: before.saturating_add(1),
            tried,
            lease: started.lease,
            started: started.at,
        }
    }
}

/// What a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worked {
    /// Calls that a handler was run for.
    pub started: u64,
    /// Handlers that panicked; their calls are tried again.
    pub panicked: u64,
    /// Calls that came too late and were handed back unstarted.
    pub late: u64,
    /// Starts that could not be settled: their leases had ended, and another worker may have them.
    pub lost: u64,
}

impl<S: Lanes + 'static> Worker<S> {
    pub(super) fn new(engine: Engine<S>, queue: &str) -> Self {
        let (queue, stop) = (queue.to_owned(), Box::pin(pending()));
        let (concurrency, lease, start_by, is_draining) = (1, LEASE, START_BY, false);
        Self { engine, queue, concurrency, lease, start_by, stop, is_draining, is_own: false }
    }

    /// That of a queue of runs.
    pub(super) fn own(engine: Engine<S>, queue: &str) -> Self {
        Self { is_own: true, ..Self::new(engine, queue) }
    }

    /// How many calls it makes at a time; 1 by default.
    pub fn concurrency(self, calls: usize) -> Self {
        Self { concurrency: calls.max(1), ..self }
    }

    /// How long a call is leased, from 100 ms to a day; 30 s by default. It is renewed for as long as the handler runs, so
    /// this is how long a call of a worker that died waits for another. If it cannot be renewed in time, the handler is
    /// dropped where it waits, for another worker may have the call.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { lease: lease.into().clamp(RENEWED_LEASE_MIN, LEASE_MAX), ..self }
    }

    /// A call that reaches the handler later than this after it was let go is handed back: it paid for
    /// a start that the upstream would see too late. 1 s by default, and 100 ms at least.
    pub fn start_by(self, span: impl Into<Span>) -> Self {
        Self { start_by: span.into().max(START_BY_MIN), ..self }
    }

    /// When this is ready, nothing more is claimed; those it has are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stop: Box::pin(stop), ..self }
    }

    /// Ends when no call of the queue is left that waits or is in flight.
    pub fn until_drained(self) -> Self {
        Self { is_draining: true, ..self }
    }

    /// Runs the handler for each call, until it is told to stop or the store fails; a store that is full
    /// is waited for. A handler that panics has failed: its call is tried again, and the worker goes on.
    /// Needs a tokio runtime.
    pub async fn run<H, F>(self, handler: H) -> Result<Worked, Error>
    where
        H: Fn(Job) -> F + Send + Sync + 'static,
        F: Future<Output: Into<Outcome>> + Send + 'static,
    {
        let Self { engine, queue, concurrency, lease, start_by, stop, is_draining, is_own } = self;
        let queue = match is_own {
            true => QueueName::new(&queue)?,
            false => engine.named_of_worker(&queue).await?,
        };
        let hands = Hands {
            queue,
            handler: Arc::new(Handler {
                handle: handler,
                clock: engine.parts.pulse.clock.clone(),
                // What starts is held until the next heartbeat.
                start_by: start_by.min(Span::from_nanos(lease.as_nanos() / 2)),
            }),
            running: JoinSet::new(),
            held: Held::default(),
            settling: Settling::new(engine.clone(), is_own),
            worked: Worked::default(),
            engine,
            concurrency,
            lease,
            is_draining,
            has_settled: false,
            failed: None,
        };
        hands.work(stop).await
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// The name of a worker's queue. Who misspelt it would wait in silence.
    async fn named_of_worker(&self, queue: &str) -> Result<QueueName, Error> {
        let queue = super::door::open_queue_name(queue)?;
        if let Ok(None) = self.parts.queue_named(&queue).await {
            tracing::warn!(%queue, "there is no such queue yet");
        }
        Ok(queue)
    }
}

/// A worker at work.
struct Hands<S, H> {
    engine: Engine<S>,
    queue: QueueName,
    handler: Arc<Handler<H>>,
    concurrency: usize,
    lease: Span,
    is_draining: bool,
    running: JoinSet<Option<Outcome>>,
    held: Held,
    settling: Settling<S>,
    worked: Worked,
    /// Something was settled since the queue was looked at.
    has_settled: bool,
    /// The store failed: no more is claimed, and handlers that run may end.
    failed: Option<Error>,
}

/// Something under way, if it is.
type Doing<T> = Option<Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>>;

impl<S, H, F> Hands<S, H>
where
    S: Lanes + 'static,
    H: Fn(Job) -> F + Send + Sync + 'static,
    F: Future<Output: Into<Outcome>> + Send + 'static,
{
    async fn work(mut self, mut stop: Stop) -> Result<Worked, Error> {
        let mut claiming: Doing<Vec<Claimed>> = None;
        let (mut is_stopping, mut renewing, mut is_due_again) = (false, None, false);
        let mut beat = Box::pin(self.heartbeat());
        loop {
            let is_idle = self.running.is_empty() && self.settling.is_done();
            if is_idle && self.is_draining && (claiming.is_none() || self.has_settled) {
                self.has_settled = false;
                match is_drained(&self.engine, &self.queue).await {
                    // The claim that waits would wait for nothing.
                    Ok(true) => (is_stopping, claiming) = (true, None),
                    Ok(false) => {}
                    Err(error) if error.may_pass() => {}
                    Err(error) => self.failed = Some(error),
                }
            }
            if self.failed.is_some() {
                (is_stopping, claiming) = (true, None);
            }
            if is_idle && is_stopping {
                return self.failed.map_or(Ok(self.worked), Err);
            }
            if !is_stopping && claiming.is_none() {
                claiming = self.claim();
            }
            tokio::select! {
                () = &mut stop, if !is_stopping => {
                    // Calls of a claim that nobody hears the answer of are handed back by the store.
                    (is_stopping, claiming) = (true, None);
                }
                claimed = ready(&mut claiming) => {
                    claiming = None;
                    match claimed {
                        Ok(claimed) => self.start(claimed),
                        Err(error) => self.failed = Some(error),
                    }
                }
                Some(ended) = self.running.join_next_with_id() => self.finish(ended),
                settled = self.settling.next() => match settled {
                    Ok(lost) => {
                        self.worked.lost += lost;
                        self.has_settled = true;
                    }
                    Err(error) => self.failed = Some(error),
                },
                renewed = renewed_or_due(&mut renewing, &mut beat) => match renewed {
                    Some(renewed) => {
                        match renewed {
                            Ok(renewed) => self.held.renewed(renewed),
                            Err(error) => self.failed = Some(error),
                        }
                        renewing = if std::mem::take(&mut is_due_again) { self.renew() } else { None };
                    }
                    None => {
                        self.held.lose_expired(self.engine.clock_now());
                        // One that is under way is not cut short, for then it may never be known what is held.
                        is_due_again = renewing.is_some();
                        renewing = renewing.or_else(|| self.renew());
                        beat = Box::pin(self.heartbeat());
                    }
                }
            }
        }
    }

    /// Asks for as many calls as there are hands free.
    fn claim(&self) -> Doing<Vec<Claimed>> {
        let free = self.concurrency.saturating_sub(self.running.len());
        // What cannot be settled, for a queue that is full, holds back what would follow it.
        let unsettled = self.settling.leases().count();
        let free = if unsettled > self.concurrency + UNSETTLED_MAX { 0 } else { free };
        let (engine, queue, lease) = (self.engine.clone(), self.queue.clone(), self.lease);
        let wait = if self.is_draining { DRAIN_WAIT } else { CLAIM_WAIT };
        let claim = async move {
            loop {
                match engine.parts.claim(&queue, free, wait, Some(lease)).await {
                    Err(error) if error.may_pass() => engine.parts.rest(&error).await,
                    answer => return answer,
                }
            }
        };
        (free > 0).then(|| Box::pin(claim) as _)
    }

    fn start(&mut self, claimed: Vec<Claimed>) {
        for claimed in claimed {
            let job = Job::new(claimed);
            let (lease, ends) = (job.lease, job.started.plus(self.lease));
            let task = self.running.spawn(Handling::new(self.handler.clone(), job));
            self.held.hold(task, lease, ends);
        }
    }

    /// Settles what a handler made of its call, with all others that ended meanwhile.
    fn finish(&mut self, first: Result<(Id, Option<Outcome>), JoinError>) {
        let mut ended = Some(first);
        while let Some(one) = ended {
            let task = one.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
            if let Some(lease) = self.held.let_go(task) {
                self.settle(lease, one.map(|(_, outcome)| outcome));
            }
            ended = self.running.try_join_next_with_id();
        }
    }

    fn settle(&mut self, lease: Lease, ended: Result<Option<Outcome>, JoinError>) {
        let Some(ended) = ended.transpose() else {
            self.worked.late += 1;
            tracing::debug!(call = lease.call.0, "a call came too late and is handed back");
            return self.settling.settle(lease, Outcome::release());
        };
        self.worked.started += 1;
        match ended {
            Ok(outcome) if outcome.is_settled() => self.has_settled = true,
            Ok(outcome) => self.settling.settle(lease, outcome),
            // It was dropped, for its lease is lost: there is nothing to settle.
            Err(error) if error.is_cancelled() => self.worked.lost += 1,
            Err(_) => {
                self.worked.panicked += 1;
                let call = lease.call.0;
                tracing::error!(call, "a handler panicked: its call will be tried again");
                self.settling.settle(lease, Outcome::retry());
            }
        }
    }

    /// Ready when leases are to be renewed, or one has ended that could not be.
    fn heartbeat(&self) -> impl Future<Output = ()> + Send + use<S, H, F> {
        let every = Span::from_nanos((self.lease.as_nanos() / HEARTBEATS).max(1));
        let next = self.engine.clock_now().plus(every);
        let next = self.held.first_ends().map_or(next, |ends| ends.min(next));
        self.engine.parts.pulse.sleep_until(next)
    }

    /// Holds the leases of all that is not settled.
    fn renew(&self) -> Doing<Renewed> {
        let leases: Vec<_> = self.held.leases().chain(self.settling.leases()).collect();
        let (engine, lease) = (self.engine.clone(), self.lease);
        let is_needed = !leases.is_empty();
        let renew = async move {
            loop {
                let ends = engine.clock_now().plus(lease);
                match engine.renew_leases(leases.clone(), lease).await {
                    Err(error) if error.may_pass() => engine.parts.rest(&error).await,
                    answer => {
                        let leases = leases.into_iter().zip(answer?).collect();
                        return Ok(Renewed { leases, ends });
                    }
                }
            }
        };
        is_needed.then(|| Box::pin(renew) as _)
    }
}

impl<S: Lanes> Parts<S> {
    /// Leaves a store alone that has no room.
    async fn rest(&self, error: &Error) {
        tracing::warn!(%error, "the store is asked again");
        self.pulse.sleep(AGAIN).await;
    }
}

/// Whether no call of a queue is left that waits or is in flight.
async fn is_drained<S: Lanes + 'static>(engine: &Engine<S>, queue: &str) -> Result<bool, Error> {
    let state = engine.queue_state(queue).await?;
    Ok(state.is_none_or(|state| state.waiting == 0 && state.in_flight == 0))
}

/// What came of renewing leases, or `None` when they are due: what is known to be held is not lost before it is heard.
async fn renewed_or_due(
    renewing: &mut Doing<Renewed>,
    due: impl Future<Output = ()>,
) -> Option<Result<Renewed, Error>> {
    tokio::select! {
        biased;
        renewed = ready(renewing) => Some(renewed),
        () = due => None,
    }
}

/// What a future gives, if there is one; else it is never ready.
async fn ready<T>(future: &mut Doing<T>) -> Result<T, Error> {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
