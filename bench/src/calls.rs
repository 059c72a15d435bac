//! Calls over HTTP, end to end: handed in, claimed and settled by clients beside the server.
//!
//! The server is a process of its own, on as many threads as `tollgate serve` has; all clients are one
//! thread of this process, each on a connection of its own.

mod connection;
mod gated;
mod idle;
mod latency;
mod push;
mod qstash;
mod served;
mod sink;
mod sustained;
mod throughput;

pub(crate) use served::{COMMAND, serve_here};

use crate::table::Table;

/// What is measured if nothing is named.
pub(crate) const PARTS: [&str; 9] = [
    "throughput",
    "gated",
    "latency",
    "idle",
    "push",
    "push-latency",
    "qstash",
    "qstash-latency",
    "qstash-drain",
];

/// What is measured in a database alone.
const PARTS_OF_NODES: [&str; 2] = ["nodes", "sustained"];

/// Measures one part and makes a table.
pub(crate) fn measure(part: &str) -> anyhow::Result<Table> {
    match part {
        "throughput" => throughput::measure(),
        "nodes" => throughput::measure_nodes(),
        "sustained" => sustained::measure(),
        "gated" => gated::measure(),
        "latency" => latency::measure(),
        "idle" => idle::measure(),
        "push" => push::measure(),
        "push-latency" => push::measure_latency(),
        "qstash" => qstash::measure(),
        "qstash-latency" => qstash::measure_latency(),
        "qstash-drain" => qstash::measure_drain(),
        other => {
            anyhow::bail!("there is no part {other}: choose among {PARTS:?} and {PARTS_OF_NODES:?}")
        }
    }
}

/// Runs clients to their end on this thread.
fn on_this_thread<F: Future<Output = anyhow::Result<T>>, T>(clients: F) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(clients)
}
