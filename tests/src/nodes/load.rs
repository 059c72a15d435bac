//! Calls that are handed in, started and settled while something is wrong: each is done once, in order, and
//! within its limit.

use crate::servers::proxy::moment;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{
    Act, ActError, Claim, NewCall, Order, Payload, QueueSpec, Settle, Settlement,
};
use tollgate_core::{Definition, Key, LaneName, Limit, LimitName, QueueName, Span, Toll};

/// Longest wait until all is done that was begun: longer than some leases.
const PATIENCE: Duration = Duration::from_secs(180);
const LANES: u64 = 4;
const CALLS: u64 = 25;
/// How many calls there are in all.
pub(super) const CALLS_ALL: u64 = LANES * CALLS;

pub(super) fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn limit() -> LimitName {
    LimitName::new("l").unwrap()
}

/// Asks until there is an answer.
pub(super) async fn surely<T, E, F: Future<Output = Result<T, E>>>(ask: impl Fn() -> F) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(_) => moment(20).await,
        }
    }
}

pub(super) async fn define(store: &Store) {
    let order = Order::Strict;
    let lease = Span::from_secs(60);
    surely(|| store.define_queue(queue(), QueueSpec { order, lease, ..QueueSpec::default() }))
        .await
        .unwrap();
    // Enough for each call once: a start that was forgotten and made again is one too many.
    let definition = Definition::new(Limit::per(CALLS_ALL, Span::from_days(7))).unwrap();
    surely(|| store.configure(Configure::limit(limit(), Some(definition.clone())))).await.unwrap();
}

/// Hands in the calls of a lane, each once, whatever becomes of the answers.
async fn produce(store: Store, lane: u64) {
    for number in 0..CALLS {
        let acted = surely(|| {
            let name = LaneName::new(&lane.to_string()).unwrap();
            let toll = Toll { limit: limit(), partition: None, weight: 1, hears_feedback: false };
            let call = NewCall {
                tolls: [toll].into(),
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

/// Calls under way.
pub(super) struct Load {
    started: Started,
    tasks: Vec<JoinHandle<()>>,
}

impl Load {
    /// Hands in all calls, a producer for each lane, and does them, a worker at each node.
    pub(super) fn begin(stores: &[Store]) -> Self {
        let started = Started::default();
        let nodes = || stores.iter().cycle().cloned();
        let producing =
            (0..LANES).zip(nodes()).map(|(lane, store)| tokio::spawn(produce(store, lane)));
        let working = stores.iter().map(|store| tokio::spawn(work(store.clone(), started.clone())));
        Self { tasks: producing.chain(working).collect(), started }
    }

    /// Returns when so many calls were started.
    pub(super) async fn until_started(&self, calls: u64) {
        while count(&self.started) < calls {
            moment(5).await;
        }
    }

    /// Returns when all is done, as it should be.
    pub(super) async fn end(self, store: &Store) {
        for task in self.tasks {
            timeout(PATIENCE, task).await.expect("it does not come to an end").unwrap();
        }
        let all: Vec<u64> = (0..CALLS).collect();
        for (lane, started) in self.started.lock().iter() {
            assert_eq!(*started, all, "lane {lane}");
        }
        let meter = surely(|| store.inspect(vec![(limit(), None)])).await;
        assert_eq!(meter[0].as_ref().unwrap().standing.remaining, 0, "each start paid, and once");
    }
}

fn count(started: &Started) -> u64 {
    started.lock().values().map(|of| of.len() as u64).sum()
}

async fn work(store: Store, started: Started) {
    while count(&started) < CALLS_ALL {
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
