//! The meters of a till: each has a place, so that an ask looks it up once.

use super::KeptMeter;
use crate::contract::MeterName;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Meters by place, and places by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Meters {
    slots: Vec<Slot>,
    places: HashTable<usize>,
    hashing: RandomState,
}

#[derive(Debug, Clone)]
struct Slot {
    name: MeterName,
    kept: KeptMeter,
    is_changed: bool,
}

impl Meters {
    /// Where a meter is.
    pub(super) fn place(&self, name: &MeterName) -> Option<usize> {
        let is_it = |place: &usize| self.slots[*place].name == *name;
        self.places.find(self.hashing.hash_one(name), is_it).copied()
    }

    /// Puts a meter in its place, and says which.
    pub(super) fn put(&mut self, name: MeterName, kept: KeptMeter) -> usize {
        if let Some(place) = self.place(&name) {
            self.slots[place].kept = kept;
            return place;
        }
        let (place, hash) = (self.slots.len(), self.hashing.hash_one(&name));
        self.slots.push(Slot { name, kept, is_changed: false });
        let (slots, hashing) = (&self.slots, &self.hashing);
        self.places.insert_unique(hash, place, |place| hashing.hash_one(&slots[*place].name));
        place
    }

    pub(super) fn name(&self, place: usize) -> &MeterName {
        &self.slots[place].name
    }

    pub(super) fn kept(&self, place: usize) -> &KeptMeter {
        &self.slots[place].kept
    }

    pub(super) fn kept_mut(&mut self, place: usize) -> &mut KeptMeter {
        &mut self.slots[place].kept
    }

    /// A meter that is changed: it has to be written.
    pub(super) fn changed(&mut self, place: usize) -> &mut KeptMeter {
        let slot = &mut self.slots[place];
        slot.is_changed = true;
        &mut slot.kept
    }

    /// Those that changed.
    pub(super) fn all_changed(&self) -> impl Iterator<Item = (&MeterName, &KeptMeter)> {
        self.slots.iter().filter(|slot| slot.is_changed).map(|slot| (&slot.name, &slot.kept))
    }
}
