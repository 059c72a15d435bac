//! Runs of workflows that ended and are begun again from a task; and those that are taken back.

use super::card::{Chore, ChoreKind};
use super::moved::{Moves, deadline};
use super::record::WorkflowRun;
use super::start::Admission;
use crate::error::Error;
use crate::flows::cancel::Cancelled;
use crate::flows::record::Ended;
use crate::flows::{FlowError, Flows, ended_key, run_key, write};
use tollgate_core::contract::Lanes;
use tollgate_core::flow::workflow::Progress;
use tollgate_core::lanes::{Act, Door, Revision};

impl<S: Lanes + 'static> Flows<S> {
    /// Does a task of a run that ended again, and all that depends on it or had not been done; what other tasks gave
    /// stays. It asks the gate again, as every attempt does.
    pub(in crate::flows) async fn rerun_task(
        &self,
        run: &str,
        (ended, revision): (Ended, Revision),
        task: &str,
    ) -> Result<(), Error> {
        let Some((turn, states)) = ended.progress else {
            return Err(FlowError::NotOfWorkflow { run: run.to_owned() }.into());
        };
        let workflow = self.workflow_of(&ended.name, ended.version).await?;
        let mut again = WorkflowRun {
            workflow: ended.name,
            version: ended.version,
            began: ended.began,
            turn: turn + 1,
            key: ended.correlation,
            is_pending: false,
            has_place: false,
            states,
        };
        let moves = Moves::Again { task };
        let moved = self.decided((run, &again), &workflow, moves, [].into()).await?;
        let mut act = Act { door: Door::Parks, ..Act::default() };
        let is_over = moved.ending.is_some();
        if !is_over {
            act.write.push(write(&ended_key(run), revision, None)?);
            match self.place(&mut act, &workflow).await? {
                Admission::Waits => {
                    let (run, workflow) = (run.to_owned(), again.workflow);
                    return Err(FlowError::NoPlace { run, workflow }.into());
                }
                place => again.has_place = place == Admission::Taken,
            }
            if let Some(deadline) = deadline(&workflow, self.engine.wall()) {
                let what = ChoreKind::Timeout;
                let timeout = Chore { run: run.to_owned(), turn: again.turn, what };
                let mut call = timeout.call()?;
                call.not_before = Some(deadline);
                act.enqueue.push(call);
            }
        }
        self.follow(&mut act, run, (again, Revision(0)), moved).await?;
        let _ = self.engine.act_own(act).await?;
        if is_over {
            self.run_over(run, &workflow).await?;
        }
        Ok(())
    }

    /// Takes a run of a workflow back.
    pub(in crate::flows) async fn cancel_workflow(&self, run: &str) -> Result<Cancelled, Error> {
        match self.change_run((run, None), None, Moves::Cancel).await? {
            true => Ok(Cancelled::Now),
            false => Ok(Cancelled::HadEnded),
        }
    }

    /// A run of a workflow as a flowchart for Mermaid, with how far each task is; `None` if it is not one.
    pub async fn workflow_picture(&self, run: &str) -> Result<Option<String>, Error> {
        let live = self.engine.record(&run_key(run)).await?;
        let kept = match live.and_then(|record| WorkflowRun::read(&record.bytes)) {
            Some(live) => Some((live.workflow, live.version, live.states)),
            None => {
                let ended = self.engine.record(&ended_key(run)).await?;
                let ended = ended.map(|record| Ended::read(&record.bytes)).transpose()?;
                ended.and_then(|it| Some((it.name, it.version, it.progress?.1)))
            }
        };
        let Some((name, version, states)) = kept else { return Ok(None) };
        let workflow = self.workflow_of(&name, version).await?;
        let progress: Progress = super::record::progress(&workflow, &states)?;
        Ok(Some(workflow.mermaid(Some(&progress))))
    }
}
