//! Three servers on one PostgreSQL, under load, while servers, PostgreSQL and workers are killed at
//! random: what was accepted is done once, in order, and within every limit, and history tells all of it once.
//!
//! `TOLLGATE_NODES_SECONDS=300 cargo test -p tollgate-server --test nodes` goes on for so long, and
//! `TOLLGATE_NODES_SEED=7` begins chance with another seed. What is killed when follows from the seed; what
//! runs meanwhile does not.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::expect_used, reason = "a test that cannot go on fails, and says why")]
#![expect(clippy::panic, reason = "a test that cannot go on fails, and says why")]
#![expect(
    clippy::print_stderr,
    reason = "whoever reads of a failure wants to know what was killed"
)]

mod asking;
mod beginning;
mod chance;
mod clocks;
mod copying;
mod database;
mod killing;
mod node;
mod producing;
mod record;
mod telling;
mod verdict;
mod working;

use asking::{Nodes, moment};
use chance::Chance;
use database::Database;
use killing::Killing;
use node::Node;
use record::Record;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use working::Workers;

const NODES: usize = 3;
const LANES: u64 = 16;
const WORKERS: usize = 8;
/// For how long calls are handed in, and processes killed, unless the environment says otherwise.
const SECONDS: u64 = 20;
/// Longest time until all is done once nothing is killed any more.
const PATIENCE: Duration = Duration::from_secs(90);
/// Calls that may start per second, at once, and be in flight.
const RATE: u64 = 150;
const BURST: u64 = 10;
const SLOTS: u64 = 10;
/// More starts than there will be: none is given back by time.
const BUDGET: u64 = 10_000_000;
/// How long a call whose worker was killed is held for it.
const LEASE: Duration = Duration::from_secs(2);

fn from_environment(name: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text}"))
}

/// Three limits, and a queue whose calls owe at all of them. Workers may die as often as they like.
async fn define(nodes: &Nodes) {
    let mut asking = nodes.asking(Chance::new(0));
    let rate = json!({"rule": "token_bucket", "limit": RATE, "per": "1s", "burst": BURST});
    let slots = json!({"rule": "concurrency", "limit": SLOTS});
    let budget = json!({"rule": "fixed_window", "limit": BUDGET, "per": "7d"});
    let tolls = json!([{"limit": "rate"}, {"limit": "slots"}, {"limit": "budget"}]);
    let (lease, most) = (format!("{}s", LEASE.as_secs()), 1_000_000);
    let queue = json!({"order": "strict", "lease": lease, "tolls": tolls,
        "crashes_max": most, "failures_max": most});
    let limits = [("rate", rate), ("slots", slots), ("budget", budget)];
    for (name, limit) in limits {
        asking.surely("PUT", &format!("/v1/limits/{name}"), &limit).await;
    }
    asking.surely("PUT", "/v1/queues/q", &queue).await;
}

/// What a node says of something.
async fn told(nodes: &Nodes, node: usize, path: &str) -> Value {
    let mut asking = nodes.asking_one(node);
    asking.surely("GET", path, &Value::Null).await
}

/// Returns when each node says that nothing is left to do.
async fn drained(nodes: &Nodes) {
    for node in 0..NODES {
        loop {
            let queue = told(nodes, node, "/v1/queues/q").await;
            if [&queue["waiting"], &queue["in_flight"]].iter().all(|count| **count == 0) {
                break;
            }
            moment(50).await;
        }
    }
}

/// What the nodes say of each start that was paid for, when all is done.
async fn spent(nodes: &Nodes, faults: &mut Vec<String>) -> u64 {
    let mut spent = Vec::new();
    for node in 0..NODES {
        let queue = told(nodes, node, "/v1/queues/q").await;
        if queue["dead"] != 0 {
            faults.push(format!("node {node} says that some are dead: {queue}"));
        }
        let meter = told(nodes, node, "/v1/meters/budget").await;
        spent.push(BUDGET - meter["global"]["available"].as_u64().unwrap());
        let slots = told(nodes, node, "/v1/meters/slots").await;
        if slots["global"]["in_flight"] != 0 {
            faults.push(format!("node {node} says that slots are taken: {slots}"));
        }
    }
    if spent.iter().any(|it| *it != spent[0]) {
        faults.push(format!("the nodes say that {spent:?} starts were paid for"));
    }
    spent[0]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_killed_what_was_accepted_is_done_once_in_order_and_within_its_limits() {
    let seconds = from_environment("TOLLGATE_NODES_SECONDS", SECONDS);
    let seed = from_environment("TOLLGATE_NODES_SEED", 1);
    let folder = tempfile::tempdir().unwrap();
    let database = Database::start(folder.path());
    let url = database.url();
    let nodes: Vec<Node> =
        (0..NODES).map(|at| Node::start(&url, &folder.path().join(format!("{at}.log")))).collect();
    let asked = Nodes::new(nodes.iter().map(Node::port).collect());
    define(&asked).await;

    let (record, is_over) = (Arc::new(Record::default()), Arc::new(AtomicBool::new(false)));
    let producers: Vec<JoinHandle<()>> = (0..LANES)
        .map(|lane| {
            let asking = asked.asking(Chance::new(seed ^ (lane << 32)));
            tokio::spawn(producing::produce(asking, lane, record.clone(), is_over.clone()))
        })
        .collect();
    let workers = Workers::start(WORKERS, &asked, &record, seed);
    let mut killing = Killing { database, nodes, workers, chance: Chance::new(seed) };
    let mut faults = Vec::new();
    killing.go_on_until(Instant::now() + Duration::from_secs(seconds), &mut faults).await;

    is_over.store(true, Ordering::Relaxed);
    let ending = async {
        for producer in producers {
            producer.await.unwrap();
        }
        drained(&asked).await;
        (spent(&asked, &mut faults).await, telling::history(&asked, 0).await)
    };
    let (spent, history) = timeout(PATIENCE, ending).await.ok().unzip();
    killing.end(&mut faults).await;
    verdict::judge(&record, spent, &mut faults);
    telling::judge(&record, &history.unwrap_or_default(), &mut faults);
    eprintln!("seed {seed}, {seconds} s: {}", record.summary());
    if !faults.is_empty() {
        let logs = folder.keep();
        let told: Vec<String> = faults.iter().take(30).cloned().collect();
        panic!(
            "seed {seed}: {} faults; what the nodes logged is in {}:\n{}",
            faults.len(),
            logs.display(),
            told.join("\n")
        );
    }
}

/// A port of loopback that nobody listens on.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
