//! `/v1/meters`: how meters stand; close, reopen, reset.

use super::Shared;
use super::body::{Json, JsonIfAny};
use super::path::{Actor, InPath, Page};
use super::problem::{Problem, invalid_field};
use super::wire::meter::{CloseWire, MeterPageWire, MeterWire, NothingWire};
use axum::extract::State;
use tollgate::{Span, Tollgate};

/// What can be done to a meter: the last part of the path.
pub(super) const ACTIONS: [&str; 3] = ["close", "reopen", "reset"];
/// Longest closure.
const CLOSED_MAX: Span = Span::from_days(1);
/// Longest reason that is kept.
const REASON_CHARS_MAX: usize = 256;

type Answer<T> = Result<Json<T>, Problem>;
type Nothing = JsonIfAny<NothingWire>;
type Names = InPath<(String, String)>;

pub(super) async fn list(
    State(app): Shared,
    InPath(name): InPath<String>,
    page: Page,
) -> Answer<MeterPageWire> {
    let global = app.gate.meter(&name, None).await?.into();
    let found = app.gate.partitions(&name, page.after.as_deref(), page.limit).await?;
    let mut partitions = Vec::with_capacity(found.partitions.len());
    for partition in &found.partitions {
        partitions.push(app.gate.meter(&name, Some(partition)).await?.into());
    }
    Ok(Json(MeterPageWire { global, partitions, next: found.next }))
}

pub(super) async fn read(
    State(app): Shared,
    InPath((name, partition)): Names,
) -> Answer<MeterWire> {
    meter(&app.gate, &name, Some(&partition)).await
}

/// Reads the partition that is called like an action.
pub(super) async fn read_named(
    State(app): Shared,
    InPath(name): InPath<String>,
    partition: &str,
) -> Answer<MeterWire> {
    meter(&app.gate, &name, Some(partition)).await
}

pub(super) async fn close_global(
    State(app): Shared,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(closure): Json<CloseWire>,
) -> Answer<MeterWire> {
    close_for(&app.gate, (&name, None), &who, closure).await
}

pub(super) async fn close(
    State(app): Shared,
    Actor(who): Actor,
    InPath((name, partition)): Names,
    Json(closure): Json<CloseWire>,
) -> Answer<MeterWire> {
    close_for(&app.gate, (&name, Some(&partition)), &who, closure).await
}

pub(super) async fn reopen_global(
    State(app): Shared,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<MeterWire> {
    app.gate.reopen(&name, None).await?;
    meter(&app.gate, &name, None).await
}

pub(super) async fn reopen(
    State(app): Shared,
    InPath((name, partition)): Names,
    _: Nothing,
) -> Answer<MeterWire> {
    app.gate.reopen(&name, Some(&partition)).await?;
    meter(&app.gate, &name, Some(&partition)).await
}

pub(super) async fn reset_global(
    State(app): Shared,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<MeterWire> {
    app.gate.reset(&name, None).await?;
    meter(&app.gate, &name, None).await
}

pub(super) async fn reset(
    State(app): Shared,
    InPath((name, partition)): Names,
    _: Nothing,
) -> Answer<MeterWire> {
    app.gate.reset(&name, Some(&partition)).await?;
    meter(&app.gate, &name, Some(&partition)).await
}

async fn close_for(
    gate: &Tollgate,
    (name, partition): (&str, Option<&str>),
    who: &str,
    closure: CloseWire,
) -> Answer<MeterWire> {
    let span = closure.span.0;
    if span.is_zero() || span > CLOSED_MAX {
        return Err(invalid_field("for", "a meter is closed for up to 1d, as in \"30s\""));
    }
    let reason = closure.reason.unwrap_or_else(|| format!("closed by {who}"));
    if reason.chars().count() > REASON_CHARS_MAX {
        let why = format!("a reason has up to {REASON_CHARS_MAX} characters");
        return Err(invalid_field("reason", &why));
    }
    gate.close(name, partition, span, &reason).await?;
    meter(gate, name, partition).await
}

async fn meter(gate: &Tollgate, name: &str, partition: Option<&str>) -> Answer<MeterWire> {
    Ok(Json(gate.meter(name, partition).await?.into()))
}
