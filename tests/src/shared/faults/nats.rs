//! NATS that is not there, is killed, is full, or has lost the bucket.

use super::{a_day, ask, ask_until_answered, define, drain, gate, is_unreachable};
use crate::servers::free_port;
use crate::servers::nats::NatsServer;
use async_nats::jetstream::{self, Context, stream};
use tollgate::{Span, Tollgate};
use tollgate_core::contract::StoreError as Kept;

#[tokio::test]
async fn a_process_may_start_before_its_store() {
    let (port, data) = (free_port(), tempfile::tempdir().unwrap());
    let gate = gate(&format!("nats://127.0.0.1:{port}")).await;
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    let _server = NatsServer::start_on(port, data.path());
    define(&gate, a_day(3)).await;
    assert_eq!(drain(&gate).await, 3);
}

#[tokio::test]
async fn killed_and_restarted_with_its_data_nothing_is_given_twice() {
    let (port, data) = (free_port(), tempfile::tempdir().unwrap());
    let server = NatsServer::start_on(port, data.path());
    let gate = gate(&server.url()).await;
    define(&gate, a_day(5)).await;
    assert!(ask_until_answered(&gate).await && ask_until_answered(&gate).await);
    drop(server);
    let told = ask(&gate).await;
    assert!(is_unreachable(&told), "{told:?}");
    let _server = NatsServer::start_on(port, data.path());
    let granted = drain(&gate).await;
    assert!(granted <= 3, "{granted}: at most more is spent, and none granted twice");
}

#[tokio::test]
async fn killed_while_many_ask_it_grants_no_more_than_there_is() {
    let (port, data) = (free_port(), tempfile::tempdir().unwrap());
    let server = NatsServer::start_on(port, data.path());
    let gate = gate(&server.url()).await;
    define(&gate, a_day(300)).await;
    let asking = (0..20).map(|_| {
        let gate = gate.clone();
        tokio::spawn(async move {
            let (mut granted, mut failed) = (0, 0);
            while failed < 3 {
                match ask(&gate).await {
                    Ok(true) => granted += 1,
                    Ok(false) => break,
                    Err(Kept::Failed { reason }) => panic!("{reason}"),
                    Err(_) => failed += 1,
                }
            }
            granted
        })
    });
    let asking: Vec<_> = asking.collect();
    assert!(ask_until_answered(&gate).await);
    drop(server);
    let mut granted = 1;
    for asking in asking {
        granted += asking.await.expect("nobody panics");
    }
    let _server = NatsServer::start_on(port, data.path());
    granted += drain(&gate).await;
    assert!(granted <= 300, "{granted} of 300");
}

#[tokio::test]
async fn one_that_stands_still_is_out_of_reach_within_the_deadline() {
    let server = NatsServer::start();
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
    assert!(granted <= 9, "{granted}: at most more is spent, and never more granted");
}

/// JetStream of a server, asked beside Tollgate.
async fn context(server: &NatsServer) -> Context {
    jetstream::new(async_nats::connect(server.url()).await.unwrap())
}

#[tokio::test]
async fn without_room_it_is_full_until_there_is_more() {
    let server = NatsServer::start_with_room(1 << 20);
    let gate = gate(&server.url()).await;
    define(&gate, a_day(10)).await;
    assert!(ask_until_answered(&gate).await);
    let context = context(&server).await;
    let (name, subjects) = ("others".to_owned(), vec!["others".to_owned()]);
    let config = stream::Config { name, subjects, ..stream::Config::default() };
    context.create_stream(config).await.unwrap();
    for kilobytes in [64, 8, 1] {
        for _ in 0..1_024 / kilobytes {
            let value = vec![1; kilobytes << 10].into();
            if context.publish("others", value).await.unwrap().await.is_err() {
                break;
            }
        }
    }
    let mut told = ask(&gate).await;
    for _ in 0..20 {
        if told.is_err() {
            break;
        }
        told = ask(&gate).await;
    }
    assert!(matches!(told, Err(Kept::Full { .. })), "{told:?}");
    context.delete_stream("others").await.unwrap();
    let granted = drain(&gate).await;
    assert!(granted <= 9, "{granted}");
}

#[tokio::test]
async fn restarted_empty_who_remembers_mints_nothing_and_tells_the_rules_again() {
    let (port, data) = (free_port(), tempfile::tempdir().unwrap());
    let server = NatsServer::start_on(port, data.path());
    let first = gate(&server.url()).await;
    define(&first, a_day(5)).await;
    assert!(ask_until_answered(&first).await);
    drop(server);
    let empty = tempfile::tempdir().unwrap();
    let server = NatsServer::start_on(port, empty.path());
    assert_eq!(drain(&first).await, 0, "what was spent may have been all");
    let new = gate(&server.url()).await;
    assert_eq!(drain(&new).await, 0, "and who comes later finds the limit, and no more in it");
}

#[tokio::test]
async fn a_bucket_that_was_deleted_is_made_again_and_nothing_is_minted() {
    let server = NatsServer::start();
    // It waits for longer than that takes: the first request that finds it gone is answered.
    let patient = Tollgate::builder().prefix("faults").deadline(Span::from_secs(16));
    let first = patient.connect(&server.url()).await.unwrap();
    define(&first, a_day(5)).await;
    assert!(ask_until_answered(&first).await);
    context(&server).await.delete_stream("KV_faults").await.unwrap();
    assert_eq!(ask(&first).await, Ok(false));
    let new = gate(&server.url()).await;
    assert_eq!(drain(&new).await, 0);
}
