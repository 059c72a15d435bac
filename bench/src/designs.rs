//! Designs of durable lanes on PostgreSQL, as bare SQL: what each costs, beside the plain queue.

mod connection;
mod log;
mod plain;
mod real;
mod server;
mod stateless;
mod work;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use tokio_postgres::Client;

use crate::process;
use crate::table::{Table, grouped};
use log::{Keep, Log};
use plain::Plain;
use real::Real;
use server::Server;
use stateless::Stateless;
use work::{Node, Tally};

pub(crate) use work::Work;

/// Few long lanes, many short ones, and lanes of one call each.
pub(crate) const FULL: [Work; 3] = [
    Work { lanes: 100, calls_of_each: 5_000 },
    Work { lanes: 100_000, calls_of_each: 5 },
    Work { lanes: 100_000, calls_of_each: 1 },
];

/// Clients at a time, spread over the nodes.
const CLIENTS: usize = 4;
const NODES: [usize; 2] = [1, 4];

#[derive(Debug, Clone, Copy)]
enum Design {
    Plain,
    Stateless,
    Log,
    LogWithParcels,
    Real,
}

const DESIGNS: [(&str, Design); 5] = [
    ("plain", Design::Plain),
    ("stateless", Design::Stateless),
    ("log", Design::Log),
    ("log, parcels", Design::LogWithParcels),
    ("Tollgate", Design::Real),
];

/// What a part of a run took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    server_micros: Option<u64>,
    own_micros: u64,
}

/// What a run took: to hand all calls in, and to start and end them.
#[derive(Debug, Clone, Copy)]
struct Costs {
    enqueue: Cost,
    drain: Cost,
}

/// Measures every design with each of these works; `tell` hears what is under way.
pub(crate) fn measure(url: &str, works: &[Work], tell: fn(&str)) -> anyhow::Result<Table> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build()?.block_on(async {
        let client = connection::connect(url).await?;
        let version: String = client.query_one("SHOW server_version", &[]).await?.get(0);
        tell(&format!("PostgreSQL {version}"));
        let mut table = Table::new("Designs on PostgreSQL", &COLUMNS);
        for work in works {
            for nodes in NODES {
                let mut plain = None;
                for (name, design) in DESIGNS {
                    let lanes =
                        format!("{} × {}", grouped(work.lanes), grouped(work.calls_of_each));
                    let of_nodes = nodes.to_string();
                    tell(&format!("{lanes}, {name}, nodes: {nodes}"));
                    let costs = run(url, &client, design, (nodes, *work)).await?;
                    let mut cells = vec![lanes, of_nodes, name.to_owned()];
                    cells.extend(costs.cells(*plain.get_or_insert(costs), work.calls()));
                    table.add(cells);
                }
            }
        }
        connection::drop_all(&client).await?;
        Ok(table)
    })
}

const COLUMNS: [&str; 9] = [
    "lanes × calls",
    "nodes",
    "design",
    "calls/s",
    "to plain",
    "PostgreSQL's CPU, µs a call",
    "of it to enqueue",
    "to plain",
    "nodes' and clients' CPU, µs a call",
];

async fn run(
    url: &str,
    client: &Client,
    design: Design,
    (nodes, work): (usize, Work),
) -> anyhow::Result<Costs> {
    let server = Server::find(client).await?;
    let (tables, rows) = match design {
        Design::Plain => (plain::TABLES, "jobs"),
        Design::Stateless => (stateless::TABLES, "calls"),
        Design::Log => (log::TABLES, "calls"),
        Design::LogWithParcels => (log::TABLES, "parcels"),
        Design::Real => (real::TABLES, real::ROWS),
    };
    connection::create(client, tables).await?;
    let costs = match design {
        Design::Plain => drive(Plain::open(url, nodes).await?, work, server).await,
        Design::Stateless => drive(Stateless::open(url, nodes, work).await?, work, server).await,
        Design::Log => drive(Log::open(url, nodes, Keep::Rows).await?, work, server).await,
        Design::LogWithParcels => {
            drive(Log::open(url, nodes, Keep::Parcels).await?, work, server).await
        }
        Design::Real => drive(Real::open(url, nodes).await?, work, server).await,
    }?;
    let left = client.query_one(&format!("SELECT count(*) FROM {rows}"), &[]).await?;
    ensure!(left.get::<_, i64>(0) == 0, "{design:?} left rows in {rows}");
    Ok(costs)
}

