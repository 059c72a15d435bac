//! Limits and their meters, and who stands at each.

use super::calls::{LaneSlot, MeterSlot, Rank, index, slot};
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Timestamp};
use crate::turn::Place;
use hashbrown::HashTable;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};

/// Where a limit is kept.
pub(super) type LimitSlot = u32;
/// Where a queue is kept.
pub(super) type QueueSlot = u32;

/// A limit, also one that was removed: calls may still owe there.
#[derive(Debug)]
pub(super) struct LimitBook {
    name: LimitName,
    pub(super) definition: Option<Definition>,
    /// The one its meters were last used with.
    last: Option<Definition>,
    pub(super) is_paused: bool,
    /// In the order in which they were made.
    meters: Vec<MeterSlot>,
}

/// A meter, and who is at it.
#[derive(Debug)]
pub(super) struct MeterBook {
    pub(super) limit: LimitSlot,
    partition: Option<Partition>,
    /// `None`: as new.
    pub(super) meter: Option<Box<Meter>>,
    /// The start tag of the last that started: what fair queueing counts from.
    pub(super) vtime: u64,
    /// Who stands here, a crowd for each queue: almost always one.
    pub(super) crowds: Vec<Crowd>,
    pub(super) parked: BTreeSet<LaneSlot>,
    pub(super) senior: Option<LaneSlot>,
}

/// The heads of one queue that stand at one meter.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) queue: QueueSlot,
    pub(super) standing: Standing,
    /// The rank under which the queue has this meter among those to try.
    pub(super) offered: Option<Rank>,
    /// When it is offered again by itself.
    pub(super) wakes: Option<Timestamp>,
}

/// Heads in the order of their places. Most meters have one or two, by the million: a tree for each
/// would cost more than all else that is known of it.
#[derive(Debug)]
pub(super) enum Standing {
    Few(Vec<(Place, LaneSlot)>),
    Many(BTreeSet<(Place, LaneSlot)>),
}

/// From how many heads on a tree is kept.
const MANY: usize = 16;

impl Standing {
    pub(super) fn insert(&mut self, head: (Place, LaneSlot)) {
        match self {
            Self::Many(heads) => {
                heads.insert(head);
            }
            Self::Few(heads) if heads.len() < MANY => {
                let place = heads.partition_point(|other| *other < head);
                heads.insert(place, head);
            }
            Self::Few(heads) => {
                let more = heads.drain(..).chain([head]).collect();
                *self = Self::Many(more);
            }
        }
    }

    pub(super) fn remove(&mut self, head: (Place, LaneSlot)) {
        match self {
            Self::Few(heads) => heads.retain(|other| *other != head),
            Self::Many(heads) => {
                heads.remove(&head);
            }
        }
    }

    pub(super) fn first(&self) -> Option<(Place, LaneSlot)> {
        self.iter().next()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, LaneSlot)> {
        let (few, many) = match self {
            Self::Few(heads) => (Some(heads.iter()), None),
            Self::Many(heads) => (None, Some(heads.iter())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten()).copied()
    }
}

impl MeterBook {
    pub(super) fn crowd(&self, queue: QueueSlot) -> Option<&Crowd> {
        self.crowds.iter().find(|crowd| crowd.queue == queue)
    }

    pub(super) fn crowd_mut(&mut self, queue: QueueSlot) -> Option<&mut Crowd> {
        self.crowds.iter_mut().find(|crowd| crowd.queue == queue)
    }

    /// Puts a head of a queue in its place.
    pub(super) fn stand(&mut self, queue: QueueSlot, head: (Place, LaneSlot)) {
        if let Some(crowd) = self.crowd_mut(queue) {
            return crowd.standing.insert(head);
        }
        let standing = Standing::Few(vec![head]);
        self.crowds.reserve_exact(1);
        self.crowds.push(Crowd { queue, standing, offered: None, wakes: None });
    }
}

#[derive(Debug, Default)]
pub(super) struct Meters {
    limits: Slab<LimitBook>,
    by_name: HashMap<LimitName, LimitSlot>,
    meters: Slab<MeterBook>,
    by_partition: HashTable<MeterSlot>,
    hashing: RandomState,
}

impl Meters {
    pub(super) fn limit(&self, name: &str) -> Option<LimitSlot> {
        self.by_name.get(name).copied()
    }

