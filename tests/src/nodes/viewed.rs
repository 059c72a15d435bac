//! Views for people: what they say of what there is.

use super::{application, eventually, node, settings};
use tokio_postgres::Client;
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, Claim, Claimed, NewCall, QueueSpec, Scope, Settle, Settlement};
use tollgate_core::{Definition, LaneName, Limit, LimitName, Partition, QueueName, Span, Toll};
use tollgate_stores::postgres::DatabaseSettings;

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

/// A node with the queue `q` and the limit `stripe` of two a day, and someone who looks.
async fn stage() -> (DatabaseSettings, Store, Client) {
    let settings = settings();
    let store = node(&settings).await;
    store.define_queue(queue(), QueueSpec::default()).await.unwrap().unwrap();
    let definition = Definition::new(Limit::per_day(2)).unwrap();
    let change = Configure::limit(LimitName::new("stripe").unwrap(), Some(definition));
    store.configure(change).await.unwrap().unwrap();
    let application = application(&settings).await;
    (settings, store, application)
}

async fn act(store: &Store, act: Act) {
    for acted in store.act(vec![act]).await.unwrap() {
        drop(acted.unwrap());
    }
}

/// Enqueues calls that owe at the limit, one in each lane.
async fn enqueue(store: &Store, lanes: impl Iterator<Item = String>) {
    let limit = LimitName::new("stripe").unwrap();
    let partition = Some(Partition::new("acme").unwrap());
    let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
    let call = |lane: String| NewCall {
        tolls: tolls.clone().into(),
        ..NewCall::new(queue(), LaneName::new(&lane).unwrap())
    };
    let enqueue = lanes.map(call).collect();
    act(store, Act { enqueue, ..Act::default() }).await;
}

async fn claim(store: &Store) -> Vec<Claimed> {
    let claim = Claim { queue: queue(), most: 100, lease: None, asks: Span::ZERO };
    store.claim(claim).await.unwrap()
}

async fn settle(store: &Store, claimed: &Claimed, settlement: Settlement) {
    let settle = vec![Settle::new(claimed.started.lease, settlement)];
    act(store, Act { settle, ..Act::default() }).await;
}

