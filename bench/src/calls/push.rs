//! Calls that the server makes itself: how many a second to one destination and to a thousand, what each
//! costs it, and the time that it adds. Beside it, a bare client that posts the same.

use std::time::{Duration, Instant};

use super::connection::Connection;
use super::on_this_thread;
use super::served::Served;
use super::sink::Sink;
use crate::table::{Table, grouped};

const CALLS: usize = 50_000;
const BATCH: usize = 1_000;
const LANES: usize = 100;
const DESTINATIONS: usize = 1_000;
/// Calls one at a time.
const SINGLE: usize = 1_000;
/// The server rests between them.
const PAUSE: Duration = Duration::from_millis(3);
/// Connections of the bare client: as many as keep the sink busy.
const BARE: usize = 64;

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = ["what", "pushes/s", "server CPU, µs a push"];
    let mut table = Table::new("Calls that the server makes itself, 100 bytes each", &columns);
    for destinations in [1, DESTINATIONS] {
        let (rate, cpu_us) = on_this_thread(run(destinations))?;
        let name =
            format!("{} to {destinations}", if destinations == 1 { "all" } else { "spread" });
        table.add(vec![name, grouped(rate), format!("{cpu_us:.1}")]);
    }
    let bare = on_this_thread(bare())?;
    table.add(vec![
        "a bare client, 64 connections, one thread".to_owned(),
        grouped(bare),
        String::new(),
    ]);
    Ok(table)
}

pub(super) fn measure_latency() -> anyhow::Result<Table> {
    let columns = ["what", "p50, ms", "p99, ms"];
    let mut table = Table::new("A call that nothing blocks, pushed, one at a time", &columns);
    let times = on_this_thread(latency())?;
    table.add(row("handed in until it is at its destination", times.0));
    table.add(row("a bare post", times.1));
    Ok(table)
}

fn row(name: &str, mut times: Vec<Duration>) -> Vec<String> {
    times.sort();
    let at = |share: usize| format!("{:.2}", times[times.len() * share / 100].as_secs_f64() * 1e3);
    vec![name.to_owned(), at(50), at(99)]
}

/// How many a second, if all took so long.
fn rate(took: Duration) -> usize {
    let micros = usize::try_from(took.as_micros()).unwrap_or(usize::MAX).max(1);
    CALLS * 1_000_000 / micros
}

/// The host of a number: each is an address of its own.
fn host(number: usize) -> String {
    format!("127.0.{}.{}", number / 250, 1 + number % 250)
}

async fn run(destinations: usize) -> anyhow::Result<(usize, f64)> {
    let (served, mut sink) = (Served::start()?, Sink::start()?);
    let queue = match destinations {
        1 => format!(r#""http://127.0.0.1:{}/""#, sink.port),
        _ => r#"{"method":"POST"}"#.to_owned(),
    };
    let queue = format!(r#"{{"order":{{"parallel":1000}},"destination":{queue}}}"#);
    served.tell("PUT", "/v1/queues/q", &queue).await?;
    served.tell("POST", "/v1/queues/q/pause", "").await?;
    let body = format!(r#"{{"text":"{}"}}"#, "x".repeat(89));
    let mut connection = served.connect().await?;
    for batch in 0..CALLS / BATCH {
        let calls: Vec<String> = (0..BATCH)
            .map(|nth| {
                let number = batch * BATCH + nth;
                let lane = number % LANES;
                let to = match destinations {
                    1 => String::new(),
                    _ => format!(
                        r#","destination":"http://{}:{}/""#,
                        host(number % destinations),
                        sink.port
                    ),
                };
                format!(r#"{{"lane":"l{lane}","body":{body}{to}}}"#)
            })
            .collect();
        let calls = format!("[{}]", calls.join(","));
        connection.ask("POST", "/v1/queues/q/calls", calls.as_bytes()).await?;
    }
    let (before, began) = (served.cpu_ns()?, Instant::now());
    served.tell("POST", "/v1/queues/q/resume", "").await?;
    let last = sink.wait_for(CALLS).await?;
    let cpu_us = (served.cpu_ns()? - before) as f64 / 1e3 / CALLS as f64;
    Ok((rate(last.duration_since(began)), cpu_us))
}

async fn bare() -> anyhow::Result<usize> {
    let sink = Sink::start()?;
    let body = vec![b'x'; 100];
    let began = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..BARE {
        let (address, body) = (([127, 0, 0, 1], sink.port).into(), body.clone());
        clients.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for _ in 0..CALLS / BARE {
                connection.ask("POST", "/", &body).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(rate(began.elapsed()))
}

async fn latency() -> anyhow::Result<(Vec<Duration>, Vec<Duration>)> {
    let (served, mut sink) = (Served::start()?, Sink::start()?);
    let queue = format!(r#"{{"destination":"http://127.0.0.1:{}/"}}"#, sink.port);
    served.tell("PUT", "/v1/queues/q", &queue).await?;
    let mut producer = served.connect().await?;
    let mut straight = Connection::open(([127, 0, 0, 1], sink.port).into()).await?;
    let (mut pushed, mut posted) = (Vec::new(), Vec::new());
    for nth in 0..SINGLE {
        tokio::time::sleep(PAUSE).await;
        let call = format!(r#"{{"lane":"l{}","body":{{"n":{nth}}}}}"#, nth % 10);
        let began = Instant::now();
        producer.send("POST", "/v1/queues/q/calls", call.as_bytes()).await?;
        pushed.push(sink.wait_for(1).await?.duration_since(began));
        producer.receive().await?;
        let began = Instant::now();
        straight.send("POST", "/", call.as_bytes()).await?;
        posted.push(sink.wait_for(1).await?.duration_since(began));
        straight.receive().await?;
    }
    Ok((pushed, posted))
}
