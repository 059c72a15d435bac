//! What heads wait where they stand. Each queue has a clock at each meter where its heads stand: it
//! runs while a worker who asks for them is refused there, and what a head waits is read from it.

use super::Scheduler;
use super::calls::{LaneSlot, MeterSlot};
use super::lanes::{Head, Stand};
use super::meters::QueueSlot;
use crate::lanes::event::LineWaits;
use crate::time::{Span, Timestamp};

/// How long the heads of a queue were refused at a meter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusals {
    before: Span,
    /// Since when they are refused; the end of time if they are not.
    since: Timestamp,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { before: Span::ZERO, since: Timestamp::MAX }
    }
}

impl Refusals {
    pub(super) fn begin(&mut self, now: Timestamp) {
        self.since = self.since.min(now);
    }

    /// They may try again from then on.
    pub(super) fn end(&mut self, at: Timestamp) {
        self.before = self.until(at);
        self.since = Timestamp::MAX;
    }

    fn until(self, at: Timestamp) -> Span {
        self.before.plus(at.since(self.since))
    }
}

impl Scheduler {
    /// The first of a queue's heads at a meter was asked for in vain: all of them wait for it.
    pub(super) fn refused_at(&mut self, meter: MeterSlot, queue: QueueSlot) {
        let now = self.present.at;
        if let Some(crowd) = self.meters[meter].crowd_mut(queue) {
            crowd.refuse(now);
        }
    }

    /// Begins to count what a head waits where it stands.
    pub(super) fn mark(&mut self, lane: LaneSlot) {
        let Some(head) = self.lanes[lane].head else { return };
        let clock = self.clock(lane, head);
        if let Some(head) = &mut self.lanes[lane].head {
            head.mark = clock;
        }
    }

    /// Keeps in mind what a head waited where it stands, for it goes elsewhere.
    pub(super) fn note_wait(&mut self, lane: LaneSlot) {
        let Some(head) = self.lanes[lane].head else { return };
        let (line, span) = self.wait(lane, head);
        if !span.is_zero() {
            self.stood.entry(lane).or_default().add(line, span);
        }
    }

    /// What a head waited at its meters until now.
    pub(super) fn waits(&self, lane: LaneSlot, head: Head) -> LineWaits {
        let mut waits = LineWaits::default();
        if !self.stood.is_empty() {
            waits = self.stood.get(&lane).cloned().unwrap_or_default();
        }
        let (line, span) = self.wait(lane, head);
        waits.add(line, span);
        waits
    }

    /// What a head waited where it stands.
    fn wait(&self, lane: LaneSlot, head: Head) -> (usize, Span) {
        let clock = self.clock(lane, head).as_nanos();
        let waited = Span::from_nanos(clock.saturating_sub(head.mark.as_nanos()));
        match head.stand {
            Stand::Free => (0, Span::ZERO),
            Stand::At { line, .. } | Stand::Parked { line } => (line.index(), waited),
        }
    }

