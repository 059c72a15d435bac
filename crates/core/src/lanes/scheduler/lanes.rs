//! Queues and their lanes: who waits in which order, and which call is a lane's head.

use super::Hashing;
use super::ascending::Ascending;
use super::calls::{CallSlot, Calls, LaneSlot, MeterSlot, Rank, index, slot};
use super::meters::{MeterBook, QueueSlot};
use super::sorted::Sorted;
use super::waiting::Waiting;
use crate::contract::QueueCounts;
use crate::lanes::call::CallId;
use crate::lanes::queue::{Order, QueueSpec};
use crate::name::{LaneName, QueueName};
use crate::time::{Span, Timestamp};
use crate::turn::Patience;
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::ops::Bound;

/// Most meters at which a lane remembers how far it was served.
const FINISHES_MAX: usize = 16;

/// A queue.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub(super) name: QueueName,
    pub(super) spec: QueueSpec,
    pub(super) is_paused: bool,
    /// Until when a worker asks for its calls, is expected to, and asks for them where others decide.
    pub(super) asks_until: Timestamp,
    pub(super) expected_until: Timestamp,
    pub(super) asked_elsewhere: Timestamp,
    /// Calls that have not ended.
    pub(super) depth: u64,
    /// Those of them that are in flight.
    pub(super) in_flight: u64,
    /// Calls that are dead, by when they died.
    pub(super) dead: BTreeSet<(Timestamp, CallId)>,
    /// Heads that owe nothing.
    pub(super) free: Ascending<(Rank, LaneSlot)>,
    /// Meters at which one of its heads may have its turn, by that head's rank.
    pub(super) open: Ascending<(Rank, MeterSlot)>,
    pub(super) lanes: Vec<LaneSlot>,
    pub(super) counts: Box<QueueCounts>,
}

impl Queue {
    /// Until when a worker asks for its calls, wherever that is.
    pub(super) fn asked_until(&self) -> Timestamp {
        self.told_until().max(self.expected_until)
    }

    /// The same, as far as it is known without anyone being expected.
    pub(super) fn told_until(&self) -> Timestamp {
        self.asks_until.max(self.asked_elsewhere)
    }

    /// Whether it has no calls, also none that are dead.
    pub(super) fn is_empty(&self) -> bool {
        self.depth == 0 && self.dead.is_empty()
    }

    /// The call that died first, if there are more than the queue keeps.
    pub(super) fn first_beyond_bound(&self) -> Option<CallId> {
        let is_beyond = self.dead.len() as u64 > self.spec.dead_max;
        self.dead.first().filter(|_| is_beyond).map(|(_, id)| *id)
    }
}

/// A lane.
#[derive(Debug, Clone)]
pub(super) struct Lane {
    pub(super) queue: QueueSlot,
    pub(super) name: LaneName,
    /// Calls that never started.
    pub(super) waiting: Waiting,
    /// Calls that started and are to start again, if there are any.
    returned: Option<Box<Returned>>,
    pub(super) in_flight: u32,
    /// Calls that have not ended, also those that have not joined it, and the dead.
    pub(super) calls: u32,
    /// Those of them that are dead.
    pub(super) dead: u32,
    /// Its place among the lanes of its queue.
    place: u32,
    /// How many times as much it is served as others.
    pub(super) weight: u32,
    /// It is among those that may be forgotten.
    pub(super) is_listed: bool,
    pub(super) is_paused: bool,
    /// A dead call holds it.
    pub(super) is_held: bool,
    pub(super) head: Option<Head>,
    finishes: SmallVec<[Finish; 1]>,
}

/// Calls of a lane that started and are to start again.
#[derive(Debug, Clone, Default)]
pub(super) struct Returned {
    /// They may start.
    pub(super) back: Sorted<(Rank, CallSlot)>,
    /// They rest.
    pub(super) resting: Sorted<(Rank, CallSlot)>,
}

