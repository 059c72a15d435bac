//! Reading all of a store: the newest snapshot, and what happened since.

use super::clock::Written;
use super::frames;
use super::link::{ENTRIES_BYTES, number};
use super::snapshot::ENTRY_BYTES;
use crate::embedded::codec::CodecError;
use crate::postgres::schema::SchemaName;
use std::time::SystemTime;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};
use tollgate_core::Timestamp;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::Scheduler;

/// However long it takes.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                     SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";
/// How many entries of the log are read at a time, if they are small: many of one effect each take no more trips
/// than a few large ones.
const ENTRIES_MAX: u64 = 8_192;

/// What was read.
pub(super) struct Loaded {
    pub(super) scheduler: Scheduler,
    /// The last entry of the log that is in it, and who wrote it.
    pub(super) last: (i64, i64),
    pub(super) written: Written,
    /// How many bytes the snapshot has, and the effects since.
    pub(super) bytes: (u64, u64),
}

/// The statements.
#[derive(Clone)]
pub(super) struct Sql {
    newest: String,
    part: String,
    entries: String,
    last: String,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let named = |text: &str| schema.put_into(text);
        Self {
            newest: named("SELECT coalesce(max(seq), 0) FROM :\"schema\".snapshots"),
            part: named("SELECT facts FROM :\"schema\".snapshots WHERE seq = $1 AND part = $2"),
            entries: named(include_str!("read.sql")),
            last: named("SELECT at, limit_time FROM :\"schema\".log WHERE seq = $1"),
        }
    }
}

/// Reads all there is, as of one instant. What cannot be understood is told apart from what cannot be
/// reached.
pub(super) async fn load(client: &Client, sql: &Sql) -> Result<Result<Loaded, StoreError>, Error> {
    client.batch_execute(BEGIN).await?;
    let loaded = read(client, sql).await?;
    client.batch_execute("COMMIT").await?;
    Ok(loaded)
}

async fn read(client: &Client, sql: &Sql) -> Result<Result<Loaded, StoreError>, Error> {
    let (mut scheduler, mut snapshot, mut since) = (Scheduler::new(), 0, 0);
    let newest: i64 = client.query_one(&sql.newest, &[]).await?.try_get(0)?;
    for part in 0.. {
        let wanted: [(&(dyn ToSql + Sync), Type); 2] = [(&newest, Type::INT8), (&part, Type::INT4)];
        let rows = client.query_typed(&sql.part, &wanted).await?;
        let Some(row) = rows.first() else { break };
        let facts: &[u8] = row.try_get(0)?;
        snapshot += facts.len() as u64;
        if let Err(error) = frames::replay(facts, &mut scheduler) {
            return Ok(Err(unreadable(&format!("snapshot {newest}"), &error)));
        }
    }
    let each = |effects: &[u8]| {
        since += ENTRY_BYTES + effects.len() as u64;
        frames::replay(effects, &mut scheduler)
    };
    let Some(last) = read_log(client, sql, newest, each).await? else {
        let reason = format!("the log does not go on from snapshot {newest}: entries are missing");
        return Ok(Err(StoreError::Failed { reason }));
    };
    let last = match last {
        Ok(last) => last,
        Err((seq, error)) => {
            return Ok(Err(unreadable(&format!("entry {seq} of the log"), &error)));
        }
    };
    let row = client.query_typed(&sql.last, &[(&last.0, Type::INT8)]).await?;
    let (server, limit_time) = match row.first() {
        Some(row) => (row.try_get(0)?, row.try_get::<_, i64>(1)?),
        None => (SystemTime::UNIX_EPOCH, 0),
    };
    let limit_time = Timestamp::from_nanos(limit_time.unsigned_abs()).max(scheduler.latest());
    // What ended before is nobody's news.
    drop(scheduler.take_freed());
    let written = Written { limit_time, server };
    Ok(Ok(Loaded { scheduler, last, written, bytes: (snapshot, since) }))
}

type Last = Result<(i64, i64), (i64, CodecError)>;

/// Lets happen what is in the log since an entry; `None` if there is a gap.
async fn read_log(
    client: &Client,
    sql: &Sql,
    since: i64,
    mut each: impl FnMut(&[u8]) -> Result<(), CodecError>,
) -> Result<Option<Last>, Error> {
    let mut last = None;
    loop {
        let known = last.map_or(since, |(seq, _)| seq);
        let (most, enough) = (number(ENTRIES_MAX), number(ENTRIES_BYTES as u64));
        let wanted: [(&(dyn ToSql + Sync), Type); 3] =
            [(&known, Type::INT8), (&most, Type::INT8), (&enough, Type::INT8)];
        let mut bytes = 0;
        let rows = client.query_typed(&sql.entries, &wanted).await?;
        for row in &rows {
            let (seq, node): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            let is_next =
                last.map_or(seq == since, |(before, _)| seq == before || seq == before + 1);
            if !is_next {
                return Ok(None);
            }
            let effects = row.try_get::<_, Option<&[u8]>>(3)?;
            bytes += effects.map_or(0, <[u8]>::len);
            if let Some(effects) = effects
                && let Err(error) = each(effects)
            {
                return Ok(Some(Err((seq, error))));
            }
            last = Some((seq, node));
        }
        let is_all = rows.len() < usize::try_from(ENTRIES_MAX).unwrap_or(usize::MAX);
        if is_all && bytes < ENTRIES_BYTES {
            return Ok(last.map(Ok));
        }
    }
}

fn unreadable(what: &str, error: &CodecError) -> StoreError {
    StoreError::Failed { reason: format!("{what} cannot be read: {error}") }
}
