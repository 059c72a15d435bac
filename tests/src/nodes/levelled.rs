//! What a node decides in several commands and writes at once: where meters were levelled in between is known
//! to the nodes that read it.

use super::{node, settings};
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{
    Act, CallId, Claim, Claimed, Door, NewCall, QueueSpec, Settle, Settlement,
};
use tollgate_core::{Definition, LaneName, Limit, LimitName, Priority, QueueName, Span, Toll};

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

fn call(lane: &str, limit: &str) -> NewCall {
    let limit = LimitName::new(limit).unwrap();
    let toll = Toll { limit, partition: None, weight: 1, hears_feedback: false };
    NewCall { tolls: vec![toll], ..NewCall::new(queue(), LaneName::new(lane).unwrap()) }
}

async fn enqueue(store: &Store, call: NewCall) -> CallId {
    let act = Act { enqueue: vec![call], ..Act::default() };
    store.act(vec![act]).await.unwrap().remove(0).unwrap().enqueued[0]
}

async fn claim(store: &Store) -> Vec<Claimed> {
    let claim = Claim { queue: queue(), most: 9, lease: None, asks: Span::from_hours(1) };
    store.claim(claim).await.unwrap()
}

#[tokio::test]
async fn a_node_levels_between_commands_that_another_wrote_at_once() {
    let settings = settings();
    let (here, there) = (node(&settings).await, node(&settings).await);
    here.define_queue(queue(), QueueSpec::default()).await.unwrap().unwrap();
    let definition = Definition::new(Limit::concurrency(1)).unwrap();
    let change = Configure::limit(LimitName::new("one").unwrap(), Some(definition));
    here.configure(change).await.unwrap().unwrap();
    let served = enqueue(&here, call("a", "one")).await;
    enqueue(&here, call("b", "one")).await;
    let started = claim(&here).await;
    assert_eq!(started.len(), 1);

    // Of two acts the first takes from the limit who stands there, and the second brings back who was served.
    let urgent = NewCall { priority: Priority::MAX, ..call("b", "nobody defined it") };
    let settle = vec![Settle::new(started[0].started.lease, Settlement::Release)];
    let acts = [
        Act { enqueue: vec![urgent], door: Door::Parks, ..Act::default() },
        Act { settle, ..Act::default() },
    ];
    let acted = here.act(acts.into()).await.unwrap();
    let urgent = acted[0].as_ref().unwrap().enqueued[0];
    let cancel = Act { cancel: vec![urgent], ..Act::default() };
    drop(there.act(vec![cancel]).await.unwrap().remove(0).unwrap());

    // Nobody stood there in between: the lanes are even, and who came first goes first.
    let started = claim(&there).await;
    assert_eq!(
        started.iter().map(|claimed| claimed.started.lease.call).collect::<Vec<_>>(),
        [served]
    );
}
