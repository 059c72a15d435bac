//! A worker of a machine: makes the steps of its runs.

use super::body::{Body, Woken};
use super::machine::{Child, Failure, Machine, Step};
use super::moves::{Made, unmade};
use super::outcome::{StepOutcome, stop};
use super::record::{Ended, Ending};
use super::signal::Signal;
use super::start::spec;
use super::{Flows, child_id, ended_key, queue_of};
use crate::error::Error;
use crate::lanes::{Job, Outcome, Worked};
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tollgate_core::contract::{Lanes, StoreError};
use tollgate_core::lanes::Attempts;
use tollgate_core::{Key, QueueName, Span};

/// How often an upstream may ask for a pause before the step has failed.
const LIMITED_MAX: u32 = 100;
/// How many records are read at once.
const PAGE: usize = 1_000;

/// A worker of a machine, to be set up and run.
#[must_use = "no step is made until it runs"]
pub struct MachineWorker<S, M> {
    flows: Flows<S>,
    machine: Arc<M>,
    concurrency: usize,
    lease: Option<Span>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_draining: bool,
}

impl<S, M: Machine> fmt::Debug for MachineWorker<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("MachineWorker");
        shown.field("machine", &M::NAME).field("version", &M::VERSION);
        shown.field("concurrency", &self.concurrency).finish_non_exhaustive()
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// A worker that makes the steps of a machine's runs.
    pub fn worker<M: Machine>(&self, machine: M) -> MachineWorker<S, M> {
        MachineWorker {
            flows: self.clone(),
            machine: Arc::new(machine),
            concurrency: 1,
            lease: None,
            stop: Box::pin(pending()),
            is_draining: false,
        }
    }
}

impl<S: Lanes + 'static, M: Machine> MachineWorker<S, M> {
    /// How many steps of each version it makes at a time; 1 by default.
    pub fn concurrency(self, steps: usize) -> Self {
        Self { concurrency: steps, ..self }
    }

    /// How long a step waits for another worker if this one dies, from 100 ms to a day; 30 s by default.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { lease: Some(lease.into()), ..self }
    }

    /// When this is ready, no more steps are begun; those under way are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stop: Box::pin(stop), ..self }
    }

    /// Ends when no run has a step to make, now or later; runs that wait for signals without end, or for others,
    /// may be left.
    pub fn until_drained(self) -> Self {
        Self { is_draining: true, ..self }
    }

    /// Makes steps until it is told to stop or the store fails. Needs a tokio runtime.
    pub async fn run(mut self) -> Result<Worked, Error> {
        let queues =
            (M::OLDEST.min(M::VERSION)..=M::VERSION).map(|version| queue_of(M::NAME, version));
        let queues = queues.collect::<Result<Vec<_>, _>>()?;
        for queue in &queues {
            self.flows.engine.define_own_queue(queue, spec()).await?;
        }
        let (stopper, stopped) = watch::channel(false);
        let mut worked = Worked::default();
        loop {
            worked = sum(worked, self.serve(&queues, (&stopper, &stopped)).await?);
            // Steps of an older version are followed by those of this one.
            if *stopped.borrow() || !self.is_draining || self.flows.is_drained(&queues).await? {
                return Ok(worked);
            }
        }
    }

    /// Serves each version until it is told to stop, or has nothing to do.
    async fn serve(
        &mut self,
        queues: &[QueueName],
        (stopper, stopped): (&watch::Sender<bool>, &watch::Receiver<bool>),
    ) -> Result<Worked, Error> {
        let mut workers = JoinSet::new();
        for (version, queue) in (M::OLDEST.min(M::VERSION)..).zip(queues) {
            let mut worker = self.flows.engine.own_worker(queue).concurrency(self.concurrency);
            if let Some(lease) = self.lease {
                worker = worker.lease(lease);
            }
            if self.is_draining {
                worker = worker.until_drained();
            }
            let mut stopped = stopped.clone();
            let worker = worker.until(async move {
                let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
            });
            let (flows, machine) = (self.flows.clone(), self.machine.clone());
            let made = move |job| made(flows.clone(), machine.clone(), version, job);
            workers.spawn(worker.run(made));
        }
        let mut worked = Worked::default();
        loop {
            tokio::select! {
                () = &mut self.stop, if !*stopper.borrow() => { stopper.send_replace(true); }
                ended = workers.join_next() => match ended {
                    None => return Ok(worked),
                    Some(Ok(Ok(one))) => worked = sum(worked, one),
                    Some(Ok(Err(error))) => return Err(error),
                    Some(Err(error)) => {
                        return Err(StoreError::Failed { reason: error.to_string() }.into());
                    }
                },
            }
        }
    }
}

