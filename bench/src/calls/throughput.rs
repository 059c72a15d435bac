//! Enqueue, claim and settle as fast as can be, in batches of clients.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::connection::{Connection, texts};
use super::on_this_thread;
use super::served::{Served, schema};
use crate::table::{Table, grouped};

/// How calls are sent and fetched.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Calls in a request.
    pub(super) batch: usize,
    pub(super) calls: usize,
    pub(super) lanes: usize,
    /// Connections that hand in, and as many that work.
    pub(super) connections: usize,
    pub(super) must: usize,
}

/// How far clients are.
#[derive(Clone, Default)]
pub(super) struct Progress {
    pub(super) handed_in: Arc<AtomicUsize>,
    pub(super) settled: Arc<AtomicUsize>,
}

const ROWS: [Row; 3] = [
    Row { batch: 1_000, calls: 400_000, lanes: 100, connections: 4, must: 70_000 },
    Row { batch: 100, calls: 300_000, lanes: 100, connections: 8, must: 40_000 },
    Row { batch: 1, calls: 60_000, lanes: 100, connections: 64, must: 10_000 },
];
const ROWS_OF_NODES: [Row; 3] = [
    Row { batch: 1_000, calls: 500_000, lanes: 100, connections: 4, must: 15_000 },
    Row { batch: 1_000, calls: 500_000, lanes: 100_000, connections: 4, must: 10_000 },
    Row { batch: 1_000, calls: 100_000, lanes: 100_000, connections: 4, must: 6_000 },
];
const ROUNDS: usize = 3;
/// How many calls wait at most.
const AHEAD_MAX: usize = 500_000;

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = ["batch", "calls/s, best", "calls/s, median", "must", "server CPU, µs a call"];
    let mut table = Table::new("Enqueue, claim and settle over HTTP, synced to disk", &columns);
    for row in ROWS {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(run(row, &[Served::start()?])?);
        }
        rounds.sort_by_key(|(rate, _)| std::cmp::Reverse(*rate));
        let (best, median) = (rounds[0], rounds[ROUNDS / 2]);
        table.add(vec![
            grouped(row.batch),
            grouped(best.0),
            grouped(median.0),
            grouped(row.must),
            format!("{:.1}", median.1),
        ]);
    }
    Ok(table)
}

/// Servers that share a database.
pub(super) fn measure_nodes() -> anyhow::Result<Table> {
    let columns = ["lanes × calls", "servers", "calls/s", "must", "servers' CPU, µs a call"];
    let mut table = Table::new("Enqueue, claim and settle over HTTP, in PostgreSQL", &columns);
    for row in ROWS_OF_NODES {
        for nodes in [1, 4] {
            let (rate, cpu) = run(row, &Served::start_nodes(nodes, &schema())?)?;
            table.add(vec![
                format!("{} × {}", grouped(row.lanes), grouped(row.calls / row.lanes)),
                nodes.to_string(),
                grouped(rate),
                grouped(row.must),
                format!("{cpu:.1}"),
            ]);
        }
    }
    Ok(table)
}

/// Calls a second, and microseconds of the servers for a call. Clients go round the servers.
fn run(row: Row, served: &[Served]) -> anyhow::Result<(usize, f64)> {
    let cpu_ns = || served.iter().map(Served::cpu_ns).sum::<anyhow::Result<u64>>();
    on_this_thread(async {
        served[0].tell("PUT", "/v1/queues/q", r#"{"order":{"parallel":100000}}"#).await?;
        let progress = Progress::default();
        let (began, before) = (Instant::now(), cpu_ns()?);
        let mut clients = clients(row, served, &progress).await?;
        while let Some(client) = clients.join_next().await {
            client??;
        }
        let (micros, cpu) =
            (usize::try_from(began.elapsed().as_micros())?, cpu_ns()?.saturating_sub(before));
        Ok((row.calls * 1_000_000 / micros.max(1), cpu as f64 / 1e3 / row.calls as f64))
    })
}

/// Clients that hand in and work until all calls are settled.
pub(super) async fn clients(
    row: Row,
    served: &[Served],
    progress: &Progress,
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut clients = JoinSet::new();
    for server in served.iter().cycle().take(row.connections) {
        clients.spawn(produce(server.connect().await?, row, progress.clone()));
        clients.spawn(work(server.connect().await?, row, progress.settled.clone()));
    }
    Ok(clients)
}

async fn produce(
    mut connection: Connection,
    row: Row,
    Progress { handed_in, settled }: Progress,
) -> anyhow::Result<()> {
    let mut body = String::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(1));
    loop {
        while handed_in.load(Ordering::Relaxed) > settled.load(Ordering::Relaxed) + AHEAD_MAX {
            ticks.tick().await;
        }
        let first = handed_in.fetch_add(row.batch, Ordering::Relaxed);
        if first >= row.calls {
            return Ok(());
        }
        body.clear();
        for nth in first..first + row.batch {
            let comma = if nth == first { '[' } else { ',' };
            let lane = nth % row.lanes;
            write!(
                body,
                r#"{comma}{{"lane":"tenant-{lane}","body":{{"order":{nth},"amount":4200,"currency":"eur","reference":"a payment of the bench"}}}}"#
            )?;
        }
        body.push(']');
        connection.ask("POST", "/v1/queues/q/calls", body.as_bytes()).await?;
    }
}

async fn work(
    mut connection: Connection,
    row: Row,
    settled: Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let mut leases: Vec<String> = Vec::new();
    let mut body = String::new();
    while settled.load(Ordering::Relaxed) < row.calls {
        body.clear();
        write!(body, r#"{{"max":{},"wait":"100ms","settle":["#, row.batch)?;
        for (nth, lease) in leases.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(body, r#"{comma}{{"lease":"{lease}","outcome":"done"}}"#)?;
        }
        body.push_str("]}");
        let answer = connection.ask("POST", "/v1/queues/q/claim", body.as_bytes()).await?;
        settled.fetch_add(leases.len(), Ordering::Relaxed);
        leases = texts(answer, "lease").into_iter().map(str::to_owned).collect();
    }
    Ok(())
}
