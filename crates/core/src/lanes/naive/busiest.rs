//! The busiest lanes and meters: all there are, sorted.

use super::heads::rank;
use super::{Call, Naive};
use crate::contract::{
    Among, BusyLane, BusyLanes, BusyLimit, BusyMeter, BusyMeters, BusyQueue, LimitTotals, Oldest,
    Onward, PAGE_MAX, QueueTotals,
};
use crate::name::QueueName;
use crate::time::Now;

impl Naive {
    /// The busiest lanes of queues, in one slice.
    pub fn busiest_lanes(&self, among: &Among, most: usize, _: Onward) -> BusyLanes {
        let most = most.min(PAGE_MAX);
        let mut busy = BusyLanes::default();
        for queue in self.totals().queues.into_iter().filter(|queue| among.has(&queue.name)) {
            let lanes = self.lanes_of(&queue.name).into_iter().map(|lane| BusyLane {
                queue: queue.name.clone(),
                state: self.lane_state((queue.name.clone(), lane)),
            });
            let lanes = lanes.collect();
            let QueueTotals { name, waiting, in_flight, dead, counts } = queue;
            let queues = vec![BusyQueue {
                is_paused: self.queues[&name].is_paused,
                waiting,
                in_flight,
                dead,
                oldest: if most == 0 { None } else { self.oldest(&name) },
                enqueued: counts.enqueued,
                started: counts.started,
                settled: counts.settled,
                ended: counts.ended,
                name,
            }];
            busy.join(BusyLanes { queues, lanes, next: None }, most);
        }
        busy
    }

    /// Who has been in line longest of the first of each lane: of those that never started by when they came,
    /// and of those that rest, and that are to be tried again, by their turn.
    fn oldest(&self, queue: &QueueName) -> Option<Oldest> {
        let is_in_line = |call: &&Call| call.is_waiting() && call.arrival.is_some();
        let firsts = self.lanes_of(queue).into_iter().flat_map(|lane| {
            let key = (queue.clone(), lane);
            let of_lane = self.calls.values().filter(|call| call.lane_key() == key);
            let in_line: Vec<&Call> = of_lane.filter(is_in_line).collect();
            let again = |rests: bool| {
                let again = in_line.iter().filter(|call| call.came_back);
                again.filter(|call| call.backoff.is_some() == rests).min_by_key(|call| rank(call))
            };
            let new = in_line.iter().filter(|call| !call.came_back).min_by_key(|call| call.arrival);
            let firsts = [new, again(true), again(false)].into_iter().flatten();
            firsts.copied().collect::<Vec<_>>()
        });
        let call = firsts.min_by_key(|call| call.arrival)?;
        Some(Oldest { call: call.id, arrival: call.arrival?, since: None })
    }

    /// The busiest meters of limits, in one slice; with `most` 0 the limits instead.
    pub fn busiest_meters(&self, among: &Among, most: usize, _: Onward, now: Now) -> BusyMeters {
        let most = most.min(PAGE_MAX);
        let (mut busy, used) = (BusyMeters::default(), self.used(now));
        let there = self.limits(None, usize::MAX, now).into_iter();
        for limit in there.filter(|limit| among.has(&limit.name)) {
            let mut names: Vec<_> = used.iter().filter(|(of, _)| *of == limit.name).collect();
            let global = (limit.name.clone(), None);
            if limit.is_paused && !names.contains(&&global) {
                names.push(&global);
            }
            let meter = |name: &super::MeterKey| {
                let state = self.inspect(name, now)?;
                let kept = self.meters.get(name);
                let blocker = kept.and_then(|meter| meter.blocker(&state.definition, 1, now));
                Some(BusyMeter { name: name.clone(), state, blocker })
            };
            let meters: Vec<_> = names.into_iter().filter_map(meter).collect();
            let limit = BusyLimit {
                name: limit.name,
                totals: limit.totals,
                waiting: meters.iter().map(|meter| meter.state.waiting).sum(),
                in_flight: meters.iter().map(|meter| meter.state.in_flight).sum(),
            };
            let limits = if most == 0 { vec![limit] } else { vec![] };
            let (totals, next) = (LimitTotals::default(), None);
            busy.join(BusyMeters { limits, meters, totals, next }, most);
        }
        for totals in self.totals.values() {
            busy.totals.admitted.count += totals.admitted.count;
            busy.totals.admitted.weight += totals.admitted.weight;
            busy.totals.refused.count += totals.refused.count;
            busy.totals.refused.weight += totals.refused.weight;
        }
        busy
    }
}
