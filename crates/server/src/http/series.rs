//! `/v1/series`: what happened, second by second and minute by minute, as long as the server has been running.

mod ring;
mod sampler;
mod track;
mod tracks;

use super::body::Json;
use super::caller::Caller;
use super::path::{Filter, Listing};
use super::problem::{Problem, kinds};
use super::queues::unknown;
use super::wire::series::SeriesWire;
use super::{App, Shared, overview};
use crate::shutdown::Shutdown;
use axum::extract::State;
use ring::Point;
use serde::Deserialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate::{Error, Span, StoreError, Timestamp, Tollgate};
use track::Step;
use tracks::Tracks;

/// All series of the server.
#[derive(Debug, Default)]
pub(crate) struct Series(Mutex<Tracks>);

impl Series {
    fn lock(&self) -> MutexGuard<'_, Tracks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is anything to ask a store for each second without asking others: one that only limits are
/// shared in lists no meters, and is elsewhere.
fn is_kept(gate: &Tollgate) -> bool {
    gate.keeps_calls() || gate.limiter().is_some()
}

/// Adds to the series until the server goes.
pub(crate) async fn sample(app: Arc<App>, shutdown: Shutdown) {
    if is_kept(&app.gate) {
        sampler::run(app.gate.clone(), &app.series, shutdown).await;
    }
}

/// Of what, in which steps.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesFilter {
    #[serde(default)]
    step: StepWire,
    queue: Option<String>,
    limit: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
enum StepWire {
    #[default]
    #[serde(rename = "1s")]
    Second,
    #[serde(rename = "1m")]
    Minute,
}

impl Filter for SeriesFilter {
    const FIELDS: &'static str = "`step`, which is `1s` or `1m`, and `queue` or `limit`";

    fn limit(&self) -> Option<usize> {
        None
    }
}

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
    Listing(filter, _): Listing<SeriesFilter>,
) -> Result<Json<SeriesWire>, Problem> {
    if !is_kept(&app.gate) {
        return Err(Error::from(StoreError::MetersNotListed).into());
    }
    let SeriesFilter { step, queue, limit } = filter;
    let (step, step_ms) = match step {
        StepWire::Second => (Step::Second, 1_000),
        StepWire::Minute => (Step::Minute, 60_000),
    };
    // Before the first step has ended, there are no points.
    let wall = overview::now(&app.gate).await?.wall.as_nanos();
    let begun = Timestamp::from_nanos(wall - wall % Span::from_secs(1).as_nanos());
    let empty = |ended: Option<Timestamp>| SeriesWire::new(step_ms, ended.unwrap_or(begun));
    match (queue, limit) {
        (Some(_), Some(_)) => {
            let detail = "a series is of a `queue` or of a `limit`: ask for each by itself";
            Err(Problem::new(kinds::INVALID_QUERY, detail))
        }
        (Some(queue), None) => {
            let name = caller.inner(&queue);
            app.gate.queue_state(&name).await?.ok_or_else(|| unknown(&queue))?;
            let tracks = app.series.lock();
            let has_own = tracks.has_queue(&name);
            let points = has_own.then(|| tracks.of_queues(step, |one| one == name));
            Ok(Json(empty(tracks.ended(step)).of_queue(&points.unwrap_or_default())))
        }
        (None, Some(limit)) => {
            let name = caller.inner(&limit);
            app.gate.meter(&name, None).await?;
            let tracks = app.series.lock();
            let has_own = tracks.has_limit(&name);
            let points = has_own.then(|| tracks.of_limits(step, |one| one == name));
            let points = points.unwrap_or_default();
            let series = empty(tracks.ended(step)).of_limit(&points);
            Ok(Json(if app.gate.keeps_calls() { series.counting_limit(&points) } else { series }))
        }
        (None, None) => {
            let tracks = app.series.lock();
            let series = empty(tracks.ended(step));
            Ok(Json(all(&app.gate, &caller, (&tracks, step), series)))
        }
    }
}

/// What happened to all that is the caller's.
fn all(
    gate: &Tollgate,
    caller: &Caller,
    (tracks, step): (&Tracks, Step),
    series: SeriesWire,
) -> SeriesWire {
    let is_own = |name: &str| caller.outer(name).is_some();
    if !gate.keeps_calls() {
        return series.of_limit(&tracks.of_limits(step, is_own));
    }
    let (queues, limits): (Vec<Point<8>>, Vec<Point<2>>) = match caller.namespace() {
        None => (tracks.all_queues.points(step), tracks.all_limits.points(step)),
        Some(_) => {
            let limits = tracks.of_limits(step, is_own).into_iter();
            let limits =
                limits.map(|point| point.map(|[admitted, _, throttled, ..]| [admitted, throttled]));
            (tracks.of_queues(step, is_own), limits.collect())
        }
    };
    series.of_queue(&queues).counting(&limits)
}