    pub(super) fn book(&self, limit: LimitSlot) -> &LimitBook {
        &self.limits[index(limit)]
    }

    pub(super) fn definition(&self, meter: MeterSlot) -> Option<&Definition> {
        self.limits[index(self[meter].limit)].definition.as_ref()
    }

    /// The limit and the partition of a meter.
    pub(super) fn name(&self, meter: MeterSlot) -> (&LimitName, Option<&Partition>) {
        let book = &self[meter];
        (&self.limits[index(book.limit)].name, book.partition.as_ref())
    }

    pub(super) fn is_paused(&self, meter: MeterSlot) -> bool {
        self.limits[index(self[meter].limit)].is_paused
    }

    /// Defines or removes a limit: its meters go over to the new rules.
    pub(super) fn define(
        &mut self,
        name: &LimitName,
        definition: Option<Definition>,
        now: Now,
    ) -> Option<LimitSlot> {
        let found = self.limit(name);
        let limit = found.or_else(|| definition.as_ref().map(|_| self.make_limit(name)))?;
        let book = &mut self.limits[index(limit)];
        if let (Some(last), Some(new)) = (&book.last, &definition)
            && last != new
        {
            for meter in &book.meters {
                if let Some(meter) = &mut self.meters[index(*meter)].meter {
                    meter.carry(last, new, now);
                }
            }
        }
        if definition.is_some() {
            book.last.clone_from(&definition);
        }
        book.definition = definition;
        Some(limit)
    }

    pub(super) fn set_paused(&mut self, limit: LimitSlot, is_paused: bool) {
        self.limits[index(limit)].is_paused = is_paused;
    }

    /// All meters of a limit.
    pub(super) fn of(&self, limit: LimitSlot) -> Vec<MeterSlot> {
        self.limits[index(limit)].meters.clone()
    }

    /// The meter of a limit for a partition, made if there is none.
    pub(super) fn at(&mut self, limit: LimitSlot, partition: Option<&Partition>) -> MeterSlot {
        let (meters, hashing) = (&mut self.meters, &self.hashing);
        let hash = hashing.hash_one((limit, partition));
        let is_it = |slot: &MeterSlot| {
            let book = &meters[index(*slot)];
            book.limit == limit && book.partition.as_ref() == partition
        };
        if let Some(found) = self.by_partition.find(hash, is_it) {
            return *found;
        }
        let made = slot(meters.insert(MeterBook {
            limit,
            partition: partition.cloned(),
            meter: None,
            vtime: 0,
            crowds: Vec::new(),
            parked: BTreeSet::new(),
            senior: None,
        }));
        self.by_partition.insert_unique(hash, made, |slot| {
            let book = &meters[index(*slot)];
            hashing.hash_one((book.limit, book.partition.as_ref()))
        });
        self.limits[index(limit)].meters.push(made);
        made
    }

    /// Changes a meter under the rules it was last used with.
    pub(super) fn change<T>(
        &mut self,
        meter: MeterSlot,
        now: Now,
        change: impl FnOnce(&mut Meter, &Definition) -> T,
    ) -> Option<T> {
        let book = &mut self.meters[index(meter)];
        let definition = self.limits[index(book.limit)].last.as_ref()?;
        let fresh = || Box::new(Meter::new(definition, now.at));
        let meter = book.meter.get_or_insert_with(fresh);
        Some(change(meter, definition))
    }

    /// The meters in the order in which they were made, as they are.
    #[cfg(test)]
    pub(super) fn lasting(&self) -> Vec<&Option<Box<Meter>>> {
        self.meters.iter().map(|(_, book)| &book.meter).collect()
    }

    fn make_limit(&mut self, name: &LimitName) -> LimitSlot {
        let limit = slot(self.limits.insert(LimitBook {
            name: name.clone(),
            definition: None,
            last: None,
            is_paused: false,
            meters: Vec::new(),
        }));
        self.by_name.insert(name.clone(), limit);
        limit
    }
}

impl std::ops::Index<MeterSlot> for Meters {
    type Output = MeterBook;

    fn index(&self, slot: MeterSlot) -> &MeterBook {
        &self.meters[index(slot)]
    }
}

impl std::ops::IndexMut<MeterSlot> for Meters {
    fn index_mut(&mut self, slot: MeterSlot) -> &mut MeterBook {
        &mut self.meters[index(slot)]
    }
}
