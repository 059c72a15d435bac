//! The busiest lanes and meters: all there are, sorted.

use super::Naive;
use crate::contract::{
    Among, BusyLane, BusyLanes, BusyLimit, BusyMeter, BusyMeters, BusyQueue, LimitTotals, Onward,
    PAGE_MAX, QueueTotals,
};
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
                name,
                waiting,
                in_flight,
                dead,
                enqueued: counts.enqueued,
                started: counts.started,
                settled: counts.settled,
                ended: counts.ended,
            }];
            busy.join(BusyLanes { queues, lanes, next: None }, most);
        }
        busy
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
