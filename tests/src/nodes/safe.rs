//! What is answered is on disk: a server that stops without writing what it has in memory loses none
//! of it.

use super::settings;
use crate::servers::free_port;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::moment;
use std::time::Duration;
use tollgate::store::Store;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{Act, NewCall, QueueSpec};
use tollgate_core::{LaneName, QueueName};
use tollgate_stores::postgres::DatabaseSettings;

#[tokio::test]
async fn what_was_answered_is_there_though_the_server_stops_with_all_it_has_in_memory() {
    // It writes by itself so seldom that whatever is there was waited for.
    let mut server = PostgresServer::start_on(free_port(), &["wal_writer_delay=10s"]);
    let settings = DatabaseSettings { deadline: Duration::from_secs(5), ..settings() };
    let store = Store::connect(&server.url(), settings).await.unwrap();
    let queue = QueueName::new("q").unwrap();
    store.define_queue(queue.clone(), QueueSpec::default()).await.unwrap().unwrap();
    let call = NewCall::new(queue, LaneName::new("a").unwrap());
    let act = Act { enqueue: vec![call], ..Act::default() };
    let id = store.act(vec![act]).await.unwrap().remove(0).unwrap().enqueued[0];
    server.stop();
    server.go_on();
    loop {
        match store.look(vec![id]).await {
            Ok(looked) => return assert!(looked[0].is_some(), "an accepted call is lost"),
            Err(_) => moment(50).await,
        }
    }
}
