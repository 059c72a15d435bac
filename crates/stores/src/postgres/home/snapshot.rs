//! Snapshots: all that lasts, so that a node which begins need not read the whole log, and so that the
//! log can be cut. One node makes one, beside its own work, from the snapshot before and the log since.

use super::frames;
use super::link::Connector;
use super::load::{self, Loaded};
use crate::postgres::fault;
use crate::postgres::row::timestamp;
use crate::postgres::schema::SchemaName;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use tokio::runtime::Builder;
use tokio::sync::Notify;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};
use tollgate_core::Now;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::Scheduler;

/// However long it takes, also while nothing is written.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// What an entry of the log counts for beside its effects: many small ones take long to read, too.
pub(super) const ENTRY_BYTES: u64 = 64;
/// How large a part of a snapshot is.
const PART_BYTES: usize = 1 << 20;

pub(super) const PART: &str =
    "INSERT INTO :\"schema\".snapshots (seq, part, facts) VALUES ($1, $2, $3)";

/// The statements.
#[derive(Clone)]
pub(super) struct Sql {
    lock: String,
    part: String,
    cut: String,
    vacuum: String,
    forget: String,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let named = |text: &str| schema.put_into(text);
        Self {
            lock: named("SELECT pg_try_advisory_xact_lock(hashtextextended(:'schema', 8657))"),
            part: named(PART),
            cut: named(include_str!("cut.sql")),
            // One that another node is at is left to it.
            vacuum: named(
                "VACUUM (SKIP_LOCKED) :\"schema\".log, :\"schema\".calls, :\"schema\".untold",
            ),
            // One that was made of the same entry is the same.
            forget: named("DELETE FROM :\"schema\".snapshots WHERE seq <= $1"),
        }
    }
}

/// When it is time for a snapshot.
pub(super) struct Growth {
    /// How many bytes of effects there are since the last one, and after how many there is another.
    since: AtomicU64,
    every: AtomicU64,
    least: u64,
    due: Notify,
}

impl Growth {
    pub(super) fn new(least: u64) -> Self {
        let (since, every) = (AtomicU64::new(0), AtomicU64::new(least));
        Self { since, every, least, due: Notify::new() }
    }

    /// There is a snapshot of so many bytes, and so many of effects since.
    pub(super) fn begins(&self, snapshot: u64, since: u64) {
        self.every.store(snapshot.max(self.least), Ordering::Relaxed);
        self.since.store(since, Ordering::Relaxed);
        if self.is_due() {
            self.due.notify_one();
        }
    }

    /// An entry of so many bytes of effects was written, here or elsewhere.
    pub(super) fn grow(&self, bytes: u64) {
        self.since.fetch_add(ENTRY_BYTES + bytes, Ordering::Relaxed);
        if self.is_due() {
            self.due.notify_one();
        }
    }

    fn is_due(&self) -> bool {
        self.since.load(Ordering::Relaxed) >= self.every.load(Ordering::Relaxed)
    }
}

/// Makes snapshots when it is time, until the home's runtime ends.
pub(super) async fn keep(connector: Connector, loading: load::Sql, sql: Sql, growth: Arc<Growth>) {
    loop {
        growth.due.notified().await;
        if !growth.is_due() {
            continue;
        }
        // All is read and told once more: not on the thread that carries everyone's connections.
        let (connector, loading, sql) = (connector.clone(), loading.clone(), sql.clone());
        let made = tokio::task::spawn_blocking(move || {
            let own = Builder::new_current_thread().enable_all().build().map_err(unmade)?;
            own.block_on(make(&connector, &loading, &sql))
        });
        match made.await.map_err(unmade).flatten() {
            Ok(Some(bytes)) => growth.begins(bytes, 0),
            // Another node is making one.
            Ok(None) => growth.begins(growth.every.load(Ordering::Relaxed), 0),
            Err(error) => {
                tracing::warn!(%error, "a snapshot could not be made, and is tried again later");
                growth.begins(growth.every.load(Ordering::Relaxed), 0);
            }
        }
    }
}

/// Makes one, unless another node is about to; says how large it is.
async fn make(
    connector: &Connector,
    loading: &load::Sql,
    sql: &Sql,
) -> Result<Option<u64>, StoreError> {
    let connected = connector().await.map_err(fault::of)?;
    let client = &connected.client;
    client.batch_execute(BEGIN).await.map_err(fault::of)?;
    let locked = client.query_one(&sql.lock, &[]).await.and_then(|row| row.try_get(0));
    if !locked.map_err(fault::of)? {
        return Ok(None);
    }
    // As of one instant, which a transaction that may wait for a lock is not.
    let reading = connector().await.map_err(fault::of)?;
    let Loaded { scheduler, last, .. } =
        load::load(&reading.client, loading).await.map_err(fault::of)??;
    drop(reading);
    let clock = client.query_one("SELECT clock_timestamp()", &[]).await;
    let wall = clock.and_then(|row| row.try_get(0)).map_err(fault::of)?;
    let parts = parts(&scheduler, wall);
    let bytes = parts.iter().map(|part| part.len() as u64).sum();
    write(client, sql, last.0, &parts).await.map_err(fault::of)?;
    // The server looks for what is dead once a minute, in which a busy store leaves a gigabyte of it. This goes by
    // how much was written.
    if let Err(error) = client.batch_execute(&sql.vacuum).await {
        tracing::debug!(%error, "what is dead is left to the server's own upkeep");
    }
    Ok(Some(bytes))
}

fn unmade(error: impl Display) -> StoreError {
    StoreError::Failed { reason: error.to_string() }
}

fn parts(scheduler: &Scheduler, wall: SystemTime) -> Vec<Vec<u8>> {
    let now = Now { at: scheduler.latest(), wall: timestamp(wall) };
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    scheduler.snapshot(now, |fact| {
        frames::push(&fact, &mut part);
        if part.len() >= PART_BYTES {
            parts.push(std::mem::take(&mut part));
        }
    });
    parts.push(part);
    parts
}

/// Writes a snapshot, and cuts what nobody needs any more.
async fn write(client: &Client, sql: &Sql, seq: i64, parts: &[Vec<u8>]) -> Result<(), Error> {
    let seq_alone: [(&(dyn ToSql + Sync), Type); 1] = [(&seq, Type::INT8)];
    client.query_typed(&sql.forget, &seq_alone).await?;
    for (place, part) in (0_i32..).zip(parts) {
        let row: [(&(dyn ToSql + Sync), Type); 3] =
            [(&seq, Type::INT8), (&place, Type::INT4), (part, Type::BYTEA)];
        client.query_typed(&sql.part, &row).await?;
    }
    client.batch_execute("COMMIT").await?;
    client.query_typed(&sql.cut, &seq_alone).await?;
    Ok(())
}
