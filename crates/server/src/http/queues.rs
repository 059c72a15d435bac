//! `/v1/queues`: define, read, list; hold back and let go.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::{Actor, InPath, Page, cut, wanted};
use super::problem::{Problem, kinds};
use super::wire::limit_state::RemovedWire;
use super::wire::meter::NothingWire;
use super::wire::queue::{PausedWire, QueuePageWire, QueueStateWire, QueueWire};
use axum::extract::State;
use tollgate::lanes::{LimitName, QueueName, Scope};
use tollgate::{Error, Operation, RESERVED_QUEUE, Tollgate};

type Answer<T> = Result<Json<T>, Problem>;
type Nothing = JsonIfAny<NothingWire>;

pub(super) async fn define(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    JsonIfAny(queue): JsonIfAny<QueueWire>,
) -> Answer<QueueStateWire> {
    let inner = caller.inner(&name);
    let known = app.gate.queue_state(&inner).await?;
    let mut spec = queue.spec(&caller)?;
    // What is not for callers to say stays as it was.
    spec.tells_accepted = known.is_some_and(|known| known.spec.tells_accepted);
    app.gate.queue_as(&who, &inner, spec).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
) -> Answer<QueueStateWire> {
    state(&app.gate, &caller, &name).await
}

pub(super) async fn remove(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<RemovedWire> {
    match app.gate.remove_queue_as(&who, &caller.inner(&name)).await? {
        true => Ok(Json(RemovedWire { removed: true })),
        false => Err(unknown(&name)),
    }
}

pub(super) async fn list(State(app): Shared, caller: Caller, page: Page) -> Answer<QueuePageWire> {
    let after = caller.after(page.after.as_deref());
    let mut found = app.gate.queues(after.as_deref(), wanted(page.limit)).await?;
    found.retain(|queue| caller.outer(&queue.name).is_some());
    let has_more = cut(&mut found, page.limit);
    let last = found.last().map(|queue| caller.shown(&queue.name).to_owned());
    // Tollgate's own are passed over: those who wait for a pass are in one.
    let shown = found.iter().filter(|queue| !queue.name.starts_with(RESERVED_QUEUE));
    let queues = shown
        .map(|queue| QueueStateWire::new(queue, &caller, app.gate.asking(&queue.name)))
        .collect();
    Ok(Json(QueuePageWire { queues, next: last.filter(|_| has_more) }))
}

pub(super) async fn pause(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<QueueStateWire> {
    known(&app.gate, &caller, &name).await?;
    app.gate.operate(&who, Operation::Pause(of_queue(&caller, &name)?)).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn resume(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<QueueStateWire> {
    known(&app.gate, &caller, &name).await?;
    app.gate.operate(&who, Operation::Resume(of_queue(&caller, &name)?)).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn pause_limit(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<PausedWire> {
    app.gate.meter(&caller.inner(&name), None).await?;
    app.gate.operate(&who, Operation::Pause(of_limit(&caller, &name)?)).await?;
    Ok(Json(PausedWire { paused: true }))
}

pub(super) async fn resume_limit(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<PausedWire> {
    app.gate.meter(&caller.inner(&name), None).await?;
    app.gate.operate(&who, Operation::Resume(of_limit(&caller, &name)?)).await?;
    Ok(Json(PausedWire { paused: false }))
}

fn of_queue(caller: &Caller, name: &str) -> Result<Scope, Error> {
    Ok(Scope::Queue(QueueName::new(&caller.inner(name))?))
}

fn of_limit(caller: &Caller, name: &str) -> Result<Scope, Error> {
    Ok(Scope::Limit(LimitName::new(&caller.inner(name))?))
}

/// Fails if there is no such queue.
pub(super) async fn known(gate: &Tollgate, caller: &Caller, name: &str) -> Result<(), Problem> {
    state(gate, caller, name).await.map(|_| ())
}

async fn state(gate: &Tollgate, caller: &Caller, name: &str) -> Answer<QueueStateWire> {
    let state = gate.queue_state(&caller.inner(name)).await?;
    let state = state.ok_or_else(|| unknown(name))?;
    Ok(Json(QueueStateWire::new(&state, caller, gate.asking(&state.name))))
}

/// There is no queue of that name.
pub(super) fn unknown(name: &str) -> Problem {
    let name: String = name.chars().take(128).collect();
    let detail = format!("there is no queue {name}: define it with PUT /v1/queues/{name}");
    Problem::new(kinds::UNKNOWN_QUEUE, detail)
}