fn sum(one: Worked, other: Worked) -> Worked {
    Worked {
        started: one.started + other.started,
        panicked: one.panicked + other.panicked,
        late: one.late + other.late,
        lost: one.lost + other.lost,
    }
}

/// Makes one step and settles it.
pub(super) async fn made<S: Lanes + 'static, M: Machine>(
    flows: Flows<S>,
    machine: Arc<M>,
    version: u32,
    job: Job,
) -> Outcome {
    let body = match Body::read(&job.body) {
        Ok(body) => body,
        Err(error) => {
            tracing::error!(call = job.id.0, %error, "a call of a machine's queue is not of a run");
            return Outcome::dead();
        }
    };
    match make(&flows, &*machine, version, &job, body).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(run = %job.lane, %error, "a step could not be settled: it is made again");
            Outcome::retry()
        }
    }
}

async fn make<S: Lanes + 'static, M: Machine>(
    flows: &Flows<S>,
    machine: &M,
    version: u32,
    job: &Job,
    body: Body<'_>,
) -> Result<Outcome, Error> {
    let Body { step, state, woken } = body;
    if let Woken::Timeout { turn, limits } = &woken
        && !Box::pin(flows.time_out(&job.lane, *turn)).await?
    {
        return Ok(unmade(limits));
    }
    let (versions, machine_name) = ((version, M::VERSION), M::NAME);
    let made = Made { job, versions, machine: machine_name, step: &step, state };
    // Each step has a task of its own, which is as large as all that may happen in it: what seldom does is elsewhere.
    let given = match woken {
        Woken::Plainly => Given::default(),
        woken => Box::pin(flows.given(job, woken)).await?,
    };
    let outcome = match attempt(machine, version, job, (&step, state), given).await {
        Ok(outcome) => outcome,
        Err(error) => Box::pin(handled(machine, version, job, (&step, state), error)).await,
    };
    let error = match flows.settle(&made, outcome).await {
        // What follows cannot be: that is how the run ends.
        Err(Error::Act(error)) => error.to_string(),
        Err(Error::Invalid(error)) => error.to_string(),
        settled => return settled,
    };
    flows.settle(&made, stop(error)).await
}

/// What a step is given beside its state.
#[derive(Default)]
struct Given {
    signals: Vec<Signal>,
    timed_out: bool,
    children: Vec<Child>,
}

