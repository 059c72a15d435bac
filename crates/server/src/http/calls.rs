//! `/v1/calls`: a call with why it waits and what became of it; lists of calls; taking one back.

use super::body::{Json, JsonIfAny};
use super::caller::Caller;
use super::path::{Filter, InPath, Listing, cut, wanted};
use super::problem::{Problem, kinds};
use super::queues::known;
use super::wire::call::{
    BodyWire, CallPageWire, CallStateWire, CallViewWire, EndedCallWire, WholeCallWire, end,
    traceparent,
};
use super::wire::destination::DestinationWire;
use super::wire::event::EventWire;
use super::wire::explanation::ExplanationWire;
use super::wire::id::IdWire;
use super::wire::meter::NothingWire;
use super::wire::receipt::CancelledWire;
use super::{App, Shared};
use crate::qstash;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tollgate::lanes::{CallId, CallView, CallsQuery, Event, LaneName, QueueName};
use tollgate::{Error, Tollgate};

/// Which calls of a queue are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsFilter {
    lane: Option<String>,
    state: Option<CallStateWire>,
    after: Option<IdWire>,
    limit: Option<usize>,
}

impl Filter for CallsFilter {
    const FIELDS: &'static str = "`lane`, `state`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    InPath(id): InPath<String>,
) -> Result<Response, Problem> {
    let (call, gate) = (named(&id)?, app.gate.clone());
    let view = ours(app.gate.call(call).await?, &caller);
    // Read after it: of one that is gone by now the end is there.
    let history = app.history.read(async move { gate.history_of(call).await }).await?;
    let Some(view) = view else {
        return Ok(Json(ended(&id, &history, &caller, &app)?).into_response());
    };
    let payload = app.gate.payload(call).await?.unwrap_or_default();
    let (explanation, now) = (app.gate.explain(call).await?, app.gate.now().await?);
    // What the sender of a QStash message wants to be hidden is so here, too.
    let (hides_body, hides_headers) = qstash::hidden(&payload, app.redact_bodies);
    let whole = WholeCallWire {
        call: CallViewWire::new(&view, &caller, now),
        body: BodyWire::looked_at(payload.body(), hides_body),
        destination: DestinationWire::looked_at(&payload, &caller, hides_headers),
        traceparent: traceparent(&payload),
        waiting: explanation
            .map(|it| ExplanationWire::new(&it, app.gate.asking(&view.queue), &caller, now)),
        history: history.iter().map(|event| EventWire::new(event, &caller, &app)).collect(),
    };
    Ok(Json(whole).into_response())
}

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    InPath(queue): InPath<String>,
    Listing(filter, most): Listing<CallsFilter>,
) -> Result<Json<CallPageWire>, Problem> {
    known(&app.gate, &caller, &queue).await?;
    let query = CallsQuery {
        queue: QueueName::new(&caller.inner(&queue)).map_err(Error::from)?,
        lane: filter.lane.as_deref().map(LaneName::new).transpose().map_err(Error::from)?,
        state: filter.state.map(Into::into),
        after: filter.after.map(|after| after.0),
        most,
    };
    page(&app.gate, &caller, query).await.map(Json)
}

pub(super) async fn cancel(
    State(app): Shared,
    caller: Caller,
    InPath(id): InPath<String>,
    _: JsonIfAny<NothingWire>,
) -> Result<Json<CancelledWire>, Problem> {
    let call = named(&id)?;
    let view = ours(app.gate.call(call).await?, &caller);
    if view.is_none() || !app.gate.cancel(call).await? {
        return Err(unknown(&id));
    }
    Ok(Json(CancelledWire { cancelled: true }))
}

/// A page of calls that are the caller's.
pub(super) async fn page(
    gate: &Tollgate,
    caller: &Caller,
    query: CallsQuery,
) -> Result<CallPageWire, Problem> {
    let most = query.most;
    let mut found = gate.calls(CallsQuery { most: wanted(most), ..query }).await?;
    let has_more = cut(&mut found, most);
    let now = gate.now().await?;
    let next = found.last().map(|call| IdWire(call.id)).filter(|_| has_more);
    let calls = found.iter().map(|call| CallViewWire::new(call, caller, now)).collect();
    Ok(CallPageWire { calls, next })
}

/// The call that a path names.
pub(super) fn named(id: &str) -> Result<CallId, Problem> {
    IdWire::read(id).map(|id| id.0).ok_or_else(|| unknown(id))
}

fn ours(view: Option<CallView>, caller: &Caller) -> Option<CallView> {
    view.filter(|view| caller.outer(&view.queue).is_some())
}

/// A call that is no more, as long as its end is kept.
fn ended(
    id: &str,
    history: &[Event],
    caller: &Caller,
    app: &App,
) -> Result<EndedCallWire, Problem> {
    let last = history.iter().rev().find_map(|event| Some((event, event.end()?)));
    let (last, how) = last.ok_or_else(|| unknown(id))?;
    let queue = caller.outer(&last.queue).ok_or_else(|| unknown(id))?;
    Ok(EndedCallWire {
        id: IdWire(last.call),
        queue: queue.to_owned(),
        lane: last.lane.as_str().to_owned(),
        state: end(how),
        history: history.iter().map(|event| EventWire::new(event, caller, app)).collect(),
    })
}

fn unknown(id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    let detail =
        format!("there is no call {id}, or it ended so long ago that history has forgotten it");
    Problem::new(kinds::UNKNOWN_CALL, detail)
}
