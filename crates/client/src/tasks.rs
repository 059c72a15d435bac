//! A worker of tasks: makes what workflows ask for, and tells what that gave.

use crate::calls::Lease;
use crate::client::Client;
use crate::error::ClientError;
use crate::worker::{Job, Worker};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::sync::Arc;
use tollgate_core::Span;
use tollgate_engine::flows::{TaskFailure, TaskOutcome};
use tollgate_engine::{Outcome, TraceParent, Worked};

/// Of which run a task is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct TaskOf {
    /// Of which run.
    pub run: String,
    /// Of which workflow.
    pub workflow: String,
    /// Of which version of it.
    pub version: u32,
    /// Which task of it.
    pub name: String,
    /// Which item of a map, from 0.
    pub item: Option<u32>,
}

/// A task to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskJob {
    /// Of which run it is, and which task.
    pub of: TaskOf,
    /// What it gets, as JSON.
    pub input: Box<[u8]>,
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// Of which trace it is a part: spans of the handler are children of this one.
    pub trace: Option<TraceParent>,
    /// What it is settled with.
    pub lease: Lease,
}

impl TaskJob {
    /// What it gets.
    pub fn read<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_slice(&self.input)
    }
}

/// A worker of tasks of a type, to be set up and run.
#[derive(Debug)]
#[must_use = "no task is made until it runs"]
pub struct TaskWorker(Worker);

impl Client {
    /// A worker of tasks of a type.
    pub fn tasks(&self, type_name: &str) -> TaskWorker {
        TaskWorker(self.worker(&format!("task/{type_name}")).giving_output())
    }
}

impl TaskWorker {
    /// How many tasks it makes at a time; 1 by default.
    pub fn concurrency(self, tasks: usize) -> Self {
        Self(self.0.concurrency(tasks))
    }

    /// How long a task waits for another worker if this one dies; 30 s by default.
    pub fn lease(self, lease: impl Into<Span>) -> Self {
        Self(self.0.lease(lease))
    }

    /// What the server calls it in its log.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self(self.0.name(name))
    }

    /// When this is ready, no more tasks are begun; those under way are finished and settled.
    pub fn until(self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(self.0.until(stop))
    }

    /// Makes tasks until it is told to stop or the server refuses it. An error is tried again as the workflow says;
    /// a task that takes longer than it may is dropped, and has failed that attempt.
    pub async fn run<H, F, T>(self, handler: H) -> Result<Worked, ClientError>
    where
        H: Fn(TaskJob) -> F + Send + Sync + 'static,
        F: Future<Output = Result<T, TaskFailure>> + Send + 'static,
        T: Serialize + Send + 'static,
    {
        let handler = Arc::new(handler);
        let made = move |job: Job| {
            let handler = handler.clone();
            async move {
                let Job { task: Some(of), body: input, attempt, trace, lease, .. } = job else {
                    return Outcome::dead();
                };
                let task = TaskJob { of, input, attempt, trace, lease };
                told(match handler(task).await {
                    Ok(value) => match serde_json::to_vec(&value) {
                        Ok(output) => TaskOutcome::Done(output.into()),
                        Err(error) => {
                            let reason = format!("what it gave cannot be written as JSON: {error}");
                            TaskOutcome::Failed { reason }
                        }
                    },
                    Err(failure) => failure.into(),
                })
            }
        };
        self.0.run(made).await
    }
}

/// How that is told: what a task gave, or why it failed, is its report.
fn told(outcome: TaskOutcome) -> Outcome {
    let said = |reason: String| serde_json::Value::from(reason).to_string();
    match outcome {
        TaskOutcome::Done(output) => Outcome::done().report(output),
        TaskOutcome::Retry { reason, after } => {
            after.map_or_else(Outcome::retry, Outcome::retry_after).report(said(reason))
        }
        TaskOutcome::Failed { reason } => Outcome::dead().report(said(reason)),
        TaskOutcome::Limited(pause) => Outcome::limited(pause),
    }
}
