//! `/v1/limits`: define, read, remove, list; override a partition; pin.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::path::{Actor, InPath, Page};
use super::problem::Problem;
use super::wire::limit::LimitWire;
use super::wire::limit_state::{LimitLineWire, LimitPageWire, LimitStateWire, RemovedWire};
use super::wire::meter::NothingWire;
use axum::extract::State;
use tollgate::{AskError, Error, Tollgate};

type Answer<T> = Result<Json<T>, Problem>;

pub(super) async fn list(State(app): Shared, page: Page) -> Answer<LimitPageWire> {
    let limits = app.gate.limits().await?;
    let is_after = |name: &str| page.after.as_deref().is_none_or(|after| name > after);
    let mut rest = limits.iter().filter(|limit| is_after(&limit.name));
    let limits: Vec<_> = rest.by_ref().take(page.limit).map(LimitLineWire::from).collect();
    let last = limits.last().map(|limit| limit.name.clone());
    Ok(Json(LimitPageWire { limits, next: rest.next().and(last) }))
}

pub(super) async fn define(
    State(app): Shared,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    app.gate.limit_as(&who, &name, limit).await?;
    state(&app.gate, &name).await
}

pub(super) async fn read(
    State(app): Shared,
    InPath(name): InPath<String>,
) -> Answer<LimitStateWire> {
    state(&app.gate, &name).await
}

pub(super) async fn remove(
    State(app): Shared,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Answer<RemovedWire> {
    app.gate.remove(&who, &name).await?;
    Ok(Json(RemovedWire { removed: true }))
}

pub(super) async fn pin(
    State(app): Shared,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    app.gate.pin(&who, &name, Some(limit)).await?;
    state(&app.gate, &name).await
}

pub(super) async fn unpin(
    State(app): Shared,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Answer<LimitStateWire> {
    app.gate.pin(&who, &name, None).await?;
    state(&app.gate, &name).await
}

pub(super) async fn define_partition(
    State(app): Shared,
    InPath((name, partition)): InPath<(String, String)>,
    Json(LimitWire(limit)): Json<LimitWire>,
) -> Answer<LimitStateWire> {
    app.gate.override_partition(&name, &partition, Some(limit)).await?;
    state(&app.gate, &name).await
}

pub(super) async fn remove_partition(
    State(app): Shared,
    InPath((name, partition)): InPath<(String, String)>,
    _: JsonIfAny<NothingWire>,
) -> Answer<LimitStateWire> {
    app.gate.override_partition(&name, &partition, None).await?;
    state(&app.gate, &name).await
}

async fn state(gate: &Tollgate, name: &str) -> Answer<LimitStateWire> {
    let state = gate.limit_state(name).await?;
    let unknown = || Error::from(AskError::UnknownLimit { name: name.chars().take(128).collect() });
    Ok(Json(LimitStateWire::from(&state.ok_or_else(unknown)?)))
}
