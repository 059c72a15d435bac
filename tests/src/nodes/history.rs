//! History that many nodes write and read.

use super::{eventually, node, settings};
use crate::servers::postgres::{PostgresServer, shared};
use parking_lot::Mutex;
use std::process::Command;
use std::sync::Arc;
use tokio_postgres::{Client, NoTls};
use tollgate::store::Store;
use tollgate::{Now, Span, Timestamp};
use tollgate_core::contract::{HistoryQuery, Lanes};
use tollgate_core::lanes::act::REPORT_BYTES_MAX;
use tollgate_core::lanes::{
    Act, CallId, Claim, End, Event, NewCall, QueueSpec, Settle, Settlement,
};
use tollgate_core::{LaneName, QueueName};
use tollgate_stores::embedded::HistorySettings;
use tollgate_stores::postgres::DatabaseSettings;

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn lane(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

async fn define(store: &Store) {
    store.define_queue(queue(), QueueSpec::default()).await.unwrap().unwrap();
}

async fn enqueue(store: &Store, lanes: &[&str]) -> Vec<CallId> {
    let enqueue = lanes.iter().map(|name| NewCall::new(queue(), lane(name))).collect();
    let acted = store.act(vec![Act { enqueue, ..Act::default() }]).await.unwrap().remove(0);
    acted.unwrap().enqueued.into()
}

/// Starts all that can be, and settles it.
async fn settle(store: &Store, settlement: Settlement, report: &[u8]) {
    let claim = Claim { queue: queue(), most: 1_000, lease: None, asks: Span::ZERO };
    let claimed = store.claim(claim).await.unwrap().into_iter();
    let acts = claimed.map(|claimed| {
        let settle = Settle::new(claimed.started.lease, settlement);
        Act { settle: vec![Settle { report: report.into(), ..settle }], ..Act::default() }
    });
    let settled = store.act(acts.collect()).await.unwrap();
    assert!(!settled.is_empty() && settled.iter().all(Result::is_ok), "{settled:?}");
}

/// A call that was done.
async fn done(store: &Store) -> CallId {
    let id = enqueue(store, &["a"]).await[0];
    settle(store, Settlement::Done, &[]).await;
    id
}

fn everything() -> HistoryQuery {
    HistoryQuery { most: 1_000, ..HistoryQuery::default() }
}

fn ends() -> HistoryQuery {
    HistoryQuery { end: Some(End::Done), ..everything() }
}

fn calls(events: &[Event]) -> Vec<CallId> {
    events.iter().map(|event| event.call).collect()
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// One value of a row, in which SCHEMA is the schema.
async fn say(client: &Client, settings: &DatabaseSettings, sql: &str) -> i64 {
    let sql = sql.replace("SCHEMA", &settings.schema);
    client.query_one(&sql, &[]).await.unwrap().get(0)
}

/// Asks until it is answered, as it is once a server is back, and until there is something.
async fn until_told(store: &Store, call: CallId) {
    let mut last = None;
    for _ in 0..500 {
        match store.histories(vec![call]).await {
            Ok(histories) if !histories[0].is_empty() => return,
            other => last = Some(other),
        }
        let pause = std::time::Duration::from_millis(20);
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
    }
    panic!("it does not come: {last:?}");
}

/// Waits until a query says that there is something.
async fn until_there(client: &Client, sql: &str) {
    for _ in 0..10_000 {
        let row = client.query_one(&format!("SELECT EXISTS ({sql})"), &[]).await.unwrap();
        if row.get(0) {
            return;
        }
    }
    panic!("it does not come: {sql}");
}

#[tokio::test]
async fn nodes_see_what_each_other_told_in_the_order_in_which_it_happened() {
    let settings = settings();
    let (one, two) = (node(&settings).await, node(&settings).await);
    define(&one).await;
    let id = enqueue(&one, &["a"]).await[0];
    settle(&one, Settlement::Retry(Some(Span::ZERO)), b"first").await;
    settle(&two, Settlement::Done, b"second").await;
    two.histories(vec![id]).await.unwrap().remove(0);
    let told = one.histories(vec![id]).await.unwrap().remove(0);
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told.is_sorted_by_key(|event| event.at.at), "{told:?}");
    assert_eq!(told[2].end(), Some(End::Done));
    assert_eq!(two.histories(vec![id]).await.unwrap().remove(0), told);
    let pages = [one.history(everything()).await, two.history(everything()).await];
    let [first, second] = pages.map(Result::unwrap);
    assert_eq!((first.events.len(), &first), (3, &second));
}

#[tokio::test]
async fn a_node_that_closes_has_written_what_it_was_told() {
    let settings = settings();
    let one = node(&settings).await;
    define(&one).await;
    done(&one).await;
    drop(one);
    let told = "SELECT count(*) FROM SCHEMA.history";
    assert_eq!(say(&client(shared()).await, &settings, told).await, 1);
}

/// What keeps everyone from telling history, while calls go on.
fn hold(settings: &DatabaseSettings) -> String {
    format!("BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('{}', 8658))", settings.schema)
}

#[tokio::test]
async fn what_a_node_had_not_told_when_it_ended_another_tells() {
    let settings = settings();
    let (one, two) = (node(&settings).await, node(&settings).await);
    define(&one).await;
    let client = client(shared()).await;
    client.batch_execute(&hold(&settings)).await.unwrap();
    let ids = [done(&one).await, done(&one).await];
    drop(one);
    assert_eq!(say(&client, &settings, "SELECT count(*) FROM SCHEMA.history").await, 0);
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(calls(&two.history(ends()).await.unwrap().events), [ids[1], ids[0]]);
    assert_eq!(two.history_dropped(), 0);
}

#[tokio::test]
async fn history_is_told_though_nobody_asks() {
    let settings = settings();
    let store = node(&settings).await;
    define(&store).await;
    let client = client(shared()).await;
    for count in 1..=2 {
        done(&store).await;
        let told = format!("SELECT FROM {}.history HAVING count(*) = {count}", settings.schema);
        until_there(&client, &told).await;
    }
    let left = "SELECT count(*) FROM SCHEMA.untold";
    assert_eq!(say(&client, &settings, left).await, 0);
}

#[tokio::test]
async fn what_the_database_refuses_is_dropped_and_counted_and_holds_up_nothing() {
    let settings = settings();
    let store = node(&settings).await;
    define(&store).await;
    let before = done(&store).await;
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [before]);
    let client = client(shared()).await;
    let rule = format!(
        "ALTER TABLE {}.history ADD CONSTRAINT refused CHECK (lane <> 'poison') NOT VALID",
        settings.schema
    );
    client.batch_execute(&rule).await.unwrap();
    enqueue(&store, &["poison"]).await;
    settle(&store, Settlement::Done, &[]).await;
    eventually(async || (store.history_dropped() == 1).then_some(())).await;
    let after = done(&store).await;
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [after, before]);
}