impl<S: Lanes + 'static> Flows<S> {
    /// Whether no step of these queues waits or is being made.
    async fn is_drained(&self, queues: &[QueueName]) -> Result<bool, Error> {
        for queue in queues {
            let state = self.engine.queue_state(queue).await?;
            if state.is_some_and(|state| state.waiting + state.in_flight > 0) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn given(&self, job: &Job, woken: Woken) -> Result<Given, Error> {
        Ok(match woken {
            Woken::Plainly => Given::default(),
            Woken::Signals(signals) => {
                Given { signals: signals.into_iter().map(Into::into).collect(), ..Given::default() }
            }
            Woken::Timeout { .. } => Given { timed_out: true, ..Given::default() },
            Woken::Children { turn, children } => {
                let children = self.children(&job.lane, turn, children).await?;
                Given { children, ..Given::default() }
            }
        })
    }

    /// The children of a wait, which have all ended. One that is not kept any more counts as taken back.
    async fn children(&self, run: &str, turn: u64, children: u32) -> Result<Vec<Child>, Error> {
        let ids = (0..children as usize).map(|at| child_id(run, turn, at));
        let ids: Vec<_> = ids.collect();
        let mut found = Vec::with_capacity(ids.len());
        for page in ids.chunks(PAGE) {
            let keys = page.iter().map(|id| Key::new(&ended_key(id)));
            let records = self.records(keys.collect::<Result<_, _>>()?).await?;
            for (id, record) in page.iter().zip(records) {
                let ending = match record {
                    Some(record) => Ended::read(&record.bytes)?.ending,
                    None => Ending::Cancelled,
                };
                found.push(Child { run: id.clone(), ending });
            }
        }
        Ok(found)
    }
}

/// Makes a step, or says why it failed.
async fn attempt<M: Machine>(
    machine: &M,
    version: u32,
    job: &Job,
    (step, state): (&str, &[u8]),
    given: Given,
) -> Result<StepOutcome, String> {
    if let Some(reason) = given_up(job.tried, M::CRASHES_MAX) {
        return Err(reason);
    }
    let (name, state) = read::<M>(version, step, state)?;
    let Given { signals, timed_out, children } = given;
    let step = Step {
        run: job.lane.as_str().to_owned(),
        name,
        state,
        attempt: job.attempt,
        signals,
        timed_out,
        children,
        started: job.started,
        lease: job.lease,
    };
    let outcome = unless_it_panics(async { machine.step(step).await }).await?;
    let outcome = outcome.map_err(|error| error.to_string())?;
    outcome.check().map_err(|error| error.to_string())?;
    Ok(outcome)
}

/// Why a step or a task is not made once more, if it is not.
pub(super) fn given_up(tried: Attempts, crashes_max: u32) -> Option<String> {
    if tried.crashes >= crashes_max {
        return Some(format!("its worker died {} times", tried.crashes));
    }
    let is_limited = tried.limited >= LIMITED_MAX;
    is_limited.then(|| format!("the upstream asked for a pause {} times", tried.limited))
}

/// What the machine says of a step that failed.
async fn handled<M: Machine>(
    machine: &M,
    version: u32,
    job: &Job,
    (step, state): (&str, &[u8]),
    error: String,
) -> StepOutcome {
    tracing::warn!(run = %job.lane, step, error, "a step failed");
    let read = read::<M>(version, step, state).ok();
    let (name, state) = read.map_or((step.to_owned(), None), |(name, state)| (name, Some(state)));
    let (run, attempt) = (job.lane.as_str().to_owned(), job.attempt);
    let failure = Failure { run, step: name, state, attempt, error };
    let outcome = unless_it_panics(machine.failed(failure)).await;
    let checked = outcome.and_then(|outcome| match outcome.check() {
        Ok(()) => Ok(outcome),
        Err(error) => Err(error.to_string()),
    });
    checked.unwrap_or_else(stop)
}

/// Which step it is, with what it was handed, in this version.
fn read<M: Machine>(version: u32, step: &str, state: &[u8]) -> Result<(String, M::State), String> {
    let unread = |error: serde_json::Error| {
        format!("version {} cannot read the state of step {step}: {error}", M::VERSION)
    };
    if version == M::VERSION {
        return Ok((step.to_owned(), serde_json::from_slice(state).map_err(unread)?));
    }
    let state = serde_json::from_slice(state).map_err(unread)?;
    let brought_up = M::upgrade(version, step, state);
    brought_up.ok_or_else(|| {
        format!("version {} cannot go on with step {step} of version {version}", M::VERSION)
    })
}

/// What a future gives, or what it panicked with.
pub(super) async fn unless_it_panics<F: Future>(future: F) -> Result<F::Output, String> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            Poll::Ready(Err(format!("it panicked: {}", text.unwrap_or_default())))
        }
    })
    .await
}
