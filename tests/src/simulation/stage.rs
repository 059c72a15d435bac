//! A small world for one promise at a time: one queue, one worker, a clock that is moved.

use tollgate_core::Toll;
use tollgate_core::lanes::{
    Act, CallId, Claim, NewCall, Order, QueueSpec, Scheduler, Settle, Settlement, Started,
};
use tollgate_core::{Definition, LaneName, Limit, LimitName, Now, QueueName, Span, Timestamp};

/// A scheduler with one queue, and the present.
pub(super) struct Stage {
    queue: QueueName,
    scheduler: Scheduler,
    now: Now,
}

impl Stage {
    pub(super) fn new(order: Order) -> Self {
        let queue = QueueName::new("calls").unwrap();
        let (mut scheduler, now) = (Scheduler::new(), Now::both(Timestamp::default()));
        let spec = QueueSpec { order, ..QueueSpec::default() };
        scheduler.define_queue(&queue, spec, now).unwrap();
        Self { queue, scheduler, now }
    }

    pub(super) fn define(&mut self, name: &str, limit: Limit) {
        let definition = Definition::new(limit).unwrap();
        self.scheduler.define_limit(&LimitName::new(name).unwrap(), Some(definition), self.now);
    }

    /// A call of a lane that owes so much at each of these limits.
    pub(super) fn enqueue(&mut self, lane: &str, tolls: &[(&str, u64)]) -> CallId {
        let tolls = tolls.iter().map(|(limit, weight)| Toll {
            limit: LimitName::new(limit).unwrap(),
            partition: None,
            weight: *weight,
            hears_feedback: false,
        });
        let call = NewCall::new(self.queue.clone(), LaneName::new(lane).unwrap());
        let call = NewCall { tolls: tolls.collect(), ..call };
        let act = Act { enqueue: vec![call], ..Act::default() };
        self.scheduler.act(act, self.now).unwrap().enqueued[0]
    }

    /// A worker takes what it gets and is done with it at once, or waits until something is due.
    pub(super) fn go_on(&mut self, most: u64) -> Vec<Started> {
        let (queue, most) = (self.queue.clone(), usize::try_from(most).unwrap());
        let claim = Claim { queue, most, lease: None, asks: Span::from_days(1) };
        let started = self.scheduler.claim(&claim, self.now);
        for started in &started {
            let (lease, settlement, actual) = (started.lease, Settlement::Done, vec![]);
            let settle = vec![Settle { actual, ..Settle::new(lease, settlement) }];
            let _ = self.scheduler.act(Act { settle, ..Act::default() }, self.now).unwrap();
        }
        if started.is_empty() {
            let soon = self.now.at.plus(Span::from_millis(100));
            let next = self.scheduler.next_due(self.now).unwrap_or(soon);
            self.now = self.now.moved_to(next.max(self.now.at));
        }
        started
    }
}
