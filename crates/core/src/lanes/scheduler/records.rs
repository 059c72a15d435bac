//! Records: found by their keys, and listed in order of them.

use super::Hashing;
use crate::lanes::act::Record;
use crate::name::Key;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;

/// What callers wrote down.
// Invariant: both have the same keys. Every step of a run looks whether the run's record is there, and a tree would
// compare texts that begin alike, each elsewhere in memory, the more the more runs there are.
#[derive(Debug, Clone, Default)]
pub(super) struct Records {
    by_key: HashMap<Key, Record, Hashing>,
    keys: BTreeSet<Key>,
}

impl Records {
    pub(super) fn get(&self, key: &Key) -> Option<&Record> {
        self.by_key.get(key)
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.by_key.contains_key(key)
    }

    pub(super) fn write(&mut self, key: &Key, record: Record) {
        if self.by_key.insert(key.clone(), record).is_none() {
            self.keys.insert(key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &Key) {
        if self.by_key.remove(key).is_some() {
            self.keys.remove(key);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Key, &Record)> {
        self.with_records(self.keys.iter())
    }

    /// Those from there on.
    pub(super) fn from(&self, first: Bound<&str>) -> impl Iterator<Item = (&Key, &Record)> {
        self.with_records(self.keys.range::<str, _>((first, Bound::Unbounded)))
    }

    fn with_records<'a>(
        &'a self,
        keys: impl Iterator<Item = &'a Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Record)> {
        keys.filter_map(|key| Some((key, self.by_key.get(key)?)))
    }
}
