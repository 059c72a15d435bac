//! `/metrics`: what Prometheus is told, of the server, its store, its queues and its limits.

mod catalog;
mod exposition;
mod met;
mod table;

pub use catalog::{Metric, metrics};

use self::catalog as metric;
use self::exposition::{CONTENT_TYPE as TEXT, Exposition};
use self::table::{Column, Row, Table};
use super::caller::Caller;
use super::{App, Shared, health};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use tollgate::lanes::{
    EndCounts, LimitTotals, OutcomeCounts, PAGE_MAX, QueueTotals, StoreTotals, Totals,
};
use tollgate::{Error, Load, RESERVED_QUEUE};

/// How many limits are asked for how busy they are at once: the store does nothing else meanwhile.
const LOADS_AT_ONCE: usize = 1_000;

/// All that is counted. Who is bound to a namespace is told of their queues and limits alone. A store
/// that cannot answer is left out, for the rest is most wanted then.
pub(super) async fn read(State(app): Shared, caller: Caller) -> impl IntoResponse {
    let mut page = Exposition::default();
    if caller.namespace().is_none() {
        write_server(&app, &mut page);
    }
    if let Err(error) = write_gate(&app, &caller, &mut page).await {
        tracing::warn!(%error, "the store could not be asked for its metrics");
    }
    ([(CONTENT_TYPE, TEXT)], page.into_text())
}

