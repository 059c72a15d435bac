//! Workers that left with calls and are expected back at once: until then their queues keep their turn, and nobody else
//! is told that there is something to start.

use super::Scheduler;
use super::meters::QueueSlot;
use crate::name::QueueName;
use crate::time::{Now, Timestamp};

impl Scheduler {
    /// A worker that asks for the calls of a queue, or left with some, is tried again or back by then. Whoever was
    /// sent away [goes on asking](Self::goes_on_asking).
    pub fn expect_back(&mut self, queue: &QueueName, until: Timestamp) {
        let Some(queue) = self.lanes.find(queue).filter(|_| until > self.present.at) else {
            return;
        };
        let asking = self.lanes.queue_mut(queue);
        asking.expected_until = asking.expected_until.max(until);
        self.expected.insert(queue);
    }

    /// As [`Self::take_woken`], except for queues whose workers are all expected back: those are told if they are not.
    pub fn take_awaited(&mut self, now: Now) -> Vec<QueueName> {
        self.woken.append(&mut self.withheld);
        let is_expected = |queue: &QueueSlot| {
            let queue = self.lanes.queue(*queue);
            queue.asks_until <= now.at && now.at < queue.expected_until
        };
        self.withheld = self.woken.iter().copied().filter(is_expected).collect();
        self.woken.retain(|queue| !self.withheld.contains(queue));
        self.take_woken()
    }

    /// Who let the heads of a queue go first need not, if nobody came back.
    pub(super) fn end_expecting(&mut self, now: Now) {
        let before = self.expected.len();
        let Self { expected, lanes, .. } = self;
        expected.retain(|queue| now.at < lanes.queue(*queue).expected_until);
        if self.expected.len() < before {
            self.stop_yielding();
        }
    }

    /// When nobody is expected any more at a queue, if that makes a difference to someone.
    pub(super) fn next_unexpected(&self) -> Option<Timestamp> {
        let matters = !self.yielding.is_empty() || !self.withheld.is_empty();
        let expected = self.expected.iter().filter(|_| matters);
        expected.map(|queue| self.lanes.queue(*queue).expected_until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::claim::Claim;
    use crate::lanes::{Act, NewCall, QueueSpec};
    use crate::limit::Definition;
    use crate::limit::Limit;
    use crate::name::{LaneName, LimitName};
    use crate::time::Span;
    use crate::toll::Toll;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    /// So many halves of a millisecond later.
    fn after(halves: u64) -> Now {
        Now::both(Timestamp::from_nanos(1 << 60).plus(Span::from_nanos(halves * 500_000)))
    }

    /// Two queues with calls at one limit of a call each half a millisecond: the first came first.
    fn two_queues() -> Scheduler {
        let mut scheduler = Scheduler::new();
        let limit = LimitName::new("l").unwrap();
        let definition = Definition::new(Limit::per_second(2_000).burst(1)).unwrap();
        scheduler.define_limit(&limit, Some(definition), after(0));
        for (name, calls) in [("first", 3), ("second", 1)] {
            scheduler.define_queue(&queue(name), QueueSpec::default(), after(0)).unwrap();
            for number in 0..calls {
                let lane = LaneName::new(&format!("{name} {number}")).unwrap();
                let toll = Toll {
                    limit: limit.clone(),
                    partition: None,
                    weight: 1,
                    hears_feedback: false,
                };
                let call = NewCall { tolls: [toll].into(), ..NewCall::new(queue(name), lane) };
                let act = Act { enqueue: vec![call], ..Act::default() };
                assert!(scheduler.act(act, after(0)).is_ok());
            }
        }
        scheduler
    }

    fn claim(scheduler: &mut Scheduler, name: &str, now: Now) -> usize {
        let claim = Claim { queue: queue(name), most: 9, lease: None, asks: Span::ZERO };
        scheduler.claim(&claim, now).len()
    }

    #[test]
    fn nobody_is_told_of_a_queue_whose_worker_is_expected_until_it_does_not_come() {
        let mut scheduler = two_queues();
        assert_eq!(claim(&mut scheduler, "first", after(0)), 1);
        scheduler.expect_back(&queue("first"), after(2).at);
        let _ = scheduler.take_awaited(after(0));
        scheduler.advance(after(1));
        assert_eq!(scheduler.take_awaited(after(1)), []);
        assert_eq!(scheduler.next_due(after(1)), Some(after(2).at));
        scheduler.advance(after(2));
        assert_eq!(scheduler.take_awaited(after(2)), [queue("first")]);
    }

    #[test]
    fn who_waits_is_told_though_another_is_expected() {
        let mut scheduler = two_queues();
        assert_eq!(claim(&mut scheduler, "first", after(0)), 1);
        scheduler.expect_back(&queue("first"), after(2).at);
        scheduler.goes_on_asking(&queue("first"), after(9).at);
        let _ = scheduler.take_awaited(after(0));
        scheduler.advance(after(1));
        assert_eq!(scheduler.take_awaited(after(1)), [queue("first")]);
    }

    #[test]
    fn who_lets_others_go_first_is_told_when_they_are_not_back_and_not_before() {
        let mut scheduler = two_queues();
        assert_eq!(claim(&mut scheduler, "first", after(0)), 1);
        scheduler.expect_back(&queue("first"), after(2).at);
        assert_eq!(claim(&mut scheduler, "second", after(1)), 0);
        scheduler.expect_back(&queue("first"), after(4).at);
        let _ = scheduler.take_woken();
        scheduler.advance(after(3));
        assert_eq!(scheduler.take_woken(), [], "they may be back yet");
        assert_eq!(scheduler.next_due(after(3)), Some(after(4).at));
        scheduler.advance(after(4));
        assert!(scheduler.take_woken().contains(&queue("second")));
        assert_eq!(claim(&mut scheduler, "second", after(4)), 1);
    }
}
