//! The busiest lanes and meters, in slices: each costs a short look at so many.

use super::Scheduler;
use super::browse::least;
use super::calls::{LaneSlot, MeterSlot, index, slot};
use super::lanes::Queue;
use super::limits::{Home, Known, LimitSlot};
use crate::contract::{
    Among, BUSIEST_AT_ONCE, BusyLane, BusyLanes, BusyLimit, BusyMeter, BusyMeters, BusyQueue,
    MeterName, Oldest, Onward,
};
use crate::name::{LimitName, Partition};
use crate::time::Now;
use std::cmp::Reverse;
use std::ops::Range;

/// Some of the lanes of a queue, or of the meters of a limit.
struct Part<Owner> {
    owner: Owner,
    /// Its owner was not come to before.
    begins: bool,
    places: Range<usize>,
}

impl<Owner> Part<Owner> {
    fn of<T>(&self, all: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        all.skip(self.places.start).take(self.places.len())
    }
}

/// The owner of all keys, where they come first; the book in slot 0 is owner 1.
const KEYS_FIRST: u32 = 0;
/// The same where they come last.
const KEYS_LAST: u32 = u32::MAX;

/// A meter in the order of all, as [`BusyMeters`] has them.
type Placed<'a> = (Reverse<u64>, bool, &'a str, Option<Partition>, Option<MeterSlot>);

impl Scheduler {
    /// The busiest lanes of queues, from there on. With `most` 0 lanes are not looked at.
    pub fn busiest_lanes(&self, among: &Among, most: usize, from: Onward) -> BusyLanes {
        let owners = match among {
            Among::One(name) => one(self.lanes.find(name), from),
            Among::All { .. } => from.owner..self.lanes.queue_slots(),
        };
        let length = |slot| {
            let queue = self.lanes.known(slot).filter(|queue| among.has(&queue.name))?;
            Some(if most == 0 { 0 } else { queue.lanes.len() })
        };
        let (parts, next) = parts(owners, from.left, length);
        let queues = parts.iter().map(|part| BusyQueue {
            oldest: self.oldest(part),
            ..busy_queue(self.lanes.queue(part.owner))
        });
        let queues = queues.collect();
        let looked_at = parts.iter().flat_map(|part| {
            let queue = self.lanes.queue(part.owner);
            queue.lanes[part.places.clone()].iter().map(|slot| (&queue.name, *slot))
        });
        let known = looked_at.filter(|(_, slot)| !self.lanes[*slot].is_empty());
        let placed = known.map(|(queue, slot)| {
            let lane = &self.lanes[slot];
            (Reverse(lane.calls - lane.in_flight - lane.dead), queue, &lane.name, slot)
        });
        let busy = |slot: LaneSlot| BusyLane {
            queue: self.lanes.queue(self.lanes[slot].queue).name.clone(),
            state: self.lane_state(slot),
        };
        let lanes = least(placed, most).into_iter().map(|(_, _, _, slot)| busy(slot)).collect();
        BusyLanes { queues, lanes, next }
    }

    /// Who has been in line longest among the first of those lanes.
    fn oldest(&self, part: &Part<u32>) -> Option<Oldest> {
        let lanes = &self.lanes.queue(part.owner).lanes[part.places.clone()];
        let firsts = lanes.iter().flat_map(|slot| {
            let lane = &self.lanes[*slot];
            let returned = lane.returned();
            let back = returned.and_then(|it| it.back.first());
            let resting = returned.and_then(|it| it.resting.first());
            let again = back.into_iter().chain(resting).map(|(_, call)| call);
            lane.waiting.firsts().chain(again)
        });
        let call = firsts.map(|slot| &self.calls[slot]).min_by_key(|call| call.arrival)?;
        let (call, arrival) = (call.id, call.arrival);
        Some(Oldest { call, arrival, since: self.lined_up.of(arrival) })
    }

