//! Redis as a store of cells, with real servers.

pub(super) mod cluster;
mod meter;
mod quick;
mod spread;

use super::cells::{self, Add, Put, cell, change, look};
use crate::servers::redis::{RedisServer, shared};
use redis::aio::ConnectionLike;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tollgate_core::contract::StoreError;
use tollgate_core::{Now, Span, Timestamp};
use tollgate_stores::redis::{RedisCells, Settings};
use tollgate_stores::shared::cells::{Cells, Kind, Wanted};

/// Settings with a prefix that no other test has, of this run or of another.
pub(crate) fn settings() -> Settings {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let prefix = format!("test-{}-{count}", std::process::id());
    // Many tests share two processors: what is slow there is not out of reach.
    Settings { prefix, deadline: Duration::from_secs(20), time: None }
}

async fn connected(settings: &Settings) -> RedisCells {
    RedisCells::connect(shared(), settings.clone()).await.unwrap()
}

/// A store of its own, under a test's time.
pub(super) async fn under(now: super::memory::Time) -> Arc<dyn Cells> {
    let time: Option<Arc<dyn Fn() -> tollgate_core::Now + Send + Sync>> =
        Some(Arc::new(move || *now.lock()));
    Arc::new(connected(&Settings { time, ..settings() }).await)
}

