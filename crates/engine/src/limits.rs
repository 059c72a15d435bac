//! The limits by name.

mod entry;

pub(crate) use entry::{Address, Edit, Entry, HISTORY_MAX};
pub use entry::{Change, LimitState};

use crate::table::Commons;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tollgate_core::{LimitName, Now};

/// Who changed something when no one said who.
pub const UNSAID: &str = "library";

/// Segments that one call clears when there is no room for its meter.
const RECLAIM_STEPS: usize = 8;

/// All limits.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    by_name: RwLock<HashMap<Box<str>, Arc<Entry>, foldhash::fast::RandomState>>,
    commons: Arc<Commons>,
    next_id: AtomicU64,
    /// All entries, for who goes around: see [`Limits::reclaim`].
    round: Mutex<Round>,
}

#[derive(Debug, Default)]
struct Round {
    entries: VecDeque<Weak<Entry>>,
    /// Which shard of the first of them is next.
    shard: usize,
}

impl Limits {
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Entry>> {
        self.by_name.read().get(name).cloned()
    }

    /// The entry of that name, made if there are fewer than `most`.
    pub(crate) fn find_or_make(&self, name: &LimitName, most: usize) -> Option<Arc<Entry>> {
        if let Some(entry) = self.find(name) {
            return Some(entry);
        }
        let mut by_name = self.by_name.write();
        if by_name.len() >= most {
            return None;
        }
        let made = by_name.entry(name.as_str().into()).or_insert_with(|| {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed);
            let entry = Arc::new(Entry::new(name.as_str().into(), id, self.commons.clone()));
            self.round.lock().entries.push_back(Arc::downgrade(&entry));
            entry
        });
        Some(made.clone())
    }

    /// Forgets a limit that was removed, unless someone holds or awaits it: they are served when
    /// it is defined again.
    pub(crate) fn forget(&self, name: &str) {
        let mut by_name = self.by_name.write();
        let is_unused = |entry: &Arc<Entry>| Arc::strong_count(entry) == 1 && !entry.is_defined();
        if by_name.get(name).is_some_and(is_unused) {
            by_name.remove(name);
        }
    }

    /// Clears the next few segments, whichever limit they belong to, of meters as good as new. Says
    /// how many there were. The caller holds no shard.
    pub(crate) fn reclaim(&self, now: Now) -> usize {
        let mut freed = 0;
        for _ in 0..RECLAIM_STEPS {
            let Some((entry, shard)) = self.next_in_round() else { continue };
            if let Some(mut shard) = entry.shards().nth(shard) {
                freed += shard.purge_next(now);
            }
        }
        freed
    }

    fn next_in_round(&self) -> Option<(Arc<Entry>, usize)> {
        let mut round = self.round.lock();
        let entry = round.entries.pop_front()?;
        let alive = entry.upgrade()?;
        let shard = round.shard;
        if shard + 1 < alive.shard_count() {
            round.shard += 1;
            round.entries.push_front(entry);
        } else {
            round.shard = 0;
            round.entries.push_back(entry);
        }
        Some((alive, shard))
    }

    /// Runs `with` on the entry of that name without taking a share of it.
    #[inline]
    pub(crate) fn with<T>(&self, name: &str, with: impl FnOnce(&Arc<Entry>) -> T) -> Option<T> {
        self.by_name.read().get(name).map(with)
    }

    /// How many meters are kept.
    pub(crate) fn meters(&self) -> usize {
        self.commons.meters()
    }

    /// So many entries, whichever: the same ones as long as none comes or goes.
    pub(crate) fn some(&self, most: usize) -> Vec<Arc<Entry>> {
        self.by_name.read().values().take(most).cloned().collect()
    }

    /// All entries, in no order.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.by_name.read().values().cloned().collect()
    }
}
