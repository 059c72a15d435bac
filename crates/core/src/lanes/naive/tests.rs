//! Examples for the naive reference and the scheduler: one behaviour each, in a small world with a clock in seconds.

mod acts;
mod both;
mod door;
mod order;
mod random;
mod scopes;
mod settling;
mod turns;

use crate::lanes::act::{Act, ActError, Acted, Settle, Settlement};
use crate::lanes::call::{CallId, End, Lease, NewCall, Started, Toll};
use crate::lanes::claim::Claim;
use crate::lanes::queue::{Order, QueueSpec};
use crate::limit::{Definition, Limit};
use crate::name::{Key, LaneName, LimitName, QueueName};
use crate::time::{Now, Span, Timestamp};
use crate::turn::Priority;
use both::Both;
use std::collections::BTreeMap;

/// Both with two queues, `strict` and `parallel`, and a clock.
struct World {
    both: Both,
    now: Now,
    /// The latest lease of each call.
    leases: BTreeMap<CallId, Lease>,
}

impl World {
    fn new() -> Self {
        let now = Now::both(Timestamp::from_nanos(0).plus(Span::from_secs(1_000)));
        let mut world = Self { both: Both::default(), now, leases: BTreeMap::new() };
        world.queue("strict", QueueSpec::default());
        let order = Order::Parallel(10);
        world.queue("parallel", QueueSpec { order, ..QueueSpec::default() });
        world
    }

    fn queue(&mut self, name: &str, spec: QueueSpec) {
        self.both.define_queue(&queue(name), spec, self.now).unwrap();
    }

    fn limit(&mut self, name: &str, limit: Limit) {
        let definition = Definition::new(limit).unwrap();
        self.both.define_limit(&limit_name(name), Some(definition), self.now);
    }

    fn remove_limit(&mut self, name: &str) {
        self.both.define_limit(&limit_name(name), None, self.now);
    }

    fn wait(&mut self, seconds: u64) {
        self.now = self.now.moved_to(self.now.at.plus(Span::from_secs(seconds)));
    }

    /// This many seconds from now, on either clock.
    fn after(&self, seconds: u64) -> Timestamp {
        self.now.at.plus(Span::from_secs(seconds))
    }

    fn act(&mut self, act: &Act) -> Result<Acted, ActError> {
        self.both.act(act, self.now)
    }

    fn enqueue(&mut self, new: NewCall) -> CallId {
        self.try_enqueue(new).unwrap()
    }

    fn try_enqueue(&mut self, new: NewCall) -> Result<CallId, ActError> {
        let act = Act { enqueue: vec![new], ..Act::default() };
        self.act(&act).map(|acted| acted.enqueued[0])
    }

    fn start(&mut self, name: &str, most: usize) -> Vec<Started> {
        let asks_until = self.after(3_600);
        let claim = Claim { queue: queue(name), most, lease: None, asks_until };
        let started = self.both.claim(&claim, self.now);
        self.leases.extend(started.iter().map(|started| (started.lease.call, started.lease)));
        started
    }

    fn claim(&mut self, name: &str, most: usize) -> Vec<CallId> {
        self.start(name, most).iter().map(|started| started.lease.call).collect()
    }

    fn settle(&mut self, id: CallId, settlement: Settlement) {
        self.try_settle(id, settlement).unwrap();
    }

    fn try_settle(&mut self, id: CallId, settlement: Settlement) -> Result<(), ActError> {
        let settle = vec![Settle { lease: self.leases[&id], settlement, actual: vec![] }];
        self.act(&Act { settle, ..Act::default() }).map(|_| ())
    }

    fn cancel(&mut self, id: CallId) -> bool {
        self.act(&Act { cancel: vec![id], ..Act::default() }).unwrap().cancelled[0]
    }

    fn end(&mut self, id: CallId) -> Option<End> {
        self.both.advance(self.now);
        self.both.end(id)
    }
}

fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

fn lane_name(name: &str) -> LaneName {
    LaneName::new(name).unwrap()
}

fn limit_name(name: &str) -> LimitName {
    LimitName::new(name).unwrap()
}

fn key(name: &str) -> Key {
    Key::new(name).unwrap()
}

fn priority(level: u64) -> Priority {
    Priority::new(level).unwrap()
}

/// A call without tolls.
fn call(queue_name: &str, lane: &str) -> NewCall {
    NewCall {
        queue: queue(queue_name),
        lane: lane_name(lane),
        tolls: vec![],
        priority: Priority::default(),
        not_before: None,
        expires: None,
        dedupe: None,
        supersedes: None,
    }
}

/// A call that pays at these limits.
fn paying<const N: usize>(queue_name: &str, lane: &str, tolls: [(&str, u64); N]) -> NewCall {
    let tolls = tolls.map(|(limit, weight)| toll(limit, weight)).into();
    NewCall { tolls, ..call(queue_name, lane) }
}

fn toll(limit: &str, weight: u64) -> Toll {
    Toll { limit: limit_name(limit), partition: None, weight, hears_feedback: false }
}