fn write_server(app: &App, page: &mut Exposition) {
    let one = |page: &mut Exposition, metric: &Metric, value| {
        page.begin(metric);
        page.value(metric, &[], value);
    };
    page.begin(&metric::BUILD);
    page.value(&metric::BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    one(page, &metric::UPTIME, app.figures.uptime().as_nanos());
    one(page, &metric::READY, u128::from(health::check(app).is_ok()));
    let connections = app.figures.connections.load(Ordering::Relaxed);
    one(page, &metric::CONNECTIONS, connections as u128);
    page.begin(&metric::RESPONSES);
    let fine = ("200".to_owned(), "ok", app.figures.fine());
    let problems = app.figures.problems();
    let problems = problems.map(|(kind, count)| (kind.status().to_string(), kind.code(), count));
    for (status, code, count) in [fine].into_iter().chain(problems) {
        page.value(&metric::RESPONSES, &[("status", &status), ("code", code)], count.into());
    }
    one(page, &metric::SPANS_DROPPED, app.traces.dropped().into());
}

async fn write_gate(app: &App, caller: &Caller, page: &mut Exposition) -> Result<(), Error> {
    if app.gate.limiter().is_none() && caller.namespace().is_none() {
        page.begin(&metric::STORE_FAILURES);
        // A folder that fails ends the server.
        let failures = app.gate.store_failures().unwrap_or_default();
        page.value(&metric::STORE_FAILURES, &[], failures.into());
    }
    if !app.gate.keeps_calls() {
        let limits = app.gate.limits().await?;
        let limits = limits.iter().map(|limit| (&*limit.name, None)).collect();
        return write_limits(app, caller, page, limits).await;
    }
    let Totals { queues, limits, store } = app.gate.totals().await?;
    if caller.namespace().is_none() {
        page.begin(&metric::STORE_OLDEST);
        let oldest = app.gate.oldest_transaction().unwrap_or_default();
        page.value(&metric::STORE_OLDEST, &[], oldest.as_nanos().into());
        write_store(&store, page);
    }
    write_queues(app, caller, page, &queues).await?;
    let limits = limits.iter().map(|(name, totals)| (&**name, Some(totals))).collect();
    write_limits(app, caller, page, limits).await
}

fn write_store(store: &StoreTotals, page: &mut Exposition) {
    page.begin(&metric::COMMITS);
    page.value(&metric::COMMITS, &[], store.commits.into());
    page.begin(&metric::WRITTEN);
    page.value(&metric::WRITTEN, &[], store.bytes.into());
    page.begin(&metric::COMMIT);
    page.histogram(&metric::COMMIT, &[], &store.commit_time);
}

async fn write_queues(
    app: &App,
    caller: &Caller,
    page: &mut Exposition,
    queues: &[QueueTotals],
) -> Result<(), Error> {
    let paused = paused_queues(app).await?;
    let own = queues.iter().filter_map(|queue| Some((queue, caller.outer(&queue.name)?)));
    let shown = own.filter(|(queue, _)| !queue.name.starts_with(RESERVED_QUEUE));
    let shown: Vec<_> = shown.collect();
    let rows = shown.iter().map(|(queue, name)| {
        let is_paused = paused.contains(queue.name.as_str());
        let now = [app.gate.asking(&queue.name) as u64, is_paused.into()];
        let values = now.into_iter().chain(queue_values(queue)).map(u128::from).collect();
        let histograms = vec![queue.counts.dwell.clone(), queue.counts.lateness.clone()];
        Row { name: (*name).to_owned(), at: None, values, histograms }
    });
    let histograms = &[&metric::QUEUE_DWELL, &metric::QUEUE_LATENESS];
    let table =
        Table { label: "queue", columns: queue_columns(), histograms, rows: rows.collect() };
    table.write(page);
    met::write(&shown, caller, page);
    Ok(())
}

/// The columns of a queue, in the order of what is asked for here and of [`queue_values`].
fn queue_columns() -> Vec<Column> {
    let settled = ["done", "failed", "released", "dead", "limited", "crashed", "cancelled"];
    let ended = ["done", "dead", "cancelled", "expired", "superseded", "dropped"];
    let plain = [
        &metric::QUEUE_ASKING,
        &metric::QUEUE_PAUSED,
        &metric::QUEUE_WAITING,
        &metric::QUEUE_IN_FLIGHT,
        &metric::QUEUE_DEAD,
        &metric::QUEUE_ENQUEUED,
        &metric::QUEUE_STARTED,
        &metric::QUEUE_RETRIES,
        &metric::QUEUE_REVIVED,
    ];
    let settled = settled.map(|outcome| Column::with(&metric::QUEUE_SETTLED, outcome));
    let ended = ended.map(|end| Column::with(&metric::QUEUE_ENDED, end));
    plain.map(Column::of).into_iter().chain(settled).chain(ended).collect()
}

fn queue_values(queue: &QueueTotals) -> impl Iterator<Item = u64> {
    let counts = &queue.counts;
    let plain = [queue.waiting, queue.in_flight, queue.dead];
    let counted = [counts.enqueued, counts.started, counts.retries, counts.revived];
    let OutcomeCounts { done, failed, released, dead, limited, crashed, cancelled } =
        counts.settled;
    let settled = [done, failed, released, dead, limited, crashed, cancelled];
    let EndCounts { done, dead, cancelled, expired, superseded, dropped } = counts.ended;
    let ended = [done, dead, cancelled, expired, superseded, dropped];
    plain.into_iter().chain(counted).chain(settled).chain(ended)
}

/// The queues that an operator holds back.
async fn paused_queues(app: &App) -> Result<HashSet<String>, Error> {
    let (mut paused, mut after) = (HashSet::new(), None::<String>);
    loop {
        let queues = app.gate.queues(after.as_deref(), PAGE_MAX).await?;
        let held = queues.iter().filter(|queue| queue.is_paused);
        paused.extend(held.map(|queue| queue.name.as_str().to_owned()));
        match queues.last() {
            Some(last) if queues.len() == PAGE_MAX => after = Some(last.name.as_str().to_owned()),
            _ => return Ok(paused),
        }
    }
}

async fn write_limits(
    app: &App,
    caller: &Caller,
    page: &mut Exposition,
    limits: Vec<(&str, Option<&LimitTotals>)>,
) -> Result<(), Error> {
    let own =
        limits.into_iter().filter_map(|(name, totals)| Some((name, caller.outer(name)?, totals)));
    let own: Vec<_> = own.collect();
    // Nothing is counted where there are limits alone.
    let is_counted = own.iter().any(|(_, _, totals)| totals.is_some());
    let mut rows = Vec::with_capacity(own.len());
    for some in own.chunks(LOADS_AT_ONCE) {
        let names: Vec<&str> = some.iter().map(|(inner, _, _)| *inner).collect();
        let loads = app.gate.loads(&names).await?;
        for ((_, name, totals), load) in some.iter().zip(loads) {
            let values = limit_values(load.unwrap_or_default(), *totals);
            let (name, at) = ((*name).to_owned(), None);
            rows.push(Row { name, at, values, histograms: Vec::new() });
        }
    }
    let columns = limit_columns(is_counted);
    Table { label: "limit", columns, histograms: &[], rows }.write(page);
    Ok(())
}

/// The columns of a limit, in the order of [`limit_values`].
fn limit_columns(is_counted: bool) -> Vec<Column> {
    let now = [&metric::LIMIT_WAITING, &metric::LIMIT_IN_FLIGHT, &metric::LIMIT_CLOSED];
    let counted = [
        &metric::LIMIT_ADMITTED,
        &metric::LIMIT_GRANTED,
        &metric::LIMIT_THROTTLED,
        &metric::LIMIT_WANTED,
        &metric::LIMIT_BLOCKED,
    ];
    let counted = counted.into_iter().filter(|_| is_counted);
    now.into_iter().chain(counted).map(Column::of).collect()
}

fn limit_values(load: Load, totals: Option<&LimitTotals>) -> Vec<u128> {
    let Load { waiting, in_flight, is_closed } = load;
    let now = [waiting.into(), in_flight.into(), u128::from(is_closed)];
    let counted = totals.map(|LimitTotals { admitted, refused, waited_ns }| {
        let tallies = [admitted.count, admitted.weight, refused.count, refused.weight];
        tallies.map(u128::from).into_iter().chain([*waited_ns])
    });
    now.into_iter().chain(counted.into_iter().flatten()).collect()
}
