//! Settling tasks: what a worker made of one becomes a change of its run.

use super::card::{Card, Chore, ChoreKind};
use super::moved::Moves;
use super::tasks::TaskOutcome;
use super::{item_key, items_key};
use crate::error::Error;
use crate::flows::{Flows, run_key, write};
use crate::lanes::Outcome;
use tollgate_core::Key;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{Act, ActError, Attempts, Count, Revision, Settle};

impl<S: Lanes + 'static> Flows<S> {
    /// Settles an attempt at a task with what follows in its run; the outcome that is left to be settled, if any.
    pub(super) async fn settle_made(
        &self,
        settle: Settle,
        card: &Card,
        tried: Attempts,
        outcome: TaskOutcome,
    ) -> Result<Outcome, Error> {
        match self.settle_as(settle.clone(), card, tried, outcome).await {
            // What follows can never be: that is how the task ends.
            Err(Error::Act(error))
                if !matches!(error, ActError::LeaseLost { .. } | ActError::NotPaid { .. }) =>
            {
                let failed = TaskOutcome::Failed { reason: error.to_string() };
                self.settle_as(settle, card, tried, failed).await
            }
            settled => settled,
        }
    }

    async fn settle_as(
        &self,
        settle: Settle,
        card: &Card,
        tried: Attempts,
        outcome: TaskOutcome,
    ) -> Result<Outcome, Error> {
        let (_, retry) = self.bounds_of(card).await?;
        let reason = match outcome {
            TaskOutcome::Done(output) => return self.task_done(settle, card, &output).await,
            TaskOutcome::Limited(pause) => return Ok(left(Outcome::limited(pause), &settle)),
            TaskOutcome::Failed { reason } => reason,
            TaskOutcome::Retry { reason, after } => {
                match retry.delay(tried.failures.saturating_add(1)) {
                    Some(wait) => {
                        let report = report(card, "retry", &reason);
                        let outcome = Outcome::retry_after(after.unwrap_or(wait)).report(report);
                        return Ok(left(outcome, &settle));
                    }
                    None => reason,
                }
            }
        };
        let moves = Moves::Failed { task: &card.task, reason: &reason };
        self.ended_by(with_report(settle, card, "failed", &reason), card, moves).await
    }

    async fn task_done(
        &self,
        settle: Settle,
        card: &Card,
        output: &[u8],
    ) -> Result<Outcome, Error> {
        let settle = with_report(settle, card, "done", "");
        let Some((item, items)) = card.item else {
            let moves = Moves::Done { task: &card.task, output };
            return self.ended_by(settle, card, moves).await;
        };
        let key = item_key(&card.run, &card.task, card.turn, item);
        let what = ChoreKind::Items { task: card.task.clone() };
        let then = Chore { run: card.run.clone(), turn: card.turn, what }.call()?;
        let join = Key::new(&items_key(&card.run, &card.task, card.turn))?;
        let act = Act {
            settle: vec![settle.clone()],
            needs: vec![Key::new(&run_key(&card.run))?],
            write: vec![write(&key, Revision(0), Some(output.into()))?],
            count_down: vec![Count { key: join, from: items.into(), then }],
            ..Act::default()
        };
        match self.act_when_there_is_room(act).await {
            Ok(()) => Ok(Outcome::elsewhere()),
            // The run has ended meanwhile, and nobody waits for it.
            Err(Error::Act(ActError::RecordMissing { .. } | ActError::RevisionDiffers { .. })) => {
                Ok(nobody_waits(&settle))
            }
            Err(error) => Err(error),
        }
    }

    /// Settles a task with the change of its run.
    async fn ended_by(
        &self,
        settle: Settle,
        card: &Card,
        moves: Moves<'_>,
    ) -> Result<Outcome, Error> {
        let is_changed =
            self.change_run((&card.run, Some(card.turn)), Some(settle.clone()), moves).await?;
        Ok(if is_changed { Outcome::elsewhere() } else { nobody_waits(&settle) })
    }
}

/// An attempt whose run ended meanwhile.
fn nobody_waits(settle: &Settle) -> Outcome {
    left(Outcome::done().report(settle.report.clone()), settle)
}

/// An outcome that its worker settles, with what the attempt really cost.
fn left(outcome: Outcome, settle: &Settle) -> Outcome {
    let actual = settle.actual.iter();
    actual.fold(outcome, |outcome, (limit, units)| outcome.actual(limit.as_str(), *units))
}

fn with_report(settle: Settle, card: &Card, outcome: &str, reason: &str) -> Settle {
    Settle { report: report(card, outcome, reason).into(), ..settle }
}

fn report(card: &Card, outcome: &str, reason: &str) -> Vec<u8> {
    let item = card.item.map(|(item, _)| item);
    let mut report = serde_json::json!({ "step": card.task, "outcome": outcome });
    if let Some(item) = item {
        report["item"] = item.into();
    }
    if !reason.is_empty() {
        let reason: String = reason.chars().take(1_000).collect();
        report["reason"] = reason.into();
    }
    report.to_string().into_bytes()
}
