//! Workers of tasks of a type, and what comes of a task.

use super::card::Card;
use super::task_queue;
use crate::error::Error;
use crate::flows::Flows;
use crate::flows::panics::unless_it_panics;
use crate::flows::worker::given_up;
use crate::lanes::{Job, Outcome, Worked};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::workflow::{Retry, TASK_TIMEOUT_DEFAULT};
use tollgate_core::lanes::{ActError, Lease, Settle, Settlement};
use tollgate_core::{Span, Timestamp};

/// A task to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskJob {
    /// Of which run.
    pub run: String,
    /// Which task of its workflow.
    pub task: String,
    /// Which item of a map, from 0.
    pub item: Option<u32>,
    /// What it gets, as JSON.
    pub input: Box<[u8]>,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// When it was let go.
    pub started: Timestamp,
    /// What it is settled with. Its token is higher than that of every attempt before.
    pub lease: Lease,
}

impl TaskJob {
    /// What it gets.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.input)
    }
}

/// What came of an attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskOutcome {
    /// It gave this, as JSON.
    Done(Box<[u8]>),
    /// It failed, and is tried again as its workflow says, or after so long.
    Retry {
        /// Why.
        reason: String,
        /// After how long; `None`: as its workflow says.
        after: Option<Span>,
    },
    /// It failed for good.
    Failed {
        /// Why.
        reason: String,
    },
    /// The upstream asked for a pause: the meter of its first toll closes for so long.
    Limited(Span),
}

/// Why an attempt at a task failed. Made of any error by `?`: it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFailure(TaskOutcome);

impl TaskFailure {
    /// To be tried again as the workflow says.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self(TaskOutcome::Retry { reason: reason.into(), after: None })
    }

    /// To be tried again after so long.
    pub fn retry_after(span: impl Into<Span>, reason: impl Into<String>) -> Self {
        Self(TaskOutcome::Retry { reason: reason.into(), after: Some(span.into()) })
    }

    /// Not to be tried again.
    pub fn fatal(reason: impl Into<String>) -> Self {
        Self(TaskOutcome::Failed { reason: reason.into() })
    }

    /// The upstream asked for a pause.
    pub fn limited(pause: impl Into<Span>) -> Self {
        Self(TaskOutcome::Limited(pause.into()))
    }
}

impl From<TaskFailure> for TaskOutcome {
    fn from(TaskFailure(outcome): TaskFailure) -> Self {
        outcome
    }
}

impl<E: std::error::Error> From<E> for TaskFailure {
    fn from(error: E) -> Self {
        Self::retry(error.to_string())
    }
}

/// A worker of tasks of a type, to be set up and run.
#[must_use = "no task is made until it runs"]
pub struct TaskWorker<S> {
    flows: Flows<S>,
    type_name: String,
    concurrency: usize,
    lease: Option<Span>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<S> fmt::Debug for TaskWorker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TaskWorker");
        shown.field("type", &self.type_name).field("concurrency", &self.concurrency);
        shown.finish_non_exhaustive()
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// A worker of tasks of a type.
    pub fn tasks(&self, type_name: &str) -> TaskWorker<S> {
        let (flows, type_name) = (self.clone(), type_name.to_owned());
        TaskWorker { flows, type_name, concurrency: 1, lease: None, stop: Box::pin(pending()) }
    }
}

