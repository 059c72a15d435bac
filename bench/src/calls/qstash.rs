//! The QStash API: how many messages a second it takes, the time from publish to delivery, and the drain of
//! many messages over many keys, with every window of every key looked at afterwards.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::connection::{Connection, texts};
use super::on_this_thread;
use super::served::Served;
use super::sink::Sink;
use crate::table::{Table, grouped};

/// Messages that are published to see how many are taken; they are for later.
const PUBLISHED: usize = 20_000;
/// Messages of a batch.
const BATCH: usize = 100;
/// Connections of producers that each send one at a time.
const PRODUCERS: usize = 64;
/// Messages one at a time.
const SINGLE: usize = 1_000;
/// The server rests between them.
const PAUSE: Duration = Duration::from_millis(3);

/// The drain: so many messages of so many keys, each of which lets so many start a second.
const MESSAGES: usize = 500_000;
const KEYS: usize = 100;
const RATE: usize = 100;
const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = ["what", "messages/s", "server CPU, µs a message"];
    let mut table = Table::new("Messages that are published, 100 bytes each", &columns);
    for (name, producers, batch) in
        [("one producer", 1, 1), ("64 producers", PRODUCERS, 1), ("in batches of 100", 4, BATCH)]
    {
        let (rate, cpu_us) = on_this_thread(publish(producers, batch))?;
        table.add(vec![name.to_owned(), grouped(rate), format!("{cpu_us:.1}")]);
    }
    Ok(table)
}

pub(super) fn measure_latency() -> anyhow::Result<Table> {
    let columns = ["what", "p50, ms", "p99, ms"];
    let mut table = Table::new("A message that nothing blocks, one at a time", &columns);
    let mut times = on_this_thread(latency())?;
    times.sort();
    let at = |share: usize| format!("{:.2}", times[times.len() * share / 100].as_secs_f64() * 1e3);
    table.add(vec!["published until it is at its destination".to_owned(), at(50), at(99)]);
    Ok(table)
}

pub(super) fn measure_drain() -> anyhow::Result<Table> {
    let columns =
        ["what", "shortest, s", "real, s", "share", "starts in history", "windows", "over"];
    let mut table = Table::new("500,000 messages of 100 keys, each 100 a second", &columns);
    let drained = on_this_thread(drain())?;
    // The first window opens with the first start, and the last is as good as over when it opens.
    let shortest = (MESSAGES / KEYS / RATE - 1) as f64;
    let real = drained.took.as_secs_f64();
    table.add(vec![
        "first arrival to last".to_owned(),
        format!("{shortest:.2}"),
        format!("{real:.2}"),
        format!("{:.2} %", 100.0 * shortest / real),
        grouped(drained.starts),
        grouped(drained.windows),
        grouped(drained.over),
    ]);
    Ok(table)
}

fn headers(more: &str) -> String {
    format!("content-type: application/json\r\n{more}")
}

