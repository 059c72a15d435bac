//! A connection with fixed plans, and the tables of a design in a schema of their own.

use tokio_postgres::{Client, NoTls};

/// A table that is empty when a statement is planned would be scanned whole ever after. Every design
/// is kept from that in the same way, for what is compared is the work and not the planner's luck.
const SETTINGS: &str = "SET search_path = tollgate_designs;
    SET synchronous_commit = on;
    SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;";

pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute(SETTINGS).await?;
    Ok(client)
}

/// Makes the schema anew, with these tables. A checkpoint first: each design begins with as many
/// pages to log in full.
pub(crate) async fn create(client: &Client, tables: &str) -> anyhow::Result<()> {
    drop_all(client).await?;
    client.batch_execute("CREATE SCHEMA tollgate_designs").await?;
    client.batch_execute(tables).await?;
    client.batch_execute("CHECKPOINT").await?;
    Ok(())
}

pub(crate) async fn drop_all(client: &Client) -> anyhow::Result<()> {
    client.batch_execute("SET client_min_messages = warning").await?;
    client.batch_execute("DROP SCHEMA IF EXISTS tollgate_designs CASCADE").await?;
    Ok(())
}
