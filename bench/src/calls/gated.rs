//! Tenants whose calls wait for their limits, drained over HTTP: the share of the rate that is used, and
//! what the server pays for a call.

use std::fmt::Write as _;
use std::time::Instant;

use super::connection::texts;
use super::on_this_thread;
use super::served::Served;
use crate::table::Table;

const TENANTS: usize = 50;
const CALLS: usize = 2_000;
const RATE: usize = 100;
const BATCH: usize = 100;

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = [
        "tenants × calls",
        "seconds",
        "shortest possible",
        "share of the rate",
        "server CPU, µs a call",
    ];
    let mut table = Table::new("A gated drain over HTTP, 100/s a tenant, batches of 100", &columns);
    let served = Served::start()?;
    let (seconds, cpu_us) = on_this_thread(run(&served))?;
    // The bucket is full when the drain begins.
    let shortest = (CALLS - RATE) as f64 / RATE as f64;
    table.add(vec![
        format!("{TENANTS} × {CALLS}"),
        format!("{seconds:.3}"),
        format!("{shortest:.3}"),
        format!("{:.2} %", 100.0 * shortest / seconds),
        format!("{cpu_us:.1}"),
    ]);
    Ok(table)
}

async fn run(served: &Served) -> anyhow::Result<(f64, f64)> {
    served
        .tell("PUT", "/v1/limits/api", r#"{"rule":"token_bucket","limit":100,"per":"1s"}"#)
        .await?;
    served.tell("PUT", "/v1/queues/q", r#"{"order":{"parallel":1000}}"#).await?;
    let before = served.cpu_ns()?;
    let mut connection = served.connect().await?;
    for tenant in 0..TENANTS {
        for _ in 0..CALLS / BATCH {
            let call = format!(
                r#"{{"lane":"t{tenant}","body":{{"n":1}},"tolls":[{{"limit":"api","partition":"t{tenant}"}}]}}"#
            );
            let body = format!("[{}]", vec![call; BATCH].join(","));
            connection.ask("POST", "/v1/queues/q/calls", body.as_bytes()).await?;
        }
    }
    let began = Instant::now();
    let (mut done, mut leases, mut body) = (0, Vec::<String>::new(), String::new());
    while done < TENANTS * CALLS {
        body.clear();
        write!(body, r#"{{"max":{BATCH},"wait":"1s","settle":["#)?;
        for (nth, lease) in leases.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(body, r#"{comma}{{"lease":"{lease}","outcome":"done"}}"#)?;
        }
        body.push_str("]}");
        let answer = connection.ask("POST", "/v1/queues/q/claim", body.as_bytes()).await?;
        leases = texts(answer, "lease").into_iter().map(str::to_owned).collect();
        done += leases.len();
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok((seconds, (served.cpu_ns()? - before) as f64 / 1e3 / (TENANTS * CALLS) as f64))
}
