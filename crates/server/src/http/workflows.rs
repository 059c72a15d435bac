//! `/v1/workflows`: tasks that depend on each other, under the limits of their types; beginning runs of them.

use super::Shared;
use super::body::{Json, Large};
use super::path::{InPath, Page, cut, wanted};
use super::problem::{Problem, invalid_field, kinds};
use super::runs::text;
use super::unbound::Unbound;
use super::wire::run::BegunWire;
use super::wire::workflow::{DefinedWire, WorkflowPageWire, WorkflowWire, field_of};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tollgate::Error;
use tollgate::flows::{FlowError, Flows, Registered, WorkflowSpec, WorkflowText};

pub(super) async fn define(
    State(app): Shared,
    _: Unbound,
    InPath(name): InPath<String>,
    Json(request): Json<WorkflowText>,
) -> Result<Json<DefinedWire>, Problem> {
    if let Some(other) = request.name().filter(|other| *other != name) {
        let other: String = other.chars().take(128).collect();
        let why = format!("it is called {other:?} here, and otherwise in the path: say the same");
        return Err(invalid_field("name", &why));
    }
    let spec = WorkflowSpec::from(request.named(&name));
    let workflow = spec.clone().build().map_err(|error| {
        let problem = Problem::from(Error::from(FlowError::from(error.clone())));
        problem.field(&field_of(&error, &spec))
    })?;
    let flows = app.gate.flows();
    let before = flows.workflow(&name).await?;
    let registered = flows.register(workflow).await?;
    let is_new = before.is_none_or(|before| before.version < registered.version);
    Ok(Json(DefinedWire { workflow: WorkflowWire::from(&registered), new: is_new }))
}

pub(super) async fn read(
    State(app): Shared,
    _: Unbound,
    InPath(name): InPath<String>,
) -> Result<Json<WorkflowWire>, Problem> {
    let registered = known(&app.gate.flows(), &name).await?;
    Ok(Json(WorkflowWire::from(&registered)))
}

pub(super) async fn list(
    State(app): Shared,
    _: Unbound,
    page: Page,
) -> Result<Json<WorkflowPageWire>, Problem> {
    let flows = app.gate.flows();
    let mut found = flows.workflows(page.after.as_deref(), wanted(page.limit)).await?;
    let has_more = cut(&mut found, page.limit);
    let next = found.last().map(|last| last.workflow.name().to_owned()).filter(|_| has_more);
    let workflows = found.iter().map(WorkflowWire::from).collect();
    Ok(Json(WorkflowPageWire { workflows, next }))
}

pub(super) async fn picture(
    State(app): Shared,
    _: Unbound,
    InPath(name): InPath<String>,
) -> Result<Response, Problem> {
    let registered = known(&app.gate.flows(), &name).await?;
    Ok(text(registered.workflow.mermaid(None)))
}

/// Begins a run, or says which one of its idempotency key is there.
pub(super) async fn start(
    State(app): Shared,
    _: Unbound,
    InPath(name): InPath<String>,
    body: Large,
) -> Result<Response, Problem> {
    let input = body.any()?;
    if is_no_name(&name) {
        return Err(unknown(&name));
    }
    let begun = match app.gate.flows().start_workflow_json(&name, input).await {
        Err(Error::Flow(FlowError::UnknownWorkflow { .. })) => return Err(unknown(&name)),
        begun => begun?,
    };
    let status = if begun.is_known { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(BegunWire { run: begun.run, known: begun.is_known })).into_response())
}

async fn known(flows: &Flows, name: &str) -> Result<Registered, Problem> {
    if is_no_name(name) {
        return Err(unknown(name));
    }
    flows.workflow(name).await?.ok_or_else(|| unknown(name))
}

/// Whether no workflow can be called so. Versions are kept behind a slash, and are not asked for by name.
fn is_no_name(name: &str) -> bool {
    name.is_empty() || name.contains('/')
}

fn unknown(name: &str) -> Problem {
    let name: String = name.chars().take(128).collect();
    let detail = format!("there is no workflow {name}: define it with PUT /v1/workflows/{name}");
    Problem::new(kinds::UNKNOWN_WORKFLOW, detail)
}
