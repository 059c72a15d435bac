//! Beginning runs of workflows.

use super::card::{Chore, ChoreKind};
use super::moved::{Moves, count_of, deadline};
use super::record::{WorkflowRun, states};
use super::{idempotency_key, live_key, output_key, pending_key};
use crate::error::Error;
use crate::flows::{Begun, FlowError, Flows, TRIES_MAX, new_id, run_key, write};
use serde::Serialize;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::workflow::{Progress, Workflow};
use tollgate_core::lanes::{Act, ActError, Revision};

/// Whether a run may live beside those that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// As many as there are may.
    Unbounded,
    /// It is one of those that may.
    Taken,
    /// It may when another has ended.
    Waits,
}

impl<S: Lanes + 'static> Flows<S> {
    /// Begins a run of a workflow as it was registered last. With an idempotency key the answer is the first run of
    /// that key, for as long as that is kept. Where only so many runs may live, it waits for its turn.
    pub async fn start_workflow(&self, name: &str, input: impl Serialize) -> Result<Begun, Error> {
        let not_json = |error: serde_json::Error| FlowError::NotJson {
            what: "the input",
            reason: error.to_string(),
        };
        let input = serde_json::to_vec(&input).map_err(not_json)?;
        self.start_workflow_json(name, &input).await
    }

    /// The same, with JSON as it was sent.
    pub async fn start_workflow_json(&self, name: &str, input: &[u8]) -> Result<Begun, Error> {
        let unknown = || FlowError::UnknownWorkflow { name: name.to_owned() };
        let registered = self.workflow(name).await?.ok_or_else(unknown)?;
        let workflow = &registered.workflow;
        let key = workflow.idempotency_key(input).map_err(FlowError::from)?;
        for _ in 0..TRIES_MAX {
            if let Some(known) = self.known(workflow, key.as_deref()).await? {
                return Ok(Begun { run: known, is_known: true });
            }
            let began = self.engine.now().await?.wall;
            let (id, version) = (new_id(began), registered.version);
            let run = WorkflowRun {
                workflow: name.to_owned(),
                version,
                began,
                turn: 0,
                key: key.clone(),
                is_pending: false,
                has_place: false,
                states: states(&Progress::new(workflow)),
            };
            let (act, is_over) = self.begin_act(&id, run, workflow, input).await?;
            match self.engine.act_own(act).await {
                Ok(_) => {
                    if is_over {
                        self.run_over(&id, workflow).await?;
                    }
                    return Ok(Begun { run: id, is_known: false });
                }
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: name.to_owned() }.into())
    }

    async fn known(&self, workflow: &Workflow, key: Option<&str>) -> Result<Option<String>, Error> {
        let Some(key) = key else { return Ok(None) };
        let record = self.engine.record(&idempotency_key(workflow.name(), key)).await?;
        Ok(record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned()))
    }

    /// All that begins with a run; whether it has ended with that.
    async fn begin_act(
        &self,
        id: &str,
        run: WorkflowRun,
        workflow: &Workflow,
        input: &[u8],
    ) -> Result<(Act, bool), Error> {
        let mut act = Act::default();
        act.write.push(write(&output_key(id, None), Revision(0), Some(input.into()))?);
        if let Some(key) = &run.key {
            let key = idempotency_key(workflow.name(), key);
            act.write.push(write(&key, Revision(0), Some(id.as_bytes().into()))?);
        }
        if let Some(deadline) = deadline(workflow, run.began) {
            let timeout = Chore { run: id.to_owned(), turn: 0, what: ChoreKind::Timeout };
            let mut call = timeout.call()?;
            call.not_before = Some(deadline);
            act.enqueue.push(call);
        }
        let loaded = [(String::new(), Box::from(input))].into();
        let moved = self.decided((id, &run), workflow, Moves::Begin, loaded).await?;
        let is_over = moved.ending.is_some();
        // One that ends at once lives at no time.
        let place =
            if is_over { Admission::Unbounded } else { self.place(&mut act, workflow).await? };
        if place == Admission::Waits {
            let run = WorkflowRun { is_pending: true, ..run };
            act.write.push(write(&pending_key(workflow.name(), id), Revision(0), Some([].into()))?);
            act.write.push(write(&run_key(id), Revision(0), Some(run.written()?))?);
            return Ok((act, false));
        }
        let run = WorkflowRun { has_place: place == Admission::Taken, ..run };
        self.follow(&mut act, id, (run, Revision(0)), moved).await?;
        Ok((act, is_over))
    }

    /// Counts a run among those that live, if it may be one of them.
    pub(super) async fn place(
        &self,
        act: &mut Act,
        workflow: &Workflow,
    ) -> Result<Admission, Error> {
        let Some(most) = workflow.spec().runs_max else { return Ok(Admission::Unbounded) };
        let key = live_key(workflow.name());
        let live = self.engine.record(&key).await?;
        let (count, revision) =
            live.map_or((0, Revision(0)), |it| (count_of(&it.bytes), it.revision));
        let (place, count) =
            if count < most { (Admission::Taken, count + 1) } else { (Admission::Waits, count) };
        // Written as it is, too: whoever ends meanwhile is to see who waits.
        act.write.push(write(&key, revision, Some(count.to_string().into_bytes().into()))?);
        Ok(place)
    }
}
