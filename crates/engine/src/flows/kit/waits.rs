//! What a run waits for that can never end by itself.

use super::super::record::RunRecord;
use super::super::workflows::{KEEPER, WorkflowRun, task_queue};
use super::super::{Flows, child_id, queue_of, run_key};
use crate::error::Error;
use crate::flows::FlowError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use tollgate_core::contract::{CallsQuery, Lanes};
use tollgate_core::flow::run::{Run, Stands};
use tollgate_core::lanes::{CallId, Reason};
use tollgate_core::{Cause, LaneName, QueueName};

/// What a run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitsFor {
    /// A signal of one of these names.
    Signal {
        /// Which.
        names: Vec<String>,
    },
    /// Somebody who makes its steps or tasks: the kit has no such machine or handler.
    Worker {
        /// Of which queue.
        queue: String,
    },
    /// A limit that nobody defined.
    UnknownLimit {
        /// Which.
        limit: String,
    },
    /// A limit that does not open by itself.
    Limit {
        /// Which.
        limit: String,
        /// Why not.
        reason: &'static str,
    },
    /// A queue or a lane that somebody holds back.
    Paused {
        /// Which queue, or whose lane.
        queue: String,
    },
    /// Other runs of its workflow: only so many may live.
    OtherRuns {
        /// Which workflow.
        workflow: String,
    },
    /// A child that waits itself.
    Child {
        /// Which run.
        run: String,
        /// For what.
        what: Box<WaitsFor>,
    },
    /// Nothing that can be said.
    Unsaid,
}

impl fmt::Display for WaitsFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal { names } => write!(f, "a signal of {}", names.join(" or ")),
            Self::Worker { queue } => {
                write!(
                    f,
                    "a worker of {queue}: give the kit that machine, or a handler of that type"
                )
            }
            Self::UnknownLimit { limit } => write!(f, "limit {limit}, which nobody defined"),
            Self::Limit { limit, reason } => write!(f, "limit {limit}: {reason}"),
            Self::Paused { queue } => write!(f, "queue {queue}, which somebody holds back"),
            Self::OtherRuns { workflow } => {
                write!(f, "other runs of {workflow} to end: no more may live at a time")
            }
            Self::Child { run, what } => write!(f, "its child {run}, and that for {what}"),
            Self::Unsaid => write!(f, "nothing that can be said"),
        }
    }
}

impl<S: Lanes + 'static> Flows<S> {
    /// What a run waits for, when nothing is due. Boxed, for children may have children.
    pub(super) fn waits_for<'a>(
        &'a self,
        run: &'a str,
        served: &'a [QueueName],
    ) -> Pin<Box<dyn Future<Output = Result<WaitsFor, Error>> + Send + 'a>> {
        Box::pin(async move {
            let unknown = || FlowError::UnknownRun { run: run.to_owned() };
            let record = self.engine.record(&run_key(run)).await?.ok_or_else(unknown)?;
            let queues = match WorkflowRun::read(&record.bytes) {
                Some(working) if working.is_pending => {
                    return Ok(WaitsFor::OtherRuns { workflow: working.workflow });
                }
                Some(working) => self.queues_of(&working).await?,
                None => {
                    let kept = RunRecord::read(&record.bytes)?;
                    if let Some(what) = self.machine_waits(run, &kept, served).await? {
                        return Ok(what);
                    }
                    vec![queue_of(&kept.machine, kept.version)?]
                }
            };
            for queue in queues {
                if let Some(what) = self.calls_wait(run, queue, served).await? {
                    return Ok(what);
                }
            }
            Ok(WaitsFor::Unsaid)
        })
    }

    async fn queues_of(&self, run: &WorkflowRun) -> Result<Vec<QueueName>, Error> {
        let workflow = self.workflow_of(&run.workflow, run.version).await?;
        let types = workflow.tasks().iter().map(|task| task_queue(&task.type_name));
        Ok(types.chain([QueueName::new(KEEPER)]).collect::<Result<_, _>>()?)
    }

    /// What a machine's run waits for that has no call.
    async fn machine_waits(
        &self,
        run: &str,
        kept: &Run,
        served: &[QueueName],
    ) -> Result<Option<WaitsFor>, Error> {
        let queue = queue_of(&kept.machine, kept.version)?;
        if !self.calls_in(run, queue).await?.is_empty() {
            return Ok(None);
        }
        match &kept.stands {
            Stands::Awaiting { names, .. } => {
                let names = names.iter().map(|name| name.as_ref().to_owned()).collect();
                Ok(Some(WaitsFor::Signal { names }))
            }
            Stands::Joining { children, .. } => {
                for at in 0..*children as usize {
                    let child = child_id(run, kept.turn, at);
                    if self.engine.record(&run_key(&child)).await?.is_some() {
                        let what = Box::new(self.waits_for(&child, served).await?);
                        return Ok(Some(WaitsFor::Child { run: child, what }));
                    }
                }
                Ok(None)
            }
            Stands::Going | Stands::TimedOut => Ok(None),
        }
    }

    async fn calls_in(&self, run: &str, queue: QueueName) -> Result<Vec<CallId>, Error> {
        let lane = Some(LaneName::new(run)?);
        let query = CallsQuery { queue, lane, state: None, after: None, most: 10 };
        Ok(self.engine.calls(query).await?.into_iter().map(|call| call.id).collect())
    }

    /// What the calls of a run wait for in a queue, if it has any there.
    async fn calls_wait(
        &self,
        run: &str,
        queue: QueueName,
        served: &[QueueName],
    ) -> Result<Option<WaitsFor>, Error> {
        let calls = self.calls_in(run, queue.clone()).await?;
        let name = || queue.as_str().to_owned();
        if !calls.is_empty() && !served.contains(&queue) {
            return Ok(Some(WaitsFor::Worker { queue: name() }));
        }
        for call in calls {
            let explained = self.engine.explain(call).await?;
            for reason in explained.into_iter().flat_map(|explained| explained.reasons) {
                match reason {
                    Reason::QueuePaused | Reason::LanePaused | Reason::LaneHeld => {
                        return Ok(Some(WaitsFor::Paused { queue: name() }));
                    }
                    Reason::Meter { limit, blocker, .. } => {
                        let limit = limit.as_str().to_owned();
                        return Ok(Some(match blocker.cause {
                            Cause::Missing => WaitsFor::UnknownLimit { limit },
                            cause => WaitsFor::Limit { limit, reason: cause.reason() },
                        }));
                    }
                    _ => {}
                }
            }
        }
        Ok(None)
    }
}
