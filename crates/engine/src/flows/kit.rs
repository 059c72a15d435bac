//! A kit for tests of machines and workflows: it is the worker of all of them, and moves the clock from one instant at
//! which something happens to the next.
//!
//! Nothing waits here: calls are claimed that may start now, handlers are run to their end, and only when there is
//! neither is the store asked when something is due next. So time stands still while a handler runs, none is under way
//! when a test goes on, and the same test goes the same way each time.

mod guard;
mod waits;

pub use waits::WaitsFor;

use super::panics::unless_it_panics;
use super::record::Ended;
use super::worker::StepMaker;
use super::workflows::{KEEPER, kept, task_queue, tasked};
use super::{Flows, Machine, TaskFailure, TaskJob, queue_of};
use crate::clock::{Clock, ManualClock};
use crate::error::Error;
use crate::lanes::{Engine, Job, Outcome, settle_all};
use guard::{Guard, PATIENCE};
use parking_lot::Mutex;
use serde::Serialize;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::Lease;
use tollgate_core::{QueueName, Span, Timestamp};

/// Handlers that run at a time: all that ran are asked whenever one of them can go on.
const HANDS: usize = 64;
/// Most handlers that are run, and instants that the clock goes to, before a run counts as one that never ends: ten for
/// each item of the largest map.
const STEPS_MAX: u64 = 100_000;

/// Why a run does not end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KitError {
    /// It waits for something that no passing of time brings.
    #[error("run {run} does not end by itself: it waits for {what}")]
    Waits {
        /// Which run.
        run: String,
        /// For what.
        what: WaitsFor,
    },
    /// It goes on and on.
    #[error(
        "run {run} had not ended after {steps} steps, tasks and moves of the clock, {elapsed} after the kit was made: it may never, or allow more"
    )]
    GoesOn {
        /// Which run.
        run: String,
        /// How many.
        steps: u64,
        /// How much time had passed on the clock.
        elapsed: Span,
    },
    /// A handler runs and does not end, and time stands still meanwhile.
    #[error(
        "a handler of queue {queue} has not ended within 10 s, and the clock stands still while one runs: let it wait for nothing but what it calls"
    )]
    Handler {
        /// Whose calls it makes.
        queue: String,
    },
    /// The gate refused something.
    #[error(transparent)]
    Use(#[from] Error),
}

/// What a handler makes of a call.
type Making = Pin<Box<dyn Future<Output = Outcome> + Send>>;
type Make = Arc<dyn Fn(Job) -> Making + Send + Sync>;

/// A queue whose calls are made here.
#[derive(Clone)]
struct Served {
    queue: QueueName,
    make: Make,
}

/// A call that is being made.
struct Made {
    queue: QueueName,
    lease: Lease,
    making: Making,
}

/// The worker of machines and tasks in a test, and the clock that it moves.
pub struct Kit<S> {
    flows: Flows<S>,
    clock: ManualClock,
    began: Timestamp,
    served: Mutex<Vec<Served>>,
    steps_max: AtomicU64,
    /// What is being made: it stays when nobody waits for it any more.
    under_way: tokio::sync::Mutex<Vec<Made>>,
}

impl<S> std::fmt::Debug for Kit<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kit").field("clock", &self.clock).finish_non_exhaustive()
    }
}

/// Until when it is worked.
#[derive(Clone, Copy)]
enum Goal<'a> {
    /// This run has ended.
    End(&'a str),
    /// It is so late.
    Time(Timestamp),
}

