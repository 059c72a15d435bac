//! PostgreSQL that is not there, crashes, or only reads.

use super::{a_day, ask, ask_until_answered, define, drain, gate, is_unreachable};
use crate::servers::free_port;
use crate::servers::postgres::PostgresServer;
use std::process::Command;
use tokio_postgres::{Client, NoTls};
use tollgate::{Span, Tollgate};

async fn connected(server: &PostgresServer) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Sets it for connections to come, and ends those there are.
async fn read_only(server: &PostgresServer, is_on: bool) {
    let client = connected(server).await;
    client.batch_execute("SET default_transaction_read_only = off").await.unwrap();
    let value = if is_on { "on" } else { "off" };
    let alter = format!("ALTER SYSTEM SET default_transaction_read_only = {value}");
    client.batch_execute(&alter).await.unwrap();
    client.query("SELECT pg_reload_conf()", &[]).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
    client.query(end, &[]).await.unwrap();
}

#[tokio::test]
async fn after_a_crash_nothing_is_given_twice() {
    let server = PostgresServer::start();
    let gate = gate(&server.url()).await;
    define(&gate, a_day(5)).await;
    assert!(ask_until_answered(&gate).await && ask_until_answered(&gate).await);
    let client = connected(&server).await;
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let killed = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status().unwrap();
    assert!(killed.success());
    // One of its processes was killed: it ends all others, and recovers.
    assert!(client.query("SELECT 1", &[]).await.is_err());
    assert_eq!(drain(&gate).await, 3);
}

#[tokio::test]
async fn one_that_only_reads_is_out_of_reach_until_it_writes() {
    let server = PostgresServer::start();
    let gate = gate(&server.url()).await;
    define(&gate, a_day(5)).await;
    assert!(ask_until_answered(&gate).await);
    read_only(&server, true).await;
    let mut told = ask(&gate).await;
    for _ in 0..500 {
        if told.is_err() {
            break;
        }
        told = ask(&gate).await;
    }
    assert!(is_unreachable(&told), "{told:?}");
    read_only(&server, false).await;
    let granted = drain(&gate).await;
    assert!(granted <= 4, "{granted}");
}

#[tokio::test]
async fn a_process_may_start_before_its_store() {
    let port = free_port();
    let gate = gate(&format!("postgres://postgres@127.0.0.1:{port}/postgres")).await;
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    let _server = PostgresServer::start_on(port, &[]);
    define(&gate, a_day(3)).await;
    assert_eq!(drain(&gate).await, 3);
}

#[tokio::test]
async fn restarted_empty_who_remembers_mints_nothing_and_tells_the_rules_again() {
    let server = PostgresServer::start();
    let port = server.port();
    let first = gate(&server.url()).await;
    define(&first, a_day(5)).await;
    assert!(ask_until_answered(&first).await);
    drop(server);
    let told = ask(&first).await;
    assert!(is_unreachable(&told), "{told:?}");
    let server = PostgresServer::start_on(port, &[]);
    assert_eq!(drain(&first).await, 0, "what was spent may have been all");
    let new = gate(&server.url()).await;
    assert_eq!(drain(&new).await, 0, "and who comes later finds the limit, and no more in it");
}

#[tokio::test]
async fn a_schema_that_was_dropped_is_made_again_and_nothing_is_minted() {
    let server = PostgresServer::start();
    // It waits for longer than that takes: the first request that finds it gone is answered.
    let patient = Tollgate::builder().prefix("faults").deadline(Span::from_secs(16));
    let first = patient.connect_limits(&server.url()).await.unwrap();
    define(&first, a_day(5)).await;
    assert!(ask_until_answered(&first).await);
    let client = connected(&server).await;
    client.batch_execute("DROP SCHEMA faults CASCADE").await.unwrap();
    assert_eq!(ask(&first).await, Ok(false));
    let limits = first.limits().await.unwrap();
    assert_eq!(limits.len(), 1, "its rules were told again");
    client.batch_execute("DROP SCHEMA faults CASCADE").await.unwrap();
    let gone = first.limits().await.unwrap();
    assert_eq!(gone.len(), 0, "a look makes it, too, and there is nothing to be told by it");
    assert_eq!(ask(&first).await, Ok(false));
}
