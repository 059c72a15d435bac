//! Nodes whose connections are cut at any moment, before a commit and after it: what was answered is
//! so, once, in order, and within its limit.

use super::load::{CALLS_ALL, Load, define};
use super::settings;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::{Manner, Proxy};
use std::time::Duration;
use tollgate::store::Store;
use tollgate_stores::postgres::DatabaseSettings;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_so_though_connections_are_cut_at_any_moment() {
    let server = PostgresServer::start();
    let settings = DatabaseSettings { deadline: Duration::from_secs(2), ..settings() };
    let (mut stores, mut proxies) = (Vec::new(), Vec::new());
    for seed in 1..4 {
        let proxy = Proxy::before(server.port(), seed).await;
        stores.push(Store::connect(&proxy.postgres(), settings.clone()).await.unwrap());
        proxies.push(proxy);
    }
    define(&stores[0]).await;
    proxies.iter().for_each(|proxy| proxy.be(Manner::Torn));
    let load = Load::begin(&stores);
    load.until_started(CALLS_ALL).await;
    proxies.iter().for_each(|proxy| proxy.be(Manner::Smooth));
    load.end(&stores[0]).await;
}