/// First all is handed in, then all is started and ended.
async fn drive<N: Node>(nodes: Vec<Arc<N>>, work: Work, server: Server) -> anyhow::Result<Costs> {
    let nodes: Vec<Arc<N>> = nodes.into_iter().cycle().take(CLIENTS).collect();
    let before = Moment::now(server)?;
    let producers = nodes.iter().cloned().enumerate().map(|(client, node)| {
        tokio::spawn(async move {
            for batch in (client..work.batches()).step_by(CLIENTS) {
                node.enqueue(work.batch(batch)?).await?;
            }
            anyhow::Ok(())
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await??;
    }
    let between = Moment::now(server)?;
    let tally = Tally::new(work);
    let workers = nodes.into_iter().map(|node| tokio::spawn(drain(node, tally.clone())));
    for worker in workers.collect::<Vec<_>>() {
        worker.await??;
    }
    let after = Moment::now(server)?;
    Ok(Costs { enqueue: between.since(before), drain: after.since(between) })
}

async fn drain<N: Node>(node: Arc<N>, tally: Arc<Tally>) -> anyhow::Result<()> {
    let mut held = N::Held::default();
    loop {
        let claimed = node.claim(held).await?;
        for payload in &claimed.payloads {
            tally.see(payload)?;
        }
        held = claimed.held;
        if claimed.payloads.is_empty() {
            if tally.is_complete() {
                return Ok(());
            }
            // Others have all there is under their locks.
            tokio::task::yield_now().await;
        }
    }
}

/// The clocks at a moment.
#[derive(Clone, Copy)]
struct Moment {
    wall: Instant,
    server_micros: Option<u64>,
    own_micros: u64,
}

impl Moment {
    fn now(server: Server) -> anyhow::Result<Self> {
        let own_micros = process::cpu_ns()? / 1_000;
        Ok(Self { wall: Instant::now(), server_micros: server.cpu_micros(), own_micros })
    }

    fn since(self, earlier: Self) -> Cost {
        let server = self.server_micros.zip(earlier.server_micros);
        Cost {
            wall: self.wall - earlier.wall,
            server_micros: server.map(|(after, before)| after.saturating_sub(before)),
            own_micros: self.own_micros.saturating_sub(earlier.own_micros),
        }
    }
}

impl Costs {
    fn cells(self, plain: Self, calls: usize) -> Vec<String> {
        let a_call = |micros: Option<f64>| {
            micros.map_or_else(unknown, |micros| format!("{:.1}", micros / count(calls)))
        };
        let ratio = |own: Option<f64>, other: Option<f64>| {
            own.zip(other).map_or_else(unknown, |(own, other)| format!("{:.2}", own / other))
        };
        let own_micros = self.enqueue.own_micros + self.drain.own_micros;
        vec![
            grouped(rounded(count(calls) / self.seconds())),
            ratio(Some(plain.seconds()), Some(self.seconds())),
            a_call(self.server_micros()),
            a_call(self.enqueue.server_micros.map(micros)),
            ratio(self.server_micros(), plain.server_micros()),
            a_call(Some(micros(own_micros))),
        ]
    }

    fn seconds(self) -> f64 {
        (self.enqueue.wall + self.drain.wall).as_secs_f64()
    }

    fn server_micros(self) -> Option<f64> {
        Some(micros(self.enqueue.server_micros? + self.drain.server_micros?))
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn micros(micros: u64) -> f64 {
    Duration::from_micros(micros).as_secs_f64() * 1e6
}

fn count(calls: usize) -> f64 {
    u32::try_from(calls).map_or(f64::INFINITY, f64::from)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, to be read")]
fn rounded(rate: f64) -> usize {
    rate.round() as usize
}
