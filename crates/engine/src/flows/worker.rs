//! A worker of a machine: makes the steps of its runs.

use super::body::{Body, Woken};
use super::machine::{Child, Failure, Machine, Step, StepError};
use super::moves::{Made, StepCall, unmade};
use super::outcome::{StepOutcome, stop};
use super::panics::unless_it_panics;
use super::record::{Ended, Ending};
use super::signal::Signal;
use super::start::spec;
use super::{Flows, child_id, ended_key, queue_of};
use crate::error::Error;
use crate::lanes::{Job, Outcome, Worked};
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
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
            let maker = StepMaker::new(self.flows.clone(), self.machine.clone(), version)?;
            let maker = Arc::new(maker);
            workers.spawn(worker.run(move |job| maker.clone().made(job)));
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

/// Makes the steps of one version of a machine.
pub(super) struct StepMaker<S, M> {
    flows: Flows<S>,
    machine: Arc<M>,
    version: u32,
    /// Where the steps of the machine's own version go, which follow.
    newest: QueueName,
}

impl<S: Lanes + 'static, M: Machine> StepMaker<S, M> {
    pub(super) fn new(flows: Flows<S>, machine: Arc<M>, version: u32) -> Result<Self, Error> {
        Ok(Self { flows, machine, version, newest: queue_of(M::NAME, M::VERSION)? })
    }

    /// Makes one step and says what came of it.
    // Each step has a task of its own, which is as large as all that may be there while it waits: what seldom is, is
    // elsewhere.
    pub(super) fn made(self: Arc<Self>, job: Job) -> impl Future<Output = Outcome> + Send {
        let call = StepCall::of(job);
        async move {
            let body = match Body::read(&call.body) {
                Ok(body) => body,
                Err(error) => {
                    tracing::error!(call = call.id.0, %error, "a call of a machine's queue is not of a run");
                    return Outcome::dead();
                }
            };
            self.make(&call, body).await.unwrap_or_else(|error| {
                tracing::error!(run = %call.run, %error, "a step could not be settled: it is made again");
                Outcome::retry()
            })
        }
    }

    async fn make(&self, call: &StepCall, body: Body<'_>) -> Result<Outcome, Error> {
        let Body { step, state, woken } = body;
        let given = match woken {
            Woken::Plainly => Given::default(),
            woken => match Box::pin(self.flows.given(call, woken)).await? {
                Ok(given) => given,
                Err(unmade) => return Ok(unmade),
            },
        };
        let versions = (self.version, M::VERSION);
        let made = Made { call, versions, queue: &self.newest, step: &step, state };
        let attempted = match begun::<M>(&made, given) {
            Ok(step) => attempted(unless_it_panics(|| self.machine.step(step)).await),
            Err(error) => Err(error),
        };
        match self.settled(&made, attempted) {
            Ok(outcome) => Ok(outcome),
            Err(later) => later.await,
        }
    }

    /// Settles a step with others, unless its run is to be looked at before that.
    fn settled<'a>(
        &'a self,
        made: &'a Made<'a>,
        attempted: Attempted,
    ) -> Result<Outcome, Later<'a>> {
        let settled = match attempted {
            Ok(outcome) if made.goes_with_others(&outcome) => self.flows.settle(made, outcome),
            attempted => {
                return Err(Box::pin(async move {
                    let settled = self.settle_otherwise(made, attempted).await;
                    self.or_stopped(made, settled).await
                }));
            }
        };
        settled.map_err(|error| Box::pin(self.or_stopped(made, Err(error))) as _)
    }

    /// What follows cannot be: that is how the run ends.
    async fn or_stopped(
        &self,
        made: &Made<'_>,
        settled: Result<Outcome, Error>,
    ) -> Result<Outcome, Error> {
        let error = match settled {
            Err(Error::Act(error)) => error.to_string(),
            Err(Error::Invalid(error)) => error.to_string(),
            settled => return settled,
        };
        self.flows.change(made, stop(error)).await
    }

    /// Settles a step that failed, or that changes its run.
    async fn settle_otherwise(
        &self,
        made: &Made<'_>,
        attempted: Attempted,
    ) -> Result<Outcome, Error> {
        let outcome = match attempted {
            Ok(outcome) => outcome,
            Err(error) => handled(&*self.machine, made, error).await,
        };
        match made.goes_with_others(&outcome) {
            true => self.flows.settle(made, outcome),
            false => self.flows.change(made, outcome).await,
        }
    }
}