#[tokio::test]
async fn a_node_without_history_tells_none_and_leaves_what_others_keep() {
    let settings = settings();
    let one = node(&settings).await;
    let two = node(&DatabaseSettings { history: HistorySettings::OFF, ..settings }).await;
    define(&one).await;
    let id = done(&one).await;
    assert_eq!(one.histories(vec![id]).await.unwrap().remove(0).len(), 2);
    let untold = done(&two).await;
    assert_eq!(two.histories(vec![id]).await.unwrap().remove(0), []);
    drop(two);
    assert_eq!(one.histories(vec![untold]).await.unwrap().remove(0), []);
    assert_eq!(one.histories(vec![id]).await.unwrap().remove(0).len(), 2);
}

#[tokio::test]
async fn old_days_go_and_today_stays() {
    // 2024-10-04.
    let begin = Timestamp::default().plus(Span::from_days(20_000));
    let now = Arc::new(Mutex::new(Now::both(begin)));
    let clock = now.clone();
    let history = HistorySettings { age: Span::from_days(1), ..HistorySettings::default() };
    let time = Some(Arc::new(move || *clock.lock()) as _);
    let settings = DatabaseSettings { time, history, ..settings() };
    let store = node(&settings).await;
    let client = client(shared()).await;
    let days = async || {
        // What is old is looked for after what is asked for was written, and before what is asked next.
        store.history(everything()).await.unwrap();
        let sql = "SELECT relname::text FROM pg_inherits JOIN pg_class ON oid = inhrelid \
                   WHERE inhparent = 'SCHEMA.history'::regclass ORDER BY 1";
        let rows = client.query(&sql.replace("SCHEMA", &settings.schema), &[]).await.unwrap();
        let names = rows.iter().map(|row| row.get::<_, String>(0).replace("history_", ""));
        (names.collect::<Vec<_>>(), calls(&store.history(ends()).await.unwrap().events))
    };
    define(&store).await;
    let first = done(&store).await;
    store.history(everything()).await.unwrap();
    assert_eq!(days().await, (vec!["20241004".into(), "20241005".into()], vec![first]));
    *now.lock() = Now::both(begin.plus(Span::from_days(1)));
    let second = done(&store).await;
    store.history(everything()).await.unwrap();
    let there = ["20241004", "20241005", "20241006"].map(str::to_owned).to_vec();
    assert_eq!(days().await, (there, vec![second, first]), "a part of it is not old enough");
    *now.lock() = Now::both(begin.plus(Span::from_days(2)));
    store.history(everything()).await.unwrap();
    let there = ["20241005", "20241006", "20241007"].map(str::to_owned).to_vec();
    assert_eq!(days().await, (there, vec![second]));
}

