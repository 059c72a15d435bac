//! Meters at which nobody stands for a moment: what a node knows of that moment from what another wrote.

use super::{node, settings};
use tollgate::store::Store;
use tollgate_core::contract::{Configure, Lanes, Meters};
use tollgate_core::lanes::{
    Act, CallId, Claim, Claimed, Door, NewCall, QueueSpec, Settle, Settlement,
};
use tollgate_core::{Definition, LaneName, Limit, LimitName, Priority, QueueName, Span, Toll};

/// A queue and a limit of one at a time, both of one name.
struct Stage(String);

impl Stage {
    async fn new(name: &str, store: &Store) -> Self {
        let stage = Self(name.to_owned());
        store.define_queue(stage.queue(), QueueSpec::default()).await.unwrap().unwrap();
        let definition = Definition::new(Limit::concurrency(1)).unwrap();
        let change = Configure::limit(LimitName::new(name).unwrap(), Some(definition));
        store.configure(change).await.unwrap().unwrap();
        stage
    }

    fn queue(&self) -> QueueName {
        QueueName::new(&self.0).unwrap()
    }

    fn call(&self, lane: &str, limit: &str) -> NewCall {
        let limit = LimitName::new(limit).unwrap();
        let toll = Toll { limit, partition: None, weight: 1, hears_feedback: false };
        NewCall { tolls: [toll].into(), ..NewCall::new(self.queue(), LaneName::new(lane).unwrap()) }
    }

    async fn enqueue(&self, store: &Store, lane: &str) -> CallId {
        let act = Act { enqueue: vec![self.call(lane, &self.0)], ..Act::default() };
        store.act(vec![act]).await.unwrap().remove(0).unwrap().enqueued[0]
    }

    async fn claim(&self, store: &Store) -> Vec<Claimed> {
        let asks = Span::from_hours(1);
        store.claim(Claim { queue: self.queue(), most: 9, lease: None, asks }).await.unwrap()
    }

    /// Starts one call, and says which.
    async fn start(&self, store: &Store) -> Claimed {
        let mut claimed = self.claim(store).await;
        assert_eq!(claimed.len(), 1);
        claimed.remove(0)
    }
}

fn cancel(call: CallId) -> Act {
    Act { cancel: vec![call], ..Act::default() }
}

fn release(claimed: &Claimed) -> Act {
    let settle = vec![Settle::new(claimed.started.lease, Settlement::Release)];
    Act { settle, ..Act::default() }
}

async fn act(store: &Store, act: Act) {
    drop(store.act(vec![act]).await.unwrap().remove(0).unwrap());
}

#[tokio::test]
async fn a_node_levels_between_commands_that_another_wrote_at_once() {
    let settings = settings();
    let (here, there) = (node(&settings).await, node(&settings).await);
    let stage = Stage::new("one", &here).await;
    let served = stage.enqueue(&here, "a").await;
    stage.enqueue(&here, "b").await;
    let started = stage.start(&here).await;

    // Of two acts the first takes from the limit who stands there, and the second brings back who was served.
    let urgent = NewCall { priority: Priority::MAX, ..stage.call("b", "nobody defined it") };
    let parks = Act { enqueue: vec![urgent], door: Door::Parks, ..Act::default() };
    let acted = here.act(vec![parks, release(&started)]).await.unwrap();
    act(&there, cancel(acted[0].as_ref().unwrap().enqueued[0])).await;

    // Nobody stood there in between: the lanes are even, and who came first goes first.
    assert_eq!(stage.start(&there).await.started.lease.call, served);
}

#[tokio::test]
async fn a_node_levels_no_meter_at_which_another_let_the_next_of_a_lane_stand() {
    let settings = settings();
    let (here, there) = (node(&settings).await, node(&settings).await);
    // A node may hear of it before it is asked: that it is asked first is likely once in so many times.
    for round in 0..20 {
        let stage = Stage::new(&format!("one {round}"), &here).await;
        stage.enqueue(&here, "served").await;
        let first = stage.enqueue(&here, "waits").await;
        let next = stage.enqueue(&here, "waits").await;
        let started = stage.start(&here).await;
        there.look(vec![next]).await.unwrap();
        act(&here, cancel(first)).await;
        act(&there, release(&started)).await;
        assert_eq!(stage.start(&there).await.started.lease.call, next, "round {round}");
    }
}
