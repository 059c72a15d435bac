//! A database that is slow, full, out of connections, or held by others: servers stay up, say so, lose nothing,
//! and go on by themselves.

use super::{define_queue, schema, server, serving, until};
use crate::gate::patiently;
use crate::http::started::Started;
use crate::servers::free_port;
use crate::servers::postgres::{Disk, PostgresServer};
use crate::servers::proxy::{Manner, Proxy};
use serde_json::json;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use tollgate::Tollgate;

/// How many connections a database takes that takes few.
const CONNECTIONS: usize = 25;

/// A connection of somebody else's.
async fn other(url: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A server that waits for its database no longer than it must.
async fn impatient(url: &str, schema: &str) -> Started {
    // The schema takes its time, once.
    drop(server(url, schema, None).await);
    let builder = Tollgate::builder().prefix(schema).deadline(Duration::from_secs(1));
    serving(builder, url, None).await
}

/// It refuses calls, and says this; and says so where load balancers look.
async fn refuses(server: &Started, code: &str, reason: &str) {
    let told = patiently(server.post("/v1/queues/q/calls", &json!({"lane": "a"}))).await;
    let told = told.problem(503, code);
    assert!(told.contains(reason), "{told}");
    let told = patiently(server.get("/readyz")).await.problem(503, code);
    assert!(told.contains(reason), "{told}");
    server.get("/healthz").await.success();
}

async fn until_ready(server: &Started) {
    until(async || server.get("/readyz").await.status == 200).await;
}

/// Of all lanes.
async fn claimed(server: &Started) -> Vec<serde_json::Value> {
    server.claim(&json!({"max": 10})).await.iter().map(|call| call["id"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_takes_no_connections_it_is_said_and_then_nothing_is_lost() {
    let few = format!("max_connections={CONNECTIONS}");
    let few = [&*few, "superuser_reserved_connections=0"];
    let database = PostgresServer::start_on(free_port(), &few);
    let server = server(&database.url(), &schema(), None).await;
    define_queue(&server).await;
    let ids = server.enqueue(&json!({"lane": "a"})).await;
    let first = other(&database.url()).await.unwrap();
    let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE application_name = 'tollgate'";
    let mut others = Vec::new();
    // Those of the server go, and others take their places.
    while others.len() + 1 < CONNECTIONS {
        match other(&database.url()).await {
            Ok(another) => others.push(another),
            Err(_) => drop(first.query_one(cut, &[]).await.unwrap()),
        }
    }
    refuses(&server, "store_unreachable", "max_connections").await;
    drop(others);
    until_ready(&server).await;
    assert_eq!(claimed(&server).await, [json!(ids[0])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_database_does_not_answer_it_is_said_and_then_nothing_is_lost() {
    let database = PostgresServer::start();
    let proxy = Proxy::before(database.port(), 1).await;
    let server = impatient(&proxy.postgres(), &schema()).await;
    define_queue(&server).await;
    let ids = server.enqueue(&json!({"lane": "a"})).await;
    proxy.be(Manner::Held);
    refuses(&server, "store_unreachable", "did not answer within").await;
    proxy.be(Manner::Smooth);
    until_ready(&server).await;
    assert_eq!(claimed(&server).await, [json!(ids[0])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_others_hold_a_lock_it_is_said_and_then_nothing_is_lost() {
    let (database, schema) = (PostgresServer::start(), schema());
    let server = impatient(&database.url(), &schema).await;
    define_queue(&server).await;
    let ids = server.enqueue(&json!({"lane": "a"})).await;
    let other = other(&database.url()).await.unwrap();
    for (table, reason) in [("turn", "others hold a lock"), ("log", "PostgreSQL")] {
        let lock = format!("BEGIN; LOCK TABLE {schema}.{table} IN ACCESS EXCLUSIVE MODE");
        other.batch_execute(&lock).await.unwrap();
        refuses(&server, "store_unreachable", reason).await;
        other.batch_execute("COMMIT").await.unwrap();
        until_ready(&server).await;
    }
    assert_eq!(claimed(&server).await, [json!(ids[0])]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_disk_of_the_database_is_full_it_is_said_and_then_nothing_is_lost() {
    let (database, disk) = Disk::with_server();
    let schema = schema();
    let one = server(&database.url(), &schema, None).await;
    let other = server(&database.url(), &schema, None).await;
    define_queue(&one).await;
    let mut ids = one.enqueue(&json!({"lane": "a"})).await;
    disk.fill();
    // It has to grow for that.
    let large = json!({"lane": "b", "body": noise(300_000)});
    let mut waiting = one.begin("/v1/queues/q/calls", &large).await;
    until(async || one.get("/readyz").await.status == 503).await;
    refuses(&one, "store_full", "make room on its disk").await;
    patiently(other.get("/readyz")).await.success();
    disk.make_room();
    let answer = patiently(waiting.answer()).await.unwrap().success();
    ids.push(answer["ids"][0].as_str().unwrap().to_owned());
    until_ready(&one).await;
    assert_eq!(claimed(&other).await, [json!(ids[0]), json!(ids[1])]);
}

/// Text that cannot be made shorter.
fn noise(letters: usize) -> String {
    let mut random = 1_u64;
    let mut letter = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char::from(b'!' + u8::try_from(random % 90).unwrap()).to_ascii_lowercase()
    };
    let text: String = (0..letters).map(|_| letter()).collect();
    text.replace(['"', '\\'], "x")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_others_keep_open_is_told_of_and_in_nobodys_way() {
    let (database, schema) = (PostgresServer::start(), schema());
    let elsewhere = other(&database.url()).await.unwrap();
    let look = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
    elsewhere.batch_execute(look).await.unwrap();
    let server = server(&database.url(), &schema, None).await;
    define_queue(&server).await;
    until(async || oldest(&server).await > 0.0).await;
    for n in 0..50 {
        let ids = server.enqueue(&json!({"lane": "a", "body": n})).await;
        let call = server.claim(&json!({})).await.remove(0);
        assert_eq!((&call["id"], &call["body"]), (&json!(ids[0]), &json!(n)));
        let done = json!({"lease": call["lease"], "outcome": "done"});
        assert_eq!(server.settle(&done).await, json!({"settled": true}));
    }
    elsewhere.batch_execute("COMMIT").await.unwrap();
    until(async || oldest(&server).await == 0.0).await;
}

/// For how many seconds a transaction has been open, as it is told.
async fn oldest(server: &Started) -> f64 {
    let told = server.get("/metrics").await.text;
    let line =
        told.lines().find_map(|it| it.strip_prefix("tollgate_store_oldest_transaction_seconds "));
    line.unwrap().parse().unwrap()
}
