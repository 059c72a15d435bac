//! `/v1/history`: what came of attempts and how calls ended, as long as that is kept.

use super::Shared;
use super::body::Json;
use super::caller::Caller;
use super::path::{Filter, Listing};
use super::problem::{Problem, kinds};
use super::wire::event::{EventWire, HistoryPageWire};
use super::wire::instant::InstantWire;
use axum::extract::State;
use serde::Deserialize;
use tollgate::Error;
use tollgate::lanes::{End, HistoryCursor, HistoryQuery, LaneName, QueueName};

/// Which of history is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryFilter {
    queue: Option<String>,
    lane: Option<String>,
    end: Option<EndWire>,
    from: Option<InstantWire>,
    to: Option<InstantWire>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndWire {
    Done,
    Dead,
    Cancelled,
    Expired,
    Superseded,
    Dropped,
}

impl Filter for HistoryFilter {
    const FIELDS: &'static str = "`queue`, `lane`, `end`, `from`, `to`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

pub(super) async fn search(
    State(app): Shared,
    caller: Caller,
    Listing(filter, most): Listing<HistoryFilter>,
) -> Result<Json<HistoryPageWire>, Problem> {
    let queue = filter.queue.as_deref().map(|queue| QueueName::new(&caller.inner(queue)));
    let query = HistoryQuery {
        queue: queue.transpose().map_err(Error::from)?,
        lane: filter.lane.as_deref().map(LaneName::new).transpose().map_err(Error::from)?,
        end: filter.end.map(EndWire::end),
        from: filter.from.map(|from| from.0),
        to: filter.to.map(|to| to.0),
        after: filter.after.as_deref().map(cursor).transpose()?,
        most,
    };
    let page = app.gate.history(query).await?;
    let ours = page.events.iter().filter(|event| caller.outer(&event.queue).is_some());
    let events = ours.map(|event| EventWire::new(event, &caller)).collect();
    Ok(Json(HistoryPageWire { events, next: page.next.map(|next| next.0.to_string()) }))
}

fn cursor(text: &str) -> Result<HistoryCursor, Problem> {
    text.parse().map(HistoryCursor).map_err(|_| {
        let detail = "`after` is no place in history: send `next` of the page before";
        Problem::new(kinds::INVALID_QUERY, detail)
    })
}

impl EndWire {
    fn end(self) -> End {
        match self {
            Self::Done => End::Done,
            Self::Dead => End::Dead,
            Self::Cancelled => End::Cancelled,
            Self::Expired => End::Expired,
            Self::Superseded => End::Superseded,
            Self::Dropped => End::Dropped,
        }
    }
}
