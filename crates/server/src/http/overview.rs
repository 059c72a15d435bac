//! `/v1/overview`: one look at everything, made at most once a second for all who see the same.

use super::body::Json;
use super::caller::Caller;
use super::problem::Problem;
use super::wire::overview::{CallerWire, OverviewWire, SeenWire};
use super::{App, Shared, health};
use axum::extract::State;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tollgate::lanes::{Among, BusyLanes};
use tollgate::{Error, Now, RESERVED_QUEUE, Tollgate};

/// How many limits, queues and lanes are shown.
const SHOWN: usize = 20;
/// How long a look is good.
const KEPT: Duration = Duration::from_secs(1);

/// What was seen last, by namespace: a token that is bound to one is shown no other. One look is made at a
/// time, and who asks meanwhile waits for it.
#[derive(Debug, Default)]
pub(crate) struct Looks(Mutex<HashMap<Option<String>, (Instant, SeenWire)>>);

pub(super) async fn read(
    State(app): Shared,
    caller: Caller,
) -> Result<Json<OverviewWire>, Problem> {
    let seen = app.looks.seen(&app, &caller).await?;
    let uptime_ms = u64::try_from(app.figures.uptime().as_millis()).unwrap_or(u64::MAX);
    Ok(Json(OverviewWire {
        version: env!("CARGO_PKG_VERSION"),
        store: store(&app.gate),
        ready: health::check(&app).is_ok(),
        uptime_ms,
        caller: CallerWire::new(&caller),
        seen,
    }))
}

impl Looks {
    async fn seen(&self, app: &App, caller: &Caller) -> Result<SeenWire, Error> {
        let mut looks = self.0.lock().await;
        // Those of others are dropped with time: there are as many as namespaces that look.
        looks.retain(|_, (at, _)| at.elapsed() < KEPT);
        let namespace = caller.namespace().map(str::to_owned);
        if let Some((_, seen)) = looks.get(&namespace) {
            return Ok(seen.clone());
        }
        let seen = look(app, caller).await?;
        looks.insert(namespace, (Instant::now(), seen.clone()));
        Ok(seen)
    }
}

async fn look(app: &App, caller: &Caller) -> Result<SeenWire, Error> {
    let prefix = caller.bound().map_or("", |namespace| namespace.prefix()).to_owned();
    let limits = Among::All { prefix: prefix.clone(), but: None };
    let meters = app.gate.busiest_meters(&limits, SHOWN).await?;
    let queues = Among::All { prefix, but: Some(RESERVED_QUEUE) };
    let mut lanes = match app.gate.keeps_calls() {
        true => app.gate.busiest_lanes(&queues, SHOWN).await?,
        false => BusyLanes::default(),
    };
    lanes.queues.sort_by(|one, other| {
        (Reverse(one.waiting), &one.name).cmp(&(Reverse(other.waiting), &other.name))
    });
    if lanes.queues.iter().any(|queue| queue.oldest.is_some()) {
        // Calls are named.
        app.gate.lasting().await?;
    }
    let now = now(&app.gate).await?;
    let mut seen = SeenWire::new(now);
    let own = lanes.queues.iter().filter_map(|queue| Some((caller.outer(&queue.name)?, queue)));
    for (place, (name, queue)) in own.enumerate() {
        let asking = app.gate.asking(&queue.name);
        seen.count(queue, asking);
        if place < SHOWN {
            seen.add_queue(name, queue, asking, now);
        }
    }
    lanes.lanes.iter().for_each(|lane| seen.add_lane(caller, lane));
    let biting = meters.into_iter().filter(tollgate::MeterState::bites);
    biting.for_each(|meter| seen.add_meter(caller, meter));
    Ok(seen)
}

/// Where limits and calls are.
fn store(gate: &Tollgate) -> &'static str {
    match (gate.limiter(), gate.keeps_calls(), gate.has_nodes()) {
        (Some(_), _, _) => "memory",
        (None, true, false) => "embedded",
        (None, true, true) => "postgres",
        (None, false, _) => "shared",
    }
}

/// The present, as the gate counts it.
pub(super) async fn now(gate: &Tollgate) -> Result<Now, Error> {
    match gate.limiter() {
        Some(limiter) => Ok(limiter.clock().both()),
        None => gate.now().await,
    }
}
