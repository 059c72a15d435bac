//! A worker at work: what runs, what is claimed, what is settled, and when it is over.

use super::claiming::{self, CLAIM_MAX, Claimed};
use super::held::{Held, beat};
use super::settling::{Came, Settling, Unsettled, is_for_its_body};
use super::{Job, Setup, Stop};
use crate::calls::Lease;
use crate::client::{Asked, Client};
use crate::clock::{self, Backoff};
use crate::error::ClientError;
use crate::wire::outcome::{SettledPageWire, SettlementWire};
use hyper::Method;
use std::collections::HashMap;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet, yield_now};
use tokio::time::Instant;
use tollgate_core::Span;
use tollgate_engine::{Outcome, Worked};

/// Most calls that may wait to be settled, beyond as many as there are hands.
const UNSETTLED_MAX: usize = 1_000;
/// How long an answer is waited for that may be on its way when the worker is told to stop: its calls are
/// handed back then, and need not wait until their leases end.
const STOP_GRACE: Duration = Duration::from_millis(250);
/// Longest pause before a server that does not answer is asked again.
const PAUSE_MAX: Span = Span::from_secs(5);

/// A worker at work.
pub(super) struct Hands<H> {
    client: Client,
    setup: Setup,
    handler: Arc<H>,
    running: JoinSet<Ended>,
    /// The starts whose handlers run.
    leases: HashMap<Id, Lease>,
    held: Arc<Held>,
    settling: Settling,
    claiming: Option<Sent<Claimed>>,
    /// Most calls of a claim: fewer while their bodies are so large that the answers are too long.
    claim_max: usize,
    sending: Option<Sent<SettledPageWire>>,
    /// After a claim that failed.
    pause: Option<Instant>,
    backoff: Backoff,
    worked: Worked,
    /// Something was settled since the queue was looked at.
    has_settled: bool,
    /// The server refuses: no more is claimed, and handlers that run may end.
    failed: Option<ClientError>,
    /// Why nothing could be settled the last time.
    unsettled: Option<ClientError>,
    /// Since when nothing more is claimed.
    stopped: Option<Instant>,
    /// When a handler ended last.
    last_ended: Option<Instant>,
}

/// What a handler came to; `None` if it was too late to run it.
type Ended = Option<Outcome>;

/// A request under way, and the settlements it took along.
struct Sent<T> {
    answer: Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send>>,
    settlements: Vec<Unsettled>,
}

