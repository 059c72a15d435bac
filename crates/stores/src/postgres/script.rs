//! The statements, with the schema's name in them.

use super::schema::SchemaName;
use std::time::Duration;
use tokio_postgres::types::Type;

/// One statement.
pub(super) struct Script {
    pub(super) sql: String,
    pub(super) types: &'static [Type],
    /// Where it is among [`Scripts::prepared`]. What is not is planned anew each time.
    pub(super) place: Option<usize>,
}

/// All statements.
pub(super) struct Scripts {
    /// Begins a transaction in which nothing waits for longer than it may, not even for us: if this
    /// process stands still, its locks go.
    pub(super) begin: String,
    pub(super) lock: Script,
    pub(super) read: Script,
    pub(super) write: Script,
    pub(super) remove: Script,
    pub(super) names: Script,
    pub(super) sweep: Script,
}

const KEYS: &[Type] = &[Type::CHAR_ARRAY, Type::BYTEA_ARRAY, Type::BYTEA_ARRAY];
const ROWS: &[Type] = &[
    Type::CHAR_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
];
const NAMES: &[Type] = &[Type::CHAR, Type::BYTEA, Type::INT8, Type::TIMESTAMPTZ];
const SWEEP: &[Type] = &[Type::CHAR, Type::BYTEA, Type::BYTEA, Type::INT8, Type::TIMESTAMPTZ];

impl Scripts {
    pub(super) fn new(schema: &SchemaName, deadline: Duration) -> Self {
        let script = |text: &str, types, place| Script { sql: schema.put_into(text), types, place };
        Self {
            begin: begin(deadline),
            lock: script(include_str!("lock.sql"), KEYS, Some(0)),
            read: script(include_str!("read.sql"), KEYS, Some(1)),
            write: script(include_str!("write.sql"), ROWS, Some(2)),
            remove: script(include_str!("remove.sql"), KEYS, None),
            names: script(include_str!("names.sql"), NAMES, None),
            sweep: script(include_str!("sweep.sql"), SWEEP, None),
        }
    }

    /// Those of every change, in the order of their places.
    pub(super) fn prepared(&self) -> [&Script; 3] {
        [&self.lock, &self.read, &self.write]
    }
}

pub(super) fn begin(deadline: Duration) -> String {
    // Zero would mean for ever.
    let ms = deadline.as_millis().clamp(1, 86_400_000);
    // A table that is small, or was when the statement was planned, is read by its key all the same; and what has no
    // key looks dear then, but is not worth compiling.
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; \
         SET LOCAL statement_timeout = {ms}; \
         SET LOCAL lock_timeout = {ms}; \
         SET LOCAL idle_in_transaction_session_timeout = {ms}; \
         SET LOCAL enable_seqscan = off; \
         SET LOCAL enable_bitmapscan = off; \
         SET LOCAL jit = off"
    )
}
