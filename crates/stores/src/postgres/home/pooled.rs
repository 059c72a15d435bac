//! Noticing a pool between this node and the server that hands each transaction to another session, such as
//! PgBouncer in transaction mode: what is prepared may not be there the next time, or be another's.

use super::link::Connector;
use super::writer::{Trouble, within};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};
use tollgate_core::contract::{Answer, StoreError};

/// Whoever comes next gets the session that was let go of last, unless a stranger comes between.
const TRIES: usize = 2;
const PID: &str = "SELECT pg_catalog.pg_backend_pid()";

/// What stands between.
enum Between {
    /// Nothing, as far as is seen.
    Nothing,
    /// A pool that knows which statements are whose.
    Careful,
    /// A pool that does not.
    Careless,
}

/// Refuses a pool in which statements get lost, and says what does not work with one in which they do not.
///
/// # Errors
/// There is such a pool, or the server cannot be reached.
pub(super) async fn check(connector: &Connector, patience: Duration) -> Answer<()> {
    let found = within(patience, find(connector)).await.map_err(Trouble::told)?;
    match found {
        Between::Nothing => Ok(()),
        Between::Careful => {
            tracing::warn!(
                "a pool hands each transaction to another session: what other nodes do is seen once a \
                 second; give a direct url"
            );
            Ok(())
        }
        Between::Careless => Err(StoreError::Failed { reason: REFUSED.to_owned() }),
    }
}

const REFUSED: &str = "the url leads to a pool that hands each transaction to another session, and prepared \
    statements get lost there (PgBouncer in transaction mode): give a direct url, use its session mode, or \
    PgBouncer 1.21 or later with max_prepared_statements";

async fn find(connector: &Connector) -> Result<Between, Error> {
    let (one, other) = (connector().await?, connector().await?);
    // Another node's statement may have the same name, and would answer something else.
    let own = super::node();
    let prepared = match one.client.prepare(&format!("SELECT {own}::bigint")).await {
        Err(error) if is_lost(&error) => return Ok(Between::Careless),
        prepared => prepared?,
    };
    for _ in 0..TRIES {
        let session = pid(&one.client).await?;
        other.client.batch_execute("BEGIN").await?;
        if pid(&other.client).await? == session {
            // Now that the other has it, this one gets a session that has prepared nothing.
            return match one.client.query_one(&prepared, &[]).await {
                Ok(row) if row.try_get::<_, i64>(0)? == own => Ok(Between::Careful),
                Ok(_) => Ok(Between::Careless),
                Err(error) if is_lost(&error) => Ok(Between::Careless),
                Err(error) => Err(error),
            };
        }
        other.client.batch_execute("ROLLBACK").await?;
    }
    Ok(Between::Nothing)
}

/// Which process of the server answers. Nothing is prepared for it.
async fn pid(client: &Client) -> Result<i32, Error> {
    let rows = client.query_typed(PID, &[]).await?;
    rows.first().map_or(Ok(0), |row| row.try_get(0))
}

fn is_lost(error: &Error) -> bool {
    let lost = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
    error.code().is_some_and(|code| lost.contains(code))
}
