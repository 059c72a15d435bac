//! Calls that an application hands in by SQL, within its own transaction.

use super::{application, eventually, node, settings};
use crate::servers::postgres::shared;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_postgres::Client;
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, Claim, Claimed, Order, QueueSpec, QueueToll, Settle, Settlement};
use tollgate_core::{Definition, Limit, LimitName, Now, QueueName, Span, Timestamp};
use tollgate_stores::postgres::DatabaseSettings;

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

async fn define(store: &Store, name: &str, spec: QueueSpec) {
    store.define_queue(queue(name), spec).await.unwrap().unwrap();
}

async fn define_limit(store: &Store, name: &str) {
    let definition = Definition::new(Limit::per_minute(10)).unwrap();
    let change = Configure::limit(LimitName::new(name).unwrap(), Some(definition));
    store.configure(change).await.unwrap().unwrap();
}

/// A node with the queue `q`, of which many calls of a lane start at a time, and an application.
async fn stage() -> (DatabaseSettings, Store, Client) {
    let settings = settings();
    let store = node(&settings).await;
    define(&store, "q", QueueSpec { order: Order::Parallel(10_000), ..QueueSpec::default() }).await;
    let application = application(&settings).await;
    (settings, store, application)
}

async fn claim(store: &Store, most: usize) -> Vec<Claimed> {
    let claim = Claim { queue: queue("q"), most, lease: None, asks: Span::ZERO };
    store.claim(claim).await.unwrap()
}

/// The bodies of the next so many calls, in the order in which they start.
async fn bodies(store: &Store, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    while bodies.len() < count {
        let most = count - bodies.len();
        let claimed = eventually(|| async {
            Some(claim(store, most).await).filter(|claimed| !claimed.is_empty())
        })
        .await;
        bodies.extend(claimed.iter().map(body));
    }
    bodies
}

fn body(claimed: &Claimed) -> String {
    String::from_utf8(claimed.payload.body().to_vec()).unwrap()
}

/// Waits until no ticket is left.
async fn all_are_taken(application: &Client) {
    eventually(|| async {
        let left = application.query_one("SELECT count(*) FROM inbox", &[]).await.unwrap();
        (left.get::<_, i64>(0) == 0).then_some(())
    })
    .await;
}

/// What is said of a ticket that is not taken.
async fn refusal(application: &Client, ticket: i64) -> String {
    let said = "SELECT refused FROM inbox WHERE ticket = $1 AND refused IS NOT NULL";
    eventually(|| async {
        let found = application.query_opt(said, &[&ticket]).await.unwrap();
        found.map(|row| row.get(0))
    })
    .await
}