fn body() -> String {
    format!(r#"{{"text":"{}"}}"#, "x".repeat(89))
}

/// Each message is for later, so that deliveries do not take part.
async fn publish(producers: usize, batch: usize) -> anyhow::Result<(usize, f64)> {
    let served = Served::start()?;
    let (before, began) = (served.cpu_ns()?, Instant::now());
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..producers {
        let address = served.address;
        clients.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let (path, headers, body) = match batch {
                1 => ("/v2/publish/http://127.0.0.1:9/a", headers("upstash-delay: 1h\r\n"), body()),
                _ => ("/v2/batch", headers(""), batch_of(batch, "", |_| 0)),
            };
            for _ in 0..PUBLISHED / producers / batch {
                connection.ask_with("POST", path, &headers, body.as_bytes()).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let micros = usize::try_from(began.elapsed().as_micros()).unwrap_or(usize::MAX).max(1);
    let cpu_us = (served.cpu_ns()? - before) as f64 / 1e3 / PUBLISHED as f64;
    Ok((PUBLISHED * 1_000_000 / micros, cpu_us))
}

/// So many messages; those without a port are for later, the others have the key of their number.
fn batch_of(count: usize, port: &str, key: impl Fn(usize) -> usize) -> String {
    let text = body().replace('"', "\\\"");
    let one = |nth: usize| {
        let key = key(nth);
        let (to, said) = match port {
            "" => ("9".to_owned(), r#""upstash-delay":"1h""#.to_owned()),
            port => (
                format!("{port}/k{key}"),
                format!(
                    r#""upstash-flow-control-key":"k{key}","upstash-flow-control-value":"rate={RATE},period=1s""#
                ),
            ),
        };
        format!(
            r#"{{"destination":"http://127.0.0.1:{to}","headers":{{"content-type":"application/json",{said}}},"body":"{text}"}}"#
        )
    };
    format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","))
}

async fn latency() -> anyhow::Result<Vec<Duration>> {
    let (served, mut sink) = (Served::start()?, Sink::start()?);
    let mut producer = served.connect().await?;
    let (path, body) = (format!("/v2/publish/http://127.0.0.1:{}/a", sink.port), body());
    let mut times = Vec::new();
    for nth in 0..SINGLE {
        tokio::time::sleep(PAUSE).await;
        let key = format!(
            "upstash-flow-control-key: k{}\r\nupstash-flow-control-value: rate=1000\r\n",
            nth % 10
        );
        let began = Instant::now();
        producer.send_with("POST", &path, &headers(&key), body.as_bytes()).await?;
        times.push(sink.wait_for(1).await?.duration_since(began));
        producer.receive().await?;
    }
    Ok(times)
}

struct Drained {
    took: Duration,
    starts: usize,
    windows: usize,
    over: usize,
}

async fn drain() -> anyhow::Result<Drained> {
    let (served, mut sink) = (Served::start()?, Sink::start()?);
    let mut producer = served.connect().await?;
    // The queue is there once something was published.
    let warm = format!("/v2/publish/http://127.0.0.1:{}/warm", sink.port);
    producer.ask_with("POST", &warm, &headers(""), b"{}").await?;
    sink.wait_for(1).await?;
    served.tell("POST", "/v1/queues/qstash/pause", "").await?;
    let size = 1_000;
    for batch in 0..MESSAGES / size {
        let batch = batch_of(size, &sink.port.to_string(), |nth| (batch * size + nth) % KEYS);
        producer.ask_with("POST", "/v2/batch", &headers(""), batch.as_bytes()).await?;
    }
    served.tell("POST", "/v1/queues/qstash/resume", "").await?;
    let first = sink.wait_for(1).await?;
    let last = sink.wait_for(MESSAGES - 1).await?;
    let starts = starts(&served).await?;
    let (windows, over) = starts
        .values()
        .map(|starts| windows(starts))
        .fold((0, 0), |(windows, over), (more, more_over)| (windows + more, over + more_over));
    let starts = starts.values().map(Vec::len).sum();
    Ok(Drained { took: last.duration_since(first), starts, windows, over })
}

/// When messages of each key started, from the history.
async fn starts(served: &Served) -> anyhow::Result<BTreeMap<String, Vec<u64>>> {
    let mut starts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let (mut before, mut found) = (None, 0);
    // History is written a moment later, and may have gaps: it waits for nobody.
    while before != Some(found) {
        before = Some(found);
        starts.clear();
        let mut after = String::new();
        let mut connection = served.connect().await?;
        loop {
            let path = format!("/v1/history?queue=qstash&limit=1000{after}");
            let page = connection.ask("GET", &path, b"").await?;
            for event in std::str::from_utf8(page)?.split("{\"at\":").skip(1) {
                let (key, started) =
                    (texts(event.as_bytes(), "lane"), texts(event.as_bytes(), "started"));
                if let ([key, ..], [started, ..]) = (&key[..], &started[..])
                    && key.starts_with('k')
                {
                    starts.entry((*key).to_owned()).or_default().push(nanos(started)?);
                }
            }
            let next = texts(page, "next");
            let Some(next) = next.first() else { break };
            after = format!("&after={next}");
        }
        found = starts.values().map(Vec::len).sum();
    }
    Ok(starts)
}

/// The nanoseconds of a day at an instant such as `2026-11-15T04:11:59.848112498Z`.
fn nanos(instant: &str) -> anyhow::Result<u64> {
    let (day, time) = instant.trim_end_matches('Z').split_once('T').context("no instant")?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let parts = time.split(':').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [hours, minutes, seconds] = parts[..] else { anyhow::bail!("no time: {instant}") };
    let day: u64 = day.rsplit('-').next().context("no day")?.parse()?;
    let seconds = ((day * 24 + hours) * 60 + minutes) * 60 + seconds;
    Ok(seconds * SECOND_NS + format!("{fraction:0<9}").parse::<u64>()?)
}

/// How many windows a key had, and how many of them let more start than they may.
fn windows(starts: &[u64]) -> (usize, usize) {
    let mut sorted = starts.to_vec();
    sorted.sort_unstable();
    let (mut windows, mut over, mut opened, mut count) = (0, 0, None, 0);
    for start in sorted {
        if opened.is_none_or(|opened| start >= opened + SECOND_NS) {
            (opened, count) = (Some(start), 0);
            windows += 1;
        }
        count += 1;
        over += usize::from(count == RATE + 1);
    }
    (windows, over)
}
