//! Counting what happens to the calls of queues, when it is decided.

use super::Scheduler;
use super::calls::{CallSlot, LaneSlot};
use super::lanes::{Head, Stand};
use super::meters::QueueSlot;
use crate::contract::{OutcomeCounts, QueueCounts, QueueTotals, StoreTotals, Totals};
use crate::lanes::act::Settlement;
use crate::lanes::call::{Attempts, CallId};
use crate::lanes::effect::Effect;
use crate::time::{Now, Timestamp};
use std::collections::VecDeque;

/// Instants that are kept at each level.
const MARKS_MAX: usize = 512;
/// So many marks of one level are one of the next: what is eight times as old is known an eighth as well.
const MARKS_EACH: usize = 8;
/// Enough for sixteen million instants.
const LEVELS: usize = 6;

/// When calls were accepted, or came into line. Their numbers grow with time: an instant is kept for the first
/// of those that came at it, and of long ago only some, so that an age is right to within a few hundredths.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// The newest first, and the oldest mark of each first.
    levels: [Level; LEVELS],
}

#[derive(Debug, Clone, Default)]
struct Level {
    marks: VecDeque<(u64, Timestamp)>,
    /// How many went from here.
    passed: usize,
}

impl Marks {
    pub(super) fn note(&mut self, number: u64, at: Timestamp) {
        let last = self.levels[0].marks.back();
        if last.is_some_and(|(_, last)| *last >= at) {
            return;
        }
        let mut mark = (number, at);
        for level in &mut self.levels {
            level.marks.push_back(mark);
            let oldest = level.marks.front().copied();
            let Some(oldest) = oldest.filter(|_| level.marks.len() > MARKS_MAX) else { return };
            level.marks.pop_front();
            let goes_on = level.passed.is_multiple_of(MARKS_EACH);
            level.passed += 1;
            if !goes_on {
                return;
            }
            mark = oldest;
        }
    }

    /// When the call of that number came; `None` if that was before the first mark.
    pub(super) fn of(&self, number: u64) -> Option<Timestamp> {
        let is_before = |first: &(u64, Timestamp)| first.0 <= number;
        let reaches = |level: &&Level| level.marks.front().is_some_and(is_before);
        let marks = &self.levels.iter().find(reaches)?.marks;
        let behind = marks.partition_point(is_before);
        marks.get(behind.checked_sub(1)?).map(|(_, at)| *at)
    }
}

impl Scheduler {
    /// All that was counted, by name. Costs a look at each queue and each limit.
    pub fn totals(&self) -> Totals {
        let queues = self.lanes.queues().map(|queue| QueueTotals {
            name: queue.name.clone(),
            waiting: queue.depth - queue.in_flight,
            in_flight: queue.in_flight,
            dead: queue.dead.len() as u64,
            counts: (*queue.counts).clone(),
        });
        let mut queues: Vec<_> = queues.collect();
        queues.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let defined = self.meters.limits().filter(|limit| self.is_defined(*limit, self.present));
        let mut limits: Vec<_> = defined.map(|it| (it.to_name(), it.totals())).collect();
        limits.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Totals { queues, limits, store: StoreTotals::default() }
    }

    pub(super) fn count_accepted(&mut self, queue: QueueSlot, id: CallId, now: Now) {
        self.counts_mut(queue).enqueued += 1;
        self.acceptances.note(id.0, now.at);
        if self.watching.may_park() {
            self.count_unknown(queue, id);
        }
    }

    /// Counts at which limits that nobody defined a call owes that was just accepted.
    fn count_unknown(&mut self, queue: QueueSlot, id: CallId) {
        let Some(slot) = self.calls.find(id) else { return };
        for meter in self.unknown_meters(slot) {
            let (limit, _) = self.meters.name(meter);
            self.lanes.queue_mut(queue).counts.at_limit(&limit).unknown += 1;
        }
    }

    /// Counts a start of a queue's call that is about to happen: how long the call was there, and how
    /// late it is.
    pub(super) fn count_started(&mut self, lane: LaneSlot, head: Head, now: Now) {
        let call = &self.calls[head.call];
        let accepted = self.acceptances.of(call.id.0).filter(|_| call.progress.is_none());
        let is_retry = self.calls.attempts(call) != Attempts::default();
        let opened = self.opened(lane, head, now);
        let counts = self.counts_mut(self.lanes[lane].queue);
        counts.started += 1;
        counts.retries += u64::from(is_retry);
        if let Some(accepted) = accepted {
            counts.dwell.add(now.at.since(accepted));
        }
        if let Some(opened) = opened {
            counts.lateness.add(now.at.since(opened));
        }
    }

