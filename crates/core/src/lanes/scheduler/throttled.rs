//! Where claims leave calls waiting: how many stood ready at a meter, and how many of them it let go. Nobody
//! looks for it: a claim that is refused at a meter does not come back there until something changes.

use super::calls::{LaneSlot, MeterSlot};
use super::lanes::{Head, Stand};
use super::meters::QueueSlot;
use super::{Hashing, Scheduler};
use crate::lanes::event::{THROTTLED_MAX, What};
use crate::time::{Span, Timestamp};
use std::collections::HashSet;

/// How often it is told of a meter and a queue at most.
const TOLD_EVERY: Span = Span::from_secs(1);

/// Where it was told that calls wait, since an instant.
#[derive(Debug, Clone, Default)]
pub(super) struct Throttles {
    since: Timestamp,
    told: HashSet<(MeterSlot, QueueSlot), Hashing>,
}

impl Throttles {
    /// Whether it is to be told now of a meter and a queue.
    fn is_news(&mut self, meter: MeterSlot, queue: QueueSlot, now: Timestamp) -> bool {
        if now.since(self.since) >= TOLD_EVERY {
            self.since = now;
            self.told.clear();
        }
        self.told.len() < THROTTLED_MAX && self.told.insert((meter, queue))
    }
}

impl Scheduler {
    /// A head goes from where it stands, in the claim that is being served.
    pub(super) fn granted(&mut self, head: Head) {
        let Stand::At { line, .. } = head.stand else { return };
        let meter = self.calls.lines_at(head.call)[line.index()].meter;
        let granted = &mut self.meters[meter].granted;
        if *granted == 0 {
            self.granting.push(meter);
        }
        *granted += 1;
    }

    /// A claim has been served.
    pub(super) fn end_granting(&mut self) {
        for meter in self.granting.drain(..) {
            self.meters[meter].granted = 0;
        }
    }

