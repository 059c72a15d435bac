//! Servers that share a database, for minutes: whether they grow slower, and what the tables grow to.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

use super::on_this_thread;
use super::served::{Served, schema};
use super::throughput::{Progress, Row, clients};
use crate::folder::database;
use crate::table::{Table, grouped};

const NODES: usize = 2;
const MINUTES: usize = 10;
const ROW: Row = Row { batch: 1_000, calls: usize::MAX, lanes: 10_000, connections: 4, must: 0 };
/// What each table takes on disk with its indexes, those of history together.
const SIZES: &str = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
                     WHERE relnamespace = $1::text::regnamespace AND relkind = 'r' AND relname ~ $2";
const TABLES: [&str; 4] = ["^calls$", "^log$", "^snapshots$", "^history"];

pub(super) fn measure() -> anyhow::Result<Table> {
    let columns = ["minute", "calls/s", "calls, MB", "log, MB", "snapshots, MB", "history, MB"];
    let mut table = Table::new("Minutes of full load, two servers on PostgreSQL", &columns);
    let schema = schema();
    let served = Served::start_nodes(NODES, &schema)?;
    on_this_thread(async {
        let url = database().context("TOLLGATE_BENCH_STORE names no database")?;
        let (database, connection) = tokio_postgres::connect(&url, NoTls).await?;
        tokio::spawn(connection);
        served[0].tell("PUT", "/v1/queues/q", r#"{"order":{"parallel":100000}}"#).await?;
        let progress = Progress::default();
        let mut clients = clients(ROW, &served, &progress).await?;
        let mut minutes = tokio::time::interval(Duration::from_secs(60));
        minutes.tick().await;
        let mut before = 0;
        for minute in 1..=MINUTES {
            tokio::select! {
                _ = minutes.tick() => {}
                Some(client) = clients.join_next() => client??,
            }
            let settled = progress.settled.load(Ordering::Relaxed);
            let mut cells = vec![minute.to_string(), grouped((settled - before) / 60)];
            cells.extend(sizes(&database, &schema).await?);
            table.add(cells);
            before = settled;
        }
        Ok(())
    })?;
    Ok(table)
}

async fn sizes(database: &Client, schema: &str) -> anyhow::Result<Vec<String>> {
    let mut sizes = Vec::new();
    for pattern in TABLES {
        let bytes: i64 = database.query_one(SIZES, &[&schema, &pattern]).await?.get(0);
        sizes.push(grouped(usize::try_from(bytes)? / 1_000_000));
    }
    Ok(sizes)
}