/// How far a lane was served at a meter.
#[derive(Debug, Clone, Copy)]
struct Finish {
    meter: MeterSlot,
    /// Which meter it was: another may be kept in the same place since.
    birth: u32,
    tag: u64,
}

/// The call of a lane that may start next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) call: CallSlot,
    pub(super) stand: Stand,
    pub(super) patience: Patience,
    pub(super) is_senior: bool,
    /// What the clock of its stand said when it came there.
    pub(super) mark: Span,
}

impl Head {
    /// A head that stands nowhere yet.
    pub(super) fn new(call: CallSlot) -> Self {
        let (stand, patience) = (Stand::Free, Patience::default());
        Self { call, stand, patience, is_senior: false, mark: Span::ZERO }
    }
}

/// Which of its lines, of a few, in a byte: there are as many heads as lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineNumber(u8);

impl LineNumber {
    pub(super) fn new(line: usize) -> Self {
        Self(u8::try_from(line).unwrap_or(u8::MAX))
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

/// Where a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nowhere: it owes nothing.
    Free,
    /// At one of its lines, with its start tag there.
    At { line: LineNumber, tag: u64 },
    /// Set aside at one of its lines.
    Parked { line: LineNumber },
}

impl Lane {
    fn new(queue: QueueSlot, name: &LaneName) -> Self {
        Self {
            queue,
            name: name.clone(),
            waiting: Waiting::default(),
            returned: None,
            in_flight: 0,
            calls: 0,
            dead: 0,
            place: 0,
            weight: 1,
            is_listed: false,
            is_paused: false,
            is_held: false,
            head: None,
            finishes: SmallVec::new(),
        }
    }

    /// Which call is to be the head.
    fn first(&self, queue: &Queue, calls: &Calls) -> Option<CallSlot> {
        if self.is_paused || self.is_held || self.in_flight >= queue.spec.in_flight_max() {
            return None;
        }
        let back = self.returned().and_then(|returned| returned.back.first());
        let resting = self.returned().and_then(|returned| returned.resting.first());
        let waiting = self.waiting.first().map(|call| (calls[call].rank(), call));
        let first = match queue.spec.order {
            Order::Parallel(_) => waiting.into_iter().chain(back).min(),
            // Whoever rests holds its lane.
            Order::Strict => match back.into_iter().chain(resting).min() {
                Some(current) => Some(current).filter(|current| Some(*current) == back),
                None => waiting,
            },
        };
        first.map(|(_, call)| call)
    }

    /// The calls that started and are to start again.
    pub(super) fn returned(&self) -> Option<&Returned> {
        self.returned.as_deref()
    }

    /// Puts a call among those that are to start again.
    pub(super) fn come_back(&mut self, call: (Rank, CallSlot), rests: bool) {
        let returned = self.returned.get_or_insert_default();
        let calls = if rests { &mut returned.resting } else { &mut returned.back };
        calls.insert(call);
    }

    /// Takes a call from whatever order it is in; says whether it rested.
    pub(super) fn take(&mut self, call: CallSlot, calls: &Calls) -> bool {
        if self.waiting.remove(call, calls) {
            return false;
        }
        let Some(returned) = &mut self.returned else { return false };
        let ranked = (calls[call].rank(), call);
        let rested = returned.resting.remove(ranked);
        returned.back.remove(ranked);
        if returned.back.is_empty() && returned.resting.is_empty() {
            self.returned = None;
        }
        rested
    }

    /// Whether nothing is known of it that a new one would not have, but for its fair share.
    pub(super) fn is_empty(&self) -> bool {
        self.calls == 0 && !self.is_paused && !self.is_held && self.weight == 1
    }

    /// Whether it was served no farther anywhere than a new one would be.
    pub(super) fn is_level(&self, meter: impl Fn(MeterSlot) -> Option<(u32, u64)>) -> bool {
        self.finishes.iter().all(|finish| match meter(finish.meter) {
            Some((birth, vtime)) => birth != finish.birth || finish.tag <= vtime,
            None => true,
        })
    }

