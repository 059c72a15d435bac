//! A primary that dies, or that nobody hears from any more, and its standby that takes its place: nodes go on
//! there by themselves, and what was answered is so.

use super::load::{CALLS_ALL, Load, define};
use super::settings;
use crate::servers::free_port;
use crate::servers::postgres::{PostgresServer, SYNCHRONOUS, Standby};
use crate::servers::proxy::{Manner, Proxy};
use std::time::Duration;
use tollgate::store::Store;
use tollgate_stores::postgres::DatabaseSettings;

/// Nodes that know of both servers.
async fn nodes(ports: [u16; 2], deadline: Duration) -> Vec<Store> {
    let [first, second] = ports;
    let url = format!(
        "postgres://postgres@127.0.0.1:{first},127.0.0.1:{second}/postgres\
         ?target_session_attrs=read-write"
    );
    let settings = DatabaseSettings { deadline, ..settings() };
    let mut stores = Vec::new();
    for _ in 0..3 {
        stores.push(Store::connect(&url, settings.clone()).await.unwrap());
    }
    define(&stores[0]).await;
    stores
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_so_though_the_standby_takes_the_place_of_a_primary_that_died() {
    let primary = PostgresServer::start_on(free_port(), SYNCHRONOUS);
    let standby = Standby::of(&primary);
    let stores = nodes([primary.port(), standby.port()], Duration::from_secs(5)).await;
    let load = Load::begin(&stores);
    load.until_started(CALLS_ALL / 3).await;
    primary.stop();
    standby.promote().await;
    load.end(&stores[0]).await;
}

/// It lives and would take writes, but what it commits is not safe anywhere else, and so is not answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_go_on_at_the_standby_though_the_primary_accepts_connections_and_says_nothing() {
    let primary = PostgresServer::start_on(free_port(), SYNCHRONOUS);
    let standby = Standby::of(&primary);
    let proxy = Proxy::before(primary.port(), 1).await;
    let stores = nodes([proxy.port(), standby.port()], Duration::from_secs(1)).await;
    let load = Load::begin(&stores);
    load.until_started(CALLS_ALL / 3).await;
    proxy.be(Manner::Held);
    standby.promote().await;
    load.end(&stores[0]).await;
}
