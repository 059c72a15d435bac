//! The schema: its name, and the migrations that make it.

use super::fault;
use super::pool::{Pool, Session};
use tokio_postgres::Error;
use tollgate_core::contract::{Answer, StoreError};

/// Each is run once, in order, and never edited once it was released.
const MIGRATIONS: [Migration; 5] = [
    Migration::adding("cells", include_str!("0001_cells.sql")),
    Migration::adding("lanes", include_str!("0002_lanes.sql")),
    Migration::adding("history", include_str!("0003_history.sql")),
    Migration::adding("enqueue", include_str!("0004_enqueue.sql")),
    Migration::adding("views", include_str!("0005_views.sql")),
];

/// A change of the schema.
struct Migration {
    name: &'static str,
    sql: &'static str,
    /// How many migrations a Tollgate must know at least to go on with the schema once this was run.
    needs: usize,
}

impl Migration {
    /// One that leaves alone what older nodes use: while they are replaced one by one, those that are
    /// left run on, and can be started, too.
    const fn adding(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, needs: 0 }
    }
}

/// Longest name PostgreSQL keeps whole.
const NAME_BYTES_MAX: usize = 63;
/// Whoever migrates holds this lock: the letters of "tollgate". The same for all schemas, since
/// migrations are few and short.
const LOCK: &str = "SELECT pg_advisory_xact_lock(8389209319549297765)";

/// The name of the schema.
// Invariant: lower-case letters, digits and underscores, so that it means the same quoted or not.
pub(super) struct SchemaName(String);

impl SchemaName {
    pub(super) fn new(name: &str) -> Answer<Self> {
        let is_letter = |c: char| c.is_ascii_lowercase() || c == '_';
        let is_sound = name.len() <= NAME_BYTES_MAX
            && name.starts_with(is_letter)
            && !name.starts_with("pg_")
            && name.chars().all(|c| is_letter(c) || c.is_ascii_digit());
        if is_sound {
            return Ok(Self(name.to_owned()));
        }
        let reason = format!(
            "{name:?} cannot be the schema's name: choose up to {NAME_BYTES_MAX} lower-case letters, \
             digits and underscores, a letter first, and not pg_"
        );
        Err(StoreError::Failed { reason })
    }

    pub(super) fn name(&self) -> String {
        self.0.clone()
    }

    /// A statement with the name in it, where it says `:"schema"`, or `:'schema'` for its text.
    pub(super) fn put_into(&self, sql: &str) -> String {
        let named = sql.replace(":\"schema\"", &format!("\"{}\"", self.0));
        named.replace(":'schema'", &format!("'{}'", self.0))
    }
}

/// Makes the schema if it is missing, and brings it up to date: once, however many processes begin
/// with it at a time. One that is up to date is only read, so a role with fewer rights can use it.
pub(super) async fn prepare(pool: &Pool, begin: &str, schema: &SchemaName) -> Answer<()> {
    let session = pool.session().await?;
    is_any_name_taken(&session).await?;
    let mut version = version(&session, schema).await.map_err(fault::of)?;
    if version < MIGRATIONS.len() {
        version = migrate(&session, begin, schema).await.map_err(fault::of)?;
    }
    let beyond = match version > MIGRATIONS.len() {
        true => beyond(&session, schema).await.map_err(fault::of)?,
        false => None,
    };
    session.keep();
    match beyond {
        Some(name) => {
            let reason = format!(
                "the schema {} has version {version}, this Tollgate knows {}, and cannot go on since \
                 {name:?}: run a newer one",
                schema.0,
                MIGRATIONS.len()
            );
            Err(StoreError::Failed { reason })
        }
        None => Ok(()),
    }
}

/// Refuses a database that cannot hold every name: one call with such a name would be in the way of all that
/// are written with it.
async fn is_any_name_taken(session: &Session<'_>) -> Answer<()> {
    let asked = session.client().query_one("SELECT pg_catalog.getdatabaseencoding()", &[]).await;
    let encoding: String = asked.and_then(|row| row.try_get(0)).map_err(fault::of)?;
    if ["UTF8", "SQL_ASCII"].contains(&encoding.as_str()) {
        return Ok(());
    }
    let reason = format!(
        "the database's encoding is {encoding}, which has no place for every name: make one with \
         CREATE DATABASE tollgate TEMPLATE template0 ENCODING 'UTF8'"
    );
    Err(StoreError::Failed { reason })
}

/// The first migration that this Tollgate is too old for.
async fn beyond(session: &Session<'_>, schema: &SchemaName) -> Result<Option<String>, Error> {
    let beyond = schema.put_into(
        "SELECT name FROM :\"schema\".migrations WHERE needs > $1 ORDER BY version LIMIT 1",
    );
    let known = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let rows = session.client().query(&beyond, &[&known]).await?;
    rows.first().map(|row| row.try_get(0)).transpose()
}

/// How many migrations were run.
async fn version(session: &Session<'_>, schema: &SchemaName) -> Result<usize, Error> {
    // Asked of the table of tables, since to_regclass may answer from before a lock was waited for.
    let there = schema.put_into(
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables \
         WHERE schemaname = :'schema' AND tablename = 'migrations')",
    );
    if !session.client().query_one(&there, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let highest = schema.put_into("SELECT coalesce(max(version), 0) FROM :\"schema\".migrations");
    let version: i32 = session.client().query_one(&highest, &[]).await?.try_get(0)?;
    Ok(usize::try_from(version).unwrap_or_default())
}

/// Runs the migrations that were not yet run, in one transaction.
async fn migrate(session: &Session<'_>, begin: &str, schema: &SchemaName) -> Result<usize, Error> {
    session.client().batch_execute(&format!("{begin}; {LOCK}")).await?;
    let before = version(session, schema).await?;
    let mut sql = String::new();
    if before == 0 {
        sql.push_str(&schema.put_into(include_str!("migrations.sql")));
    }
    for (number, Migration { name, sql: change, needs }) in (1..).zip(MIGRATIONS).skip(before) {
        sql.push_str(&schema.put_into(change));
        sql.push_str(&schema.put_into(&format!(
            "INSERT INTO :\"schema\".migrations (version, name, needs) VALUES ({number}, '{name}', {needs});\n"
        )));
    }
    sql.push_str("COMMIT");
    session.client().batch_execute(&sql).await?;
    Ok(before.max(MIGRATIONS.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_mean_something_else_is_refused() {
        for name in ["tollgate", "_a1", &"a".repeat(63)] {
            assert!(SchemaName::new(name).is_ok(), "{name}");
        }
        for name in ["", "1a", "A", "a-b", "a\"b", "pg_a", "a b", "ä", &"a".repeat(64)] {
            assert!(SchemaName::new(name).is_err(), "{name}");
        }
    }
}
