//! Redis that is not there, dies, forgets, stands still, is full or only reads.

use super::{
    a_day, ask, ask_until_answered, define, drain, gate, gate_with, is_unreachable, moment,
};
use crate::servers::free_port;
use crate::servers::redis::RedisServer;
use tollgate::{OutOfReach, global};
use tollgate_core::contract::StoreError as Kept;

async fn say(server: &RedisServer, command: &[&str]) {
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let said = redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await;
    let () = said.unwrap();
}

#[tokio::test]
async fn a_process_may_start_before_its_store() {
    let port = free_port();
    let gate = gate(&format!("redis://127.0.0.1:{port}")).await;
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    let _server = RedisServer::start_on(port, &[]);
    define(&gate, a_day(3)).await;
    assert_eq!(drain(&gate).await, 3);
}

#[tokio::test]
async fn killed_and_restarted_with_its_data_nothing_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--dir", folder.path().to_str().unwrap(), "--appendonly", "yes"];
    let settings = [data.as_slice(), &["--appendfsync", "always"]].concat();
    let port = free_port();
    let server = RedisServer::start_on(port, &settings);
    let gate = gate(&server.url()).await;
    define(&gate, a_day(5)).await;
    assert!(ask_until_answered(&gate).await && ask_until_answered(&gate).await);
    drop(server);
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    let _server = RedisServer::start_on(port, &settings);
    assert_eq!(drain(&gate).await, 3);
}

#[tokio::test]
async fn restarted_empty_who_remembers_mints_nothing_and_tells_the_rules_again() {
    let server = RedisServer::start();
    let port = server.port();
    let first = gate(&server.url()).await;
    define(&first, a_day(5)).await;
    assert!(ask_until_answered(&first).await);
    drop(server);
    let server = RedisServer::start_on(port, &[]);
    assert_eq!(drain(&first).await, 0, "what was spent may have been all");
    let new = gate(&server.url()).await;
    assert_eq!(drain(&new).await, 0, "and who comes later finds the limit, and no more in it");
}

#[tokio::test]
async fn one_that_stands_still_is_out_of_reach_within_the_deadline() {
    let server = RedisServer::start();
    let gate = gate(&server.url()).await;
    define(&gate, a_day(10)).await;
    assert!(ask_until_answered(&gate).await);
    server.server.stand_still();
    for _ in 0..3 {
        let told = ask(&gate).await;
        assert!(is_unreachable(&told), "{told:?}");
    }
    server.server.go_on();
    let granted = drain(&gate).await;
    assert!((6..=9).contains(&granted), "{granted}: at most more is spent, and never more granted");
}

#[tokio::test]
async fn out_of_memory_it_is_full_until_there_is_more() {
    let server = RedisServer::start();
    let gate = gate(&server.url()).await;
    define(&gate, a_day(10)).await;
    assert!(ask_until_answered(&gate).await);
    say(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]).await;
    say(&server, &["CONFIG", "SET", "maxmemory", "1mb"]).await;
    let told = ask(&gate).await;
    assert!(matches!(told, Err(Kept::Full { .. })), "{told:?}");
    say(&server, &["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(drain(&gate).await, 9);
}

#[tokio::test]
async fn one_that_only_reads_is_out_of_reach_until_it_writes() {
    let server = RedisServer::start();
    let gate = gate(&server.url()).await;
    define(&gate, a_day(10)).await;
    assert!(ask_until_answered(&gate).await);
    let nobody = free_port().to_string();
    say(&server, &["REPLICAOF", "127.0.0.1", &nobody]).await;
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    say(&server, &["REPLICAOF", "NO", "ONE"]).await;
    assert_eq!(drain(&gate).await, 9);
}

#[tokio::test]
async fn by_choice_it_is_done_without_while_the_store_is_dead() {
    let server = RedisServer::start();
    let (port, url) = (server.port(), server.url());
    let open = gate_with(&url, OutOfReach::Admit).await;
    let part = gate_with(&url, OutOfReach::Share { parts: 2 }).await;
    let patient = gate_with(&url, OutOfReach::Wait).await;
    define(&open, a_day(8)).await;
    for gate in [&part, &patient] {
        assert!(ask_until_answered(gate).await);
    }
    drop(server);
    for _ in 0..20 {
        assert_eq!(ask(&open).await, Ok(true));
    }
    assert_eq!(drain(&part).await, 4);
    let waiting = tokio::spawn(async move { patient.consume(global("l")).await.is_ok() });
    moment(50).await;
    assert!(!waiting.is_finished());
    let _server = RedisServer::start_on(port, &[]);
    assert!(!waiting.await.unwrap(), "it was lost what was spent, so nothing is granted anew");
    for _ in 0..500 {
        if ask(&open).await == Ok(false) {
            return;
        }
        moment(20).await;
    }
    panic!("it does not recover");
}