impl<H, F> Hands<H>
where
    H: Fn(Job) -> F + Send + Sync + 'static,
    F: Future<Output: Into<Outcome>> + Send + 'static,
{
    pub(super) fn new(client: Client, setup: Setup, handler: H) -> Self {
        let settling = Settling::new(setup.gives_output);
        Self {
            client,
            setup,
            handler: Arc::new(handler),
            running: JoinSet::new(),
            leases: HashMap::new(),
            held: Arc::default(),
            settling,
            claiming: None,
            claim_max: CLAIM_MAX,
            sending: None,
            pause: None,
            backoff: Backoff::up_to(PAUSE_MAX),
            worked: Worked::default(),
            has_settled: false,
            failed: None,
            unsettled: None,
            stopped: None,
            last_ended: None,
        }
    }

    pub(super) async fn work(mut self, mut stop: Stop) -> Result<Worked, ClientError> {
        // On a task of its own, so that a handler that blocks this one does not cost the others their
        // leases. It ends with the set.
        let mut heart = JoinSet::new();
        heart.spawn(beat(self.client.clone(), self.held.clone(), self.setup.lease));
        let is_over = loop {
            if self.is_to_look() && self.stopped.is_none() {
                tokio::select! {
                    biased;
                    () = &mut stop => self.stop(),
                    is_drained = is_drained(&self.client, &self.setup.queue) => self.looked(is_drained),
                }
            }
            if let Some(is_over) = self.is_over() {
                break is_over;
            }
            self.send();
            let wakes = self.wakes();
            tokio::select! {
                () = &mut stop, if self.stopped.is_none() => self.stop(),
                answer = ready(&mut self.claiming) => self.claimed(answer),
                answer = ready(&mut self.sending) => self.settled(answer),
                Some(ended) = self.running.join_next_with_id() => self.finish_all(ended).await,
                () = rest_until(wakes) => {}
            }
        };
        heart.shutdown().await;
        is_over
    }

    /// Whether nothing runs, and nothing is to be settled but what a claim took along.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.settling.is_empty() && self.sending.is_none()
    }

    /// Whether the queue may be drained.
    fn is_to_look(&self) -> bool {
        let carries = self.claiming.as_ref().is_some_and(|sent| !sent.settlements.is_empty());
        let is_news = self.claiming.is_none() || self.has_settled;
        self.setup.is_draining && self.is_idle() && !carries && is_news && !self.is_resting()
    }

    fn is_resting(&self) -> bool {
        self.pause.is_some_and(|pause| pause > clock::now())
    }

    fn looked(&mut self, is_drained: Result<bool, ClientError>) {
        self.has_settled = false;
        match is_drained {
            Ok(true) => {
                self.stop();
                self.abandon_claim();
            }
            Ok(false) => {}
            Err(error) => self.trouble(error),
        }
    }

    /// How it ended, if it has.
    fn is_over(&mut self) -> Option<Result<Worked, ClientError>> {
        let stopped = self.stopped?;
        if clock::now() >= stopped + STOP_GRACE {
            self.abandon_claim();
        }
        if self.is_idle() && self.claiming.is_none() {
            return Some(self.failed.take().map_or(Ok(self.worked), Err));
        }
        if self.gives_up()? > clock::now() {
            return None;
        }
        let error = self.failed.take().or(self.unsettled.take());
        Some(error.map_or(Ok(self.worked), Err))
    }

    /// When one who has stopped lets be what cannot be settled: when it is not held any more either. A
    /// server that refuses for good may renew leases all the same: it has as long as one lasts.
    fn gives_up(&self) -> Option<Instant> {
        let (stopped, error) = (self.stopped?, self.unsettled.as_ref()?);
        let ended = self.last_ended.map_or(stopped, |ended| ended.max(stopped));
        let a_lease_later = ended + self.setup.lease.into();
        let held_until = self.held.last_ends().filter(|_| error.may_pass());
        let gives_up = held_until.map_or(a_lease_later, |ends| ends.max(a_lease_later));
        self.running.is_empty().then_some(gives_up)
    }

    /// Nothing more is claimed.
    fn stop(&mut self) {
        self.stopped.get_or_insert_with(clock::now);
    }

    /// Calls of a claim that nobody waits for are handed back by the server; what it was to settle is settled
    /// again.
    fn abandon_claim(&mut self) {
        if let Some(claim) = self.claiming.take() {
            self.settling.doubt(claim.settlements);
        }
    }

    /// Asks for calls if there are hands free, and sends what is due.
    fn send(&mut self) {
        if self.stopped.is_none() && self.claiming.is_none() && !self.is_resting() {
            self.claim();
        }
        let is_due = self.settling.due().is_some_and(|due| due <= clock::now());
        if is_due && self.sending.is_none() {
            let settlements = self.settling.take();
            let wires: Vec<&SettlementWire> = settlements.iter().map(|it| &it.wire).collect();
            let asked = Asked::new(Method::POST, "/v1/settle").json(&wires);
            let client = self.client.clone();
            let answer = async move { client.ask(asked?.again().ahead()).await };
            self.sending = Some(Sent { answer: Box::pin(answer), settlements });
        }
    }

    fn claim(&mut self) {
        let free = self.setup.concurrency.saturating_sub(self.running.len()).min(self.claim_max);
        // What cannot be settled, for a queue that is full, holds back what would follow it.
        if free == 0 || self.settling.len() > self.setup.concurrency + UNSETTLED_MAX {
            return;
        }
        let settlements = self.settling.take_along();
        // With the last of a queue that drains nobody waits for more: the answer says that they are settled.
        let may_be_last = self.setup.is_draining && self.running.is_empty();
        let is_waited_for = may_be_last && !settlements.is_empty();
        let wait = if is_waited_for { Span::ZERO } else { claiming::wait(&self.setup) };
        let asked = claiming::ask(&self.setup, free, wait, &settlements);
        let client = self.client.clone();
        let answer = async move { claiming::claim(client, asked?).await };
        self.claiming = Some(Sent { answer: Box::pin(answer), settlements });
    }

    /// When there is something to do that nobody else tells of.
    fn wakes(&self) -> Option<Instant> {
        let settles = self.settling.due().filter(|_| self.sending.is_none());
        let claims = self.pause.filter(|_| self.claiming.is_none() && self.stopped.is_none());
        let abandons = self.stopped.filter(|_| self.claiming.is_some());
        let abandons = abandons.map(|stopped| stopped + STOP_GRACE);
        let ends = self.gives_up().into_iter().chain(abandons).filter(|it| *it > clock::now());
        settles.into_iter().chain(claims).chain(ends).min()
    }

    fn claimed(&mut self, answer: Result<Claimed, ClientError>) {
        let settlements = self.claiming.take().map(|sent| sent.settlements).unwrap_or_default();
        match answer {
            Ok(claimed) => {
                if !settlements.is_empty() {
                    self.unsettled = None;
                    let came = self.settling.answered(settlements, claimed.settled);
                    self.came(came);
                }
                if let Some(problem) = claimed.problem {
                    return self.trouble(ClientError::Problem(Box::new(problem)));
                }
                (self.pause, self.backoff) = (None, Backoff::up_to(PAUSE_MAX));
                self.claim_max = (self.claim_max + 1).min(CLAIM_MAX);
                let by =
                    claimed.let_go + self.setup.start_by.unwrap_or(claimed.start_within).into();
                for (job, lease) in claimed.jobs {
                    match self.stopped {
                        None => self.start(job, claimed.let_go + lease.into(), by),
                        Some(_) => self.settling.settle(&job.lease, Outcome::release()),
                    }
                }
            }
            // It may be for what the claim took along, which is told when that is sent by itself.
            Err(error) if !settlements.is_empty() && is_for_its_body(&error) => {
                self.settling.claim_refused(settlements);
                self.pause = Some(clock::now() + self.backoff.next());
            }
            Err(error @ ClientError::TooLong { .. }) if self.claim_max > 1 => {
                tracing::warn!(%error, "fewer calls are claimed at a time");
                self.settling.doubt(settlements);
                self.claim_max = (self.claim_max.min(self.setup.concurrency) / 2).max(1);
                self.pause = Some(clock::now() + self.backoff.next());
            }
            Err(error) => {
                self.settling.doubt(settlements);
                self.trouble(error);
            }
        }
    }

    /// A server that may answer later is asked later; one that never will ends the work.
    fn trouble(&mut self, error: ClientError) {
        if error.may_pass() {
            tracing::warn!(%error, "the server is asked again");
            self.pause = Some(clock::now() + self.backoff.next());
        } else {
            self.failed.get_or_insert(error);
            self.stop();
            self.abandon_claim();
        }
    }

    fn start(&mut self, job: Job, ends: Instant, by: Instant) {
        let (handler, lease) = (self.handler.clone(), job.lease.clone());
        let task = self.running.spawn(async move {
            // Here, where it would begin: the runtime may have had other things to do.
            if clock::now() > by {
                return None;
            }
            Some(handler(job).await.into())
        });
        self.leases.insert(task.id(), lease.clone());
        self.held.hold(lease, task, ends);
    }

    /// Those that end at the same time go together: others are let run once, for as long as that brings more.
    async fn finish_all(&mut self, first: Result<(Id, Ended), JoinError>) {
        let mut ended = Some(first);
        while let Some(one) = ended {
            self.finish(one);
            yield_now().await;
            ended = self.running.try_join_next_with_id();
        }
    }

    /// Settles what a handler made of its call, with all others that ended meanwhile.
    fn finish(&mut self, first: Result<(Id, Ended), JoinError>) {
        let mut ended = Some(first);
        self.last_ended = Some(clock::now());
        while let Some(one) = ended {
            let task = one.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
            let Some(lease) = self.leases.remove(&task) else { break };
            self.held.handler_ended(&lease);
            let outcome = match one {
                Ok((_, Some(outcome))) => {
                    self.worked.started += 1;
                    Some(outcome)
                }
                Ok((_, None)) => {
                    self.worked.late += 1;
                    Some(Outcome::release())
                }
                Err(error) if error.is_panic() => {
                    (self.worked.started, self.worked.panicked) =
                        (self.worked.started + 1, self.worked.panicked + 1);
                    tracing::error!(?lease, "a handler panicked: its call will be tried again");
                    Some(Outcome::retry())
                }
                // Its lease was lost, and it was dropped.
                Err(_) => {
                    (self.worked.started, self.worked.lost) =
                        (self.worked.started + 1, self.worked.lost + 1);
                    None
                }
            };
            if let Some(outcome) = outcome {
                self.settling.settle(&lease, outcome);
            }
            ended = self.running.try_join_next_with_id();
        }
    }

    fn settled(&mut self, answer: Result<SettledPageWire, ClientError>) {
        let Some(Sent { settlements, .. }) = self.sending.take() else { return };
        let came = match answer {
            Ok(page) => {
                self.unsettled = None;
                self.settling.answered(settlements, page.settled)
            }
            Err(error) => {
                let came = self.settling.refused(settlements, &error);
                self.unsettled = Some(error);
                came
            }
        };
        self.came(came);
    }

    fn came(&mut self, came: Came) {
        self.worked.lost += came.lost;
        self.has_settled = true;
        for lease in &came.over {
            self.held.let_go(lease);
        }
    }
}

/// Whether no call of a queue is left that waits or is in flight.
async fn is_drained(client: &Client, queue: &str) -> Result<bool, ClientError> {
    let state = client.queue_state(queue).await?;
    Ok(state.is_none_or(|state| state.waiting == 0 && state.in_flight == 0))
}

/// What a request is answered with, if there is one; else it is never ready.
async fn ready<T>(sent: &mut Option<Sent<T>>) -> Result<T, ClientError> {
    match sent {
        Some(sent) => sent.answer.as_mut().await,
        None => pending().await,
    }
}

async fn rest_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => clock::rest_until(instant).await,
        None => pending().await,
    }
}