    /// The clock of where a head stands. Who is set aside waits all the time.
    fn clock(&self, lane: LaneSlot, head: Head) -> Span {
        let now = self.present.at;
        match head.stand {
            Stand::Free => Span::ZERO,
            Stand::Parked { .. } => now.since(Timestamp::default()),
            Stand::At { line, .. } => {
                let meter = self.calls.lines_at(head.call)[line.index()].meter;
                let crowd = self.meters[meter].crowd(self.lanes[lane].queue);
                crowd.map_or(Span::ZERO, |crowd| crowd.refusals.until(now))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lanes::{
        Act, CallId, Claim, Lease, NewCall, QueueSpec, Scheduler, Scope, Settle, Settlement, Watch,
        What,
    };
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName, QueueName};
    use crate::time::{Now, Span, Timestamp};
    use crate::toll::Toll;

    /// A queue, two limits of one a second and one a minute, and a clock.
    struct World {
        scheduler: Scheduler,
        now: Now,
        leases: Vec<Lease>,
    }

    impl World {
        fn new() -> Self {
            let (mut scheduler, now) =
                (Scheduler::new(), Now::both(Timestamp::from_nanos(1 << 60)));
            scheduler.watch(Watch::Everything);
            scheduler.define_queue(&queue(), QueueSpec::default(), now).unwrap();
            let limits = [("second", Limit::per_second(1)), ("minute", Limit::per_minute(1))];
            for (name, limit) in limits {
                let definition = Definition::new(limit.burst(1)).unwrap();
                scheduler.define_limit(&limit_name(name), Some(definition), now);
            }
            Self { scheduler, now, leases: vec![] }
        }

        fn wait(&mut self, seconds: u64) {
            self.now = self.now.moved_to(self.now.at.plus(Span::from_secs(seconds)));
        }

        fn enqueue(&mut self, lane: &str, limits: &[&str]) -> CallId {
            let toll = |limit: &&str| Toll {
                limit: limit_name(limit),
                partition: None,
                weight: 1,
                hears_feedback: false,
            };
            let call = NewCall::new(queue(), LaneName::new(lane).unwrap());
            let call = NewCall { tolls: limits.iter().map(toll).collect(), ..call };
            let act = Act { enqueue: vec![call], ..Act::default() };
            self.scheduler.act(act, self.now).unwrap().enqueued[0]
        }

        fn claim(&mut self) -> usize {
            let lease = Some(Span::from_hours(1));
            let claim = Claim { queue: queue(), most: 10, lease, asks: Span::ZERO };
            let started = self.scheduler.claim(&claim, self.now);
            self.leases.extend(started.iter().map(|started| started.lease));
            started.len()
        }

        /// Ends the call that was started last.
        fn end(&mut self) {
            let lease = self.leases.pop().unwrap();
            let settle = vec![Settle::new(lease, Settlement::Done)];
            let _ = self.scheduler.act(Act { settle, ..Act::default() }, self.now).unwrap();
        }

        /// What a call waited before its start, in seconds.
        fn waits(&mut self, id: CallId) -> Vec<(String, u64)> {
            let events = self.scheduler.take_events().into_iter().filter(|it| it.call == id);
            let waits = events.filter_map(|event| match event.what {
                What::Started { waits, .. } => Some(waits),
                _ => None,
            });
            let seconds = |span: &Span| span.as_nanos() / Span::from_secs(1).as_nanos();
            let waits = waits.last().expect("a start");
            waits.iter().map(|(limit, span)| (limit.to_string(), seconds(span))).collect()
        }
    }

    fn queue() -> QueueName {
        QueueName::new("q").unwrap()
    }

    fn limit_name(name: &str) -> LimitName {
        LimitName::new(name).unwrap()
    }

    fn at(limit: &str, seconds: u64) -> (String, u64) {
        (limit.to_owned(), seconds)
    }

    #[test]
    fn a_settlement_that_cost_what_was_paid_wakes_nobody_and_ends_no_wait() {
        let mut world = World::new();
        let [_, second] = ["a", "b"].map(|lane| world.enqueue(lane, &["minute"]));
        assert_eq!(world.claim(), 1);
        let _ = world.scheduler.take_woken();
        world.wait(30);
        world.end();
        assert_eq!(world.scheduler.take_woken(), []);
        world.wait(30);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(second), [at("minute", 60)]);
    }

    #[test]
    fn a_wait_is_counted_from_the_refusal_to_the_opening() {
        let mut world = World::new();
        let [first, second] = ["a", "b"].map(|lane| world.enqueue(lane, &["minute"]));
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(first), []);
        world.wait(20);
        let third = world.enqueue("c", &["minute"]);
        // A worker comes ten seconds after it could have.
        world.wait(50);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(second), [at("minute", 60)]);
        world.wait(60);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(third), [at("minute", 100)]);
        let limits = world.scheduler.limits(None, 9, world.scheduler.present);
        let waited = limits.iter().map(|limit| limit.totals.waited_ns);
        assert_eq!(waited.collect::<Vec<_>>(), [160_000_000_000, 0]);
    }

    #[test]
    fn a_wait_for_a_worker_is_no_limits_fault() {
        let mut world = World::new();
        let id = world.enqueue("a", &["minute"]);
        world.wait(500);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(id), []);
    }

    #[test]
    fn a_wait_behind_others_of_the_lane_is_no_limits_fault() {
        let mut world = World::new();
        let [_, second] = ["a", "a"].map(|lane| world.enqueue(lane, &["minute"]));
        assert_eq!(world.claim(), 1);
        world.wait(500);
        assert_eq!(world.claim(), 0, "the first is in flight");
        world.end();
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(second), []);
    }

    #[test]
    fn a_wait_at_two_limits_is_told_of_each() {
        let mut world = World::new();
        world.enqueue("a", &["second", "minute"]);
        let both = world.enqueue("b", &["second", "minute"]);
        assert_eq!(world.claim(), 1);
        world.wait(1);
        assert_eq!(world.claim(), 0);
        world.wait(59);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(both), [at("second", 1), at("minute", 59)]);
    }

    #[test]
    fn who_is_set_aside_waits_all_the_time() {
        let mut world = World::new();
        let id = world.enqueue("a", &["second"]);
        world.scheduler.pause(&Scope::Limit(limit_name("second")), world.now);
        world.wait(30);
        world.scheduler.resume(&Scope::Limit(limit_name("second")), world.now);
        assert_eq!(world.claim(), 1);
        assert_eq!(world.waits(id), [at("second", 30)]);
    }
}
