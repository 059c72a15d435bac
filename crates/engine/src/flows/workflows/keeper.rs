//! Chores of runs that need no worker's hand.

use super::KEEPER;
use super::card::{Chore, ChoreKind};
use super::moved::Moves;
use crate::error::Error;
use crate::flows::{FlowError, Flows};
use crate::lanes::{Job, Outcome, Worked};
use std::future::Future;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{ActError, Settle, Settlement};

/// How many are done at a time.
const CHORES: usize = 4;

impl<S: Lanes + 'static> Flows<S> {
    /// Does the chores of workflows' runs until it is told to stop. Every [worker of tasks](Self::tasks) does so
    /// beside its tasks; where all tasks are made elsewhere, this is to run.
    pub async fn keeper(
        &self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Worked, Error> {
        let keeper = self.engine.own_worker(KEEPER).concurrency(CHORES).until(stop);
        let flows = self.clone();
        keeper.run(move |job| done(flows.clone(), job)).await
    }
}

/// Does one chore and settles it.
pub(in crate::flows) async fn done<S: Lanes + 'static>(flows: Flows<S>, job: Job) -> Outcome {
    let chore = match Chore::read(&job.body) {
        Ok(chore) => chore,
        Err(error) => {
            tracing::error!(call = job.id.0, %error, "a call of the queue of runs is none of theirs");
            return Outcome::dead();
        }
    };
    let moves = match &chore.what {
        ChoreKind::Items { task } => Moves::Items { task },
        ChoreKind::Timeout => Moves::Timeout,
        ChoreKind::Begin => Moves::Begin,
    };
    let at = (&*chore.run, Some(chore.turn));
    let settle = Settle::new(job.lease, Settlement::Done);
    let mut changed = flows.change_run(at, Some(settle.clone()), moves).await;
    if let Some(reason) = never(&changed) {
        let moves = match &chore.what {
            ChoreKind::Items { task } => Moves::Failed { task, reason: &reason },
            _ => Moves::Impossible { reason: &reason },
        };
        changed = flows.change_run(at, Some(settle), moves).await;
    }
    match changed {
        Ok(true) | Err(Error::Act(ActError::LeaseLost { .. })) => Outcome::elsewhere(),
        Ok(false) => Outcome::done(),
        Err(error) => {
            tracing::error!(run = chore.run, %error, "what follows in a run could not be done: tried again");
            Outcome::retry()
        }
    }
}

/// Why what would follow can never be, if so.
fn never(changed: &Result<bool, Error>) -> Option<String> {
    match changed {
        Err(Error::Act(ActError::LeaseLost { .. })) => None,
        Err(Error::Act(error)) => Some(error.to_string()),
        Err(Error::Flow(FlowError::Workflow { reason })) => Some(reason.clone()),
        _ => None,
    }
}
