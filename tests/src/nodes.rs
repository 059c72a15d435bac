//! A store in PostgreSQL that many nodes share.

mod beginning;
mod compared;
mod conforming;
mod enqueued;
mod failover;
mod history;
mod in_turn;
mod levelled;
mod load;
mod pooled;
mod rough;
mod safe;
mod strained;
mod viewed;

use crate::servers::postgres::shared;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tollgate::store::Store;
use tollgate_stores::postgres::DatabaseSettings;

/// Settings with a schema that no other test has, of this run or of another.
fn settings() -> DatabaseSettings {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let schema = format!("nodes_{}_{count}", std::process::id());
    // Many tests share two processors: what is slow there is not out of reach.
    DatabaseSettings { schema, deadline: Duration::from_secs(20), ..DatabaseSettings::default() }
}

async fn node(settings: &DatabaseSettings) -> Store {
    Store::connect(shared(), settings.clone()).await.unwrap()
}

/// A connection of an application's, whose names are those of the schema.
async fn application(settings: &DatabaseSettings) -> Client {
    let (client, connection) = tokio_postgres::connect(shared(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {}", settings.schema)).await.unwrap();
    client
}

/// Asks again and again until there is an answer.
async fn eventually<T, F: Future<Output = Option<T>>>(mut ask: impl FnMut() -> F) -> T {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let asking = async {
        loop {
            ticks.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking).await.expect("it comes")
}