    /// How far it was served at a meter.
    pub(super) fn finish(&self, slot: MeterSlot, meter: &MeterBook) -> u64 {
        let is_it = |finish: &&Finish| finish.meter == slot && finish.birth == meter.birth;
        self.finishes.iter().find(is_it).map_or(0, |finish| finish.tag)
    }

    /// Notes how far it was served at a meter. Of more meters than a call can pay at, the one that was
    /// noted first is forgotten: there its next call is served as a newcomer's.
    pub(super) fn set_finish(&mut self, meter: MeterSlot, birth: u32, tag: u64) {
        let finish = Finish { meter, birth, tag };
        match self.finishes.iter_mut().find(|old| old.meter == meter) {
            Some(old) => *old = finish,
            None => {
                if self.finishes.len() >= FINISHES_MAX {
                    self.finishes.remove(0);
                }
                self.finishes.push(finish);
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    queues: Slab<Queue>,
    by_name: HashMap<QueueName, QueueSlot, Hashing>,
    /// The same in order: a claim that finds nothing asks whether there is its queue, and a look at one
    /// queue is not to cost one at each.
    in_order: BTreeMap<QueueName, QueueSlot>,
    lanes: Slab<Lane>,
    by_key: HashTable<LaneSlot>,
    hashing: Hashing,
    /// There was a queue that tells of its calls as they live.
    anyone_tells: bool,
}

impl Lanes {
    pub(super) fn find(&self, name: &str) -> Option<QueueSlot> {
        self.by_name.get(name).copied()
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.iter().map(|(_, queue)| queue)
    }

    /// Queues by name, after one.
    pub(super) fn queues_after(&self, after: Option<&QueueName>) -> impl Iterator<Item = &Queue> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.in_order
            .range::<QueueName, _>((from, Bound::Unbounded))
            .map(|(_, slot)| self.queue(*slot))
    }

    pub(super) fn queue(&self, queue: QueueSlot) -> &Queue {
        &self.queues[index(queue)]
    }

    /// A queue, unless it was removed.
    pub(super) fn known(&self, queue: QueueSlot) -> Option<&Queue> {
        self.queues.get(index(queue))
    }

    /// How many places there are for queues.
    pub(super) fn queue_slots(&self) -> u32 {
        slot(self.queues.capacity())
    }

    pub(super) fn queue_mut(&mut self, queue: QueueSlot) -> &mut Queue {
        &mut self.queues[index(queue)]
    }

    /// Whether there may be a queue that tells of its calls as they live.
    pub(super) fn anyone_tells(&self) -> bool {
        self.anyone_tells
    }

    pub(super) fn define(&mut self, name: &QueueName, spec: QueueSpec) -> QueueSlot {
        self.anyone_tells |= spec.tells_accepted;
        if let Some(queue) = self.find(name) {
            self.queue_mut(queue).spec = spec;
            return queue;
        }
        let made = slot(self.queues.insert(Queue {
            name: name.clone(),
            spec,
            is_paused: false,
            asks_until: Timestamp::default(),
            expected_until: Timestamp::default(),
            asked_elsewhere: Timestamp::default(),
            depth: 0,
            in_flight: 0,
            dead: BTreeSet::new(),
            free: Ascending::default(),
            open: Ascending::default(),
            lanes: Vec::new(),
            counts: Box::default(),
        }));
        self.by_name.insert(name.clone(), made);
        self.in_order.insert(name.clone(), made);
        made
    }

    /// The lanes of a queue of which a call was started and has not ended: the heads of the others
    /// do not hang on the queue's order.
    pub(super) fn with_starts(&self, queue: QueueSlot) -> Vec<LaneSlot> {
        let has_starts = |lane: &&LaneSlot| {
            let lane = &self.lanes[index(**lane)];
            lane.in_flight > 0 || lane.returned.is_some()
        };
        self.queue(queue).lanes.iter().filter(has_starts).copied().collect()
    }

    /// The lane of that name, made if there is none.
    pub(super) fn at(&mut self, queue: QueueSlot, name: &LaneName) -> LaneSlot {
        let hash = self.hashing.hash_one((queue, name.as_str()));
        if let Some(found) = self.lane_hashed(hash, queue, name) {
            return found;
        }
        let made = slot(self.lanes.insert(Lane::new(queue, name)));
        let (lanes, hashing) = (&self.lanes, &self.hashing);
        self.by_key.insert_unique(hash, made, |slot| {
            let lane = &lanes[index(*slot)];
            hashing.hash_one((lane.queue, lane.name.as_str()))
        });
        self.lanes[index(made)].place = slot(self.queue(queue).lanes.len());
        self.queue_mut(queue).lanes.push(made);
        made
    }

    /// One more call of a lane is in flight.
    pub(super) fn count_flight(&mut self, lane: LaneSlot) {
        let lane = &mut self.lanes[index(lane)];
        lane.in_flight += 1;
        self.queues[index(lane.queue)].in_flight += 1;
    }

    /// One call less of a lane is in flight.
    pub(super) fn discount_flight(&mut self, lane: LaneSlot) {
        let lane = &mut self.lanes[index(lane)];
        lane.in_flight -= 1;
        self.queues[index(lane.queue)].in_flight -= 1;
    }

    /// Forgets a lane of which nothing is known.
    pub(super) fn forget(&mut self, lane: LaneSlot) {
        let Lane { queue, name, place, .. } = self.lanes.remove(index(lane));
        let hash = self.hashing.hash_one((queue, name.as_str()));
        if let Ok(found) = self.by_key.find_entry(hash, |other| *other == lane) {
            found.remove();
        }
        let lanes = &mut self.queues[index(queue)].lanes;
        lanes.swap_remove(index(place));
        if let Some(&moved) = lanes.get(index(place)) {
            self.lanes[index(moved)].place = place;
        }
    }

    /// Removes a queue that has no calls, and forgets its lanes.
    pub(super) fn remove_queue(&mut self, queue: QueueSlot) {
        while let Some(&lane) = self.queue(queue).lanes.last() {
            self.forget(lane);
        }
        let Queue { name, .. } = self.queues.remove(index(queue));
        self.by_name.remove(&name);
        self.in_order.remove(&name);
    }

    pub(super) fn is_known(&self, lane: LaneSlot) -> bool {
        self.lanes.contains(index(lane))
    }

    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The lane of that name.
    pub(super) fn lane_named(&self, queue: QueueSlot, name: &str) -> Option<LaneSlot> {
        self.lane_hashed(self.hashing.hash_one((queue, name)), queue, name)
    }

    fn lane_hashed(&self, hash: u64, queue: QueueSlot, name: &str) -> Option<LaneSlot> {
        let is_it = |slot: &LaneSlot| {
            let lane = &self.lanes[index(*slot)];
            lane.queue == queue && *lane.name == *name
        };
        self.by_key.find(hash, is_it).copied()
    }

    /// Which call is to be the head of a lane.
    pub(super) fn first_of(&self, lane: LaneSlot, calls: &Calls) -> Option<CallSlot> {
        let lane = &self[lane];
        lane.first(self.queue(lane.queue), calls)
    }
}

impl std::ops::Index<LaneSlot> for Lanes {
    type Output = Lane;

    fn index(&self, slot: LaneSlot) -> &Lane {
        &self.lanes[index(slot)]
    }
}

impl std::ops::IndexMut<LaneSlot> for Lanes {
    fn index_mut(&mut self, slot: LaneSlot) -> &mut Lane {
        &mut self.lanes[index(slot)]
    }
}