#[tokio::test]
async fn only_today_stays_where_there_is_too_much() {
    let begin = Timestamp::default().plus(Span::from_days(20_000));
    let now = Arc::new(Mutex::new(Now::both(begin)));
    let clock = now.clone();
    let history = HistorySettings { bytes: 1, ..HistorySettings::default() };
    let time = Some(Arc::new(move || *clock.lock()) as _);
    let store = node(&DatabaseSettings { time, history, ..settings() }).await;
    define(&store).await;
    let first = done(&store).await;
    // Twice: it is looked for what goes after the first is answered.
    for _ in 0..2 {
        assert_eq!(calls(&store.history(ends()).await.unwrap().events), [first]);
    }
    *now.lock() = Now::both(begin.plus(Span::from_days(1)));
    let second = done(&store).await;
    store.history(ends()).await.unwrap();
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [second]);
}

#[tokio::test]
async fn a_lane_with_a_zero_in_its_name_is_found_and_told_from_one_that_looks_like_it() {
    let settings = settings();
    let store = node(&settings).await;
    define(&store).await;
    let ids = enqueue(&store, &["a\0b", "a\u{2400}b"]).await;
    settle(&store, Settlement::Done, &[]).await;
    for (id, name) in ids.iter().zip(["a\0b", "a\u{2400}b"]) {
        let query = HistoryQuery { lane: Some(lane(name)), most: 2, ..everything() };
        let found = store.history(query).await.unwrap();
        assert_eq!(calls(&found.events), [*id, *id], "{name:?}");
        assert_eq!(store.histories(vec![*id]).await.unwrap()[0][0].lane, lane(name));
    }
    let shown = "SELECT count(*) FROM SCHEMA.history WHERE lane = U&'a\\2400b'";
    // An attempt and the end that came with it are one row.
    assert_eq!(say(&client(shared()).await, &settings, shown).await, 2);
}

#[tokio::test]
async fn a_page_holds_no_more_long_reports_than_fit() {
    let store = node(&settings()).await;
    define(&store).await;
    let names: Vec<String> = (0..300).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    enqueue(&store, &names).await;
    settle(&store, Settlement::Done, &vec![7; REPORT_BYTES_MAX]).await;
    let first = store.history(everything()).await.unwrap();
    let bytes: usize = first.events.iter().map(Event::bytes).sum();
    assert!((16 << 20..=17 << 20).contains(&bytes), "{bytes}");
    let rest = HistoryQuery { after: first.next, ..everything() };
    let rest = store.history(rest).await.unwrap();
    assert_eq!(first.events.len() + rest.events.len(), 600);
    assert_eq!(rest.next, None);
    assert_eq!(store.history_dropped(), 0);
}

#[tokio::test]
async fn what_comes_while_the_database_is_away_is_written_later() {
    let server = PostgresServer::start();
    let settings = settings();
    let store = Store::connect(&server.url(), settings.clone()).await.unwrap();
    define(&store).await;
    let before = done(&store).await;
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [before]);
    // History alone is locked, so that calls go on.
    let client = client(&server.url()).await;
    let lock = format!("BEGIN; LOCK TABLE {}.history", settings.schema);
    client.batch_execute(&lock).await.unwrap();
    let later = [done(&store).await, done(&store).await];
    until_there(&client, "SELECT FROM pg_locks WHERE NOT granted").await;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let killed = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    // One of its processes was killed: it ends all others, and recovers.
    assert!(client.query("SELECT 1", &[]).await.is_err());
    until_told(&store, later[1]).await;
    let told = store.history(ends()).await.unwrap();
    assert_eq!(calls(&told.events), [later[1], later[0], before]);
    assert_eq!(store.history_dropped(), 0);
}

#[tokio::test]
async fn what_was_written_and_not_acknowledged_is_not_written_twice() {
    let server = PostgresServer::start();
    let settings = settings();
    let store = Store::connect(&server.url(), settings.clone()).await.unwrap();
    define(&store).await;
    let before = done(&store).await;
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [before]);
    let (lock, client) = (client(&server.url()).await, client(&server.url()).await);
    lock.batch_execute(&format!("BEGIN; LOCK TABLE {}.history", settings.schema)).await.unwrap();
    let later = done(&store).await;
    until_there(&client, "SELECT FROM pg_locks WHERE NOT granted").await;
    // From now on commits are kept, and wait for a server that never comes.
    for statement in
        ["ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"]
    {
        client.batch_execute(statement).await.unwrap();
    }
    until_there(&client, "SELECT WHERE current_setting('synchronous_standby_names') <> ''").await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    let waits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    until_there(&client, &format!("SELECT {waits}")).await;
    let ended = format!("SELECT count(pg_terminate_backend(pid)) {waits}");
    assert_eq!(say(&client, &settings, &ended).await, 1);
    for statement in ["ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"] {
        client.batch_execute(statement).await.unwrap();
    }
    until_told(&store, later).await;
    assert_eq!(calls(&store.history(ends()).await.unwrap().events), [later, before]);
    assert_eq!(store.history_dropped(), 0);
}