/// What came of a step, or why it failed.
type Attempted = Result<StepOutcome, String>;

/// A step that is settled once its run was looked at.
type Later<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Error>> + Send + 'a>>;

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

    /// What a step is given that something let the run go on to; how it is settled if it is not to be made.
    async fn given(&self, call: &StepCall, woken: Woken) -> Result<Result<Given, Outcome>, Error> {
        Ok(Ok(match woken {
            Woken::Plainly => Given::default(),
            Woken::Signals(signals) => {
                Given { signals: signals.into_iter().map(Into::into).collect(), ..Given::default() }
            }
            Woken::Timeout { turn, limits } => {
                if !self.time_out(&call.run, turn).await? {
                    return Ok(Err(unmade(&limits)));
                }
                Given { timed_out: true, ..Given::default() }
            }
            Woken::Children { turn, children } => {
                let children = self.children(&call.run, turn, children).await?;
                Given { children, ..Given::default() }
            }
        }))
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

/// A step to be made, or why it is not.
fn begun<M: Machine>(made: &Made<'_>, given: Given) -> Result<Step<M::State>, String> {
    let call = made.call;
    if let Some(reason) = given_up(call.tried, M::CRASHES_MAX) {
        return Err(reason);
    }
    let (name, state) = read::<M>(made)?;
    let Given { signals, timed_out, children } = given;
    Ok(Step {
        run: call.run.as_str().to_owned(),
        name,
        state,
        attempt: call.attempt,
        signals,
        timed_out,
        children,
        started: call.started,
        lease: call.lease,
    })
}

fn attempted(made: Result<Result<StepOutcome, StepError>, String>) -> Attempted {
    let outcome = made?.map_err(|error| error.to_string())?;
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
async fn handled<M: Machine>(machine: &M, made: &Made<'_>, error: String) -> StepOutcome {
    let (step, call) = (made.step, made.call);
    tracing::warn!(run = %call.run, step, error, "a step failed");
    let read = read::<M>(made).ok();
    let (name, state) = read.map_or((step.to_owned(), None), |(name, state)| (name, Some(state)));
    let (run, attempt) = (call.run.as_str().to_owned(), call.attempt);
    let failure = Failure { run, step: name, state, attempt, error };
    let outcome = unless_it_panics(|| machine.failed(failure)).await;
    let checked = outcome.and_then(|outcome| match outcome.check() {
        Ok(()) => Ok(outcome),
        Err(error) => Err(error.to_string()),
    });
    checked.unwrap_or_else(stop)
}

/// Which step it is, with what it was handed, in this version.
fn read<M: Machine>(made: &Made<'_>) -> Result<(String, M::State), String> {
    let Made { step, state, versions: (version, _), .. } = *made;
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

#[cfg(test)]
mod tests {
    use super::super::outcome::done;
    use super::*;
    use tollgate_core::contract::kept::Kept;
    use tollgate_core::lanes::Scheduler;

    struct Counts;

    impl Machine for Counts {
        const NAME: &'static str = "counts";
        type State = u64;

        async fn step(&self, step: Step<u64>) -> Result<StepOutcome, StepError> {
            Ok(done(step.state))
        }
    }

    fn bytes_of<A, F>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    /// One is made for each step: beyond a thousand bytes an allocator goes a longer way.
    #[test]
    fn what_is_there_while_a_step_is_made_is_small() {
        type Given = (Arc<StepMaker<Kept<Scheduler>, Counts>>, Job);
        let bytes = bytes_of(|(maker, job): Given| maker.made(job));
        assert!(bytes < 800, "{bytes}");
    }
}
