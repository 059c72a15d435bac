//! Limits in stores that processes share: decisions a second, beside the store's own round trips.

mod peer;

use crate::table::{Table, grouped};
use peer::{Nats, Postgres, Redis, Round};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tollgate::shared::Cells;
use tollgate::{Limit, Span, Tollgate, toll};
use tollgate_stores::nats::{self, NatsCells};
use tollgate_stores::postgres::{self, PostgresCells};
use tollgate_stores::redis::{self, RedisCells};

/// How long each row runs.
const TIME: Duration = Duration::from_secs(3);
/// Tasks that ask at a time.
const TASKS: usize = 256;
/// Keys of the rows with many.
const KEYS: usize = 100_000;

/// Measures the store of a url.
pub(crate) fn measure(url: &str) -> anyhow::Result<Table> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build()?.block_on(async {
        let name = format!("bench-{}", std::process::id());
        match url.split_once("://").map(|(scheme, _)| scheme) {
            Some("redis") => {
                let settings = redis::Settings { prefix: name, ..redis::Settings::default() };
                let cells = Arc::new(RedisCells::connect(url, settings).await?);
                let peers = Redis::connect(url).await?;
                rows(
                    "Redis",
                    cells,
                    vec![
                        ("INCR, a connection a task", peers.incr_apart(url).await?),
                        ("INCR, one connection", peers.incr()),
                        ("a script a request", peers.script()),
                    ],
                )
                .await
            }
            Some("postgres" | "postgresql") => {
                let schema = name.replace('-', "_");
                let settings = postgres::Settings { schema, ..postgres::Settings::default() };
                let cells = Arc::new(PostgresCells::connect(url, settings).await?);
                let peers = Postgres::connect(url).await?;
                rows("PostgreSQL", cells, vec![("SELECT 1", peers.select())]).await
            }
            Some("nats") => {
                let settings = nats::Settings { bucket: name.clone(), ..nats::Settings::default() };
                let cells = Arc::new(NatsCells::connect(url, settings).await?);
                let peers = Nats::connect(url, &name).await?;
                rows("NATS", cells, vec![("KV get", peers.get())]).await
            }
            _ => anyhow::bail!("{url}: give a url of redis://, postgres:// or nats://"),
        }
    })
}

async fn rows(
    title: &'static str,
    cells: Arc<dyn Cells>,
    peers: Vec<(&'static str, Round)>,
) -> anyhow::Result<Table> {
    let columns = ["", "1 task, 1 key", "256 tasks, 1 key", "256 tasks, 100,000 keys"];
    let mut table = Table::new(title, &columns);
    for (name, round) in peers {
        table.add(row(name, &round).await?);
    }
    let gate = Tollgate::builder().share(cells)?;
    // Never refused: what is measured is the way, and a refusal is a shorter one.
    let limit = Limit::per_second(1_000_000_000);
    gate.limit("bench", limit.clone()).await?;
    gate.limit("bench-ahead", limit.ahead(Span::from_millis(20))).await?;
    table.add(row("tollgate", &asks(&gate, "bench")).await?);
    table.add(row("tollgate, taken ahead", &asks(&gate, "bench-ahead")).await?);
    Ok(table)
}

/// Asks at a partition of a limit.
fn asks(gate: &Tollgate, limit: &'static str) -> Round {
    let gate = gate.clone();
    Arc::new(move |key| {
        let gate = gate.clone();
        Box::pin(async move {
            let _pass = gate.consume(toll(limit, &format!("key-{key}"))).await?;
            Ok(())
        })
    })
}

async fn row(name: &str, round: &Round) -> anyhow::Result<Vec<String>> {
    let mut cells = vec![name.to_owned()];
    for (tasks, keys) in [(1, 1), (TASKS, 1), (TASKS, KEYS)] {
        visit(round, tasks, keys).await?;
        let rate = rate(round, tasks, keys).await?;
        cells.push(format!("{} /s", grouped(usize::try_from(rate)?)));
    }
    Ok(cells)
}

/// Goes to each key once, so that all are there.
async fn visit(round: &Round, tasks: usize, keys: usize) -> anyhow::Result<()> {
    let under_way: Vec<_> = (0..tasks)
        .map(|task| {
            let round = round.clone();
            tokio::spawn(async move {
                for key in (task..keys).step_by(tasks) {
                    round(key).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in under_way {
        task.await??;
    }
    Ok(())
}

/// How often a second so many tasks get through, each again and again.
async fn rate(round: &Round, tasks: usize, keys: usize) -> anyhow::Result<u64> {
    let (done, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let under_way: Vec<_> = (0..tasks)
        .map(|task| {
            let (round, done, is_over) = (round.clone(), done.clone(), is_over.clone());
            tokio::spawn(async move {
                // Visited far apart, each task from another place.
                let mut key = task * (keys / tasks.max(1));
                while !is_over.load(Ordering::Relaxed) {
                    round(key).await?;
                    key = (key + 7_919) % keys;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            })
        })
        .collect();
    tokio::time::sleep(TIME).await;
    is_over.store(true, Ordering::Relaxed);
    for task in under_way {
        task.await??;
    }
    let elapsed = u64::try_from(began.elapsed().as_millis())?.max(1);
    Ok(done.load(Ordering::Relaxed) * 1_000 / elapsed)
}

/// What is done again and again, for a key.
pub(crate) type Doing = std::pin::Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;