async fn enqueue(application: &Client, arguments: &str) -> i64 {
    let sql = format!("SELECT enqueue({arguments})");
    application.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_call_starts_only_after_the_transaction_that_enqueues_it_commits() {
    let (_, store, application) = stage().await;
    application.batch_execute("BEGIN").await.unwrap();
    enqueue(&application, r#"'q', 'acme', '{"n": 1}'"#).await;
    // A second one is committed later, and its node looks at the inbox: the first is not to be seen.
    let other = super::application(&settings_of(&application).await).await;
    enqueue(&other, "'q', 'acme', '2'").await;
    assert_eq!(bodies(&store, 1).await, ["2"]);
    assert_eq!(claim(&store, 1).await, []);
    application.batch_execute("COMMIT").await.unwrap();
    assert_eq!(bodies(&store, 1).await, [r#"{"n": 1}"#]);
}

async fn settings_of(application: &Client) -> DatabaseSettings {
    let schema = application.query_one("SHOW search_path", &[]).await.unwrap().get(0);
    DatabaseSettings { schema, ..settings() }
}

#[tokio::test]
async fn a_call_never_starts_if_its_transaction_rolls_back() {
    let (_, store, application) = stage().await;
    application.batch_execute("BEGIN").await.unwrap();
    enqueue(&application, "'q', 'acme', '1'").await;
    application.batch_execute("ROLLBACK").await.unwrap();
    enqueue(&application, "'q', 'acme', '2'").await;
    assert_eq!(bodies(&store, 1).await, ["2"]);
    all_are_taken(&application).await;
    assert_eq!(claim(&store, 1).await, []);
}

#[tokio::test]
async fn a_thousand_of_one_transaction_come_in_order() {
    let (_, store, application) = stage().await;
    let many = "SELECT enqueue('q', 'acme', to_jsonb(n)) FROM generate_series(1, 1500) AS n";
    application.batch_execute(many).await.unwrap();
    let expected: Vec<String> = (1..=1500).map(|n| n.to_string()).collect();
    assert_eq!(bodies(&store, 1500).await, expected);
    all_are_taken(&application).await;
}

#[tokio::test]
async fn a_call_carries_all_that_was_said() {
    let (_, store, application) = stage().await;
    define_limit(&store, "stripe").await;
    let sql = r#"SELECT enqueue_bytes('q', 'acme', '\x00ff', priority => 7, dedupe_id => 'once',
        tolls => '[{"limit": "stripe", "partition": "acme", "weight": 2}]')"#;
    for _ in 0..2 {
        application.batch_execute(sql).await.unwrap();
    }
    let later = "'q', 'acme', null, not_before => '2999-01-01 00:00:00Z', supersedes => 'key'";
    enqueue(&application, later).await;
    all_are_taken(&application).await;
    let claimed = claim(&store, 10).await;
    assert_eq!(claimed.len(), 1, "one is a duplicate, and one is not due");
    assert_eq!(claimed[0].payload.body(), [0, 0xff]);
    let call = claimed[0].started.lease.call;
    let view = store.look(vec![call]).await.unwrap().remove(0).unwrap();
    let toll = &view.tolls[0];
    let partition = toll.partition.as_ref().map(|partition| partition.as_str());
    assert_eq!((toll.limit.as_str(), partition, toll.weight), ("stripe", Some("acme"), 2));
    assert_eq!(view.priority.level(), 7);
}

#[tokio::test]
async fn what_is_wrong_fails_the_transaction_and_says_why() {
    let (_, _store, application) = stage().await;
    let long = format!("'q', '{}', null", "x".repeat(513));
    for (arguments, why) in [
        ("'typo', 'acme', null", "there is no queue typo: define it first"),
        ("'task/resize', 'acme', null", "those of runs"),
        ("'', 'acme', null", "a queue name needs 1 to 512 bytes, and this one is empty"),
        ("'q', null, null", "a lane name needs 1 to 512 bytes, and this one is null"),
        (long.as_str(), "a lane name may have up to 512 bytes, and this one has 513"),
        ("'q', 'acme', null, priority => 10", "a priority is 0 to 9, and this is 10"),
        ("'q', 'acme', null, delay => '-1s'", "a delay is not negative"),
        ("'q', 'acme', null, delay => '1s', not_before => now()", "they say the same"),
        ("'q', 'acme', null, dedupe_id => 'tollgate/x'", "Tollgate's own"),
        ("'q', 'acme', null, tolls => '{}'", "tolls are an array"),
        ("'q', 'acme', null, tolls => '[1]'", "a toll is an object"),
        (r#"'q', 'acme', null, tolls => '[{"partition": "a"}]'"#, "limit of"),
        (r#"'q', 'acme', null, tolls => '[{"limit": "l", "weight": 0}]'"#, "weight of"),
        (r#"'q', 'acme', null, tolls => '[{"limit": "l", "wait": 1}]'"#, "wait of"),
        (r#"'q', 'acme', null, tolls => '[{"limit": ""}]'"#, "a limit name needs"),
    ] {
        let sql = format!("BEGIN; SELECT enqueue({arguments})");
        let failed = application.batch_execute(&sql).await.unwrap_err();
        let said = failed.as_db_error().unwrap().message().to_owned();
        assert!(said.starts_with("tollgate: ") && said.contains(why), "{arguments}: {said}");
        application.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn an_application_needs_no_right_at_the_tables() {
    let (settings, store, application) = stage().await;
    let role = &settings.schema;
    let become_it =
        format!("CREATE ROLE {role}; GRANT USAGE ON SCHEMA {role} TO {role}; SET ROLE {role}");
    application.batch_execute(&become_it).await.unwrap();
    let unasked = application.query("SELECT enqueue('q', 'acme', '0')", &[]).await;
    assert!(unasked.is_err(), "who may look may not hand in");
    let grant = format!("RESET ROLE; GRANT EXECUTE ON FUNCTION enqueue TO {role}; SET ROLE {role}");
    application.batch_execute(&grant).await.unwrap();
    enqueue(&application, "'q', 'acme', '1'").await;
    assert!(application.batch_execute("DELETE FROM inbox").await.is_err());
    let cease = format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}");
    application.batch_execute(&cease).await.unwrap();
    assert_eq!(bodies(&store, 1).await, ["1"]);
}

#[tokio::test]
async fn a_refused_call_says_why_and_comes_when_it_can() {
    let (_, store, application) = stage().await;
    let tolls = r#"tolls => '[{"limit": "stripe"}]'"#;
    let ticket = enqueue(&application, &format!("'q', 'acme', '1', {tolls}")).await;
    // Others are not stopped by it.
    enqueue(&application, "'q', 'acme', '2'").await;
    assert_eq!(bodies(&store, 1).await, ["2"]);
    let said = refusal(&application, ticket).await;
    assert_eq!(said, "there is no limit stripe: define it first");
    define_limit(&store, "stripe").await;
    assert_eq!(bodies(&store, 1).await, ["1"]);
    all_are_taken(&application).await;
}

#[tokio::test]
async fn a_refusal_that_names_what_the_server_has_no_text_for_stops_nobody() {
    let (_, store, application) = stage().await;
    let limit = LimitName::new("a\0b").unwrap();
    let tolls = vec![QueueToll::new(limit)];
    define(&store, "odd", QueueSpec { tolls, ..QueueSpec::default() }).await;
    let ticket = enqueue(&application, "'odd', 'acme', '1'").await;
    let said = refusal(&application, ticket).await;
    assert_eq!(said, "there is no limit a\u{2400}b: define it first");
    enqueue(&application, "'q', 'acme', '2'").await;
    assert_eq!(bodies(&store, 1).await, ["2"]);
}

#[tokio::test]
async fn calls_for_a_full_queue_wait_in_order() {
    let (_, store, application) = stage().await;
    define(&store, "q", QueueSpec { depth_max: 2, ..QueueSpec::default() }).await;
    define(&store, "other", QueueSpec::default()).await;
    let many = "SELECT enqueue('q', 'acme', to_jsonb(n)) FROM generate_series(1, 5) AS n";
    application.batch_execute(many).await.unwrap();
    let last = enqueue(&application, "'q', 'acme', '6'").await;
    let said = refusal(&application, last).await;
    assert!(said.starts_with("queue q is full"), "{said}");
    let first =
        application.query_one("SELECT refused FROM inbox ORDER BY ticket LIMIT 1", &[]).await;
    let said: String = first.unwrap().get(0);
    assert_eq!(said, "queue q holds 2 calls, the most it may: it is tried again");
    // Other queues have room.
    let other = enqueue(&application, "'other', 'acme', null").await;
    eventually(|| async {
        let found = application.query_opt("SELECT FROM inbox WHERE ticket = $1", &[&other]).await;
        found.unwrap().is_none().then_some(())
    })
    .await;
    let mut came = Vec::new();
    while came.len() < 7 {
        let claimed = eventually(|| async { claim(&store, 1).await.into_iter().next() }).await;
        came.push(body(&claimed));
        settle(&store, &claimed).await;
        // There is room, and it is heard of at once: it is not to overtake those that wait for room.
        if came.len() == 1 {
            enqueue(&application, "'q', 'acme', '7'").await;
        }
    }
    assert_eq!(came, ["1", "2", "3", "4", "5", "6", "7"]);
}

async fn settle(store: &Store, claimed: &Claimed) {
    let settle = vec![Settle::new(claimed.started.lease, Settlement::Done)];
    let acted = store.act(vec![Act { settle, ..Act::default() }]).await.unwrap();
    acted.into_iter().for_each(|acted| drop(acted.unwrap()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_come_and_go_take_each_once() {
    let (settings, store, application) = stage().await;
    let count = 2_000;
    let application = Arc::new(application);
    let enqueuing = tokio::spawn({
        let application = application.clone();
        async move {
            for n in 0..count {
                enqueue(&application, &format!("'q', 'lane {}', '{n}'", n % 7)).await;
            }
        }
    });
    // Each is gone while it takes some: what it had under way is undone, or lasts.
    for round in 0..12_usize {
        let gone = node(&settings).await;
        eventually(|| async {
            let look = application.query_one("SELECT count(*) FROM calls", &[]).await.unwrap();
            (look.get::<_, i64>(0) > i64::try_from(round * 50).unwrap()).then_some(())
        })
        .await;
        drop(gone);
    }
    enqueuing.await.unwrap();
    all_are_taken(&application).await;
    let came = bodies(&store, count).await;
    let expected: BTreeSet<String> = (0..count).map(|n| n.to_string()).collect();
    assert_eq!(came.iter().cloned().collect::<BTreeSet<_>>(), expected);
    assert_eq!(claim(&store, 1).await, []);
    for lane in 0..7 {
        let of_lane = came.iter().map(|n| n.parse::<usize>().unwrap());
        let of_lane: Vec<_> = of_lane.filter(|n| n % 7 == lane).collect();
        assert!(of_lane.is_sorted(), "lane {lane}: {of_lane:?}");
    }
}

#[tokio::test]
async fn a_connection_that_breaks_in_a_round_neither_loses_nor_doubles() {
    // Its connections bear its name, so that no other test's are cut.
    let settings = settings();
    let url = format!("{}?application_name={}", shared(), settings.schema);
    let store = Store::connect(&url, settings.clone()).await.unwrap();
    define(&store, "q", QueueSpec { order: Order::Parallel(10_000), ..QueueSpec::default() }).await;
    let application = super::application(&settings).await;
    let breaker = super::application(&settings).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = current_schema";
    let count = 600;
    for n in 0..count {
        enqueue(&application, &format!("'q', 'acme', '{n}'")).await;
        if n % 20 == 0 {
            breaker.batch_execute(cut).await.unwrap();
        }
    }
    all_are_taken(&application).await;
    let mut came = Vec::new();
    while came.len() < count {
        let claim = Claim { queue: queue("q"), most: count, lease: None, asks: Span::ZERO };
        // It may hear only now that the connection is gone.
        let claimed = eventually(|| async { store.claim(claim.clone()).await.ok() }).await;
        came.extend(claimed.iter().map(body));
    }
    let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    assert_eq!(came, expected);
}

#[tokio::test]
async fn a_call_comes_though_nobody_hears_of_it() {
    let (_, store, application) = stage().await;
    let silent = "INSERT INTO inbox (queue, lane, body, tolls, priority)
        VALUES ('q', 'acme', '1', '[]', 0)";
    application.batch_execute(silent).await.unwrap();
    assert_eq!(bodies(&store, 1).await, ["1"]);
}

#[tokio::test]
async fn a_delay_is_kept() {
    let now = Arc::new(parking_lot::Mutex::new(Now::default()));
    let clock = now.clone();
    let wall = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let wall = Timestamp::from_nanos(u64::try_from(wall.as_nanos()).unwrap());
    now.lock().wall = wall;
    let time = Some(Arc::new(move || *clock.lock()) as _);
    let settings = DatabaseSettings { time, ..settings() };
    let store = node(&settings).await;
    define(&store, "q", QueueSpec::default()).await;
    let application = application(&settings).await;
    enqueue(&application, "'q', 'acme', '1', delay => '1 hour'").await;
    all_are_taken(&application).await;
    let at = |minutes| Now {
        at: Timestamp::default().plus(Span::from_minutes(minutes)),
        wall: wall.plus(Span::from_minutes(minutes)),
    };
    *now.lock() = at(59);
    assert_eq!(claim(&store, 1).await, []);
    *now.lock() = at(62);
    assert_eq!(bodies(&store, 1).await, ["1"]);
}