    /// The busiest meters of limits, from there on; with `most` 0 the limits instead.
    pub fn busiest_meters(&self, among: &Among, most: usize, from: Onward, now: Now) -> BusyMeters {
        let (parts, next) = self.limit_parts(among, from, most == 0, now);
        let totals = self.meters.all_totals;
        if most == 0 {
            let limits = parts.iter().map(|part| self.busy_limit(part, now)).collect();
            return BusyMeters { limits, meters: Vec::new(), totals, next };
        }
        let used = parts.iter().flat_map(|part| {
            let limit = self.meters.book(part.owner);
            let used = part.of(limit.meters()).filter(|meter| self.is_used(*meter, now));
            // The global one of a limit that is held back is told in any case, and once.
            let is_apart = move |meter: MeterSlot| {
                limit.is_paused() && self.meters[meter].partition().is_none()
            };
            let used = used.filter(move |meter| !is_apart(*meter)).map(Some);
            let is_told = limit.is_paused() && part.begins;
            let global = is_told.then(|| self.meters.find_at(part.owner, None));
            used.chain(global).map(move |meter| self.placed(part.owner, meter, now))
        });
        let meters = least(used, most).into_iter().filter_map(|placed| {
            let (.., limit, partition, meter) = placed;
            self.busy_meter((LimitName::of(limit.into()), partition), meter, now)
        });
        BusyMeters { limits: Vec::new(), meters: meters.collect(), totals, next }
    }

    /// Some of the meters of limits, from there on. The keys are one owner together: the first, so that one that gets a
    /// book meanwhile is not passed over; or the last where limits are asked for, since who takes some of them
    /// wants those with a book, and of the keys the same as before.
    fn limit_parts(
        &self,
        among: &Among,
        from: Onward,
        are_keys_last: bool,
        now: Now,
    ) -> (Vec<Part<LimitSlot>>, Option<Onward>) {
        let is_sought = |limit: Known<'_>| among.has(limit.name()) && self.is_defined(limit, now);
        let key = |meter: &MeterSlot| {
            let owner = LimitSlot::key(*meter);
            let is_sought = is_sought(self.meters.book(owner));
            is_sought.then_some(Part { owner, begins: true, places: 0..1 })
        };
        let keys = self.meters.keys();
        if from.owner == KEYS_LAST {
            let start = from.left.map_or(0, index).min(keys.len());
            let end = start.saturating_add(BUSIEST_AT_ONCE).min(keys.len());
            let next = Onward { owner: KEYS_LAST, left: Some(slot(end)) };
            let parts = keys[start..end].iter().filter_map(key).collect();
            return (parts, Some(next).filter(|_| end < keys.len()));
        }
        let (first, books) = match among {
            Among::All { .. } => {
                let first = from.owner == KEYS_FIRST && !are_keys_last;
                let end = slot(self.meters.books_end()).saturating_add(1);
                (first.then_some(KEYS_FIRST), from.owner.max(1)..end)
            }
            Among::One(name) => match self.meters.limit(name).map(LimitSlot::home) {
                Some(Home::Meter(meter)) => return (key(&meter).into_iter().collect(), None),
                Some(Home::Book(at)) => (None, one(Some(slot(at).saturating_add(1)), from)),
                None => (None, 0..0),
            },
        };
        let length = |owner: u32| match index(owner).checked_sub(1) {
            None => Some(keys.len()),
            Some(at) => {
                let limit = self.meters.book_at(at).filter(|limit| is_sought(*limit))?;
                Some(limit.meters().count())
            }
        };
        let (parts, next) = parts(first.into_iter().chain(books), from.left, length);
        let parts = parts.into_iter().flat_map(|Part { owner, begins, places }| {
            match index(owner).checked_sub(1) {
                None => keys[places].iter().filter_map(key).collect(),
                Some(at) => vec![Part { owner: LimitSlot::book(at), begins, places }],
            }
        });
        let are_left = are_keys_last && matches!(among, Among::All { .. }) && !keys.is_empty();
        let last = Some(Onward { owner: KEYS_LAST, left: None }).filter(|_| are_left);
        (parts.collect(), next.or(last))
    }

    fn placed(&self, owner: LimitSlot, meter: Option<MeterSlot>, now: Now) -> Placed<'_> {
        let (limit, book) = (self.meters.book(owner), meter.map(|slot| &self.meters[slot]));
        let kept = book.and_then(|book| book.meter.as_deref());
        let is_closed = kept.is_some_and(|meter| meter.closed(now.at).is_some());
        let waiting = book.map_or(0, |book| book.standing());
        let partition = book.and_then(|book| book.partition());
        (Reverse(waiting), !(limit.is_paused() || is_closed), limit.name(), partition, meter)
    }

    fn busy_limit(&self, part: &Part<LimitSlot>, now: Now) -> BusyLimit {
        let limit = self.meters.book(part.owner);
        let (mut waiting, mut in_flight) = (0, 0);
        for meter in part.of(limit.meters()) {
            let (book, rules) = (&self.meters[meter], self.meters.definition(meter));
            waiting += book.standing();
            if let (Some(meter), Some(rules)) = (&book.meter, rules.filter(|it| it.has_slots())) {
                in_flight += meter.in_flight(rules, now);
            }
        }
        BusyLimit { name: limit.to_name(), totals: limit.totals(), waiting, in_flight }
    }

    fn busy_meter(&self, name: MeterName, meter: Option<MeterSlot>, now: Now) -> Option<BusyMeter> {
        let state = self.inspect(&name, now)?;
        let spent = meter.and_then(|slot| self.meters[slot].meter.as_deref());
        let blocker = spent.and_then(|meter| meter.blocker(&state.definition, 1, now));
        Some(BusyMeter { name, state, blocker })
    }
}

