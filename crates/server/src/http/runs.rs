//! `/v1/runs`: executions of workflows and step machines; what became of them, and what they are told.

use super::body::{Json, JsonIfAny};
use super::path::{Filter, InPath, Listing};
use super::problem::{Problem, kinds};
use super::unbound::Unbound;
use super::wire::meter::NothingWire;
use super::wire::receipt::CancelledWire;
use super::wire::run::{
    NotEndedWire, RerunWire, RunPageWire, RunWire, SignalWire, SignalledWire, TimelineWire,
};
use super::wire::span::SpanWire;
use super::{App, Shared};
use axum::extract::{FromRequestParts, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tollgate::flows::{Cancelled, FlowError, RunView};
use tollgate::lanes::{ActError, PAGE_MAX};
use tollgate::{Error, Span};

/// Longest wait for a run's end: a connection is kept open for it.
const WAIT_MAX: Span = Span::from_minutes(10);
/// Most runs that one request looks at: those of one name may be few among many.
const LOOKED_AT_MAX: usize = 10_000;

/// Which runs are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunsFilter {
    ended: Option<bool>,
    name: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

impl Filter for RunsFilter {
    const FIELDS: &'static str = "`ended`, `name`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

/// How long the caller waits for a run's end.
pub(super) struct Wait(Span);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitQuery {
    wait: Option<SpanWire>,
}

impl<S: Send + Sync> FromRequestParts<S> for Wait {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let invalid = |detail: String| Problem::new(kinds::INVALID_QUERY, detail);
        let query = Query::<WaitQuery>::from_request_parts(parts, state).await;
        let Query(WaitQuery { wait }) = query.map_err(|rejection| {
            invalid(format!("{}: this takes `wait`, as in wait=30s", rejection.body_text()))
        })?;
        match wait.map_or(Span::ZERO, |wait| wait.0) {
            wait if wait > WAIT_MAX => {
                Err(invalid(format!("`wait` is {wait}: the longest is {WAIT_MAX}")))
            }
            wait => Ok(Self(wait)),
        }
    }
}

pub(super) async fn list(
    State(app): Shared,
    _: Unbound,
    Listing(filter, most): Listing<RunsFilter>,
) -> Result<Json<RunPageWire>, Problem> {
    let flows = app.gate.flows();
    let is_wanted = |view: &RunView| filter.name.as_ref().is_none_or(|name| *name == view.name);
    // Of one name there may be few on a page.
    let size = if filter.name.is_some() { PAGE_MAX } else { PAGE_MAX.min(most + 1) };
    let (mut found, mut looked_at, mut last) = (Vec::new(), 0, filter.after);
    loop {
        let page = match filter.ended.unwrap_or(false) {
            true => flows.ended_runs(last.as_deref(), size).await?,
            false => flows.runs(last.as_deref(), size).await?,
        };
        looked_at += page.len();
        let is_all = page.len() < size;
        for view in page {
            if found.len() == most {
                return Ok(Json(RunPageWire { runs: found, next: last }));
            }
            last = Some(view.run.clone());
            if is_wanted(&view) {
                found.push(RunWire::new(view, &app));
            }
        }
        if is_all || looked_at >= LOOKED_AT_MAX {
            let next = last.filter(|_| !is_all);
            return Ok(Json(RunPageWire { runs: found, next }));
        }
    }
}

pub(super) async fn read(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
) -> Result<Json<RunWire>, Problem> {
    view(&app, &run).await.map(Json)
}

pub(super) async fn timeline(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
) -> Result<Json<TimelineWire>, Problem> {
    let (flows, named) = (app.gate.flows(), run.clone());
    let attempts = app.history.read(async move { flows.timeline(&named).await }).await?;
    // History may know a run for longer than it is kept.
    if attempts.is_empty() && app.gate.flows().run(&run).await?.is_none() {
        return Err(unknown(&run));
    }
    Ok(Json(TimelineWire::new(run, &attempts)))
}

pub(super) async fn picture(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
) -> Result<Response, Problem> {
    let flows = app.gate.flows();
    if let Some(picture) = flows.workflow_picture(&run).await? {
        return Ok(text(picture));
    }
    let (flows, named) = (flows.clone(), run.clone());
    let picture = app.history.read(async move { flows.picture(&named).await }).await?;
    let is_empty = picture.lines().nth(1).is_none();
    if is_empty && app.gate.flows().run(&run).await?.is_none() {
        return Err(unknown(&run));
    }
    Ok(text(picture))
}

/// How a run ended, as soon as it has; or that it has not within so long, or until the server ends.
pub(super) async fn result(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
    Wait(wait): Wait,
) -> Result<Response, Problem> {
    let flows = app.gate.flows();
    let ended = tokio::select! {
        // The result first: what is there when the server ends is still told.
        biased;
        ended = flows.result(&run, wait) => ended?,
        () = app.shutdown.begun() => None,
    };
    Ok(match ended {
        Some(ended) => Json(RunWire::ended(run, ended)).into_response(),
        None => {
            let answer = Json(NotEndedWire { run, ended: false });
            (StatusCode::ACCEPTED, answer).into_response()
        }
    })
}

pub(super) async fn signal(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
    Json(signal): Json<SignalWire>,
) -> Result<Json<SignalledWire>, Problem> {
    let signalled = app.gate.flows().signal(&run, signal.signal()?).await?;
    Ok(Json(SignalledWire::new(run, signalled)))
}

pub(super) async fn cancel(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Result<Json<CancelledWire>, Problem> {
    match app.gate.flows().cancel(&run).await? {
        Cancelled::Now => Ok(Json(CancelledWire { cancelled: true })),
        Cancelled::HadEnded => Ok(Json(CancelledWire { cancelled: false })),
        Cancelled::Unknown => Err(unknown(&run)),
    }
}

pub(super) async fn rerun(
    State(app): Shared,
    _: Unbound,
    InPath(run): InPath<String>,
    Json(RerunWire { from }): Json<RerunWire>,
) -> Result<Json<RunWire>, Problem> {
    let flows = app.gate.flows();
    let rerun = match &from {
        Some(from) => flows.rerun_from(&run, from).await,
        None => flows.rerun(&run).await,
    };
    match rerun {
        // Somebody else was faster, and it has begun again.
        Err(Error::Act(ActError::RevisionDiffers { .. })) => {
            return Err(Error::from(FlowError::HasNotEnded { run }).into());
        }
        rerun => rerun?,
    }
    view(&app, &run).await.map(Json)
}

/// A picture or another text for people.
pub(super) fn text(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

async fn view(app: &App, run: &str) -> Result<RunWire, Problem> {
    let flows = app.gate.flows();
    let mut view = flows.run(run).await?;
    // Between the looks at where it lives and where it ends it may have been begun again, or have ended.
    if view.is_none() {
        view = flows.run(run).await?;
    }
    view.map(|view| RunWire::new(view, app)).ok_or_else(|| unknown(run))
}

fn unknown(run: &str) -> Problem {
    let run: String = run.chars().take(64).collect();
    Error::from(FlowError::UnknownRun { run }).into()
}