    /// When a head could have started, if a worker was asking then. Whoever is next there could from
    /// now on.
    fn opened(&mut self, lane: LaneSlot, head: Head, now: Now) -> Option<Timestamp> {
        let Stand::At { line, .. } = head.stand else { return None };
        let (queue, meter) =
            (self.lanes[lane].queue, self.calls.lines_at(head.call)[line.index()].meter);
        let asks_until = self.lanes.queue(queue).asked_until();
        let opened = self.meters[meter].crowd_mut(queue)?.reopened(now.at);
        opened.filter(|opened| *opened < asks_until)
    }

    /// Counts what came of a start, before it does.
    pub(super) fn count_settled(&mut self, slot: CallSlot, settlement: Settlement) {
        let call = &self.calls[slot];
        let queue = self.lanes[call.lane].queue;
        let spec = &self.lanes.queue(queue).spec;
        let Attempts { failures, limited, .. } = self.calls.attempts(call);
        let progress = self.calls.progress(call);
        let is_cancelled = progress.is_some_and(|progress| progress.is_cancelled);
        let (fails, pauses) = (failures + 1 >= spec.failures_max, limited + 1 >= spec.limited_max);
        let outcomes = &mut self.counts_mut(queue).settled;
        *match settlement {
            Settlement::Done => &mut outcomes.done,
            Settlement::Dead => &mut outcomes.dead,
            _ if is_cancelled => &mut outcomes.cancelled,
            Settlement::Release => &mut outcomes.released,
            Settlement::Retry(_) if fails => &mut outcomes.dead,
            Settlement::Retry(_) => &mut outcomes.failed,
            Settlement::Limited(_) if pauses => &mut outcomes.dead,
            Settlement::Limited(_) => &mut outcomes.limited,
        } += 1;
    }

    pub(super) fn count_crashed(&mut self, slot: CallSlot) {
        let queue = self.lanes[self.calls[slot].lane].queue;
        let outcomes: &mut OutcomeCounts = &mut self.counts_mut(queue).settled;
        outcomes.crashed += 1;
    }

    /// Counts what becomes of a call, before it does.
    #[inline]
    pub(super) fn count_effect(&mut self, effect: &Effect, found: Option<CallSlot>) {
        let (Effect::Ended { id, .. } | Effect::Revived { id, .. }) = effect else { return };
        let Some(slot) = found.or_else(|| self.calls.find(*id)) else { return };
        let counts = self.counts_mut(self.lanes[self.calls[slot].lane].queue);
        match effect {
            Effect::Ended { end, .. } => counts.ended.add(*end),
            _ => counts.revived += 1,
        }
    }

    fn counts_mut(&mut self, queue: QueueSlot) -> &mut QueueCounts {
        &mut self.lanes.queue_mut(queue).counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::{Act, Claim, NewCall, QueueSpec};
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName, QueueName};
    use crate::time::Span;
    use crate::toll::Toll;
    use proptest::prelude::*;

