//! Moving a folder into a database: all that lasts becomes its first snapshot, in one transaction.

use super::frames;
use super::link::{Batch, Connector, accept_types, number, shown};
use super::{DatabaseSettings, node, opening};
use crate::embedded::disk::Disk;
use crate::embedded::{Checked, ExportError, each_fact};
use crate::postgres::schema::{self, SchemaName};
use crate::postgres::{fault, script};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error};
use tollgate_core::Timestamp;
use tollgate_core::contract::StoreError;
use tollgate_core::lanes::{Effect, Kept, Payload};

/// How much is read ahead of what is written.
const PIECES: usize = 4;
/// How large a piece is: a part of the snapshot, and the calls in it.
const PIECE_BYTES: usize = 1 << 20;

/// Why a folder was not copied. The database is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MoveError {
    /// The folder is not sound, or could not be read.
    #[error(transparent)]
    Folder(#[from] ExportError),
    /// The database could not take it.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// Something is there already.
    #[error(
        "the schema {schema} is in use already: name another, or drop it if nothing in it is needed"
    )]
    InUse {
        /// Which.
        schema: String,
    },
}

impl From<Error> for MoveError {
    fn from(error: Error) -> Self {
        Self::Database(fault::of(error))
    }
}

/// Some of what lasts.
#[derive(Default)]
struct Piece {
    facts: Vec<u8>,
    calls: Batch,
    /// Queues that are defined.
    queues: Vec<String>,
}

/// What was read, until when it reaches, and the last piece.
type Read = Result<(Checked, Timestamp, Piece), ExportError>;

/// Copies all that lasts in a folder, which nobody has open, into a database whose schema nobody has
/// used: all of it, or nothing. Its history stays behind.
///
/// # Errors
/// As [`MoveError`] says.
pub async fn copy_folder(
    disk: Arc<dyn Disk>,
    url: &str,
    settings: &DatabaseSettings,
) -> Result<Checked, MoveError> {
    let schema = SchemaName::new(&settings.schema)?;
    let (pool, connector) = opening(url, settings)?;
    schema::prepare(&pool, &script::begin(settings.deadline), &schema).await?;
    let (give, pieces) = mpsc::channel(PIECES);
    let reading = tokio::task::spawn_blocking(move || read(&disk, &give));
    write(&connector, &schema, pieces, reading).await
}

/// Reads a folder piece by piece.
fn read(disk: &Arc<dyn Disk>, give: &Sender<Piece>) -> Read {
    let mut piece = Piece::default();
    let (checked, at) = each_fact(disk, |mut fact| {
        if let Effect::Kept(Kept::Call { id, call, .. }) = &mut fact {
            piece.calls.accept(*id, call);
            call.payload = Payload::default();
        }
        if let Effect::QueueDefined { name, .. } = &fact {
            piece.queues.push(shown(name.as_str()));
        }
        frames::push(&fact, &mut piece.facts);
        if piece.facts.len() + piece.calls.bytes() < PIECE_BYTES {
            return Ok(());
        }
        let gone = || io::Error::other("the database does not take it any more");
        Ok(give.blocking_send(std::mem::take(&mut piece)).map_err(|_| gone())?)
    })?;
    Ok((checked, at, piece))
}

/// However long the folder is read before the first of it comes.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; \
                     SET LOCAL idle_in_transaction_session_timeout = 0";

async fn write(
    connector: &Connector,
    schema: &SchemaName,
    mut pieces: Receiver<Piece>,
    reading: JoinHandle<Read>,
) -> Result<Checked, MoveError> {
    let connected = connector().await?;
    let client = &connected.client;
    let named = |sql: &str| schema.put_into(sql);
    client.batch_execute(BEGIN).await?;
    client.batch_execute(&named("LOCK TABLE :\"schema\".log IN EXCLUSIVE MODE")).await?;
    let used = named("SELECT max(seq) > 0 FROM :\"schema\".log");
    if client.query_one(&used, &[]).await?.try_get::<_, Option<bool>>(0)?.unwrap_or(true) {
        return Err(MoveError::InUse { schema: schema.name() });
    }
    let sql = Sql {
        accept: named(include_str!("accept.sql")),
        part: named(super::snapshot::PART),
        queues: named(super::tickets::QUEUES),
    };
    let mut part = 0;
    while let Some(piece) = pieces.recv().await {
        write_piece(client, &sql, part, &piece).await?;
        part += 1;
    }
    let ended = reading.await.map_err(|error| StoreError::Failed { reason: error.to_string() })?;
    let (checked, at, last) = ended?;
    write_piece(client, &sql, part, &last).await?;
    append(client, &named(include_str!("append.sql")), at).await?;
    client.batch_execute("COMMIT").await?;
    Ok(checked)
}

/// The first entry, of which the snapshot is.
async fn append(client: &Client, sql: &str, at: Timestamp) -> Result<(), Error> {
    let (node, limit_time, nothing) = (node(), number(at.as_nanos()), Vec::<u8>::new());
    let entry: [(&(dyn ToSql + Sync), Type); 4] = [
        (&1_i64, Type::INT8),
        (&node, Type::INT8),
        (&limit_time, Type::INT8),
        (&nothing, Type::BYTEA),
    ];
    client.query_typed(sql, &entry).await.map(|_| ())
}

/// The statements.
struct Sql {
    accept: String,
    part: String,
    queues: String,
}

async fn write_piece(
    client: &Client,
    sql: &Sql,
    part: i32,
    Piece { facts, calls, queues }: &Piece,
) -> Result<(), Error> {
    let rows = calls.with_rows(async |rows| {
        let rows: Vec<_> = rows.into_iter().zip(accept_types()).collect();
        client.query_typed(&sql.accept, &rows).await.map(|_| ())
    });
    rows.await?;
    client.query_typed(&sql.queues, &[(queues, Type::TEXT_ARRAY)]).await?;
    let row: [(&(dyn ToSql + Sync), Type); 3] =
        [(&1_i64, Type::INT8), (&part, Type::INT4), (facts, Type::BYTEA)];
    client.query_typed(&sql.part, &row).await.map(|_| ())
}
