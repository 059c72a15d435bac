//! `/v1/meters`: how meters stand; close, reopen, reset.

use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::{Actor, InPath, Listed, Ordered};
use super::problem::{Problem, invalid_field};
use super::wire::meter::{CloseWire, MeterPageWire, MeterWire, NothingWire};
use super::{App, Shared};
use axum::extract::State;
use tollgate::lanes::{Among, LimitName, MeterName, Partition};
use tollgate::{Error, Operation, Span};

/// What can be done to a meter: the last part of the path.
pub(super) const ACTIONS: [&str; 3] = ["close", "reopen", "reset"];
/// The order in which those come first where most wait.
const PRESSURE: &str = "pressure";
/// Longest closure.
const CLOSED_MAX: Span = Span::from_days(1);
/// Longest reason that is kept.
const REASON_CHARS_MAX: usize = 256;

type Answer<T> = Result<Json<T>, Problem>;
type Nothing = JsonIfAny<NothingWire>;
type Names = InPath<(String, String)>;

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    ordered: Ordered,
) -> Answer<MeterPageWire> {
    let inner = caller.inner(&name);
    let listed = ordered.or_by(PRESSURE)?;
    let global = MeterWire::new(&name, app.gate.meter(&inner, None).await?);
    let page = match listed {
        Listed::ByName(page) => page,
        Listed::First(most) => {
            let among = Among::One(inner.into_owned());
            // The global one is told beside them.
            let found = app.gate.busiest_meters(&among, most + 1).await?.into_iter();
            let found = found.filter(|meter| meter.partition.is_some()).take(most);
            let partitions = found.map(|meter| MeterWire::new(&name, meter)).collect();
            return Ok(Json(MeterPageWire { global, partitions, next: None }));
        }
    };
    let found = app.gate.partitions(&inner, page.after.as_deref(), page.limit).await?;
    let mut partitions = Vec::with_capacity(found.partitions.len());
    for partition in &found.partitions {
        let state = app.gate.meter(&inner, Some(partition)).await?;
        partitions.push(MeterWire::new(&name, state));
    }
    Ok(Json(MeterPageWire { global, partitions, next: found.next }))
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    InPath((name, partition)): Names,
) -> Answer<MeterWire> {
    meter(&app, &caller, (&name, Some(&partition))).await
}

/// Reads the partition that is called like an action.
pub(super) async fn read_named(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    partition: &str,
) -> Answer<MeterWire> {
    meter(&app, &caller, (&name, Some(partition))).await
}

pub(super) async fn close_global(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    Json(closure): Json<CloseWire>,
) -> Answer<MeterWire> {
    close_for(&app, &caller, (&name, None), (&who, closure)).await
}

pub(super) async fn close(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((name, partition)): Names,
    Json(closure): Json<CloseWire>,
) -> Answer<MeterWire> {
    close_for(&app, &caller, (&name, Some(&partition)), (&who, closure)).await
}

pub(super) async fn reopen_global(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<MeterWire> {
    let operation = Operation::Reopen(named(&caller, &name, None)?);
    app.gate.operate(&who, operation).await?;
    meter(&app, &caller, (&name, None)).await
}

pub(super) async fn reopen(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((name, partition)): Names,
    _: Nothing,
) -> Answer<MeterWire> {
    let operation = Operation::Reopen(named(&caller, &name, Some(&partition))?);
    app.gate.operate(&who, operation).await?;
    meter(&app, &caller, (&name, Some(&partition))).await
}

pub(super) async fn reset_global(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Answer<MeterWire> {
    let operation = Operation::Reset(named(&caller, &name, None)?);
    app.gate.operate(&who, operation).await?;
    meter(&app, &caller, (&name, None)).await
}

pub(super) async fn reset(
    State(app): Shared,
    caller: Caller,
    Actor(who): Actor,
    InPath((name, partition)): Names,
    _: Nothing,
) -> Answer<MeterWire> {
    let operation = Operation::Reset(named(&caller, &name, Some(&partition))?);
    app.gate.operate(&who, operation).await?;
    meter(&app, &caller, (&name, Some(&partition))).await
}

async fn close_for(
    app: &App,
    caller: &Caller,
    (name, partition): (&str, Option<&str>),
    (who, closure): (&str, CloseWire),
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
    let meter_name = named(caller, name, partition)?;
    app.gate.operate(who, Operation::Close { meter: meter_name, span, reason }).await?;
    meter(app, caller, (name, partition)).await
}

fn named(caller: &Caller, name: &str, partition: Option<&str>) -> Result<MeterName, Error> {
    let partition = partition.map(Partition::new).transpose()?;
    Ok((LimitName::new(&caller.inner(name))?, partition))
}

async fn meter(
    app: &App,
    caller: &Caller,
    (name, partition): (&str, Option<&str>),
) -> Answer<MeterWire> {
    let state = app.gate.meter(&caller.inner(name), partition).await?;
    Ok(Json(MeterWire::new(name, state)))
}
