//! Workers that wait for calls which do not come: what they cost the server.

use std::time::{Duration, Instant};

use super::on_this_thread;
use super::served::Served;
use crate::table::{Table, grouped};

const WORKERS: usize = 10_000;
const WATCHED: Duration = Duration::from_secs(10);

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = [
        "claims that wait",
        "server CPU, % of a core",
        "bytes a claim",
        "woken by a call after, ms",
    ];
    let mut table = Table::new("Claims that wait", &columns);
    let served = Served::start()?;
    table.add(on_this_thread(run(&served))?);
    Ok(table)
}

async fn run(served: &Served) -> anyhow::Result<Vec<String>> {
    served.tell("PUT", "/v1/queues/q", "{}").await?;
    let mut idle = Vec::with_capacity(WORKERS);
    let empty = served.resident_bytes()?;
    for _ in 0..WORKERS {
        let mut connection = served.connect().await?;
        connection.send("POST", "/v1/queues/q/claim", br#"{"wait":"10m"}"#).await?;
        idle.push(connection);
    }
    while !served.tell("GET", "/v1/queues/q", "").await?.contains(r#""asking":10000"#) {}
    let bytes = (served.resident_bytes()? - empty) / WORKERS as u64;
    let before = served.cpu_ns()?;
    tokio::time::sleep(WATCHED).await;
    let cpu = (served.cpu_ns()? - before) as f64 / WATCHED.as_nanos() as f64;
    let began = Instant::now();
    let handed_in = served.tell("POST", "/v1/queues/q/calls", r#"{"lane":"a"}"#).await?;
    anyhow::ensure!(handed_in.contains("ids"), "{handed_in}");
    // The first who came is the first who is served.
    let answer = idle[0].receive().await?;
    anyhow::ensure!(answer.windows(5).any(|bytes| bytes == b"lease"), "the wrong one was woken");
    let woken = began.elapsed().as_secs_f64() * 1e3;
    Ok(vec![
        grouped(WORKERS),
        format!("{:.2}", cpu * 100.0),
        grouped(usize::try_from(bytes)?),
        format!("{woken:.2}"),
    ])
}
