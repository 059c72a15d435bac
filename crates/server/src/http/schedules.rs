//! `/v1/schedules`: calls that are handed in at the ticks of a cron expression, or once.

use super::body::{Json, JsonIfAny, Large};
use super::caller::Caller;
use super::path::{InPath, Page, cut, wanted};
use super::problem::{Problem, kinds};
use super::queues::known;
use super::wire::limit_state::RemovedWire;
use super::wire::meter::NothingWire;
use super::wire::new_call::HandedIn;
use super::wire::object::Object;
use super::wire::schedule::{SchedulePageWire, ScheduleStateWire, ScheduleWire};
use super::{App, Shared};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use tollgate::lanes::QueueName;
use tollgate::{AskError, Error, Now, Timestamp};

type Nothing = JsonIfAny<NothingWire>;

pub(super) async fn define(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    body: Large,
) -> Result<Response, Problem> {
    let request: ScheduleWire<'_> = body.one()?;
    let when = request.when()?;
    let Object(call) = &request.call;
    if call.has_instants() {
        return Err(Error::from(AskError::InstantInSchedule).into());
    }
    known(&app.gate, &caller, &request.queue).await?;
    let queue = QueueName::new(&caller.inner(&request.queue)).map_err(Error::from)?;
    // Times count from each tick: they are written as from the epoch.
    let now = Now::both(Timestamp::default());
    let call = call.new_call(HandedIn { caller: &caller, queue: Some(&queue), now, trace: None });
    let call = call.map_err(|fault| fault.problem("call"))?;
    let schedule = app.gate.schedule_new(&caller.inner(&name), when, call, Vec::new()).await?;
    Ok(Json(ScheduleStateWire::new(&schedule, &caller, &app)).into_response())
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
) -> Result<Response, Problem> {
    state(&app, &caller, &name).await
}

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    page: Page,
) -> Result<Response, Problem> {
    let after = caller.after(page.after.as_deref());
    let mut found = app.gate.schedules(after.as_deref(), wanted(page.limit)).await?;
    found.retain(|schedule| caller.outer(&schedule.name).is_some());
    let has_more = cut(&mut found, page.limit);
    let last = found.last().map(|schedule| caller.shown(&schedule.name).to_owned());
    let schedules = found.iter().map(|it| ScheduleStateWire::new(it, &caller, &app)).collect();
    Ok(Json(SchedulePageWire { schedules, next: last.filter(|_| has_more) }).into_response())
}

pub(super) async fn remove(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Result<Json<RemovedWire>, Problem> {
    match app.gate.unschedule(&caller.inner(&name)).await? {
        true => Ok(Json(RemovedWire { removed: true })),
        false => Err(unknown(&name)),
    }
}

pub(super) async fn pause(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Result<Response, Problem> {
    app.gate.pause_schedule(&caller.inner(&name)).await?;
    state(&app, &caller, &name).await
}

pub(super) async fn resume(
    State(app): Shared,
    caller: Caller,
    InPath(name): InPath<String>,
    _: Nothing,
) -> Result<Response, Problem> {
    app.gate.resume_schedule(&caller.inner(&name)).await?;
    state(&app, &caller, &name).await
}

async fn state(app: &App, caller: &Caller, name: &str) -> Result<Response, Problem> {
    let schedule = app.gate.schedule_state(&caller.inner(name)).await?;
    let schedule = schedule.ok_or_else(|| unknown(name))?;
    Ok(Json(ScheduleStateWire::new(&schedule, caller, app)).into_response())
}

fn unknown(name: &str) -> Problem {
    let name: String = name.chars().take(128).collect();
    let detail = format!("there is no schedule {name}: define it with PUT /v1/schedules/{name}");
    Problem::new(kinds::UNKNOWN_SCHEDULE, detail)
}
