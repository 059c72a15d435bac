//! `/v1/dead`: dead calls; revive or delete them, by name or in bulk.

use super::Shared;
use super::body::Json;
use super::caller::Caller;
use super::calls::page;
use super::path::{Filter, Listing};
use super::problem::{Problem, invalid_field};
use super::queues::known;
use super::wire::call::CallPageWire;
use super::wire::dead::{DeadWire, DeletedWire, RevivedWire};
use super::wire::id::IdWire;
use axum::extract::State;
use serde::Deserialize;
use tollgate::lanes::{Act, CallId, CallState, CallsQuery, LaneName, QueueName, Revive};
use tollgate::{Error, Span, Tollgate};

/// Most dead calls that one request names.
const IDS_MAX: usize = 10_000;

/// Whose dead are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeadFilter {
    queue: String,
    lane: Option<String>,
    after: Option<IdWire>,
    limit: Option<usize>,
}

impl Filter for DeadFilter {
    const FIELDS: &'static str = "`queue`, `lane`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

pub(super) async fn list(
    State(app): Shared,
    caller: Caller,
    Listing(filter, most): Listing<DeadFilter>,
) -> Result<Json<CallPageWire>, Problem> {
    known(&app.gate, &caller, &filter.queue).await?;
    let query = CallsQuery {
        queue: QueueName::new(&caller.inner(&filter.queue)).map_err(Error::from)?,
        lane: filter.lane.as_deref().map(LaneName::new).transpose().map_err(Error::from)?,
        state: Some(CallState::Dead),
        after: filter.after.map(|after| after.0),
        most,
    };
    page(&app.gate, &caller, query).await.map(Json)
}

pub(super) async fn revive(
    State(app): Shared,
    caller: Caller,
    Json(which): Json<DeadWire>,
) -> Result<Json<RevivedWire>, Problem> {
    let every = which.every.map_or(Span::ZERO, |every| every.0);
    let revived = match Which::new(&which)? {
        Which::Named(_) if which.every.is_some() => {
            return Err(invalid_field("every", "a rate is for all of a queue: leave out `ids`"));
        }
        Which::Named(ids) => {
            let calls = ours(&app.gate, &caller, ids).await?.into_iter();
            let revive = calls.map(|call| Revive { call, not_before: None }).collect();
            let acted = app.gate.act(Act { revive, ..Act::default() }).await?;
            count(&acted.revived)
        }
        Which::All { queue, lane } => {
            known(&app.gate, &caller, queue).await?;
            app.gate.revive_all(&caller.inner(queue), lane, every).await?
        }
    };
    Ok(Json(RevivedWire { revived }))
}

pub(super) async fn delete(
    State(app): Shared,
    caller: Caller,
    Json(which): Json<DeadWire>,
) -> Result<Json<DeletedWire>, Problem> {
    if which.every.is_some() {
        return Err(invalid_field("every", "a rate is for calls that are revived: leave it out"));
    }
    let deleted = match Which::new(&which)? {
        Which::Named(ids) => {
            let delete = ours(&app.gate, &caller, ids).await?;
            count(&app.gate.act(Act { delete, ..Act::default() }).await?.deleted)
        }
        Which::All { queue, lane } => {
            known(&app.gate, &caller, queue).await?;
            app.gate.delete_dead(&caller.inner(queue), lane).await?
        }
    };
    Ok(Json(DeletedWire { deleted }))
}

/// Which dead calls are meant.
enum Which<'a> {
    Named(&'a [IdWire]),
    All { queue: &'a str, lane: Option<&'a str> },
}

impl<'a> Which<'a> {
    fn new(wire: &'a DeadWire) -> Result<Self, Problem> {
        match (&wire.ids, &wire.queue) {
            (Some(ids), None) if wire.lane.is_none() && ids.len() <= IDS_MAX => {
                Ok(Self::Named(ids))
            }
            (Some(ids), None) if wire.lane.is_none() => {
                let why = format!("{} are more than the {IDS_MAX} of one request", ids.len());
                Err(invalid_field("ids", &why))
            }
            (None, Some(queue)) => Ok(Self::All { queue, lane: wire.lane.as_deref() }),
            (Some(_), _) => {
                Err(invalid_field("ids", "give either `ids`, or a `queue` and perhaps a `lane`"))
            }
            (None, None) => {
                Err(invalid_field("queue", "say which: `ids`, or a `queue` and perhaps a `lane`"))
            }
        }
    }
}

/// Those of the calls that are dead and the caller's.
async fn ours(gate: &Tollgate, caller: &Caller, ids: &[IdWire]) -> Result<Vec<CallId>, Problem> {
    let mut dead = Vec::with_capacity(ids.len());
    for IdWire(id) in ids {
        let call = gate.call(*id).await?;
        let is_ours = |queue: &str| caller.outer(queue).is_some();
        if call.is_some_and(|call| call.state == CallState::Dead && is_ours(&call.queue)) {
            dead.push(*id);
        }
    }
    Ok(dead)
}

fn count(done: &[bool]) -> u64 {
    done.iter().map(|done| u64::from(*done)).sum()
}
