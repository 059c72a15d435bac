//! Chores of runs that need no worker's hand.

use super::card::{Chore, ChoreKind};
use super::moved::Moves;
use crate::error::Error;
use crate::flows::Flows;
use crate::lanes::{Job, Outcome};
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{ActError, Settle, Settlement};

/// Does one chore and settles it.
pub(super) async fn done<S: Lanes + 'static>(flows: Flows<S>, job: Job) -> Outcome {
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
    // The time of a run is over whichever turn it is at.
    let turn = (chore.what != ChoreKind::Timeout).then_some(chore.turn);
    let settle = Settle::new(job.lease, Settlement::Done);
    match flows.change_run((&chore.run, turn), Some(settle), moves).await {
        Ok(true) | Err(Error::Act(ActError::LeaseLost { .. })) => Outcome::elsewhere(),
        Ok(false) => Outcome::done(),
        Err(error) => {
            tracing::error!(run = chore.run, %error, "what follows in a run could not be done: tried again");
            Outcome::retry()
        }
    }
}
