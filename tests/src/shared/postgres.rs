//! PostgreSQL as a store of cells, with a real server.

use super::cells::{self, Add, Put, cell, change, look};
use super::lives::{self, Time};
use crate::servers::postgres::{PostgresServer, shared};
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tollgate_core::Span;
use tollgate_core::contract::StoreError;
use tollgate_stores::postgres::{Lend, Lent, PostgresCells, Settings};
use tollgate_stores::shared::cells::{CellKey, Cells, Kind, Wanted};

/// Settings with a schema that no other test has, of this run or of another.
fn settings() -> Settings {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let schema = format!("test_{}_{count}", std::process::id());
    // Many tests share two processors: what is slow there is not out of reach.
    Settings { schema, deadline: Duration::from_secs(20), ..Settings::default() }
}

async fn connected(settings: &Settings) -> PostgresCells {
    PostgresCells::connect(shared(), settings.clone()).await.unwrap()
}

/// Cells over a connection of the caller's, one at a time.
async fn lent(settings: &Settings) -> PostgresCells {
    let client = Arc::new(client(shared()).await);
    let lend: Lend = Box::new(move || {
        let client = Arc::clone(&client);
        Box::pin(async move { Ok(Box::new(client) as Lent) })
    });
    let settings = Settings { connections: 1, ..settings.clone() };
    PostgresCells::with_clients(lend, settings).await.unwrap()
}

/// A store of its own, under a test's time.
pub(super) async fn under(now: super::memory::Time) -> Arc<dyn Cells> {
    let time: Option<Arc<dyn Fn() -> tollgate_core::Now + Send + Sync>> =
        Some(Arc::new(move || *now.lock()));
    Arc::new(connected(&Settings { time, ..settings() }).await)
}

async fn several() -> Vec<Arc<dyn Cells>> {
    let settings = settings();
    let own = || async { Arc::new(connected(&settings).await) as Arc<dyn Cells> };
    vec![own().await, own().await, Arc::new(lent(&settings).await)]
}

