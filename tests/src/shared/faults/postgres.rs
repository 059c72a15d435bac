//! PostgreSQL that is not there, crashes, or only reads.

use super::{a_day, ask, ask_until_answered, define, drain, gate, is_unreachable};
use crate::servers::postgres::PostgresServer;
use std::process::Command;
use tokio_postgres::{Client, NoTls};

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
