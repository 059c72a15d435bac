//! Removing a queue, with all that is known of its lanes.

use super::Scheduler;
use crate::lanes::effect::Effect;
use crate::lanes::queue::QueueError;
use crate::name::QueueName;
use crate::time::Now;

impl Scheduler {
    /// Removes a queue that has no calls; says whether there was one. Costs a look at each lane that
    /// may be forgotten and at each dedupe key that is remembered.
    pub fn remove_queue(&mut self, name: &QueueName, now: Now) -> Result<bool, QueueError> {
        self.advance(now);
        let Some(queue) = self.lanes.find(name) else { return Ok(false) };
        let book = self.lanes.queue(queue);
        if !book.is_empty() {
            let (in_flight, dead) = (book.in_flight, book.dead.len() as u64);
            let waiting = book.depth - in_flight;
            return Err(QueueError::NotEmpty { waiting, in_flight, dead });
        }
        self.emit(Effect::QueueRemoved(name.clone()));
        Ok(true)
    }

    /// Forgets everything under the place where a queue is kept: the next queue may be kept there.
    pub(super) fn queue_removed(&mut self, name: &QueueName) {
        let Some(queue) = self.lanes.find(name) else { return };
        if !self.lanes.queue(queue).is_empty() {
            return;
        }
        self.idle.forget_lanes(|lane| self.lanes[lane].queue == queue);
        self.dedupes.retain(|(other, _), _| *other != queue);
        self.timers.dedupes.retain(|(_, other, _)| *other != queue);
        self.woken.remove(&queue);
        self.expected.remove(&queue);
        self.withheld.remove(&queue);
        self.learned.forget(name);
        // Where no head of it stands it has no crowd, and so no wakes and nobody it yields to.
        self.lanes.remove_queue(queue);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Act, CallId, Claim, NewCall, QueueSpec, Settle, Settlement};
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName};
    use crate::time::{Span, Timestamp};
    use crate::toll::Toll;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    /// Two queues, and a limit of one an hour.
    fn scheduler(now: Now) -> Scheduler {
        let mut scheduler = Scheduler::new();
        for name in ["one", "other"] {
            scheduler.define_queue(&queue(name), QueueSpec::default(), now).unwrap();
        }
        let definition = Definition::new(Limit::per_hour(1)).unwrap();
        scheduler.define_limit(&LimitName::new("l").unwrap(), Some(definition), now);
        scheduler
    }

    fn enqueue(scheduler: &mut Scheduler, name: &str, now: Now) -> CallId {
        let limit = LimitName::new("l").unwrap();
        let tolls = vec![Toll { limit, partition: None, weight: 1, hears_feedback: false }];
        let call = NewCall {
            tolls: tolls.into(),
            ..NewCall::new(queue(name), LaneName::new("a").unwrap())
        };
        let act = Act { enqueue: vec![call], ..Act::default() };
        scheduler.act(act, now).unwrap().enqueued[0]
    }

    #[test]
    fn nobody_is_told_of_a_queue_that_is_gone() {
        let now = Now::both(Timestamp::default());
        let mut scheduler = scheduler(now);
        let id = enqueue(&mut scheduler, "one", now);
        let _ = scheduler.act(Act { cancel: vec![id], ..Act::default() }, now).unwrap();
        assert_eq!(scheduler.remove_queue(&queue("one"), now), Ok(true));
        assert_eq!(scheduler.take_woken(), []);
    }

    #[test]
    fn a_lane_that_was_to_be_forgotten_later_is_gone_with_its_queue() {
        let now = Now::both(Timestamp::default());
        let mut scheduler = scheduler(now);
        enqueue(&mut scheduler, "one", now);
        // As long as someone stands there, it is remembered how far others were served.
        enqueue(&mut scheduler, "other", now);
        let claim = Claim { queue: queue("one"), most: 1, lease: None, asks: Span::ZERO };
        let lease = scheduler.claim(&claim, now)[0].lease;
        let settle = vec![Settle::new(lease, Settlement::Done)];
        let _ = scheduler.act(Act { settle, ..Act::default() }, now).unwrap();
        assert_eq!(scheduler.lanes.count(), 2);
        assert_eq!(scheduler.remove_queue(&queue("one"), now), Ok(true));
        assert_eq!(scheduler.lanes.count(), 1);
        for seconds in 0..10 {
            scheduler.advance(now.moved_to(now.at.plus(Span::from_secs(seconds))));
        }
    }
}
