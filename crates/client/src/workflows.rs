//! Workflows: tasks that depend on each other; registered, looked at, and begun.

use crate::calls::Page;
use crate::client::{Asked, Client};
use crate::error::ClientError;
use crate::limits::{PAGE, if_known};
use crate::path::{path, with_query};
use hyper::Method;
use serde::{Deserialize, Serialize};
use tollgate_core::flow::workflow::{Workflow, WorkflowSpec};
use tollgate_engine::flows::{Begun, WorkflowText};

/// A workflow that is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowView {
    /// What it is.
    pub workflow: Workflow,
    /// Its version, from 1.
    pub version: u32,
    /// Whether registering it made this version; told of that alone.
    pub is_new: Option<bool>,
}

#[derive(Deserialize)]
struct WorkflowWire {
    version: u32,
    definition: WorkflowText,
    new: Option<bool>,
}

#[derive(Deserialize)]
struct WorkflowPageWire {
    workflows: Vec<WorkflowWire>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct BegunWire {
    run: String,
    known: bool,
}

impl TryFrom<WorkflowWire> for WorkflowView {
    type Error = ClientError;

    fn try_from(wire: WorkflowWire) -> Result<Self, ClientError> {
        let WorkflowWire { version, definition, new } = wire;
        // A server of a later version may have what this one does not know.
        let workflow = WorkflowSpec::from(definition).build();
        let workflow = workflow.map_err(|error| ClientError::invalid(error.to_string()))?;
        Ok(Self { workflow, version, is_new: new })
    }
}

impl Client {
    /// Registers a workflow: its limits are defined, and runs that begin from now on are of it. Runs that are under
    /// way go on as they began. Registered again as it is, it stays as it is.
    pub async fn register_workflow(
        &self,
        workflow: &Workflow,
    ) -> Result<WorkflowView, ClientError> {
        let text = WorkflowText::from(workflow.spec());
        let wire: WorkflowWire = self.put(path(&["workflows", workflow.name()]), &text).await?;
        wire.try_into()
    }

    /// A workflow as it was registered last; `None` if there is none of that name.
    pub async fn workflow(&self, name: &str) -> Result<Option<WorkflowView>, ClientError> {
        let answer = self.fetch::<WorkflowWire>(path(&["workflows", name])).await;
        if_known(answer, "unknown_workflow")?.map(WorkflowView::try_from).transpose()
    }

    /// Workflows by name, after one.
    pub async fn workflows(&self, after: Option<&str>) -> Result<Page<WorkflowView>, ClientError> {
        let query = [("after", after), ("limit", Some(PAGE))];
        let page: WorkflowPageWire = self.fetch(with_query(path(&["workflows"]), &query)).await?;
        let items = page.workflows.into_iter().map(WorkflowView::try_from);
        Ok(Page { items: items.collect::<Result<_, _>>()?, next: page.next })
    }

    /// A workflow as a flowchart for Mermaid; `None` if there is none of that name.
    pub async fn workflow_picture(&self, name: &str) -> Result<Option<String>, ClientError> {
        let picture = self.text(path(&["workflows", name, "picture"])).await;
        if_known(picture, "unknown_workflow")
    }

    /// Begins a run of a workflow as it was registered last, or says which one of its idempotency key is there. Once
    /// answered, it lasts. If the connection is lost, whether it began is not known: with an idempotency key, begin
    /// it again.
    pub async fn start_workflow(
        &self,
        name: &str,
        input: impl Serialize,
    ) -> Result<Begun, ClientError> {
        let asked = Asked::new(Method::POST, path(&["workflows", name, "runs"])).json(&input)?;
        let BegunWire { run, known } = self.ask(asked).await?;
        Ok(Begun { run, is_known: known })
    }

    /// What a path gives that is text.
    pub(crate) async fn text(&self, path: String) -> Result<String, ClientError> {
        self.send(Asked::new(Method::GET, path)).await?.text()
    }
}
