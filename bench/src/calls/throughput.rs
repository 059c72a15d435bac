//! Enqueue, claim and settle as fast as can be, in batches of clients.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::connection::{Connection, texts};
use super::on_this_thread;
use super::served::Served;
use crate::table::{Table, grouped};

const LANES: usize = 100;

/// How calls are sent and fetched.
#[derive(Clone, Copy)]
struct Row {
    /// Calls in a request.
    batch: usize,
    calls: usize,
    /// Connections that hand in, and as many that work.
    connections: usize,
    must: usize,
}

const ROWS: [Row; 3] = [
    Row { batch: 1_000, calls: 400_000, connections: 4, must: 70_000 },
    Row { batch: 100, calls: 300_000, connections: 8, must: 40_000 },
    Row { batch: 1, calls: 60_000, connections: 64, must: 10_000 },
];
const ROUNDS: usize = 3;

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = ["batch", "calls/s, best", "calls/s, median", "must", "server CPU, µs a call"];
    let mut table = Table::new("Enqueue, claim and settle over HTTP, synced to disk", &columns);
    for row in ROWS {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(run(row)?);
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

/// Calls a second, and microseconds of the server for a call.
fn run(row: Row) -> anyhow::Result<(usize, f64)> {
    let served = Served::start()?;
    on_this_thread(async {
        served.tell("PUT", "/v1/queues/q", r#"{"order":{"parallel":100000}}"#).await?;
        let (handed_in, settled) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (began, before) = (Instant::now(), served.cpu_ns()?);
        let mut clients = tokio::task::JoinSet::new();
        for _ in 0..row.connections {
            clients.spawn(produce(Connection::open(served.address).await?, row, handed_in.clone()));
            clients.spawn(work(Connection::open(served.address).await?, row, settled.clone()));
        }
        while let Some(client) = clients.join_next().await {
            client??;
        }
        let (micros, cpu) =
            (usize::try_from(began.elapsed().as_micros())?, served.cpu_ns()? - before);
        Ok((row.calls * 1_000_000 / micros.max(1), cpu as f64 / 1e3 / row.calls as f64))
    })
}

async fn produce(
    mut connection: Connection,
    row: Row,
    handed_in: Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let mut body = String::new();
    loop {
        let first = handed_in.fetch_add(row.batch, Ordering::Relaxed);
        if first >= row.calls {
            return Ok(());
        }
        body.clear();
        for nth in first..first + row.batch {
            let comma = if nth == first { '[' } else { ',' };
            let lane = nth % LANES;
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