async fn client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What a statement says, of the schema of settings.
async fn say(settings: &Settings, sql: &str) -> i64 {
    let sql = sql.replace("SCHEMA", &settings.schema);
    client(shared()).await.query_one(&sql, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_among_many() {
    cells::no_change_is_lost_among_many(&several().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cells_change_together() {
    cells::two_cells_change_together(&several().await).await;
}

/// Each case over connections of our own, and over one that is lent.
macro_rules! cases {
    ($($case:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $case() {
            cells::$case(&connected(&settings()).await).await;
            cells::$case(&lent(&settings()).await).await;
        }
    )*};
}

cases!(
    what_is_read_is_told_and_stays,
    a_cell_that_is_removed_is_gone,
    time_does_not_go_back,
    names_are_told_in_pages,
    a_name_is_told_as_long_as_it_has_a_cell,
    any_two_names_are_apart,
);

#[tokio::test]
async fn what_is_not_written_is_not_there() {
    let settings = settings();
    lives::what_is_not_written_is_not_there(&connected(&settings).await).await;
    assert_eq!(say(&settings, "SELECT count(*) FROM SCHEMA.cells").await, 2);
}

#[tokio::test]
async fn values_of_any_length_are_kept() {
    lives::values_of_any_length_are_kept(&connected(&settings()).await).await;
}

#[tokio::test]
async fn what_has_expired_is_not_there() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    lives::what_has_expired_is_not_there(&connected(&settings).await, &time).await;
}

#[tokio::test]
async fn the_time_is_told_without_cells() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    lives::the_time_is_told_without_cells(&connected(&settings).await, &time).await;
}

#[tokio::test]
async fn the_clock_is_the_servers() {
    let settings = settings();
    let before =
        say(&settings, "SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint").await;
    let mut add = Add::new(&[1]);
    change(&connected(&settings).await, &[cell(Kind::Meter, "a")], &mut add).await;
    let after =
        say(&settings, "SELECT (extract(epoch FROM clock_timestamp()) * 1e6)::bigint").await;
    let told = i64::try_from(add.now.unwrap().at.as_nanos() / 1000).unwrap();
    assert!((before..=after).contains(&told), "{told} is not between {before} and {after}");
}

#[tokio::test]
async fn expired_cells_are_swept_by_those_who_write() {
    let time = Time::new();
    let settings = Settings { time: Some(time.source()), ..settings() };
    let cells = connected(&settings).await;
    let names =
        |letter: char| (0..500).map(move |at| cell(Kind::Meter, &format!("{letter}{at:03}")));
    let (old, new): (Vec<_>, Vec<_>) = (names('b').collect(), names('a').collect());
    let mut add = Add::new(&[1; 500]);
    add.life = Some(Span::from_secs(1));
    change(&cells, &old, &mut add).await;
    change(&cells, &[cell(Kind::Limit, "kept")], &mut Put(vec![Some(vec![1])], None)).await;
    time.pass(Span::from_secs(1));
    add.life = None;
    for new in new.chunks(50) {
        change(&cells, new, &mut add).await;
    }
    assert_eq!(say(&settings, "SELECT count(*) FROM SCHEMA.cells").await, 501);
}

/// A pseudo-random number, from one before.
fn next(number: &mut u64) -> u64 {
    *number =
        number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *number >> 33
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_overlap_never_lock_each_other_out() {
    const TASKS: u64 = 16;
    const ROUNDS: usize = 40;
    const CELLS: u64 = 12;
    let settings = Settings { connections: 4, ..settings() };
    let store = Arc::new(connected(&settings).await);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before = say(&settings, deadlocks).await;
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let (mut number, mut sum) = (task, 0);
            let extra = ["x", "y"].map(|name| cell(Kind::Own, name));
            for _ in 0..ROUNDS {
                let picked: BTreeSet<u64> = (0..5).map(|_| next(&mut number) % CELLS).collect();
                let keys = picked.iter().map(|at| cell(Kind::Meter, &at.to_string()));
                let mut keys: Vec<CellKey> = keys.collect();
                keys.sort();
                if next(&mut number).is_multiple_of(4) {
                    // Made to be locked, and gone again: so others find none where one just was.
                    change(store.as_ref(), &extra, &mut Add::new(&[1, 0])).await;
                    change(store.as_ref(), &extra, &mut Put(vec![None, None], None)).await;
                }
                change(store.as_ref(), &keys, &mut Add::new(&vec![1; keys.len()])).await;
                sum += keys.len() as i64;
            }
            sum
        })
    });
    let mut expected = 0;
    for task in tasks.collect::<Vec<_>>() {
        expected += task.await.unwrap();
    }
    let keys: Vec<CellKey> = (0..CELLS)
        .map(|at| cell(Kind::Meter, &at.to_string()))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let found = look(store.as_ref(), &keys).await;
    let digits = found.iter().flatten().map(|value| str::from_utf8(value).unwrap());
    assert_eq!(digits.map(|digits| digits.parse::<i64>().unwrap()).sum::<i64>(), expected);
    assert_eq!(say(&settings, deadlocks).await, before, "of the whole database");
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_anew() {
    let settings = settings();
    let url = format!("{}?application_name={}", shared(), settings.schema);
    let cells = PostgresCells::connect(&url, settings.clone()).await.unwrap();
    let key = [cell(Kind::Meter, "a")];
    for _ in 0..3 {
        change(&cells, &key, &mut Add::new(&[1])).await;
        let cut = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE application_name = '{}'",
            settings.schema
        );
        assert_eq!(say(&settings, &cut).await, 1);
        cells.names(Kind::Meter, None, 1).await.unwrap();
    }
    assert_eq!(look(&cells, &key).await, [Some(b"3".to_vec())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_connect_at_once_make_the_schema_once() {
    let settings = settings();
    let connects: Vec<_> = (0..8)
        .map(|_| {
            let settings = settings.clone();
            tokio::spawn(async move {
                let cells = connected(&settings).await;
                change(&cells, &[cell(Kind::Meter, "a")], &mut Add::new(&[1])).await;
            })
        })
        .collect();
    for connect in connects {
        connect.await.unwrap();
    }
    assert_eq!(say(&settings, "SELECT max(version) - count(*) FROM SCHEMA.migrations").await, 0);
    let found = look(&connected(&settings).await, &[cell(Kind::Meter, "a")]).await;
    assert_eq!(found, [Some(b"8".to_vec())]);
}

#[tokio::test]
async fn a_schema_of_a_newer_version_is_used_unless_it_needs_a_newer_tollgate() {
    let settings = settings();
    connected(&settings).await;
    let newer = "INSERT INTO SCHEMA.migrations (version, name, needs) VALUES";
    say(&settings, &format!("{newer} (98, 'more', 1) RETURNING 1::bigint")).await;
    connected(&settings).await;
    say(&settings, &format!("{newer} (99, 'other', 98) RETURNING 1::bigint")).await;
    let refused = PostgresCells::connect(shared(), settings).await.err().unwrap();
    let StoreError::Failed { reason } = &refused else { panic!("{refused}") };
    assert!(reason.contains("99") && reason.contains("\"other\""), "{reason}");
}

#[tokio::test]
async fn who_waits_for_locked_cells_gives_up_at_the_deadline() {
    let settings = settings();
    let key = [cell(Kind::Meter, "a")];
    change(&connected(&settings).await, &key, &mut Add::new(&[1])).await;
    let other = client(shared()).await;
    let lock = format!("BEGIN; SELECT FROM {}.cells FOR UPDATE", settings.schema);
    other.batch_execute(&lock).await.unwrap();
    let hasty = Settings { deadline: Duration::from_millis(300), ..settings };
    let hasty = connected(&hasty).await;
    let gave_up = hasty.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await;
    assert!(matches!(gave_up, Err(StoreError::Unreachable { .. })), "{gave_up:?}");
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(look(&hasty, &key).await, [Some(b"1".to_vec())]);
}

#[tokio::test]
async fn a_connection_that_is_lent_comes_back_without_a_transaction() {
    let settings = settings();
    let key = [cell(Kind::Meter, "a")];
    let lent = lent(&settings).await;
    change(&lent, &key, &mut Add::new(&[1])).await;
    let other = client(shared()).await;
    let lock = format!("BEGIN; SELECT FROM {}.cells FOR UPDATE", settings.schema);
    other.batch_execute(&lock).await.unwrap();
    {
        let mut add = Add::new(&[1]);
        let dropped = lent.change(Wanted { read: &[], change: &key }, &mut add);
        let waited = tokio::time::timeout(Duration::from_millis(50), dropped).await;
        assert!(waited.is_err(), "it got a lock that another holds");
    }
    other.batch_execute("ROLLBACK").await.unwrap();
    change(&lent, &key, &mut Add::new(&[1])).await;
    assert_eq!(look(&connected(&settings).await, &key).await, [Some(b"2".to_vec())]);
}

#[tokio::test]
async fn a_server_that_is_gone_is_out_of_reach_and_no_password_is_told() {
    let server = PostgresServer::start();
    let url = server.url().replace("postgres@", "postgres:geheim@");
    let settings = settings();
    let cells = PostgresCells::connect(&url, settings.clone()).await.unwrap();
    let key = [cell(Kind::Meter, "a")];
    change(&cells, &key, &mut Add::new(&[1])).await;
    drop(server);
    let gone = cells.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await;
    let connecting = PostgresCells::connect(&url, settings).await.map(drop);
    for answer in [gone, connecting] {
        let said = format!("{answer:?}");
        assert!(matches!(answer, Err(StoreError::Unreachable { .. })), "{said}");
        assert!(!said.contains("geheim"), "{said}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_out_of_reach_at_the_deadline() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("postgres://postgres@{}/postgres", silent.local_addr().unwrap());
    let settings = Settings { deadline: Duration::from_millis(100), ..settings() };
    let answer = PostgresCells::connect(&url, settings).await.map(drop);
    assert!(matches!(answer, Err(StoreError::Unreachable { .. })), "{answer:?}");
}

#[tokio::test]
async fn a_server_that_only_reads_is_out_of_reach() {
    let settings = settings();
    let key = [cell(Kind::Meter, "a")];
    change(&connected(&settings).await, &key, &mut Add::new(&[1])).await;
    let url = format!("{}?options=-c%20default_transaction_read_only%3Don", shared());
    let reader = PostgresCells::connect(&url, settings).await.unwrap();
    assert_eq!(look(&reader, &key).await, [Some(b"1".to_vec())]);
    let refused = reader.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await;
    assert!(matches!(refused, Err(StoreError::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_role_that_may_only_read_is_told_what_to_grant() {
    let settings = settings();
    let key = [cell(Kind::Meter, "a")];
    change(&connected(&settings).await, &key, &mut Add::new(&[1])).await;
    let reading = client(shared()).await;
    let role = format!("reader_{}", settings.schema);
    reading
        .batch_execute(&format!(
            "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {0} TO {role}; \
             GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {role}",
            settings.schema
        ))
        .await
        .unwrap();
    let url = shared().replace("postgres@", &format!("{role}@"));
    let reader = PostgresCells::connect(&url, settings.clone()).await.unwrap();
    assert_eq!(look(&reader, &key).await, [Some(b"1".to_vec())]);
    let refused = reader.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await;
    let said = format!("{refused:?}");
    assert!(matches!(refused, Err(StoreError::Failed { .. })) && said.contains("grant"), "{said}");
    reading.batch_execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await.unwrap();
}
