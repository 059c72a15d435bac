//! Registering workflows: each change of one is a version, and runs go on with the one that they began with.

use super::written::WorkflowText;
use super::{KEEPER, task_queue, workflow_key};
use crate::error::Error;
use crate::flows::record::not_ours;
use crate::flows::start::spec;
use crate::flows::{FlowError, Flows, TRIES_MAX, write};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tollgate_core::contract::Lanes;
use tollgate_core::flow::workflow::{Workflow, WorkflowSpec};
use tollgate_core::lanes::queue::PARALLEL_MAX;
use tollgate_core::lanes::{Act, ActError, Order, QueueSpec, Revision};
use tollgate_core::{Definition, QueueName};

/// How many workflows are read at once.
const PAGE: usize = 1_000;

/// A workflow that is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The workflow.
    pub workflow: Arc<Workflow>,
    /// Its version, from 1.
    pub version: u32,
}

/// A version of a workflow, as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    workflow: WorkflowText,
}

impl Kept {
    fn read(bytes: &[u8]) -> Result<Registered, Error> {
        let Self { version, workflow } =
            serde_json::from_slice(bytes).map_err(|error| not_ours(&error))?;
        let workflow = WorkflowSpec::from(workflow).build().map_err(FlowError::from)?;
        Ok(Registered { workflow: Arc::new(workflow), version })
    }

    fn written(registered: &Registered) -> Result<Box<[u8]>, Error> {
        let Registered { workflow, version } = registered;
        let kept = Self { version: *version, workflow: workflow.spec().into() };
        Ok(serde_json::to_vec(&kept).map_err(|error| not_ours(&error))?.into())
    }
}

/// How the queue of a type's tasks is: what becomes of a task is for its workflow to say, and none is ever dead.
fn task_spec() -> QueueSpec {
    QueueSpec { order: Order::Parallel(PARALLEL_MAX), ..spec() }
}

/// What a definition says, as limits are written in JSON.
fn said_of(definition: &Definition) -> String {
    serde_json::to_string(definition.limit()).unwrap_or_default()
}

impl<S: Lanes + 'static> Flows<S> {
    /// Registers a workflow: its limits are defined, and runs that begin from now on are of it. Runs that are
    /// under way go on as they began. Registered again as it is, it stays as it is.
    ///
    /// Refused if another workflow has tasks of the same type and says otherwise how many of them start or run.
    pub async fn register(&self, workflow: Workflow) -> Result<Registered, Error> {
        self.check_agreed(&workflow).await?;
        for task in workflow.tasks() {
            self.engine.define_own_queue(&task_queue(&task.type_name)?, task_spec()).await?;
        }
        self.engine.define_own_queue(&QueueName::new(KEEPER)?, task_spec()).await?;
        let who = format!("workflow {}", workflow.name());
        for (limit, definition) in workflow.limits() {
            self.engine.define_as(&who, limit, definition.limit().clone()).await?;
        }
        let workflow = Arc::new(workflow);
        for _ in 0..TRIES_MAX {
            let latest = self.engine.record(&workflow_key(workflow.name(), None)).await?;
            let before = latest.as_ref().map(|record| Kept::read(&record.bytes)).transpose()?;
            if let Some(before) = before.as_ref().filter(|before| before.workflow == workflow) {
                return Ok(before.clone());
            }
            let version = before.map_or(1, |before| before.version.saturating_add(1));
            let registered = Registered { workflow: workflow.clone(), version };
            let (name, bytes) = (workflow.name(), Kept::written(&registered)?);
            let revision = latest.map_or(Revision(0), |record| record.revision);
            let version_key = workflow_key(name, Some(version));
            let write = vec![
                write(&workflow_key(name, None), revision, Some(bytes.clone()))?,
                write(&version_key, Revision(0), Some(bytes))?,
            ];
            match self.engine.act_own(Act { write, ..Act::default() }).await {
                Ok(_) => return Ok(registered),
                Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        Err(FlowError::Busy { run: workflow.name().to_owned() }.into())
    }

    /// Refuses what another workflow says otherwise of a type.
    async fn check_agreed(&self, workflow: &Workflow) -> Result<(), Error> {
        for other in self.workflows(None, PAGE).await? {
            if other.workflow.name() == workflow.name() {
                continue;
            }
            for (limit, definition) in workflow.limits() {
                let said = other.workflow.limits().iter().find(|(name, _)| name == limit);
                if let Some((_, said)) = said.filter(|(_, said)| said != definition) {
                    return Err(FlowError::Disagrees {
                        limit: limit.as_str().to_owned(),
                        workflow: other.workflow.name().to_owned(),
                        says: said_of(said),
                        wanted: said_of(definition),
                    }
                    .into());
                }
            }
        }
        Ok(())
    }

    /// A workflow as it was registered last.
    pub async fn workflow(&self, name: &str) -> Result<Option<Registered>, Error> {
        let record = self.engine.record(&workflow_key(name, None)).await?;
        record.map(|record| Kept::read(&record.bytes)).transpose()
    }

    /// Workflows by name, after one, up to 1,000.
    pub async fn workflows(
        &self,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<Registered>, Error> {
        const PREFIX: &str = "tollgate/workflow/";
        let mut after = after.map(|name| workflow_key(name, None));
        let mut found = Vec::new();
        loop {
            let page = self.engine.records_of(PREFIX, after.as_deref(), PAGE).await?;
            let Some((last, _)) = page.last() else { return Ok(found) };
            after = Some(last.as_str().to_owned());
            // Versions stand among them.
            let is_latest = |key: &str| !key.trim_start_matches(PREFIX).contains('/');
            for (_, record) in page.iter().filter(|(key, _)| is_latest(key)) {
                found.push(Kept::read(&record.bytes)?);
                if found.len() >= most {
                    return Ok(found);
                }
            }
        }
    }

    /// A version of a workflow that runs are of.
    pub(in crate::flows) async fn workflow_of(
        &self,
        name: &str,
        version: u32,
    ) -> Result<Arc<Workflow>, Error> {
        if let Some(known) = self.engine.at_hand().find(name, version) {
            return Ok(known);
        }
        let record = self.engine.record(&workflow_key(name, Some(version))).await?;
        let unknown = || FlowError::UnknownWorkflow { name: name.to_owned() };
        let Registered { workflow, .. } = Kept::read(&record.ok_or_else(unknown)?.bytes)?;
        self.engine.at_hand().keep(version, &workflow);
        Ok(workflow)
    }
}