    /// A meter has no more for the heads of a queue in this claim: counts, and tells now and then, how many stood
    /// there and how many went. The lane is of who stands first.
    pub(super) fn throttled(&mut self, meter: MeterSlot, lane: LaneSlot) {
        let queue = self.lanes[lane].queue;
        let (Some(crowd), Some(head)) = (self.meters[meter].crowd(queue), self.lanes[lane].head)
        else {
            return;
        };
        let granted = u64::from(self.meters[meter].granted);
        let wanted = granted + crowd.standing.len() as u64;
        let (limit, partition) = self.meters.name(meter);
        let counts = self.lanes.queue_mut(queue).counts.at_limit(&limit);
        counts.wanted = counts.wanted.saturating_add(wanted);
        counts.granted = counts.granted.saturating_add(granted);
        let now = self.present;
        if self.watching.is_all() && self.watching.throttles.is_news(meter, queue, now.at) {
            self.tell(head.call, now, What::Throttled { limit, partition, wanted, granted });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::LimitCounts;
    use crate::lanes::{Act, CallId, Claim, NewCall, Order, QueueSpec, Watch};
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName, Partition, QueueName};
    use crate::time::Now;
    use crate::toll::Toll;

    /// A limit `l`, the queues `q` and `other`, and a clock.
    struct World {
        scheduler: Scheduler,
        now: Now,
    }

    impl World {
        fn new(limit: Limit, watch: Watch) -> Self {
            let (mut scheduler, now) =
                (Scheduler::new(), Now::both(Timestamp::from_nanos(1 << 60)));
            scheduler.watch(watch);
            let spec = QueueSpec { order: Order::Parallel(100), ..QueueSpec::default() };
            for name in ["q", "other"] {
                scheduler.define_queue(&queue(name), spec.clone(), now).unwrap();
            }
            let definition = Definition::new(limit).unwrap();
            scheduler.define_limit(&limit_name(), Some(definition), now);
            Self { scheduler, now }
        }

        fn wait(&mut self, span: Span) {
            self.now = self.now.moved_to(self.now.at.plus(span));
        }

        fn enqueue(&mut self, to: &str, lane: &str, partition: Option<&str>) -> CallId {
            let partition = partition.map(|it| Partition::new(it).unwrap());
            let toll = Toll { limit: limit_name(), partition, weight: 1, hears_feedback: false };
            let call = NewCall::new(queue(to), LaneName::new(lane).unwrap());
            let call = NewCall { tolls: [toll].into(), ..call };
            let act = Act { enqueue: vec![call], ..Act::default() };
            self.scheduler.act(act, self.now).unwrap().enqueued[0]
        }

        /// A call in each of so many lanes.
        fn lanes(&mut self, count: usize) -> Vec<CallId> {
            (0..count).map(|lane| self.enqueue("q", &lane.to_string(), None)).collect()
        }

        fn claim(&mut self, of: &str, most: usize) -> usize {
            let (lease, asks) = (Some(Span::from_hours(9)), Span::from_secs(60));
            let claim = Claim { queue: queue(of), most, lease, asks };
            self.scheduler.claim(&claim, self.now).len()
        }

        /// Who was told to wait since this was asked last, of how many, of which so many went.
        fn told(&mut self) -> Vec<(CallId, u64, u64)> {
            let events = self.scheduler.take_events().into_iter();
            let told = events.filter_map(|event| match event.what {
                What::Throttled { wanted, granted, .. } => Some((event.call, wanted, granted)),
                _ => None,
            });
            told.collect()
        }

        /// How many stood ready so far, and how many of them went.
        fn counted(&self, of: &str) -> (u64, u64) {
            let totals = self.scheduler.totals().queues.into_iter();
            let counts = totals.filter(|totals| totals.name == queue(of)).map(|it| it.counts);
            let limits = counts.flat_map(|counts| counts.limits.into_values());
            let both = limits.map(|LimitCounts { wanted, granted, .. }| (wanted, granted));
            both.fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
        }
    }

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    fn limit_name() -> LimitName {
        LimitName::new("l").unwrap()
    }

    #[test]
    fn a_claim_that_leaves_calls_waiting_tells_how_many_stood_there_and_how_many_went() {
        let mut world = World::new(Limit::per_minute(3), Watch::Everything);
        let ids = world.lanes(5);
        assert_eq!(world.claim("q", 10), 3);
        assert_eq!(world.told(), [(ids[3], 5, 3)]);
        world.wait(Span::from_secs(20));
        assert_eq!(world.claim("q", 10), 1);
        assert_eq!(world.told(), [(ids[4], 2, 1)]);
        assert_eq!(world.counted("q"), (7, 4));
        world.wait(Span::from_secs(20));
        assert_eq!(world.claim("q", 10), 1);
        assert_eq!((world.told(), world.counted("q")), (vec![], (7, 4)), "nobody is left");
    }

    #[test]
    fn who_takes_no_more_than_the_meter_has_leaves_nobody_waiting_for_it() {
        let mut world = World::new(Limit::per_minute(3), Watch::Everything);
        let ids = world.lanes(5);
        assert_eq!(world.claim("q", 2), 2);
        assert_eq!((world.told(), world.counted("q")), (vec![], (0, 0)));
        assert_eq!(world.claim("q", 10), 1);
        assert_eq!(world.told(), [(ids[3], 3, 1)], "those of the claim before are not among them");
    }

    #[test]
    fn calls_of_one_lane_that_go_one_after_another_are_all_counted() {
        let mut world = World::new(Limit::per_minute(3), Watch::Everything);
        let ids: Vec<_> = (0..5).map(|_| world.enqueue("q", "a", None)).collect();
        assert_eq!(world.claim("q", 10), 3);
        assert_eq!(world.told(), [(ids[3], 4, 3)], "the last is not the first of its lane");
    }

    #[test]
    fn a_claim_that_finds_nothing_changed_tells_nothing_again() {
        let mut world = World::new(Limit::per_minute(1), Watch::Everything);
        world.lanes(3);
        assert_eq!(world.claim("q", 10), 1);
        assert_eq!(world.told().len(), 1);
        for _ in 0..10 {
            world.wait(Span::from_secs(5));
            assert_eq!(world.claim("q", 10), 0);
        }
        assert_eq!((world.told(), world.counted("q")), (vec![], (3, 1)));
    }

    #[test]
    fn partitions_are_told_apart() {
        let mut world = World::new(Limit::per_minute(1), Watch::Everything);
        let ids: Vec<_> = ["a", "a", "b", "b", "b"]
            .iter()
            .enumerate()
            .map(|(lane, partition)| world.enqueue("q", &lane.to_string(), Some(partition)))
            .collect();
        assert_eq!(world.claim("q", 10), 2);
        let mut told = world.told();
        told.sort_unstable();
        assert_eq!(told, [(ids[1], 2, 1), (ids[3], 3, 1)]);
        assert_eq!(world.counted("q"), (5, 2));
    }

    #[test]
    fn a_meter_that_opens_often_is_told_once_a_second_and_counted_each_time() {
        let mut world = World::new(Limit::per_second(100).burst(1), Watch::Everything);
        world.lanes(501);
        for _ in 0..300 {
            assert_eq!(world.claim("q", 10), 1);
            world.wait(Span::from_millis(10));
        }
        assert_eq!(world.told().len(), 3, "in three seconds");
        let wanted = (501 - 299..=501).sum::<u64>();
        assert_eq!(world.counted("q"), (wanted, 300));
    }

    #[test]
    fn of_many_meters_no_more_than_the_bound_are_told_each_second() {
        let mut world = World::new(Limit::per_hour(1), Watch::Everything);
        let count = THROTTLED_MAX + 7;
        for number in 0..2 * count {
            let partition = (number % count).to_string();
            world.enqueue("q", &number.to_string(), Some(&partition));
        }
        assert_eq!(world.claim("q", 10_000), count);
        assert_eq!(world.told().len(), THROTTLED_MAX);
        assert_eq!(world.counted("q"), (2 * count as u64, count as u64));
    }

    #[test]
    fn who_lets_others_go_first_where_it_is_open_is_not_throttled() {
        let mut world = World::new(Limit::per_minute(2).burst(1), Watch::Everything);
        assert_eq!(world.claim("other", 10), 0, "a worker asks for them");
        let first = world.enqueue("other", "a", None);
        let second = world.enqueue("q", "a", None);
        assert_eq!(world.claim("q", 10), 0);
        assert_eq!((world.told(), world.counted("q")), (vec![], (0, 0)));
        assert_eq!(world.claim("other", 10), 1);
        assert_eq!(world.claim("q", 10), 0);
        assert_eq!(world.told(), [(second, 1, 0)], "now {first:?} has taken all there was");
        assert_eq!(world.counted("other"), (0, 0));
    }

    #[test]
    fn what_nobody_follows_is_counted_and_not_told() {
        let mut world = World::new(Limit::per_minute(1), Watch::History);
        world.lanes(3);
        assert_eq!(world.claim("q", 10), 1);
        assert_eq!((world.told(), world.counted("q")), (vec![], (3, 1)));
    }
}