fn busy_queue(queue: &Queue) -> BusyQueue {
    BusyQueue {
        name: queue.name.clone(),
        is_paused: queue.is_paused,
        waiting: queue.depth - queue.in_flight,
        in_flight: queue.in_flight,
        dead: queue.dead.len() as u64,
        oldest: None,
        enqueued: queue.counts.enqueued,
        started: queue.counts.started,
        settled: queue.counts.settled,
        ended: queue.counts.ended,
    }
}

/// The one that was found, or none.
fn one(found: Option<u32>, from: Onward) -> Range<u32> {
    let found = found.filter(|slot| from.left.is_none() || from.owner == *slot);
    found.map_or(0..0, |slot| slot..slot.saturating_add(1))
}

/// What one slice looks at, and where the next goes on. An owner costs as much as one of what it has.
fn parts(
    owners: impl Iterator<Item = u32>,
    mut left: Option<u32>,
    length: impl Fn(u32) -> Option<usize>,
) -> (Vec<Part<u32>>, Option<Onward>) {
    let (mut parts, mut room) = (Vec::new(), BUSIEST_AT_ONCE);
    for owner in owners {
        if room == 0 {
            return (parts, Some(Onward { owner, left: None }));
        }
        room -= 1;
        let before = left.take();
        let Some(length) = length(owner) else { continue };
        let end = before.map_or(length, |left| length.min(index(left)));
        let start = end.saturating_sub(room);
        room -= end - start;
        parts.push(Part { owner, begins: before.is_none(), places: start..end });
        if start > 0 {
            return (parts, Some(Onward { owner, left: Some(slot(start)) }));
        }
    }
    (parts, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::act::Act;
    use crate::lanes::call::{CallId, NewCall};
    use crate::lanes::queue::QueueSpec;
    use crate::limit::{Definition, Limit};
    use crate::name::{LaneName, QueueName};
    use crate::time::{Span, Timestamp};
    use crate::toll::Toll;
    use std::collections::BTreeSet;

    fn call(lane: usize) -> NewCall {
        let name = LaneName::new(&lane.to_string()).unwrap();
        NewCall::new(QueueName::new("q").unwrap(), name)
    }

    fn seconds(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(1_000 + seconds)))
    }

    /// The oldest call of the queue, and since when.
    fn oldest(scheduler: &Scheduler) -> Option<(u64, Option<Timestamp>)> {
        let (mut all, mut next) = (BusyLanes::default(), Some(Onward::default()));
        while let Some(from) = next {
            let slice = scheduler.busiest_lanes(&Among::EVERYTHING, 1, from);
            next = slice.next;
            all.join(slice, 1);
        }
        assert_eq!(all.queues.len(), 1);
        all.queues[0].oldest.map(|oldest| (oldest.call.0, oldest.since))
    }

    #[test]
    fn who_has_been_in_line_longest_is_told_with_since_when() {
        let (mut scheduler, queue) = (Scheduler::new(), QueueName::new("q").unwrap());
        scheduler.define_queue(&queue, QueueSpec::default(), seconds(0)).unwrap();
        assert_eq!(oldest(&scheduler), None);
        // It is not due until all others are in line; then come more lanes than one slice looks at.
        let not_before = Some(seconds(30).wall);
        let later = NewCall { not_before, ..call(0) };
        let _ = scheduler.act(Act { enqueue: vec![later], ..Act::default() }, seconds(0)).unwrap();
        assert_eq!(oldest(&scheduler), None);
        for (at, lanes) in [(10, 1..2), (20, 2..BUSIEST_AT_ONCE * 2)] {
            let enqueue = lanes.map(call).collect();
            let _ = scheduler.act(Act { enqueue, ..Act::default() }, seconds(at)).unwrap();
        }
        scheduler.advance(seconds(40));
        let (first, second) = ((1, Some(seconds(10).at)), (2, Some(seconds(20).at)));
        assert_eq!(oldest(&scheduler), Some(first));
        let cancel = vec![CallId(1)];
        let _ = scheduler.act(Act { cancel, ..Act::default() }, seconds(50)).unwrap();
        assert_eq!(oldest(&scheduler), Some(second));
        let cancel = (2..BUSIEST_AT_ONCE as u64 * 2).map(CallId).collect();
        let _ = scheduler.act(Act { cancel, ..Act::default() }, seconds(50)).unwrap();
        assert_eq!(oldest(&scheduler), Some((0, Some(seconds(40).at))), "from when it was due");
        let recovered = Scheduler::recovered(&scheduler.take_effects());
        assert_eq!(oldest(&recovered), Some((0, None)), "that was before it was opened");
    }

    #[test]
    fn no_lane_is_passed_over_where_one_slice_ends() {
        let (mut scheduler, now) = (Scheduler::new(), Now::default());
        let queue = QueueName::new("q").unwrap();
        scheduler.define_queue(&queue, QueueSpec::default(), now).unwrap();
        let lanes = BUSIEST_AT_ONCE * 2 + 10;
        let longest = [7, BUSIEST_AT_ONCE + 7, lanes - 1];
        let enqueue = (0..lanes).chain(longest).map(call).collect();
        let _ = scheduler.act(Act { enqueue, ..Act::default() }, now).unwrap();
        let (mut all, mut next, mut slices) = (BusyLanes::default(), Some(Onward::default()), 0);
        while let Some(from) = next {
            let slice = scheduler.busiest_lanes(&Among::EVERYTHING, 3, from);
            (next, slices) = (slice.next, slices + 1);
            all.join(slice, 3);
        }
        let names = all.lanes.iter().map(|lane| lane.state.name.to_string());
        let mut expected = longest.map(|lane| lane.to_string());
        expected.sort_unstable();
        assert_eq!((names.collect::<Vec<_>>(), slices), (expected.to_vec(), 3));
        assert_eq!((all.queues.len(), all.queues[0].waiting), (1, lanes as u64 + 3));
    }

    #[test]
    fn no_key_is_passed_over_where_one_slice_ends() {
        let (mut scheduler, now) = (Scheduler::new(), Now::default());
        let queue = QueueName::new("q").unwrap();
        scheduler.define_queue(&queue, QueueSpec::default(), now).unwrap();
        let rules = || Definition::new(Limit::per_minute(1)).unwrap();
        let limit = |name: usize| LimitName::new(&name.to_string()).unwrap();
        let keys = BUSIEST_AT_ONCE * 2 + 10;
        let (busiest, standing) = ([7, BUSIEST_AT_ONCE + 7, keys - 1], keys);
        scheduler.define_limit(&limit(standing), Some(rules()), now);
        let toll =
            |name| Toll { weight: 1, hears_feedback: false, limit: limit(name), partition: None };
        let numbers = (0..=standing).chain(busiest).chain([standing]).enumerate();
        let enqueue =
            numbers.map(|(lane, name)| NewCall { tolls: [toll(name)].into(), ..call(lane) });
        let define = (0..keys).map(|name| (limit(name), rules()));
        let act = Act { define: define.collect(), enqueue: enqueue.collect(), ..Act::default() };
        let _ = scheduler.act(act, now).unwrap();
        for (most, expected) in [(4, 4), (0, 0)] {
            let (mut all, mut next) = (BusyMeters::default(), Some(Onward::default()));
            while let Some(from) = next {
                let slice = scheduler.busiest_meters(&Among::EVERYTHING, most, from, now);
                next = slice.next;
                all.join(slice, most);
            }
            let names = all.meters.iter().map(|meter| meter.name.0.to_string());
            let mut names: Vec<_> = names.collect();
            names.sort_unstable();
            let mut sought: Vec<_> =
                busiest.iter().chain([&standing]).map(usize::to_string).collect();
            sought.sort_unstable();
            assert_eq!(names, sought[..expected]);
            let told: BTreeSet<_> = all.limits.iter().map(|limit| limit.name.clone()).collect();
            let limits = if most == 0 { keys + 1 } else { 0 };
            assert_eq!((told.len(), all.limits.len()), (limits, limits));
            let first = all.limits.first().map(|limit| limit.name.to_string());
            assert_eq!(first, (most == 0).then(|| standing.to_string()), "what operators defined");
            let second = all.limits.get(1).map(|limit| limit.name.to_string());
            assert_eq!(second, (most == 0).then(|| "0".to_owned()), "the same ones each time");
        }
        let one = Among::One("7".to_owned());
        let found = scheduler.busiest_meters(&one, 3, Onward::default(), now);
        assert_eq!((found.meters.len(), found.meters[0].state.waiting, found.next), (1, 2, None));
    }
}
