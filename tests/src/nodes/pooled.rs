//! A pool between nodes and their database, of which each of its ways works or is refused with the reason.

use super::load::{Load, define};
use super::settings;
use crate::servers::pgbouncer::PgBouncer;
use crate::servers::postgres::PostgresServer;
use tollgate::store::Store;
use tollgate_core::contract::StoreError;

/// Nodes do all that they do behind it.
async fn serves(pool: &PgBouncer) {
    let (settings, mut stores) = (settings(), Vec::new());
    for _ in 0..2 {
        stores.push(Store::connect(&pool.url(), settings.clone()).await.unwrap());
    }
    define(&stores[0]).await;
    Load::begin(&stores).end(&stores[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_keeps_sessions_apart_serves_nodes() {
    let server = PostgresServer::start();
    let many = "default_pool_size=50";
    serves(&PgBouncer::before(&server, &["pool_mode=session", many])).await;
    if PgBouncer::can_be_careful() {
        let careful = ["pool_mode=transaction", "max_prepared_statements=200", many];
        serves(&PgBouncer::before(&server, &careful)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_loses_prepared_statements_is_refused() {
    let server = PostgresServer::start();
    let careless = ["pool_mode=transaction", "max_prepared_statements=0"];
    let told = if PgBouncer::can_be_careful() { &careless[..] } else { &careless[..1] };
    let pool = PgBouncer::before(&server, told);
    for _ in 0..3 {
        let Err(StoreError::Failed { reason }) = Store::connect(&pool.url(), settings()).await
        else {
            panic!("it is not refused")
        };
        assert!(reason.contains("PgBouncer in transaction mode"), "{reason}");
    }
}
