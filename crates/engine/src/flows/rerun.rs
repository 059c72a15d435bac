//! Runs that ended and live again: from the step or task that failed, or with a step and a state that are handed in.

use super::body::Woken;
use super::outcome::{StepOutcome, What};
use super::record::{Ended, Ending, RunRecord};
use super::start::{spec, step_call};
use super::{Flows, TRIES_MAX, child_id, correlation_key, ended_key, queue_of, run_key, write};
use crate::error::Error;
use crate::flows::FlowError;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::run::{Plan, Run, Stands};
use tollgate_core::lanes::{Act, ActError, Door, Revision};
use tollgate_core::{Key, LaneName, Span};

/// How many records are looked at together.
const PAGE: usize = 1_000;

/// How a machine's run lives again.
struct Again {
    run: Run,
    plan: Plan,
    woken: Woken,
    door: Door,
}

impl<S: Lanes + 'static> Flows<S> {
    /// Does again what made a run fail: the step of a machine, as [`Self::rerun_from`] does, or the task of a workflow.
    pub async fn rerun(&self, run: &str) -> Result<(), Error> {
        let (ended, _) = self.ended_once(run).await?;
        match &ended.ending {
            Ending::Failed { step, .. } if !step.is_empty() => self.rerun_from(run, step).await,
            _ => Err(FlowError::DidNotFail { run: run.to_owned() }.into()),
        }
    }

    /// Lets a run that ended, and is kept, live again from a step or a task.
    ///
    /// Of a machine, that is the step at which it failed: with the state that it had, the signals and children that it
    /// was given, and what it owed, which it pays again. Other steps keep no state: [`Self::rerun_with`] takes one. Of a
    /// workflow, it is any task, with all that depends on it or had not been done; what other tasks gave stays.
    ///
    /// Its correlation key is its own again, unless another run has it: then nothing is done. A child lives again when
    /// its parent has ended, and tells nobody of its second end.
    pub async fn rerun_from(&self, run: &str, step: &str) -> Result<(), Error> {
        for _ in 0..TRIES_MAX {
            let (ended, revision) = self.ended_once(run).await?;
            if ended.progress.is_some() {
                return self.rerun_task(run, (ended, revision), step).await;
            }
            let again = failed_again(run, &ended, step)?;
            if self.live_again(run, revision, again).await? {
                return Ok(());
            }
        }
        Err(FlowError::Busy { run: run.to_owned() }.into())
    }

    /// Lets a machine's run that ended, however that was, live again with what [`next`](super::next) says: a step, a
    /// state, and what that owes. It is given no signals and no children. The state is that of the version in which the
    /// run ended.
    pub async fn rerun_with(&self, run: &str, next: StepOutcome) -> Result<(), Error> {
        if !matches!(next.what, What::Next) {
            return Err(FlowError::NotNext.into());
        }
        next.check()?;
        let plan = next.then.into_plan()?;
        for _ in 0..TRIES_MAX {
            let (ended, revision) = self.ended_once(run).await?;
            let Some(kept) = ended.kept else {
                return Err(FlowError::OfWorkflow { run: run.to_owned() }.into());
            };
            let again = Again {
                run: Run { version: ended.version, stands: Stands::Going, ..kept.run },
                plan: plan.clone(),
                woken: Woken::Plainly,
                door: Door::default(),
            };
            if self.live_again(run, revision, again).await? {
                return Ok(());
            }
        }
        Err(FlowError::Busy { run: run.to_owned() }.into())
    }

    /// A run that ended, and the revision of its record.
    async fn ended_once(&self, run: &str) -> Result<(Ended, Revision), Error> {
        let unknown = || FlowError::UnknownRun { run: run.to_owned() };
        if self.engine.record(&run_key(run)).await?.is_some() {
            return Err(FlowError::HasNotEnded { run: run.to_owned() }.into());
        }
        let record = self.engine.record(&ended_key(run)).await?.ok_or_else(unknown)?;
        Ok((Ended::read(&record.bytes)?, record.revision))
    }

    /// Makes the run live again in one act; `false` if something was changed meanwhile.
    async fn live_again(&self, id: &str, ended: Revision, again: Again) -> Result<bool, Error> {
        let Again { mut run, plan, woken, door } = again;
        let queue = queue_of(&run.machine, run.version)?;
        // A step that was being made when the run was taken back would go on in its second life.
        if !self.calls_of(&queue, &LaneName::new(id)?).await?.is_empty() {
            return Err(FlowError::StepUnderWay { run: id.to_owned() }.into());
        }
        let mut act = Act { door, ..Act::default() };
        act.write.push(write(&ended_key(id), ended, None)?);
        self.leave_parent(&mut act, id, &mut run).await?;
        self.take_key(&mut act, id, &run).await?;
        if let Woken::Children { turn, children } = &woken {
            self.need_children(&mut act, (id, *turn), *children).await?;
        }
        act.write.push(write(&run_key(id), Revision(0), Some(RunRecord::written(&run)?))?);
        step_call(&mut act, (queue.clone(), id), plan, &woken, self.engine.wall())?;
        match self.engine.act_own(act).await {
            Ok(_) => Ok(true),
            Err(Error::Act(ActError::UnknownQueue { .. })) => {
                self.engine.define_own_queue(&queue, spec()).await?;
                Ok(false)
            }
            Err(Error::Act(ActError::RevisionDiffers { .. } | ActError::RecordMissing { .. })) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// A parent that lives was told of the child's end, or will read of it.
    async fn leave_parent(&self, act: &mut Act, id: &str, run: &mut Run) -> Result<(), Error> {
        let Some(parent) = run.parent.take() else { return Ok(()) };
        let (run, parent) = (id.to_owned(), parent.run.as_ref().to_owned());
        let key = run_key(&parent);
        if self.engine.record(&key).await?.is_some() {
            return Err(FlowError::ParentLives { run, parent }.into());
        }
        // Nor does it live again in this instant.
        act.write.push(write(&key, Revision(0), None)?);
        Ok(())
    }

    async fn take_key(&self, act: &mut Act, id: &str, run: &Run) -> Result<(), Error> {
        let Some(correlation) = &run.correlation else { return Ok(()) };
        let key = correlation_key(&run.machine, correlation);
        if let Some(other) = self.engine.record(&key).await? {
            let (run, key) = (id.to_owned(), correlation.as_ref().to_owned());
            let other = String::from_utf8_lossy(&other.bytes).into_owned();
            return Err(FlowError::KeyTaken { run, key, other }.into());
        }
        act.write.push(write(&key, Revision(0), Some(id.as_bytes().into()))?);
        Ok(())
    }

    /// The children that a step was given must be there still, and have ended.
    async fn need_children(
        &self,
        act: &mut Act,
        (id, turn): (&str, u64),
        children: u32,
    ) -> Result<(), Error> {
        let ids: Vec<_> = (0..children as usize).map(|at| child_id(id, turn, at)).collect();
        for page in ids.chunks(PAGE) {
            let keys = page.iter().map(|child| Key::new(&ended_key(child)));
            let keys = keys.collect::<Result<Vec<_>, _>>()?;
            let records = self.records(keys.clone()).await?;
            if let Some(at) = records.iter().position(Option::is_none) {
                let (run, child) = (id.to_owned(), page[at].clone());
                return Err(FlowError::ChildGone { run, child }.into());
            }
            act.needs.extend(keys);
        }
        Ok(())
    }
}

/// The step that failed, as it was.
fn failed_again(run: &str, ended: &Ended, step: &str) -> Result<Again, Error> {
    let failed = match &ended.ending {
        Ending::Failed { step, state, .. } => Some((step, state)),
        Ending::Done(_) | Ending::Cancelled => None,
    };
    let not_kept = || FlowError::StateNotKept {
        run: run.to_owned(),
        step: step.to_owned(),
        kept: failed.map(|(step, _)| format!(" that of {step} is;")).unwrap_or_default(),
    };
    let (_, state) = failed.filter(|(failed, _)| *failed == step).ok_or_else(not_kept)?;
    let kept = ended.kept.as_ref().ok_or_else(not_kept)?;
    let step_kept = kept.failed.clone().ok_or_else(not_kept)?;
    let plan = Plan {
        step: step.into(),
        state: state.clone(),
        tolls: step_kept.tolls,
        priority: step_kept.priority,
        delay: Span::ZERO,
    };
    Ok(Again { run: kept.run.clone(), plan, woken: step_kept.woken, door: Door::Parks })
}
