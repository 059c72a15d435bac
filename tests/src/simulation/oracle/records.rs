//! Records and joins, naively: what is kept under a key, and what is left to count.

use crate::simulation::run::Checked;
use std::collections::BTreeMap;
use tollgate_core::Key;
use tollgate_core::lanes::{Count, Record, Revision, Write};

/// What writes and counts left.
#[derive(Debug, Default, Clone)]
pub(super) struct Records {
    kept: BTreeMap<Key, Record>,
    /// How many writes there were.
    writes: u64,
    joins: BTreeMap<Key, u64>,
}

impl Records {
    pub(super) fn kept(&self, key: &Key) -> Option<&Record> {
        self.kept.get(key)
    }

    pub(super) fn revision(&self, key: &Key) -> Revision {
        self.kept.get(key).map_or(Revision(0), |record| record.revision)
    }

    /// A write that succeeded found the record as it expected, and its revision is the next.
    pub(super) fn written(&mut self, write: &Write, revision: Revision) -> Checked {
        let found = self.revision(&write.key);
        if found != write.expected {
            let expected = write.expected;
            return Err(format!("a write that expects {expected:?} finds {found:?} and succeeds"));
        }
        let next = self.write(write);
        if revision != next {
            return Err(format!("revisions count the writes: {revision:?} instead of {next:?}"));
        }
        Ok(())
    }

    /// Writes, whatever is there.
    pub(super) fn write(&mut self, write: &Write) -> Revision {
        self.writes += 1;
        let revision = Revision(self.writes);
        match write.bytes.clone() {
            Some(bytes) => self.kept.insert(write.key.clone(), Record { revision, bytes }),
            None => self.kept.remove(&write.key),
        };
        revision
    }

    /// What is left of a join; 0 if the next count opens it.
    pub(super) fn left(&self, key: &Key) -> u64 {
        self.joins.get(key).copied().unwrap_or(0)
    }

    /// What is left once it has come one closer.
    pub(super) fn count(&mut self, count: &Count) -> u64 {
        let left = self.joins.get(&count.key).copied().unwrap_or(count.from).saturating_sub(1);
        match left {
            0 => self.joins.remove(&count.key),
            left => self.joins.insert(count.key.clone(), left),
        };
        left
    }
}
