//! Queues and their lanes: who waits in which order, and which call is a lane's head.

use super::calls::{CallSlot, LaneSlot, MeterSlot, Rank, index, slot};
use super::meters::QueueSlot;
use crate::lanes::queue::{Order, QueueSpec};
use crate::name::{LaneName, QueueName};
use crate::time::Timestamp;
use crate::turn::Patience;
use hashbrown::HashTable;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

/// Most meters at which a lane remembers how far it was served.
const FINISHES_MAX: usize = 16;

/// A queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) name: QueueName,
    pub(super) spec: QueueSpec,
    pub(super) is_paused: bool,
    /// Until when a worker asks for its calls.
    pub(super) asks_until: Timestamp,
    /// Calls that have not ended.
    pub(super) depth: u64,
    /// Heads that owe nothing.
    pub(super) free: BTreeSet<(Rank, LaneSlot)>,
    /// Meters at which one of its heads may have its turn, by that head's rank.
    pub(super) open: BTreeSet<(Rank, MeterSlot)>,
    /// In the order in which they were made.
    lanes: Vec<LaneSlot>,
}

/// A lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) queue: QueueSlot,
    pub(super) name: LaneName,
    /// Calls that never started.
    pub(super) waiting: BTreeMap<Rank, CallSlot>,
    /// Calls that came back and may start again.
    pub(super) back: BTreeMap<Rank, CallSlot>,
    /// Calls that came back and rest.
    pub(super) resting: BTreeMap<Rank, CallSlot>,
    pub(super) in_flight: u32,
    pub(super) is_paused: bool,
    /// A dead call holds it.
    pub(super) is_held: bool,
    pub(super) head: Option<Head>,
    /// How far it was served at each meter where that is still ahead of the others.
    pub(super) finishes: Vec<(MeterSlot, u64)>,
}

/// The call of a lane that may start next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) call: CallSlot,
    pub(super) stand: Stand,
    pub(super) patience: Patience,
    pub(super) is_senior: bool,
}

impl Head {
    /// A head that stands nowhere yet.
    pub(super) fn new(call: CallSlot) -> Self {
        Self { call, stand: Stand::Free, patience: Patience::default(), is_senior: false }
    }
}

/// Where a head is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nowhere: it owes nothing.
    Free,
    /// At one of its lines, with its start tag there.
    At { line: usize, tag: u64 },
    /// Set aside at one of its lines.
    Parked { line: usize },
}

impl Lane {
    fn new(queue: QueueSlot, name: &LaneName) -> Self {
        Self {
            queue,
            name: name.clone(),
            waiting: BTreeMap::new(),
            back: BTreeMap::new(),
            resting: BTreeMap::new(),
            in_flight: 0,
            is_paused: false,
            is_held: false,
            head: None,
            finishes: Vec::new(),
        }
    }

    /// Which call is to be the head.
    pub(super) fn first(&self, queue: &Queue) -> Option<CallSlot> {
        let is_free = !queue.is_paused && !self.is_paused && !self.is_held;
        if !is_free || self.in_flight >= queue.spec.in_flight_max() {
            return None;
        }
        let [waiting, back, resting] =
            [&self.waiting, &self.back, &self.resting].map(BTreeMap::first_key_value);
        let least = |one: Option<(&Rank, &CallSlot)>, other: Option<(&Rank, &CallSlot)>| {
            let both = one.into_iter().chain(other);
            both.min().map(|(rank, call)| (*rank, *call))
        };
        match queue.spec.order {
            Order::Parallel(_) => least(waiting, back).map(|(_, call)| call),
            Order::Strict => match least(back, resting) {
                Some((rank, call)) => self.back.contains_key(&rank).then_some(call),
                None => waiting.map(|(_, call)| *call),
            },
        }
    }

    /// How far it was served at a meter.
    pub(super) fn finish(&self, meter: MeterSlot) -> u64 {
        let found = self.finishes.iter().find(|(at, _)| *at == meter);
        found.map_or(0, |(_, finish)| *finish)
    }

    /// Notes how far it was served at a meter. Of more meters than a call can pay at, the one that was
    /// noted first is forgotten: there its next call is served as a newcomer's.
    pub(super) fn set_finish(&mut self, meter: MeterSlot, finish: u64) {
        match self.finishes.iter_mut().find(|(at, _)| *at == meter) {
            Some((_, old)) => *old = finish,
            None => {
                if self.finishes.len() >= FINISHES_MAX {
                    self.finishes.remove(0);
                }
                self.finishes.push((meter, finish));
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    queues: Slab<Queue>,
    by_name: HashMap<QueueName, QueueSlot>,
    lanes: Slab<Lane>,
    by_key: HashTable<LaneSlot>,
    hashing: RandomState,
}

impl Lanes {
    pub(super) fn find(&self, name: &str) -> Option<QueueSlot> {
        self.by_name.get(name).copied()
    }

    pub(super) fn queue(&self, queue: QueueSlot) -> &Queue {
        &self.queues[index(queue)]
    }

    pub(super) fn queue_mut(&mut self, queue: QueueSlot) -> &mut Queue {
        &mut self.queues[index(queue)]
    }

    pub(super) fn define(&mut self, name: &QueueName, spec: QueueSpec) -> QueueSlot {
        if let Some(queue) = self.find(name) {
            self.queue_mut(queue).spec = spec;
            return queue;
        }
        let made = slot(self.queues.insert(Queue {
            name: name.clone(),
            spec,
            is_paused: false,
            asks_until: Timestamp::default(),
            depth: 0,
            free: BTreeSet::new(),
            open: BTreeSet::new(),
            lanes: Vec::new(),
        }));
        self.by_name.insert(name.clone(), made);
        made
    }

    /// All lanes of a queue.
    pub(super) fn of(&self, queue: QueueSlot) -> Vec<LaneSlot> {
        self.queue(queue).lanes.clone()
    }

    /// The lane of that name, made if there is none.
    pub(super) fn at(&mut self, queue: QueueSlot, name: &LaneName) -> LaneSlot {
        if let Some(found) = self.lane_named(queue, name) {
            return found;
        }
        let made = slot(self.lanes.insert(Lane::new(queue, name)));
        let (lanes, hashing) = (&self.lanes, &self.hashing);
        self.by_key.insert_unique(hashing.hash_one((queue, name.as_str())), made, |slot| {
            let lane = &lanes[index(*slot)];
            hashing.hash_one((lane.queue, lane.name.as_str()))
        });
        self.queue_mut(queue).lanes.push(made);
        made
    }

    /// The lane of that name.
    pub(super) fn lane_named(&self, queue: QueueSlot, name: &str) -> Option<LaneSlot> {
        let is_it = |slot: &LaneSlot| {
            let lane = &self.lanes[index(*slot)];
            lane.queue == queue && *lane.name == *name
        };
        self.by_key.find(self.hashing.hash_one((queue, name)), is_it).copied()
    }

    /// Which call is to be the head of a lane.
    pub(super) fn first_of(&self, lane: LaneSlot) -> Option<CallSlot> {
        let lane = &self[lane];
        lane.first(self.queue(lane.queue))
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
