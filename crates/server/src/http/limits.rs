//! `/v1/limits`: define, read, remove, list; override a partition; pin.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::{Actor, InPath, Page, cut, wanted};
use super::problem::Problem;
use super::wire::limit::LimitWire;
use super::wire::limit_state::{LimitLineWire, LimitPageWire, LimitStateWire, RemovedWire};
use super::wire::meter::NothingWire;
use axum::extract::State;
use tollgate::{AskError, Error, Tollgate};

type Answer<T> = Result<Json<T>, Problem>;

pub(super) async fn list(State(app): Shared, caller: Caller, page: Page) -> Answer<LimitPageWire> {
    let after = caller.after(page.after.as_deref());
    let mut found = app.gate.limits_after(after.as_deref(), wanted(page.limit)).await?;
    found.retain(|limit| caller.outer(&limit.name).is_some());
    let has_more = cut(&mut found, page.limit);
    let limits = found.iter().map(|limit| LimitLineWire::new(caller.shown(&limit.name), limit));
    let limits: Vec<_> = limits.collect();
    let last = limits.last().map(|limit| limit.name.clone());
    Ok(Json(LimitPageWire { limits, next: last.filter(|_| has_more) }))
}

pub(super) async fn define(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    app.gate.limit_as(&who, &caller.inner(&name), limit).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
) -> Answer<LimitStateWire> {
    state(&app.gate, &caller, &name).await
}

pub(super) async fn remove(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Answer<RemovedWire> {
    app.gate.remove(&who, &caller.inner(&name)).await?;
    Ok(Json(RemovedWire { removed: true }))
}

pub(super) async fn pin(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    app.gate.pin(&who, &caller.inner(&name), Some(limit)).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn unpin(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Answer<LimitStateWire> {
    app.gate.pin(&who, &caller.inner(&name), None).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn define_partition(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((name, partition)): InPath<(String, String)>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    let (inner, limit) = (caller.inner(&name), Some(limit));
    app.gate.override_partition_as(&who, &inner, &partition, limit).await?;
    state(&app.gate, &caller, &name).await
}

pub(super) async fn remove_partition(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((name, partition)): InPath<(String, String)>,
    _: JsonIfAny<NothingWire>,
) -> Answer<LimitStateWire> {
    app.gate.override_partition_as(&who, &caller.inner(&name), &partition, None).await?;
    state(&app.gate, &caller, &name).await
}

async fn state(gate: &Tollgate, caller: &Caller, name: &str) -> Answer<LimitStateWire> {
    let inner = caller.inner(name);
    let state = gate.limit_state(&inner).await?;
    let unknown =
        || Error::from(AskError::UnknownLimit { name: inner.chars().take(128).collect() });
    Ok(Json(LimitStateWire::new(name, &state.ok_or_else(unknown)?)))
}