    fn seconds(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(1_000 + seconds)))
    }

    fn queue() -> QueueName {
        QueueName::new("q").unwrap()
    }

    /// A queue, and a limit of one a minute.
    fn scheduler() -> Scheduler {
        let mut scheduler = Scheduler::new();
        scheduler.define_queue(&queue(), QueueSpec::default(), seconds(0)).unwrap();
        let definition = Definition::new(Limit::per_minute(1)).unwrap();
        let limit = LimitName::new("l").unwrap();
        scheduler.define_limit(&limit, Some(definition), seconds(0));
        scheduler
    }

    fn enqueue(scheduler: &mut Scheduler, lane: &str, at: u64) {
        let limit = LimitName::new("l").unwrap();
        let tolls = vec![Toll { limit, partition: None, weight: 1, hears_feedback: false }];
        let call =
            NewCall { tolls: tolls.into(), ..NewCall::new(queue(), LaneName::new(lane).unwrap()) };
        let _ = scheduler.act(Act { enqueue: vec![call], ..Act::default() }, seconds(at)).unwrap();
    }

    /// A claim of a worker who waits for `asks` seconds; how many start.
    fn claim(scheduler: &mut Scheduler, at: u64, asks: u64) -> usize {
        let asks = Span::from_secs(asks);
        let claim = Claim { queue: queue(), most: 10, lease: None, asks };
        scheduler.claim(&claim, seconds(at)).len()
    }

    fn counts(scheduler: &Scheduler) -> QueueCounts {
        scheduler.totals().queues.remove(0).counts
    }

    const SECOND_NS: u128 = 1_000_000_000;

    #[test]
    fn a_call_is_there_from_when_it_was_accepted_to_its_first_start() {
        let mut scheduler = scheduler();
        enqueue(&mut scheduler, "a", 0);
        enqueue(&mut scheduler, "b", 10);
        assert_eq!(claim(&mut scheduler, 30, 0), 1);
        assert_eq!(claim(&mut scheduler, 100, 0), 1);
        let counts = counts(&scheduler);
        assert_eq!((counts.enqueued, counts.started, counts.retries), (2, 2, 0));
        assert_eq!((counts.dwell.count(), counts.dwell.sum_ns), (2, (30 + 90) * SECOND_NS));
    }

    #[test]
    fn a_start_is_late_from_the_opening_on_if_a_worker_was_asking() {
        let mut scheduler = scheduler();
        enqueue(&mut scheduler, "a", 0);
        enqueue(&mut scheduler, "b", 0);
        enqueue(&mut scheduler, "c", 0);
        assert_eq!(claim(&mut scheduler, 0, 100), 1, "there was no worker yet");
        assert_eq!(counts(&scheduler).lateness.count(), 0);
        // It opens at 60, and the worker who waits comes two seconds late.
        assert_eq!(claim(&mut scheduler, 62, 0), 1);
        assert_eq!(counts(&scheduler).lateness.sum_ns, 2 * SECOND_NS);
        // It opens at 120, and nobody has asked since 100.
        assert_eq!(claim(&mut scheduler, 500, 0), 1);
        assert_eq!(counts(&scheduler).lateness.count(), 1);
    }

    #[test]
    fn who_has_the_turn_only_now_is_not_late() {
        let mut scheduler = scheduler();
        assert_eq!(claim(&mut scheduler, 0, 1_000), 0);
        enqueue(&mut scheduler, "a", 0);
        enqueue(&mut scheduler, "b", 0);
        let cancel = vec![CallId(0)];
        let _ = scheduler.act(Act { cancel, ..Act::default() }, seconds(10)).unwrap();
        assert_eq!(claim(&mut scheduler, 11, 0), 1);
        assert_eq!(counts(&scheduler).lateness.sum_ns, SECOND_NS);
    }

    #[test]
    fn what_is_applied_again_is_not_counted() {
        let mut live = scheduler();
        enqueue(&mut live, "a", 0);
        assert_eq!(claim(&mut live, 0, 0), 1);
        let effects = live.take_effects();
        let mut recovered = Scheduler::recovered(&effects);
        recovered.advance(seconds(100));
        let crashes = counts(&recovered).settled.crashed;
        assert_eq!((crashes, recovered.totals().limits[0].1.admitted.count), (1, 0));
        assert_eq!((counts(&recovered).enqueued, counts(&recovered).started), (0, 0));
        // What was accepted before is not measured.
        assert_eq!(claim(&mut recovered, 200, 0), 1);
        assert_eq!((counts(&recovered).retries, counts(&recovered).dwell.count()), (1, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn an_age_is_right_to_within_a_twentieth(
            steps in prop::collection::vec((1..4_u64, 1..1_000_u64), 1..20_000),
        ) {
            let (mut marks, mut id, mut at) = (Marks::default(), 0, 1_000);
            let mut all = Vec::new();
            for (calls, wait) in steps {
                at += wait;
                for _ in 0..calls {
                    marks.note(id, Timestamp::from_nanos(at));
                    all.push((id, at));
                    id += 1;
                }
            }
            for (id, accepted) in all {
                let told = marks.of(id).unwrap().as_nanos();
                prop_assert!(told <= accepted, "never later than it was");
                prop_assert!(accepted - told <= (at - accepted) / 20, "{} {}", told, accepted);
            }
        }
    }
}
