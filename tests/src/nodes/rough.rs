//! Nodes whose connections are cut at any moment, before a commit and after it: what was answered is
//! so, once, in order, and within its limit.

use super::settings;
use crate::servers::postgres::PostgresServer;
use crate::servers::proxy::{Manner, Proxy, moment};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{
    Act, ActError, Claim, NewCall, Order, Payload, QueueSpec, Settle, Settlement,
};
use tollgate_core::{Definition, Key, LaneName, Limit, LimitName, QueueName, Span, Toll};
use tollgate_stores::postgres::DatabaseSettings;

const LANES: u64 = 4;
const CALLS: u64 = 25;

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn limit() -> LimitName {
    LimitName::new("l").unwrap()
}

/// Asks until there is an answer.
async fn surely<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>>(ask: impl Fn() -> F) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(_) => moment(20).await,
        }
    }
}

async fn define(store: &Store) {
    let order = Order::Strict;
    let lease = Span::from_secs(60);
    surely(|| store.define_queue(queue(), QueueSpec { order, lease, ..QueueSpec::default() }))
        .await
        .unwrap();
    // Enough for each call once: a start that was forgotten and made again is one too many.
    let definition = Definition::new(Limit::per(LANES * CALLS, Span::from_days(7))).unwrap();
    surely(|| store.configure(Configure::limit(limit(), Some(definition.clone())))).await.unwrap();
}

/// Hands in the calls of a lane, each once, whatever becomes of the answers.
async fn produce(store: Store, lane: u64) {
    for number in 0..CALLS {
        let acted = surely(|| {
            let name = LaneName::new(&lane.to_string()).unwrap();
            let toll = Toll { limit: limit(), partition: None, weight: 1, hears_feedback: false };
            let call = NewCall {
                tolls: vec![toll],
                dedupe: Some(Key::new(&format!("{lane} {number}")).unwrap()),
                payload: Payload::body_alone(&number.to_le_bytes()),
                ..NewCall::new(queue(), name)
            };
            store.act(vec![Act { enqueue: vec![call], ..Act::default() }])
        })
        .await
        .remove(0);
        assert!(acted.is_ok(), "{acted:?}");
    }
}

/// Which calls of each lane were started, in order.
type Started = Arc<Mutex<BTreeMap<String, Vec<u64>>>>;

async fn work(store: Store, started: Started) {
    while started.lock().values().map(|of| of.len() as u64).sum::<u64>() < LANES * CALLS {
        let claim = Claim { queue: queue(), most: 3, lease: None, asks: Span::from_secs(1) };
        let claimed = surely(|| store.claim(claim.clone())).await;
        for call in &claimed {
            let number = u64::from_le_bytes(call.payload.body().try_into().unwrap());
            let lane = call.started.lane.to_string();
            started.lock().entry(lane).or_default().push(number);
        }
        for call in &claimed {
            let done = surely(|| {
                let settle = vec![Settle::new(call.started.lease, Settlement::Done)];
                store.act(vec![Act { settle, ..Act::default() }])
            });
            // Settled before, and told so in vain.
            let done = done.await.remove(0);
            assert!(matches!(done, Ok(_) | Err(ActError::LeaseLost { .. })), "{done:?}");
        }
        if claimed.is_empty() {
            moment(5).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_is_so_though_connections_are_cut_at_any_moment() {
    let server = PostgresServer::start();
    let settings = DatabaseSettings { deadline: Duration::from_secs(2), ..settings() };
    let (mut stores, mut proxies) = (Vec::new(), Vec::new());
    for seed in 1..4 {
        let proxy = Proxy::before(server.port(), seed).await;
        let url = format!("postgres://postgres@127.0.0.1:{}/postgres", proxy.port());
        stores.push(Store::connect(&url, settings.clone()).await.unwrap());
        proxies.push(proxy);
    }
    define(&stores[0]).await;
    proxies.iter().for_each(|proxy| proxy.be(Manner::Torn));
    let started = Started::default();
    let nodes = || stores.iter().cycle().cloned();
    let producing = (0..LANES).zip(nodes()).map(|(lane, store)| tokio::spawn(produce(store, lane)));
    let working = nodes().take(3).map(|store| tokio::spawn(work(store, started.clone())));
    for task in producing.chain(working).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let all: Vec<u64> = (0..CALLS).collect();
    for (lane, started) in started.lock().iter() {
        assert_eq!(*started, all, "lane {lane}");
    }
    proxies.iter().for_each(|proxy| proxy.be(Manner::Smooth));
    let meter = surely(|| stores[0].inspect(vec![(limit(), None)])).await;
    assert_eq!(meter[0].as_ref().unwrap().standing.remaining, 0, "each start paid, and once");
}
