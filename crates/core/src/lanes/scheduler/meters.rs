//! Limits and their meters, and who stands at each.

use super::calls::{LaneSlot, MeterSlot, Rank, index, slot};
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Timestamp};
use crate::turn::Place;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where a limit is kept.
pub(super) type LimitSlot = u32;
/// Where a queue is kept.
pub(super) type QueueSlot = u32;

/// A limit, also one that was removed: calls may still owe there.
#[derive(Debug)]
pub(super) struct LimitBook {
    pub(super) definition: Option<Definition>,
    /// The one its meters were last used with.
    last: Option<Definition>,
    pub(super) is_paused: bool,
    meters: HashMap<Option<Partition>, MeterSlot>,
}

/// A meter, and who is at it.
#[derive(Debug)]
pub(super) struct MeterBook {
    pub(super) limit: LimitSlot,
    /// `None`: as new.
    pub(super) meter: Option<Meter>,
    /// The start tag of the last that started: what fair queueing counts from.
    pub(super) vtime: u64,
    pub(super) crowds: BTreeMap<QueueSlot, Crowd>,
    pub(super) parked: BTreeSet<LaneSlot>,
    pub(super) senior: Option<LaneSlot>,
}

/// The heads of one queue that stand at one meter.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    pub(super) standing: BTreeSet<(Place, LaneSlot)>,
    /// The rank under which the queue has this meter among those to try.
    pub(super) offered: Option<Rank>,
    /// When it is offered again by itself.
    pub(super) wakes: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub(super) struct Meters {
    limits: Slab<LimitBook>,
    by_name: HashMap<LimitName, LimitSlot>,
    meters: Slab<MeterBook>,
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
            for meter in book.meters.values() {
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
        let mut meters: Vec<_> = self.limits[index(limit)].meters.values().copied().collect();
        meters.sort_unstable();
        meters
    }

    /// The meter of a limit for a partition, made if there is none.
    pub(super) fn at(&mut self, limit: LimitSlot, partition: Option<&Partition>) -> MeterSlot {
        let meters = &mut self.meters;
        let of_limit = &mut self.limits[index(limit)].meters;
        if let Some(found) = of_limit.get(&partition.cloned()) {
            return *found;
        }
        let made = slot(meters.insert(MeterBook {
            limit,
            meter: None,
            vtime: 0,
            crowds: BTreeMap::new(),
            parked: BTreeSet::new(),
            senior: None,
        }));
        of_limit.insert(partition.cloned(), made);
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
        let meter = book.meter.get_or_insert_with(|| Meter::new(definition, now.at));
        Some(change(meter, definition))
    }

    /// The meters in the order in which they were made, as they are.
    #[cfg(test)]
    pub(super) fn lasting(&self) -> Vec<&Option<Meter>> {
        self.meters.iter().map(|(_, book)| &book.meter).collect()
    }

    fn make_limit(&mut self, name: &LimitName) -> LimitSlot {
        let limit = slot(self.limits.insert(LimitBook {
            definition: None,
            last: None,
            is_paused: false,
            meters: HashMap::new(),
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