/// Waits until a statement says so, each row as text.
async fn says(application: &Client, sql: &str, expected: &[&str]) {
    let sql = format!("SELECT told::text FROM ({sql}) AS told");
    eventually(|| async {
        let rows = application.query(&sql, &[]).await.unwrap();
        let told = rows.iter().map(|row| row.get::<_, &str>(0));
        told.eq(expected.iter().copied()).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_waits_is_seen_until_it_starts() {
    let (_, store, application) = stage().await;
    enqueue(&store, ["a", "b", "c"].map(str::to_owned).into_iter()).await;
    let waiting = "SELECT lane, priority, not_before, age >= '0s' FROM waiting ORDER BY id";
    says(&application, waiting, &["(a,0,,t)", "(b,0,,t)", "(c,0,,t)"]).await;
    let claimed = claim(&store).await;
    assert_eq!(claimed.len(), 2);
    says(&application, waiting, &["(c,0,,t)"]).await;
    settle(&store, &claimed[0], Settlement::Dead).await;
    settle(&store, &claimed[1], Settlement::Release).await;
    says(&application, waiting, &["(b,0,,t)", "(c,0,,t)"]).await;
    let queues = "SELECT queue, waiting, in_flight, dead, is_paused FROM queues";
    says(&application, queues, &["(q,2,0,1,f)"]).await;
}

#[tokio::test]
async fn lanes_say_what_blocks_them() {
    let (_, store, application) = stage().await;
    enqueue(&store, ["a", "b", "c", "d"].map(str::to_owned).into_iter()).await;
    assert_eq!(claim(&store).await.len(), 2);
    store.pause(Scope::Lane(queue(), LaneName::new("d").unwrap())).await.unwrap();
    let lanes =
        "SELECT lane, waiting, in_flight, blocked_by, not_before > now() FROM lanes ORDER BY lane";
    let told =
        ["(a,0,1,,)", "(b,0,1,,)", "(c,1,0,\"limit stripe:acme\",t)", "(d,1,0,\"it is paused\",)"];
    says(&application, lanes, &told).await;
    store.pause(Scope::Queue(queue())).await.unwrap();
    let lanes = "SELECT DISTINCT blocked_by FROM lanes WHERE waiting > 0";
    says(&application, lanes, &["(\"its queue is paused\")"]).await;
}

#[tokio::test]
async fn meters_and_limits_say_how_they_stand() {
    let (_, store, application) = stage().await;
    enqueue(&store, ["a", "b", "c"].map(str::to_owned).into_iter()).await;
    assert_eq!(claim(&store).await.len(), 2);
    let meters = "SELECT \"limit\", partition, capacity, used, remaining, waiting,
        next_admission > now(), closed_why FROM meters";
    says(&application, meters, &["(stripe,acme,2,2,0,1,t,)"]).await;
    let name = (LimitName::new("stripe").unwrap(), Some(Partition::new("acme").unwrap()));
    store.close(name, Span::from_minutes(5), "upstream is down".into()).await.unwrap().unwrap();
    let closed = "SELECT closed_until BETWEEN now() + interval '4 minutes'
        AND now() + interval '6 minutes', closed_why FROM meters";
    says(&application, closed, &["(t,\"upstream is down\")"]).await;
    let limits = "SELECT * FROM limits";
    says(&application, limits, &["(stripe,\"2 per 1d, burst 2\",f)"]).await;
    store.pause(Scope::Limit(LimitName::new("stripe").unwrap())).await.unwrap();
    says(&application, limits, &["(stripe,\"2 per 1d, burst 2\",t)"]).await;
}

#[tokio::test]
async fn there_are_no_more_lanes_to_see_than_a_person_looks_through() {
    let (_, store, application) = stage().await;
    for lanes in [0..6_000, 6_000..12_000] {
        enqueue(&store, lanes.map(|lane| format!("lane {lane}"))).await;
    }
    let seen = "SELECT count(*), (SELECT more FROM beyond WHERE what = 'lanes') FROM lanes";
    says(&application, seen, &["(10000,2000)"]).await;
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changes() {
    let (_, store, application) = stage().await;
    enqueue(&store, (0..100).map(|lane| format!("lane {lane}"))).await;
    says(&application, "SELECT count(*) FROM lanes", &["(100)"]).await;
    // Who wrote each version of a row.
    let versions = "SELECT string_agg(xmin::text, ' ' ORDER BY queue, lane) FROM lanes_now";
    let before: String = application.query_one(versions, &[]).await.unwrap().get(0);
    enqueue(&store, ["lane 7".to_owned()].into_iter()).await;
    says(&application, "SELECT waiting FROM lanes WHERE lane = 'lane 7'", &["(2)"]).await;
    let after: String = application.query_one(versions, &[]).await.unwrap().get(0);
    let changed = before.split(' ').zip(after.split(' ')).filter(|(old, new)| old != new);
    assert_eq!(changed.count(), 1);
}

#[tokio::test]
async fn another_node_reports_when_one_is_gone() {
    let (settings, store, application) = stage().await;
    says(&application, "SELECT queue FROM queues", &["(q)"]).await;
    let other = node(&settings).await;
    drop(store);
    enqueue(&other, ["a".to_owned()].into_iter()).await;
    says(&application, "SELECT lane FROM lanes", &["(a)"]).await;
}

#[tokio::test]
async fn a_node_that_is_not_to_report_does_not() {
    let settings = DatabaseSettings { report: false, ..settings() };
    let store = node(&settings).await;
    store.define_queue(queue(), QueueSpec::default()).await.unwrap().unwrap();
    let application = application(&settings).await;
    // It is taken only when the node looks by itself, later than one would have begun to report.
    let silent = "INSERT INTO inbox (queue, lane, body, tolls, priority)
        VALUES ('q', 'a', '', '[]', 0)";
    application.batch_execute(silent).await.unwrap();
    says(&application, "SELECT lane FROM calls", &["(a)"]).await;
    says(&application, "SELECT node FROM reporter", &["(0)"]).await;
}

#[tokio::test]
async fn every_view_and_column_is_described() {
    let (_, _store, application) = stage().await;
    let undescribed = "SELECT relname, attname FROM pg_class
        JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = current_schema::regnamespace AND relkind = 'v' AND attnum > 0
        AND (col_description(pg_class.oid, attnum) IS NULL
             OR obj_description(pg_class.oid, 'pg_class') IS NULL)";
    says(&application, undescribed, &[]).await;
    says(&application, "SELECT count(*) FROM pg_views WHERE schemaname = current_schema", &["(6)"])
        .await;
}
