//! A survey: the most of what there is, in one pass over it, for people who look from outside.

use super::Scheduler;
use super::calls::LaneSlot;
use super::lanes::{Lane, Stand};
use crate::contract::{LaneState, LimitView, MeterName, MeterState};
use crate::lanes::call::CallId;
use crate::meter::Blocker;
use crate::name::QueueName;
use crate::time::Now;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Up to so many of something, and how many more there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Most<T> {
    /// Some of them.
    pub found: Vec<T>,
    /// How many are not among these.
    pub more: u64,
}

/// A lane that has calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneSurvey {
    /// Its queue.
    pub queue: QueueName,
    /// How it is.
    pub state: LaneState,
    /// The meter at which its next call stands. It may be open, and no worker ask.
    pub stands_at: Option<MeterName>,
}

/// A meter that is not as new, or where someone stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterSurvey {
    /// Which.
    pub name: MeterName,
    /// How it stands.
    pub state: MeterState,
    /// What is in the way of one unit that nobody goes before.
    pub blocker: Option<Blocker>,
}

impl Scheduler {
    /// Lanes that have calls: those with most that wait first. Costs a short look at each lane.
    pub fn survey_lanes(&self, most: usize) -> Most<LaneSurvey> {
        let mut first = BinaryHeap::with_capacity(most.saturating_add(1));
        let mut more = 0;
        for slot in self.lanes.queues().flat_map(|queue| &queue.lanes) {
            let lane = &self.lanes[*slot];
            if lane.calls == 0 {
                continue;
            }
            // Of equals those that were there first: who looks again finds the same ones.
            let place = Reverse((waiting(lane), Reverse(*slot)));
            let has_room = first.len() < most;
            more += u64::from(!has_room);
            if has_room || first.peek().is_some_and(|last| place < *last) {
                first.push(place);
                if !has_room {
                    first.pop();
                }
            }
        }
        let found = first.into_sorted_vec();
        let found = found.into_iter().map(|Reverse((_, Reverse(slot)))| self.lane_survey(slot));
        Most { found: found.collect(), more }
    }

    pub(super) fn lane_survey(&self, slot: LaneSlot) -> LaneSurvey {
        let lane = &self.lanes[slot];
        let stands_at = lane.head.and_then(|head| {
            let (Stand::At { line, .. } | Stand::Parked { line }) = head.stand else { return None };
            let line = self.calls.lines_at(head.call).get(line.index())?;
            Some(self.meters.name(line.meter))
        });
        let queue = self.lanes.queue(lane.queue).name.clone();
        LaneSurvey { queue, state: self.lane_state(slot), stands_at }
    }

    /// Meters that are not as new, or where someone stands. Costs a short look at each meter.
    pub fn survey_meters(&self, most: usize, now: Now) -> Most<MeterSurvey> {
        let mut found = Vec::new();
        let mut more = 0;
        for limit in self.meters.limits().filter(|limit| self.is_defined(*limit, now)) {
            for slot in limit.meters().filter(|slot| self.is_used(*slot, now)) {
                if found.len() >= most {
                    more += 1;
                    continue;
                }
                let (book, name) = (&self.meters[slot], self.meters.name(slot));
                let spent = book.meter.as_ref().zip(self.meters.definition(slot));
                let blocker = spent.and_then(|(meter, rules)| meter.blocker(rules, 1, now));
                let state = self.inspect(&name, now);
                found.extend(state.map(|state| MeterSurvey { name, state, blocker }));
            }
        }
        Most { found, more }
    }

    /// Limits that are defined. Costs a look at each limit.
    pub fn survey_limits(&self, most: usize, now: Now) -> Most<LimitView> {
        let mut defined = self.meters.limits().filter(|limit| self.is_defined(*limit, now));
        let found = defined.by_ref().take(most).filter_map(|limit| limit.view()).collect();
        Most { found, more: defined.count() as u64 }
    }

    /// Calls in flight, those first whose leases end first.
    pub fn survey_flights(&self, most: usize) -> Most<CallId> {
        let leases = self.timers.leases.iter().take(most);
        let found: Vec<_> = leases.map(|(_, _, slot)| self.calls[slot].id).collect();
        let more = self.timers.leases.len().saturating_sub(found.len()) as u64;
        Most { found, more }
    }

    /// Calls that are dead, of each queue those first that died first.
    pub fn survey_dead(&self, most: usize) -> Most<CallId> {
        let all: usize = self.lanes.queues().map(|queue| queue.dead.len()).sum();
        let dead = self.lanes.queues().flat_map(|queue| &queue.dead);
        let found: Vec<_> = dead.take(most).map(|(_, id)| *id).collect();
        let more = all.saturating_sub(found.len()) as u64;
        Most { found, more }
    }
}

fn waiting(lane: &Lane) -> u32 {
    lane.calls - lane.in_flight - lane.dead
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Configure;
    use crate::lanes::act::Act;
    use crate::lanes::call::NewCall;
    use crate::lanes::claim::Claim;
    use crate::lanes::queue::QueueSpec;
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, LimitName, Partition};
    use crate::time::Span;
    use crate::toll::Toll;

    /// Lanes with 1, 2, 3… calls that owe at a limit of two.
    fn scheduler(lanes: usize) -> Scheduler {
        let mut scheduler = Scheduler::new();
        let (queue, limit) = (QueueName::new("q").unwrap(), LimitName::new("l").unwrap());
        let rules = Definition::new(Limit::per_minute(2)).unwrap();
        scheduler.configure(Configure::limit(limit.clone(), Some(rules)), Now::default()).unwrap();
        scheduler.define_queue(&queue, QueueSpec::default(), Now::default()).unwrap();
        for lane in (1..=lanes).flat_map(|lane| std::iter::repeat_n(lane, lane)) {
            let lane = LaneName::new(&format!("lane {lane}")).unwrap();
            let partition = Some(Partition::new("p").unwrap());
            let tolls =
                vec![Toll { limit: limit.clone(), partition, weight: 1, hears_feedback: false }];
            let enqueue =
                vec![NewCall { tolls: tolls.into(), ..NewCall::new(queue.clone(), lane) }];
            let _ = scheduler.act(Act { enqueue, ..Act::default() }, Now::default()).unwrap();
        }
        scheduler
    }

    #[test]
    fn the_longest_lanes_come_first_and_the_others_are_counted() {
        let Most { found, more } = scheduler(5).survey_lanes(2);
        let lanes: Vec<_> = found
            .iter()
            .map(|lane| (lane.state.name.as_str(), lane.state.waiting, lane.stands_at.is_some()))
            .collect();
        assert_eq!((lanes, more), (vec![("lane 5", 5, true), ("lane 4", 4, true)], 3));
    }

    #[test]
    fn what_is_started_and_spent_is_found() {
        let mut scheduler = scheduler(5);
        let queue = QueueName::new("q").unwrap();
        let claim = Claim { queue, most: 5, lease: None, asks: Span::from_secs(1) };
        let started = scheduler.claim(&claim, Now::default());
        assert_eq!(started.len(), 2);
        let Most { found, more } = scheduler.survey_flights(1);
        assert_eq!((found.len(), more), (1, 1));
        let Most { found, more } = scheduler.survey_meters(5, Now::default());
        assert_eq!((found.len(), more), (1, 0));
        assert_eq!((found[0].state.standing.remaining, found[0].blocker.is_some()), (0, true));
        assert_eq!(scheduler.survey_limits(5, Now::default()).found.len(), 1);
        assert_eq!(scheduler.survey_dead(5), Most { found: vec![], more: 0 });
    }
}
