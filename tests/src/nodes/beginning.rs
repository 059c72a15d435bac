//! Nodes that begin: from a snapshot and the log since, or from a folder that was moved.

use super::{node, settings};
use crate::servers::postgres::shared;
use crate::servers::proxy::moment;
use std::sync::Arc;
use tokio_postgres::NoTls;
use tollgate::embedded::{Disk, RealDisk};
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, CallId, Claim, NewCall, Payload, QueueSpec, Settle, Settlement};
use tollgate_core::{
    Definition, LaneName, Limit, LimitName, Now, QueueName, Span, Timestamp, Toll,
};
use tollgate_stores::postgres::{DatabaseSettings, MoveError, copy_folder};

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn limit() -> LimitName {
    LimitName::new("l").unwrap()
}

async fn define(store: &Store) {
    store.define_queue(queue(), QueueSpec::default()).await.unwrap().unwrap();
    let definition = Definition::new(Limit::per(10, Span::from_days(1))).unwrap();
    let change = Configure::limit(limit(), Some(definition));
    store.configure(change).await.unwrap().unwrap();
}

/// Hands in a call of a lane that says its number.
async fn enqueue(store: &Store, lane: &str, number: u64) -> CallId {
    let toll = Toll { limit: limit(), partition: None, weight: 1, hears_feedback: false };
    let call = NewCall {
        tolls: [toll].into(),
        payload: Payload::body_alone(&number.to_le_bytes()),
        ..NewCall::new(queue(), LaneName::new(lane).unwrap())
    };
    let act = Act { enqueue: vec![call], ..Act::default() };
    store.act(vec![act]).await.unwrap().remove(0).unwrap().enqueued[0]
}

/// Starts and ends calls until none may start; says the numbers in order.
async fn drain(store: &Store) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let claim = Claim { queue: queue(), most: 10, lease: None, asks: Span::ZERO };
        let claimed = store.claim(claim).await.unwrap();
        if claimed.is_empty() {
            return numbers;
        }
        for call in claimed {
            numbers.push(u64::from_le_bytes(call.payload.body().try_into().unwrap()));
            let settle = vec![Settle::new(call.started.lease, Settlement::Done)];
            let done = store.act(vec![Act { settle, ..Act::default() }]).await.unwrap().remove(0);
            assert!(done.is_ok(), "{done:?}");
        }
    }
}

async fn say(settings: &DatabaseSettings, sql: &str) -> i64 {
    let (client, connection) = tokio_postgres::connect(shared(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.query_one(&sql.replace("SCHEMA", &settings.schema), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_database_that_has_no_place_for_every_name_is_refused() {
    let (settings, name) = (settings(), settings().schema);
    let (client, connection) = tokio_postgres::connect(shared(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let made = "TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'";
    client.batch_execute(&format!("CREATE DATABASE {name} {made}")).await.unwrap();
    let (server, _) = shared().rsplit_once('/').unwrap();
    let refused = Store::connect(&format!("{server}/{name}"), settings).await.err().unwrap();
    client.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
    assert!(refused.to_string().contains("encoding is LATIN1"), "{refused}");
}

#[tokio::test]
async fn a_node_begins_with_a_snapshot_and_what_happened_since() {
    let settings = DatabaseSettings { snapshot_bytes: 2_000, ..settings() };
    let first = node(&settings).await;
    define(&first).await;
    for number in 0..3 {
        enqueue(&first, "a", number).await;
    }
    assert_eq!(drain(&first).await, [0, 1, 2]);
    let mut number = 3;
    // Until there is a snapshot, and something behind it.
    while say(&settings, "SELECT count(*) FROM SCHEMA.snapshots").await == 0 {
        enqueue(&first, "a", number).await;
        number += 1;
    }
    enqueue(&first, "a", number).await;
    let second = node(&settings).await;
    drop(first);
    let rest: Vec<u64> = (3..10).collect();
    assert_eq!(drain(&second).await, rest, "seven are left of the limit's ten");
}

#[tokio::test]
async fn what_ended_makes_room_as_the_log_grows() {
    let settings = DatabaseSettings { snapshot_bytes: 2_000, ..settings() };
    let store = node(&settings).await;
    define(&store).await;
    let swept = "SELECT count(*) FROM pg_stat_user_tables WHERE schemaname = 'SCHEMA' \
                 AND relname IN ('log', 'calls') AND vacuum_count > 0";
    while say(&settings, swept).await < 2 {
        enqueue(&store, "a", 1).await;
        moment(5).await;
    }
}

#[tokio::test]
async fn the_log_is_cut_behind_a_snapshot_and_nodes_that_follow_go_on() {
    let settings = DatabaseSettings { snapshot_bytes: 2_000, ..settings() };
    let (first, second) = (node(&settings).await, node(&settings).await);
    define(&first).await;
    for number in 0..5 {
        enqueue(&first, "a", number).await;
    }
    // What is a minute old is cut with the next snapshot.
    let sql = "WITH old AS (UPDATE SCHEMA.log SET at = at - interval '2 minutes' RETURNING 1) \
               SELECT count(*) FROM old";
    let before = say(&settings, sql).await;
    let mut number = 5;
    while say(&settings, "SELECT count(*) FROM SCHEMA.log WHERE seq < 3").await > 0 {
        enqueue(&first, "a", number).await;
        number += 1;
        moment(5).await;
    }
    assert!(before >= 3, "{before}");
    assert_eq!(drain(&second).await, (0..10).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_folder_moves_with_all_that_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let started = Now::both(Timestamp::default().plus(Span::from_days(20_000)));
    let store = Store::open(folder.path(), Arc::new(move || started)).unwrap().store;
    define(&store).await;
    for number in 0..4 {
        enqueue(&store, "a", number).await;
    }
    enqueue(&store, "b", 4).await;
    let claim = Claim { queue: queue(), most: 1, lease: None, asks: Span::ZERO };
    let held = store.claim(claim).await.unwrap().remove(0).started.lease;
    drop(store);
    let time = Some(Arc::new(move || started) as _);
    let settings = DatabaseSettings { time, ..settings() };
    let disk = || Arc::new(RealDisk::existing(folder.path()).unwrap()) as Arc<dyn Disk>;
    let checked = copy_folder(disk(), shared(), &settings).await.unwrap();
    assert_eq!((checked.waiting, checked.in_flight), (4, 1));
    let store = node(&settings).await;
    let settle = vec![Settle::new(held, Settlement::Done)];
    let done = store.act(vec![Act { settle, ..Act::default() }]).await.unwrap().remove(0);
    assert!(done.is_ok(), "the lease is good: {done:?}");
    let mut rest = drain(&store).await;
    rest.sort_unstable();
    assert_eq!(rest, [1, 2, 3, 4]);
    let left = store.inspect(vec![(limit(), None)]).await.unwrap().remove(0).unwrap();
    assert_eq!(left.standing.remaining, 5, "what was spent is spent");
    let again = copy_folder(disk(), shared(), &settings).await;
    assert!(matches!(again, Err(MoveError::InUse { .. })), "{again:?}");
}
