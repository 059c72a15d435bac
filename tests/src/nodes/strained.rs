//! A server that is far away, or where others are in the way: all is done, once, and in order.

use super::load::{Load, define, queue, surely};
use super::{eventually, settings};
use crate::servers::free_port;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::{Manner, Proxy, moment};
use tokio_postgres::{Client, NoTls};
use tollgate::store::Store;
use tollgate_core::contract::{Lanes, StoreError};
use tollgate_core::lanes::{Act, Claim, NewCall};
use tollgate_core::{LaneName, Span};

async fn connected(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A node, and somebody else with its tables at hand.
async fn node_and_other(server: &PostgresServer) -> (Store, Client) {
    let settings = settings();
    let store = Store::connect(&server.url(), settings.clone()).await.unwrap();
    define(&store).await;
    let other = connected(&server.url()).await.unwrap();
    other.batch_execute(&format!("SET search_path = {}", settings.schema)).await.unwrap();
    (store, other)
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
    let (store, other) = node_and_other(&server).await;
    other.batch_execute(&undone(2, "serialization_failure")).await.unwrap();
    let acted = store.act(one_call()).await.unwrap().remove(0);
    assert!(acted.is_ok(), "{acted:?}");
    assert_eq!(startable(&store).await, 1);
}

/// The first of the transactions that write calls are undone, so many of them, for this reason.
fn undone(first: u32, reason: &str) -> String {
    format!(
        "CREATE SEQUENCE tries;
         CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF nextval(TG_TABLE_SCHEMA || '.tries') <= {first} THEN
             RAISE 'it is said so' USING ERRCODE = '{reason}';
           END IF;
           RETURN NULL;
         END $$;
         CREATE TRIGGER undo BEFORE INSERT ON calls FOR EACH STATEMENT EXECUTE FUNCTION undo()"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_found_no_room_on_the_disk_is_done_once_there_is_some_and_others_are_told() {
    let server = PostgresServer::start();
    let (store, other) = node_and_other(&server).await;
    other.batch_execute(&undone(1_000_000, "disk_full")).await.unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { store.act(one_call()).await }
    });
    while !other.query_one("SELECT is_called FROM tries", &[]).await.unwrap().get::<_, bool>(0) {
        moment(5).await;
    }
    let refused = store.act(one_call()).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::Full { reason } if reason.contains("make room")),
        "{refused}"
    );
    other.batch_execute("DROP TRIGGER undo ON calls").await.unwrap();
    let acted = first.await.unwrap().unwrap().remove(0);
    assert!(acted.is_ok(), "{acted:?}");
    assert_eq!(startable(&store).await, 1, "what was refused is not there");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_out_of_connections_loses_nothing_and_is_gone_on_with() {
    let server = PostgresServer::start();
    let settings = settings();
    let other = connected(&server.url()).await.unwrap();
    other
        .batch_execute("CREATE ROLE few LOGIN; GRANT CREATE ON DATABASE postgres TO few")
        .await
        .unwrap();
    let url = server.url().replace("//postgres@", "//few@");
    let store = Store::connect(&url, settings).await.unwrap();
    define(&store).await;
    let before = store.act(one_call()).await.unwrap().remove(0);
    assert!(before.is_ok(), "{before:?}");
    other.batch_execute("ALTER ROLE few CONNECTION LIMIT 0").await.unwrap();
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'few'";
    assert!(other.query_one(cut, &[]).await.unwrap().get::<_, i64>(0) > 0);
    let refused = loop {
        // The last connection may be about to end.
        match store.act(one_call()).await {
            Err(error) => break error,
            Ok(acted) => assert!(acted[0].is_ok()),
        }
    };
    let said = refused.to_string();
    assert!(matches!(refused, StoreError::Unreachable { .. }), "{said}");
    other.batch_execute("ALTER ROLE few CONNECTION LIMIT -1").await.unwrap();
    assert!(startable(&store).await >= 1, "it goes on by itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lets_it_not_in_for_a_while_is_gone_on_with() {
    let server = PostgresServer::start();
    let (_, other) = node_and_other(&server).await;
    other.batch_execute("CREATE ROLE app SUPERUSER LOGIN").await.unwrap();
    let url = server.url().replace("://postgres@", "://app@");
    let store = Store::connect(&url, settings()).await.unwrap();
    define(&store).await;
    let locked_out = "ALTER ROLE app NOLOGIN;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'";
    other.batch_execute(locked_out).await.unwrap();
    let told = store.act(one_call()).await.unwrap_err();
    let StoreError::Unreachable { reason } = &told else { panic!("{told:?}") };
    assert!(reason.contains("(28000): check user and password"), "{reason}");
    other.batch_execute("ALTER ROLE app LOGIN").await.unwrap();
    let acted = eventually(|| async { store.act(one_call()).await.ok() }).await.remove(0);
    assert!(acted.is_ok(), "{acted:?}");
}

/// The server undoes whoever has waited for its timeout when there is a deadlock, and looks once: here that is the node,
/// however long it takes until the other one waits, too, if that is less than a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_deadlock_undid_is_done_again_and_once() {
    let server = PostgresServer::start_on(free_port(), &["deadlock_timeout=1s"]);
    let (store, other) = node_and_other(&server).await;
    other.batch_execute("SET deadlock_timeout = '1min'").await.unwrap();
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
