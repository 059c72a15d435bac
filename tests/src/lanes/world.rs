//! A scheduler, a clock that is moved, and a record of what started when.

use tollgate_core::Toll;
use tollgate_core::lanes::{
    Act, CallId, Claim, Lease, NewCall, QueueSpec, Scheduler, Settle, Settlement, Started,
};
use tollgate_core::{
    Definition, Key, LaneName, Limit, LimitName, Now, Partition, Priority, QueueName, Span,
    Timestamp,
};

/// The one queue of most tests.
pub(crate) const QUEUE: &str = "calls";

/// A scheduler, and the present.
pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Now,
    /// What started when, in milliseconds.
    pub(crate) starts: Vec<Start>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) call: CallId,
    pub(crate) lane: String,
    pub(crate) at: u64,
}

impl World {
    /// With a queue of strict lanes.
    pub(crate) fn new() -> Self {
        Self::with(QueueSpec::default())
    }

    pub(crate) fn with(spec: QueueSpec) -> Self {
        let now = Now::both(Timestamp::from_nanos(0));
        let mut world = Self { scheduler: Scheduler::new(), now, starts: vec![] };
        world.queue(QUEUE, spec);
        world
    }

    pub(crate) fn queue(&mut self, name: &str, spec: QueueSpec) {
        let name = QueueName::new(name).unwrap();
        self.scheduler.define_queue(&name, spec, self.now).unwrap();
    }

    pub(crate) fn limit(mut self, name: &str, limit: Limit) -> Self {
        self.define(name, Some(limit));
        self
    }

    pub(crate) fn define(&mut self, name: &str, limit: Option<Limit>) {
        let definition = limit.map(|limit| Definition::new(limit).unwrap());
        self.scheduler.define_limit(&LimitName::new(name).unwrap(), definition, self.now);
    }

    pub(crate) fn enqueue(&mut self, call: NewCall) -> CallId {
        let act = Act { enqueue: vec![call], ..Act::default() };
        self.scheduler.act(act, self.now).unwrap().enqueued[0]
    }

    pub(crate) fn enqueue_many(&mut self, count: usize, call: &NewCall) {
        let act = Act { enqueue: vec![call.clone(); count], ..Act::default() };
        let _ = self.scheduler.act(act, self.now).unwrap();
    }

    pub(crate) fn advance(&mut self, span: Span) {
        self.now = self.now.moved_to(self.now.at.plus(span));
    }

    /// What a worker with so many free hands gets now.
    pub(crate) fn claim(&mut self, most: usize) -> Vec<Started> {
        self.claim_of(QUEUE, most)
    }

    pub(crate) fn claim_of(&mut self, queue: &str, most: usize) -> Vec<Started> {
        let queue = QueueName::new(queue).unwrap();
        let claim = Claim { queue, most, lease: None, asks: Span::from_days(1) };
        let started = self.scheduler.claim(&claim, self.now);
        let at = self.now.at.as_nanos() / 1_000_000;
        self.starts.extend(started.iter().map(|started| Start {
            call: started.lease.call,
            lane: started.lane.to_string(),
            at,
        }));
        started
    }

    pub(crate) fn settle(&mut self, lease: Lease, settlement: Settlement) {
        let settle = vec![Settle::new(lease, settlement)];
        let _ = self.scheduler.act(Act { settle, ..Act::default() }, self.now).unwrap();
    }

    /// Workers take what they get and are done at once, until nothing waits or the time is over.
    pub(crate) fn drain(&mut self, claim: usize, until: Span) {
        let end = Timestamp::default().plus(until);
        while self.now.at < end {
            let started = self.claim(claim);
            for started in &started {
                self.settle(started.lease, Settlement::Done);
            }
            if started.is_empty() {
                let Some(next) = self.scheduler.next_due(self.now) else { break };
                self.now = self.now.moved_to(next.max(self.now.at));
            }
        }
    }

    /// When each call started, in milliseconds.
    pub(crate) fn instants(&self) -> Vec<u64> {
        self.starts.iter().map(|start| start.at).collect()
    }

    /// How many started from one millisecond to before another.
    pub(crate) fn started(&self, from: u64, to: u64) -> usize {
        self.starts.iter().filter(|start| (from..to).contains(&start.at)).count()
    }
}

/// A call of a lane, without tolls.
pub(crate) fn call(lane: &str) -> NewCall {
    NewCall::new(QueueName::new(QUEUE).unwrap(), LaneName::new(lane).unwrap())
}

/// What can be said of a call.
pub(crate) trait Owing {
    fn owes(self, limit: &str, partition: &str, weight: u64) -> Self;
    fn priority(self, level: u64) -> Self;
    fn of(self, queue: &str) -> Self;
    fn dedupe(self, key: &str) -> Self;
}

impl Owing for NewCall {
    /// An empty partition is the global one.
    fn owes(mut self, limit: &str, partition: &str, weight: u64) -> Self {
        self.tolls.push(Toll {
            limit: LimitName::new(limit).unwrap(),
            partition: Partition::new(partition).ok(),
            weight,
            hears_feedback: false,
        });
        self
    }

    fn priority(self, level: u64) -> Self {
        Self { priority: Priority::new(level).unwrap(), ..self }
    }

    fn of(self, queue: &str) -> Self {
        Self { queue: QueueName::new(queue).unwrap(), ..self }
    }

    fn dedupe(self, key: &str) -> Self {
        Self { dedupe: Some(Key::new(key).unwrap()), ..self }
    }
}

/// Up to so many of a lane in flight.
pub(crate) fn parallel(count: u32) -> QueueSpec {
    QueueSpec { order: tollgate_core::lanes::Order::Parallel(count), ..QueueSpec::default() }
}