async fn several() -> Vec<Arc<dyn Cells>> {
    let settings = settings();
    let mut connections: Vec<Arc<dyn Cells>> = Vec::new();
    for _ in 0..3 {
        connections.push(Arc::new(connected(&settings).await));
    }
    connections
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_among_many() {
    cells::no_change_is_lost_among_many(&several().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_cells_change_together() {
    cells::two_cells_change_together(&several().await).await;
}

#[tokio::test]
async fn what_is_read_is_told_and_stays() {
    cells::what_is_read_is_told_and_stays(&connected(&settings()).await).await;
}

#[tokio::test]
async fn a_cell_that_is_removed_is_gone() {
    cells::a_cell_that_is_removed_is_gone(&connected(&settings()).await).await;
}

#[tokio::test]
async fn time_does_not_go_back() {
    cells::time_does_not_go_back(&connected(&settings()).await).await;
}

#[tokio::test]
async fn names_are_told_in_pages() {
    cells::names_are_told_in_pages(&connected(&settings()).await).await;
}

#[tokio::test]
async fn a_name_is_told_as_long_as_it_has_a_cell() {
    cells::a_name_is_told_as_long_as_it_has_a_cell(&connected(&settings()).await).await;
}

#[tokio::test]
async fn any_two_names_are_apart() {
    cells::any_two_names_are_apart(&connected(&settings()).await).await;
}

/// What Redis says to a command.
async fn say<T: redis::FromRedisValue>(url: &str, command: &[&str]) -> T {
    let client = redis::Client::open(url).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await.unwrap()
}

#[tokio::test]
async fn the_clock_is_the_servers_or_the_tests() {
    let settings = settings();
    let mut add = Add::new(&[1]);
    change(&connected(&settings).await, &[cell(Kind::Meter, "a")], &mut add).await;
    let (seconds, _): (u64, u64) = say(shared(), &["TIME"]).await;
    let told = add.now.unwrap().at.as_nanos() / 1_000_000_000;
    assert!((seconds - 60..=seconds).contains(&told), "{told} is not {seconds}");
    let noon = Now::both(Timestamp::from_nanos(12));
    let settings = Settings { time: Some(Arc::new(move || noon)), ..settings };
    change(&connected(&settings).await, &[cell(Kind::Meter, "a")], &mut add).await;
    assert_eq!(add.now, Some(noon));
}

#[tokio::test]
async fn a_cell_lives_as_long_as_it_is_needed() {
    let settings = settings();
    let cells = connected(&settings).await;
    let (key, stored) = ([cell(Kind::Meter, "a")], format!("{{{}}}:m:1:a", settings.prefix));
    let mut add = Add::new(&[1]);
    add.life = Some(Span::from_nanos(90_000_000_001));
    change(&cells, &key, &mut add).await;
    let left: i64 = say(shared(), &["PTTL", &stored]).await;
    assert!((60_000..=90_001).contains(&left), "{left}");
    add.life = None;
    change(&cells, &key, &mut add).await;
    assert_eq!(say::<i64>(shared(), &["PTTL", &stored]).await, -1, "it is needed for good");
    add.life = Some(Span::from_nanos(1));
    change(&cells, &key, &mut add).await;
    let left: i64 = say(shared(), &["PTTL", &stored]).await;
    assert!(left <= 1, "{left}");
}

#[tokio::test]
async fn a_name_goes_with_a_cell_that_went_by_itself() {
    let settings = settings();
    let cells = connected(&settings).await;
    let keys = [cell(Kind::Limit, "a"), cell(Kind::Limit, "b")];
    change(&cells, &keys, &mut Put(vec![Some(vec![1]); 2], Some(Span::from_secs(60)))).await;
    let stored = format!("{{{}}}:l:1:a", settings.prefix);
    assert_eq!(say::<i64>(shared(), &["DEL", &stored]).await, 1);
    let names = cells.names(Kind::Limit, None, 9).await.unwrap();
    assert_eq!(names, ["b"].map(Box::from));
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_handed_over_again() {
    let server = RedisServer::start();
    let cells = RedisCells::connect(&server.url(), settings()).await.unwrap();
    let key = [cell(Kind::Meter, "a")];
    change(&cells, &key, &mut Add::new(&[1])).await;
    let () = say(&server.url(), &["SCRIPT", "FLUSH"]).await;
    change(&cells, &key, &mut Add::new(&[1])).await;
    assert_eq!(look(&cells, &key).await, [Some(b"2".to_vec())]);
}

/// Adds one, and says what came of it.
async fn add_one<C>(cells: &RedisCells<C>) -> Result<(), StoreError>
where
    C: ConnectionLike + Clone + Send + Sync + 'static,
{
    let key = [cell(Kind::Meter, "a")];
    cells.change(Wanted { read: &[], change: &key }, &mut Add::new(&[1])).await
}

#[tokio::test]
async fn goes_on_after_the_server_was_restarted() {
    let server = RedisServer::start();
    let (port, url) = (server.port(), server.url());
    let cells = RedisCells::connect(&url, settings()).await.unwrap();
    add_one(&cells).await.unwrap();
    drop(server);
    let gone = add_one(&cells).await;
    assert!(matches!(gone, Err(StoreError::Unreachable { .. })), "{gone:?}");
    let _server = RedisServer::start_on(port, &[]);
    add_one(&cells).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_out_of_reach_within_the_deadline() {
    let server = RedisServer::start();
    let settings = Settings { deadline: Duration::from_millis(100), ..settings() };
    let cells = RedisCells::connect(&server.url(), settings.clone()).await.unwrap();
    add_one(&cells).await.unwrap();
    server.server.stand_still();
    let late = tokio::time::timeout(Duration::from_secs(20), add_one(&cells)).await;
    assert!(matches!(late, Ok(Err(StoreError::Unreachable { .. }))), "{late:?}");
    let url = server.url();
    let connecting = RedisCells::connect(&url, settings);
    let late = tokio::time::timeout(Duration::from_secs(20), connecting).await.unwrap();
    assert!(matches!(late, Err(StoreError::Unreachable { .. })), "{late:?}");
}

#[tokio::test]
async fn a_server_that_is_full_says_so_and_changes_nothing() {
    let server = RedisServer::start();
    let cells = RedisCells::connect(&server.url(), settings()).await.unwrap();
    add_one(&cells).await.unwrap();
    let () = say(&server.url(), &["CONFIG", "SET", "maxmemory", "1"]).await;
    let full = add_one(&cells).await;
    assert!(matches!(full, Err(StoreError::Full { .. })), "{full:?}");
    let () = say(&server.url(), &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(look(&cells, &[cell(Kind::Meter, "a")]).await, [Some(b"1".to_vec())]);
}

#[tokio::test]
async fn a_replica_that_may_not_write_is_out_of_reach() {
    let server = RedisServer::start();
    let cells = RedisCells::connect(&server.url(), settings()).await.unwrap();
    let () = say(&server.url(), &["REPLICAOF", "127.0.0.1", "1"]).await;
    let refused = add_one(&cells).await;
    assert!(matches!(refused, Err(StoreError::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_key_that_is_another_ones_is_left_alone() {
    let settings = settings();
    let cells = connected(&settings).await;
    let stored = format!("{{{}}}:m:1:a", settings.prefix);
    let _: i64 = say(shared(), &["RPUSH", &stored, "mine"]).await;
    let failed = add_one(&cells).await;
    assert!(matches!(failed, Err(StoreError::Failed { .. })), "{failed:?}");
    assert_eq!(say::<i64>(shared(), &["LLEN", &stored]).await, 1);
}

#[tokio::test]
async fn who_may_not_come_in_is_told_without_the_password() {
    let server = RedisServer::start_on(crate::servers::free_port(), &["--requirepass", "right"]);
    let url = server.url().replace("redis://", "redis://:hunter2@");
    let refused = RedisCells::connect(&url, settings()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused:?}");
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    let wrong = RedisCells::connect("http://me:hunter2@host", settings()).await.unwrap_err();
    assert!(!wrong.to_string().contains("hunter2"), "{wrong}");
}

#[tokio::test]
async fn takes_a_connection_of_the_callers() {
    let client = redis::Client::open(shared()).unwrap();
    let connection = client.get_multiplexed_async_connection().await.unwrap();
    let cells = RedisCells::with_connection(connection, settings()).unwrap();
    add_one(&cells).await.unwrap();
    assert_eq!(look(&cells, &[cell(Kind::Meter, "a")]).await, [Some(b"1".to_vec())]);
}
