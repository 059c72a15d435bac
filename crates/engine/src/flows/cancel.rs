//! Taking runs back.

use super::record::{Ended, Ending};
use super::workflows::WorkflowRun;
use super::{Flows, TRIES_MAX, child_id, ended_key, queue_of, run_key, write};
use crate::error::Error;
use crate::flows::FlowError;
use std::future::Future;
use std::pin::Pin;
use tollgate_core::contract::{CallsQuery, Lanes};
use tollgate_core::lanes::{Act, ActError, CallId, Revision};
use tollgate_core::{LaneName, QueueName};

/// What became of a run that was to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended so.
    Now,
    /// It had ended before.
    HadEnded,
    /// There is no such run, or none any more.
    Unknown,
}

impl<S: Lanes + 'static> Flows<S> {
    /// Takes a run back: it ends, nothing more of it starts, and a step that is being made is followed by none. So
    /// do the children that it waits for; if this is cut short before it reached all of them, do it again.
    pub async fn cancel(&self, run: &str) -> Result<Cancelled, Error> {
        let record = self.engine.record(&run_key(run)).await?;
        if record.is_some_and(|record| WorkflowRun::read(&record.bytes).is_some()) {
            return self.cancel_workflow(run).await;
        }
        for _ in 0..TRIES_MAX {
            let Some((kept, revision)) = self.live(run).await? else {
                let ended = self.engine.record(&ended_key(run)).await?;
                let Some(ended) = ended else { return Ok(Cancelled::Unknown) };
                let ended = Ended::read(&ended.bytes)?;
                if ended.ending == Ending::Cancelled {
                    self.cancel_children(run, ended.waited).await?;
                }
                return Ok(Cancelled::HadEnded);
            };
            let (queue, lane) = (queue_of(&kept.machine, kept.version)?, LaneName::new(run)?);
            let mut act = self.end(run, (&kept, revision), Ending::Cancelled, None).await?;
            act.cancel = self.calls_of(&queue, &lane).await?;
            match self.engine.act_own(act).await {
                Ok(_) => {
                    // A step may have been followed by another since its calls were looked for.
                    let cancel = self.calls_of(&queue, &lane).await?;
                    self.stop_if_ended(run, cancel).await?;
                    self.engine.run_changed(run);
                    self.sweep_in_time();
                    let waited = Ended::of(&kept, Ending::Cancelled, None, kept.began).waited;
                    self.cancel_children(run, waited).await?;
                    return Ok(Cancelled::Now);
                }
                Err(Error::Act(
                    ActError::RevisionDiffers { .. } | ActError::RecordMissing { .. },
                )) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: run.to_owned() }.into())
    }

    /// Takes back calls of a run that ended, unless it lives again: they may be those of its second life. Says
    /// whether it has not.
    pub(super) async fn stop_if_ended(
        &self,
        run: &str,
        cancel: Vec<CallId>,
    ) -> Result<bool, Error> {
        let write = vec![write(&run_key(run), Revision(0), None)?];
        match self.engine.act_own(Act { cancel, write, ..Act::default() }).await {
            Ok(_) => Ok(true),
            Err(Error::Act(ActError::RevisionDiffers { .. })) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn calls_of(
        &self,
        queue: &QueueName,
        lane: &LaneName,
    ) -> Result<Vec<CallId>, Error> {
        let query = CallsQuery {
            queue: queue.clone(),
            lane: Some(lane.clone()),
            state: None,
            after: None,
            most: 10,
        };
        Ok(self.engine.calls(query).await?.into_iter().map(|call| call.id).collect())
    }

    /// Boxed, for children may have children.
    fn cancel_children<'a>(
        &'a self,
        run: &'a str,
        waited: Option<(u64, u32)>,
    ) -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>> {
        Box::pin(async move {
            let Some((turn, children)) = waited else { return Ok(()) };
            for at in 0..children as usize {
                self.cancel(&child_id(run, turn, at)).await?;
            }
            Ok(())
        })
    }
}
