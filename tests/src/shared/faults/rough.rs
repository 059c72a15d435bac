//! Each store behind a proxy that holds answers back, and one that is rough.

use super::{a_day, ask, ask_until_answered, define, drain, gate, is_unreachable};
use crate::servers::nats::NatsServer;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::{Manner, Proxy};
use crate::servers::redis::RedisServer;
use tokio::task::JoinSet;

/// How many ask at once, and how often each.
const ASKERS: usize = 20;
const ASKS: usize = 100;

/// Answers that are held back: told within the deadline, and at most more is spent than was granted.
async fn is_told_that_it_is_slow(port: u16, url: impl Fn(u16) -> String) {
    let proxy = Proxy::before(port, 1).await;
    let gate = gate(&url(proxy.port())).await;
    define(&gate, a_day(20)).await;
    let mut granted = usize::from(ask_until_answered(&gate).await);
    proxy.be(Manner::Held);
    for _ in 0..3 {
        let told = ask(&gate).await;
        assert!(is_unreachable(&told), "{told:?}");
    }
    proxy.be(Manner::Smooth);
    granted += drain(&gate).await;
    assert!((17..=20).contains(&granted), "{granted} of 20");
}

/// Over two thousand asks by two processes through a proxy that delays and cuts.
async fn grants_no_more_than_there_is(port: u16, url: impl Fn(u16) -> String) {
    let proxy = Proxy::before(port, 20_261_116).await;
    let gates = [gate(&url(proxy.port())).await, gate(&url(proxy.port())).await];
    define(&gates[0], a_day(400)).await;
    proxy.be(Manner::Rough);
    let mut asking = JoinSet::new();
    for asker in 0..ASKERS {
        let gate = gates[asker % 2].clone();
        asking.spawn(async move {
            let (mut granted, mut failed) = (0, 0);
            for _ in 0..ASKS {
                match ask(&gate).await {
                    Ok(is_granted) => granted += usize::from(is_granted),
                    Err(_) => failed += 1,
                }
            }
            (granted, failed)
        });
    }
    let (mut granted, mut failed) = (0, 0);
    while let Some(asked) = asking.join_next().await {
        let (more, without) = asked.expect("nobody panics");
        (granted, failed) = (granted + more, failed + without);
    }
    proxy.be(Manner::Smooth);
    granted += drain(&gates[1]).await;
    assert!((1..=400).contains(&granted), "{granted} of 400 were granted");
    assert!(failed > 0, "the proxy was not rough");
    assert!(!ask_until_answered(&gates[0]).await);
}

fn redis(port: u16) -> String {
    format!("redis://127.0.0.1:{port}")
}

fn postgres(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres")
}

fn nats(port: u16) -> String {
    format!("nats://127.0.0.1:{port}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_that_is_slow_is_out_of_reach_within_the_deadline() {
    let server = RedisServer::start();
    is_told_that_it_is_slow(server.port(), redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_that_is_slow_is_out_of_reach_within_the_deadline() {
    let server = PostgresServer::start();
    is_told_that_it_is_slow(server.port(), postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_that_is_slow_is_out_of_reach_within_the_deadline() {
    let server = NatsServer::start();
    is_told_that_it_is_slow(server.port(), nats).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_over_a_rough_line_grants_no_more_than_there_is() {
    let server = RedisServer::start();
    grants_no_more_than_there_is(server.port(), redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_over_a_rough_line_grants_no_more_than_there_is() {
    let server = PostgresServer::start();
    grants_no_more_than_there_is(server.port(), postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_over_a_rough_line_grants_no_more_than_there_is() {
    let server = NatsServer::start();
    grants_no_more_than_there_is(server.port(), nats).await;
}
