//! A server that is far away, or where others are in the way: all is done, once, and in order.

use super::load::{Load, define, queue, surely};
use super::settings;
use crate::servers::free_port;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::{Manner, Proxy, moment};
use tokio_postgres::{Client, NoTls};
use tollgate::store::Store;
use tollgate_core::contract::Lanes;
use tollgate_core::lanes::{Act, Claim, NewCall};
use tollgate_core::{LaneName, Span};

async fn connected(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

fn one_call() -> Vec<Act> {
    let call = NewCall::new(queue(), LaneName::new("a").unwrap());
    vec![Act { enqueue: vec![call], ..Act::default() }]
}

/// How many calls may start.
async fn startable(store: &Store) -> usize {
    let claim = Claim { queue: queue(), most: 10, lease: None, asks: Span::ZERO };
    surely(|| store.claim(claim.clone())).await.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_is_done_once_and_in_order_though_the_server_is_far_away() {
    let server = PostgresServer::start();
    let (mut stores, mut proxies) = (Vec::new(), Vec::new());
    let settings = settings();
    for seed in 1..3 {
        let proxy = Proxy::before(server.port(), seed).await;
        stores.push(Store::connect(&proxy.postgres(), settings.clone()).await.unwrap());
        proxies.push(proxy);
    }
    define(&stores[0]).await;
    proxies.iter().for_each(|proxy| proxy.be(Manner::Slow));
    Load::begin(&stores).end(&stores[0]).await;
}

/// Others that write to the tables may bring this about.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_serialization_error_undid_is_done_again_and_once() {
    let server = PostgresServer::start();
    let settings = settings();
    let store = Store::connect(&server.url(), settings.clone()).await.unwrap();
    define(&store).await;
    let other = connected(&server.url()).await.unwrap();
    other.batch_execute(&format!("SET search_path = {}", settings.schema)).await.unwrap();
    other.batch_execute(TWICE_UNDONE).await.unwrap();
    let acted = store.act(one_call()).await.unwrap().remove(0);
    assert!(acted.is_ok(), "{acted:?}");
    assert_eq!(startable(&store).await, 1);
}

/// The first two transactions that write calls are undone.
const TWICE_UNDONE: &str = "\
    CREATE SEQUENCE tries;
    CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF nextval(TG_TABLE_SCHEMA || '.tries') <= 2 THEN
        RAISE 'could not serialize access' USING ERRCODE = 'serialization_failure';
      END IF;
      RETURN NULL;
    END $$;
    CREATE TRIGGER undo BEFORE INSERT ON calls FOR EACH STATEMENT EXECUTE FUNCTION undo()";

/// Whoever waits first is the one whom the server undoes: here the node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_deadlock_undid_is_done_again_and_once() {
    let server = PostgresServer::start_on(free_port(), &["deadlock_timeout=50ms"]);
    let settings = settings();
    let store = Store::connect(&server.url(), settings.clone()).await.unwrap();
    define(&store).await;
    let other = connected(&server.url()).await.unwrap();
    other.batch_execute(&format!("SET search_path = {}", settings.schema)).await.unwrap();
    other.batch_execute("BEGIN; LOCK TABLE calls IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let asking = tokio::spawn({
        let store = store.clone();
        async move { store.act(one_call()).await }
    });
    let watching = connected(&server.url()).await.unwrap();
    let waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation::regclass::text LIKE '%.calls'";
    while watching.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        moment(5).await;
    }
    other.batch_execute("LOCK TABLE turn IN ACCESS EXCLUSIVE MODE; COMMIT").await.unwrap();
    let acted = asking.await.unwrap().unwrap().remove(0);
    assert!(acted.is_ok(), "{acted:?}");
    assert_eq!(startable(&store).await, 1);
}