impl<S: Lanes + 'static> TaskWorker<S> {
    /// How many tasks it makes at a time; 1 by default.
    pub fn concurrency(self, tasks: usize) -> Self {
        Self { concurrency: tasks, ..self }
    }

    /// How long a task waits for another worker if this one dies; 30 s by default.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self { lease: Some(lease.into()), ..self }
    }

    /// When this is ready, no more tasks are begun; those under way are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { stop: Box::pin(stop), ..self }
    }

    /// Makes tasks until it is told to stop or the store fails. An error is tried again as the workflow says; one that
    /// takes longer than its task may is dropped, and has failed. Needs a tokio runtime.
    pub async fn run<H, F, T>(self, handler: H) -> Result<Worked, Error>
    where
        H: Fn(TaskJob) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        let Self { flows, type_name, concurrency, lease, stop } = self;
        let queue = task_queue(&type_name)?;
        let (stopper, stopped) = watch::channel(false);
        let is_stopped = |mut stopped: watch::Receiver<bool>| async move {
            let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        };
        let mut worker = flows.engine.own_worker(&queue).concurrency(concurrency);
        if let Some(lease) = lease {
            worker = worker.lease(lease);
        }
        let (handler, made_by) = (Arc::new(handler), flows.clone());
        let tasks = worker.until(is_stopped(stopped.clone()));
        let tasks = tasks.run(move |job| made(made_by.clone(), handler.clone(), job));
        let keeper = flows.keeper(is_stopped(stopped));
        let stopping = async move {
            stop.await;
            stopper.send_replace(true);
            // Kept until both have seen it.
            pending::<()>().await;
        };
        tokio::select! {
            both = async { tokio::try_join!(tasks, keeper) } => Ok(both?.0),
            () = stopping => Ok(Worked::default()),
        }
    }
}

/// Makes one task and settles it.
pub(in crate::flows) async fn made<S, H, F, T>(
    flows: Flows<S>,
    handler: Arc<H>,
    job: Job,
) -> Outcome
where
    S: Lanes + 'static,
    H: Fn(TaskJob) -> F + Send + Sync + 'static,
    F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    let Some(card) = Card::of(&job.envelope) else {
        tracing::error!(call = job.id.0, "a call of a task's queue is not of a run");
        return Outcome::dead();
    };
    let (settle, tried) = (Settle::new(job.lease, Settlement::Done), job.tried);
    let settled = match attempt(&flows, &card, &*handler, job).await {
        Ok(outcome) => flows.settle_made(settle, &card, tried, outcome).await,
        Err(error) => Err(error),
    };
    match settled {
        Ok(outcome) => outcome,
        Err(Error::Act(ActError::LeaseLost { .. })) => {
            tracing::warn!(
                run = card.run,
                task = card.task,
                "a task came too late: another worker may have it"
            );
            Outcome::elsewhere()
        }
        Err(error) => {
            tracing::error!(run = card.run, task = card.task, %error, "a task could not be settled: it is made again");
            Outcome::retry()
        }
    }
}

async fn attempt<S, H, F, T>(
    flows: &Flows<S>,
    card: &Card,
    handler: &H,
    job: Job,
) -> Result<TaskOutcome, Error>
where
    S: Lanes + 'static,
    H: Fn(TaskJob) -> F + Send + Sync + 'static,
    F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
    T: Serialize + Send + 'static,
{
    let (timeout, retry) = flows.bounds_of(card).await?;
    if let Some(reason) = given_up(job.tried, retry.crashes_max) {
        return Ok(TaskOutcome::Failed { reason });
    }
    let task = TaskJob {
        run: card.run.clone(),
        task: card.task.clone(),
        item: card.item.map(|(item, _)| item),
        input: job.body,
        attempt: job.attempt,
        started: job.started,
        lease: job.lease,
    };
    let made = unless_it_panics(|| handler(task));
    let made = tokio::select! {
        made = made => made,
        () = flows.engine.rest(timeout) => Err(format!("it took longer than {timeout}")),
    };
    Ok(match made {
        Err(reason) => TaskOutcome::Retry { reason, after: None },
        Ok(Err(TaskFailure(failed))) => failed,
        Ok(Ok(value)) => match serde_json::to_vec(&value) {
            Ok(output) => TaskOutcome::Done(output.into()),
            Err(error) => TaskOutcome::Failed {
                reason: format!("what it gave cannot be written as JSON: {error}"),
            },
        },
    })
}

impl<S: Lanes + 'static> Flows<S> {
    /// How long a task may take, and how often it is tried.
    pub(super) async fn bounds_of(&self, card: &Card) -> Result<(Span, Retry), Error> {
        let workflow = self.workflow_of(&card.workflow, card.version).await?;
        let task = workflow.task(&card.task);
        Ok(task.map_or((TASK_TIMEOUT_DEFAULT, Retry::default()), |it| (it.timeout, it.retry)))
    }
}