impl<S: Lanes + 'static> Kit<S> {
    /// A kit over a store that goes by this clock.
    pub fn new(engine: &Engine<S>, clock: ManualClock) -> Self {
        Self {
            flows: Flows::new(engine),
            began: clock.now(),
            clock,
            served: Mutex::default(),
            steps_max: AtomicU64::new(STEPS_MAX),
            under_way: tokio::sync::Mutex::default(),
        }
    }

    /// After how many steps, tasks and moves of the clock a run counts as one that never ends; 100,000 by default.
    pub fn steps_max(&self, steps: u64) {
        self.steps_max.store(steps, Ordering::Relaxed);
    }

    /// Makes the steps of a machine's runs. One that was given before is replaced.
    pub fn machine<M: Machine>(&self, machine: M) {
        let machine = Arc::new(machine);
        for version in M::OLDEST.min(M::VERSION)..=M::VERSION {
            let maker = StepMaker::new(self.flows.clone(), machine.clone(), version);
            let Some(maker) = maker.ok().map(Arc::new) else { continue };
            self.serve(queue_of(M::NAME, version).ok(), move |job| maker.clone().made(job));
        }
    }

    /// Makes the tasks of a type. A handler that was given before is replaced.
    pub fn tasks<H, F, T>(&self, type_name: &str, handler: H)
    where
        H: Fn(TaskJob) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        let keeper = self.flows.clone();
        self.serve(QueueName::new(KEEPER).ok(), move |job| kept(keeper.clone(), job));
        let (flows, handler) = (self.flows.clone(), Arc::new(handler));
        let make = move |job| tasked(flows.clone(), handler.clone(), job);
        self.serve(task_queue(type_name).ok(), make);
    }

    /// A name that no queue can have is refused when a run of it is begun.
    fn serve<F>(&self, queue: Option<QueueName>, make: impl Fn(Job) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let Some(queue) = queue else { return };
        let make: Make = Arc::new(move |job| Box::pin(make(job)));
        let mut served = self.served.lock();
        served.retain(|other| other.queue != queue);
        served.push(Served { queue, make });
    }

    /// The time on the clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How much time has passed on the clock since the kit was made.
    pub fn elapsed(&self) -> Span {
        self.clock.now().since(self.began)
    }

    /// Works, and moves the clock from one instant to the next, until a run has ended. What other runs do in that time
    /// they do. If the run can never end, it is said what it waits for.
    pub async fn finish(&self, run: &str) -> Result<Ended, KitError> {
        self.work(Goal::End(run)).await?;
        let ended = self.flows.ended(run).await?;
        let unsaid = KitError::Waits { run: run.to_owned(), what: WaitsFor::Unsaid };
        ended.ok_or(unsaid)
    }

    /// Lets so much time pass, and all happen in it that is due, each at its instant. Without any, what can be made
    /// now is made.
    pub async fn advance(&self, by: impl Into<Span>) -> Result<(), KitError> {
        self.work(Goal::Time(self.clock.now().plus(by.into()))).await
    }

    async fn work(&self, goal: Goal<'_>) -> Result<(), KitError> {
        let mut under_way = self.under_way.lock().await;
        let (mut steps, mut guard) = (0, Guard::new(PATIENCE));
        let mut may_have_ended = true;
        loop {
            guard.goes_on();
            // What was claimed together is made before more is claimed, and before anyone goes on.
            if !under_way.is_empty() {
                steps += self.make(&mut under_way, &mut guard).await?;
                may_have_ended = true;
                continue;
            }
            if let Goal::End(run) = goal
                && may_have_ended
                && self.flows.ended(run).await?.is_some()
            {
                return Ok(());
            }
            if steps > self.steps_max.load(Ordering::Relaxed) {
                return Err(self.goes_on(goal, steps));
            }
            self.claim(&mut under_way).await?;
            if under_way.is_empty() {
                if !self.pass(goal).await? {
                    return Ok(());
                }
                (steps, may_have_ended) = (steps + 1, false);
            }
        }
    }

    fn goes_on(&self, goal: Goal<'_>, steps: u64) -> KitError {
        let run = match goal {
            Goal::End(run) => run.to_owned(),
            Goal::Time(_) => "of this gate".to_owned(),
        };
        KitError::GoesOn { run, steps, elapsed: self.elapsed() }
    }

    /// Starts what may start now.
    async fn claim(&self, under_way: &mut Vec<Made>) -> Result<(), Error> {
        let served = self.served.lock().clone();
        for Served { queue, make } in served {
            let free = HANDS.saturating_sub(under_way.len());
            for claimed in self.flows.engine.claim_own(&queue, free, Span::ZERO, None).await? {
                let (job, make) = (Job::new(claimed), make.clone());
                let lease = job.lease;
                let making = async move {
                    let made = unless_it_panics(|| make(job));
                    // As a worker does.
                    made.await.unwrap_or_else(|_| Outcome::retry())
                };
                under_way.push(Made { queue: queue.clone(), lease, making: Box::pin(making) });
            }
        }
        Ok(())
    }

    /// Goes on with what is being made until some of it is, and settles that; says how many.
    async fn make(&self, under_way: &mut Vec<Made>, guard: &mut Guard) -> Result<u64, KitError> {
        let outcomes = poll_fn(|context| match all_ready(under_way, context) {
            outcomes if outcomes.is_empty() => guard.poll(context).map(|()| outcomes),
            outcomes => Poll::Ready(outcomes),
        })
        .await;
        let made = outcomes.len() as u64;
        if made == 0 {
            let queue = under_way.first().map(|made| made.queue.as_str().to_owned());
            return Err(KitError::Handler { queue: queue.unwrap_or_default() });
        }
        let unsettled = outcomes.into_iter().filter(|(_, outcome)| !outcome.is_settled());
        settle_all(self.flows.engine.clone(), true, unsettled.collect()).await?;
        Ok(made)
    }

    /// Nothing can be made now: moves the clock to when something can. Says whether it is to be gone on.
    async fn pass(&self, goal: Goal<'_>) -> Result<bool, KitError> {
        let now = self.clock.now();
        let due = self.flows.engine.store().next_due().await.map_err(Error::from)?;
        match (goal, due) {
            (Goal::Time(until), due) if due.is_none_or(|due| due > until) => {
                self.clock.advance(until.since(now));
                Ok(until > now)
            }
            (_, Some(due)) => {
                // What was due before is seen to by the next claim.
                self.clock.advance(due.since(now));
                Ok(true)
            }
            (Goal::End(run), None) => {
                let served: Vec<_> = self.served.lock().iter().map(|it| it.queue.clone()).collect();
                let what = self.flows.waits_for(run, &served).await?;
                Err(KitError::Waits { run: run.to_owned(), what })
            }
            (Goal::Time(_), None) => Ok(false),
        }
    }
}

/// Asks all that are being made, and takes out those that are.
fn all_ready(under_way: &mut Vec<Made>, context: &mut Context<'_>) -> Vec<(Lease, Outcome)> {
    let mut outcomes = Vec::new();
    under_way.retain_mut(|made| match made.making.as_mut().poll(context) {
        Poll::Ready(outcome) => {
            outcomes.push((made.lease, outcome));
            false
        }
        Poll::Pending => true,
    });
    outcomes
}
