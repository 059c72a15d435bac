//! One limit with its meters, its definition and its history.

use crate::direct::Direct;
use crate::table::{Commons, Shard};
use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tollgate_core::contract::LimitTotals;
use tollgate_core::{Definition, Limit, Now, Timestamp};

/// Shards of a limit's partitions: enough that cores rarely meet. A power of two.
const SHARDS: usize = 32;
/// Rounds of spinning, each twice as long as the last, before a thread that waits is parked.
const SPIN_ROUNDS: usize = 8;
/// Changes of a limit that are remembered.
pub(crate) const HISTORY_MAX: usize = 32;

/// One change of a limit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Change {
    /// When, by the wall clock.
    pub at: Timestamp,
    /// Who, as they said.
    pub who: String,
    /// What was in force before; `None`: nothing.
    pub before: Option<Limit>,
    /// What is in force since; `None`: it was removed.
    pub after: Option<Limit>,
}

/// A limit as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// Its name.
    pub name: Arc<str>,
    /// What callers defined last.
    pub defined: Limit,
    /// What an operator pinned over it.
    pub pinned: Option<Limit>,
    /// Partitions with a definition of their own, sorted.
    pub overrides: Vec<(String, Limit)>,
    /// The latest changes, oldest first.
    pub history: Vec<Change>,
    /// An operator holds it back: nothing that pays here starts.
    pub is_paused: bool,
    /// What happened at its meters since the store was opened; `None` in memory, where nothing is
    /// counted: a decision may be one atomic operation there, and a count would be a second.
    pub totals: Option<LimitTotals>,
}

#[derive(Debug, Default)]
struct Config {
    defined: Option<Arc<Definition>>,
    pinned: Option<Arc<Definition>>,
    history: VecDeque<Change>,
}

impl Config {
    fn in_force(&self) -> Option<Arc<Definition>> {
        let defined = self.defined.as_ref()?;
        let Some(pinned) = &self.pinned else { return Some(defined.clone()) };
        let both = Definition::new(defined.limit().under(pinned.limit()));
        Some(both.map_or_else(|_| pinned.clone(), Arc::new))
    }
}

/// What is to change of a limit.
pub(crate) enum Edit {
    Define(Arc<Definition>),
    Pin(Option<Arc<Definition>>),
    Remove,
}

/// One limit with its meters.
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    /// Orders locks: an entry's shards are numbered from here.
    pub(crate) id: u64,
    commons: Arc<Commons>,
    /// Locked before any shard: who holds it to change the limit waits for each of them.
    config: Mutex<Config>,
    /// The meter without a partition, unless its word is lent.
    global: Mutex<Shard>,
    pub(crate) direct: Direct,
    /// The meters with one; made when the first comes.
    partitions: OnceLock<Box<[Aligned]>>,
}

/// A shard on cache lines of its own, so that two cores in two shards do not disturb each other.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned(Mutex<Shard>);

/// One meter's address: which shard to lock, and what to look for there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// The partition; empty for the global meter, since no partition is.
    pub(crate) key: &'a str,
    pub(crate) hash: u64,
}

impl fmt::Debug for Entry {
    /// The name alone: a pass prints it, and the meters may be millions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

impl Entry {
    /// An entry that nobody has defined yet.
    pub(super) fn new(name: Arc<str>, id: u64, commons: Arc<Commons>) -> Self {
        Self {
            name,
            id,
            config: Mutex::default(),
            global: Mutex::new(Shard::new(commons.clone(), None)),
            direct: Direct::new(),
            commons,
            partitions: OnceLock::new(),
        }
    }

    /// Whether callers have defined it.
    pub(crate) fn is_defined(&self) -> bool {
        self.config.lock().defined.is_some()
    }

    /// How many shards there are.
    pub(super) fn shard_count(&self) -> usize {
        if self.partitions.get().is_some() { SHARDS + 1 } else { 1 }
    }

    #[inline]
    pub(crate) fn address<'a>(&self, partition: Option<&'a str>) -> Address<'a> {
        match partition {
            Some(key) => Address { key, hash: self.commons.hashing.hash(key.as_bytes()) },
            None => Address { key: "", hash: 0 },
        }
    }

    /// Locks the shard of an address.
    #[inline]
    pub(crate) fn lock(&self, address: Address<'_>) -> MutexGuard<'_, Shard> {
        if address.key.is_empty() {
            return self.lock_global();
        }
        lock(&self.partitions()[shard_index(address.hash)].0)
    }

    /// Locks the shards of several addresses, if nobody else is at one of them.
    pub(crate) fn try_lock_many(&self, addresses: &[Address<'_>]) -> Option<Guards<'_>> {
        if addresses.iter().any(|address| !address.key.is_empty()) {
            // Made now, for that takes the lock of the configuration, which comes before those of shards.
            self.partitions();
        }
        let mut guards = Guards(std::array::from_fn(|_| None));
        for &address in addresses {
            let guard = &mut guards.0[self.lock_order(address).1];
            if guard.is_none() {
                *guard = Some(match address.key {
                    "" => self.lock_global(),
                    _ => self.partitions()[shard_index(address.hash)].0.try_lock()?,
                });
            }
        }
        Some(guards)
    }

    /// Locks the global meter and takes its word back.
    #[inline]
    fn lock_global(&self) -> MutexGuard<'_, Shard> {
        let mut global = lock(&self.global);
        if let Some(plain) = self.direct.take() {
            global.take_back(plain);
        }
        global
    }

    /// The order in which shards are locked when several are.
    pub(crate) fn lock_order(&self, address: Address<'_>) -> (u64, usize) {
        (self.id, if address.key.is_empty() { SHARDS } else { shard_index(address.hash) })
    }

    fn partitions(&self) -> &[Aligned] {
        self.partitions.get_or_init(|| {
            // Under the lock of the configuration, so that no change is missed.
            let config = self.config.lock();
            let shard = || Shard::new(self.commons.clone(), config.in_force());
            (0..SHARDS).map(|_| Aligned(Mutex::new(shard()))).collect()
        })
    }

    /// Every shard that exists, locked one after the other.
    pub(crate) fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        let partitions = self.partitions.get().into_iter().flatten();
        let global = std::iter::once_with(|| self.lock_global());
        global.chain(partitions.map(|aligned| lock(&aligned.0)))
    }

    /// Changes the limit everywhere, keeping what was spent. Says whether anything changed.
    pub(crate) fn edit(&self, edit: Edit, who: &str, now: Now) -> bool {
        let mut config = self.config.lock();
        let before = config.in_force();
        match edit {
            Edit::Define(definition) => config.defined = Some(definition),
            Edit::Pin(definition) => config.pinned = definition,
            Edit::Remove => (config.defined, config.pinned) = (None, None),
        }
        let after = config.in_force();
        if before == after {
            return false;
        }
        for mut shard in self.shards() {
            shard.redefine(after.clone(), now);
        }
        let limit = |definition: Option<Arc<Definition>>| definition.map(|d| d.limit().clone());
        config.history.push_back(Change {
            at: now.wall,
            who: who.to_owned(),
            before: limit(before),
            after: limit(after),
        });
        if config.history.len() > HISTORY_MAX {
            config.history.pop_front();
        }
        true
    }

    /// Whether callers defined exactly this before.
    pub(crate) fn is_defined_as(&self, limit: &Limit) -> bool {
        self.config.lock().defined.as_ref().is_some_and(|defined| defined.limit() == limit)
    }

    /// The limit as it stands; `None` if it was removed.
    pub(crate) fn state(&self) -> Option<LimitState> {
        let config = self.config.lock();
        let defined = config.defined.as_ref()?.limit().clone();
        let pinned = config.pinned.as_ref().map(|pinned| pinned.limit().clone());
        let history = config.history.iter().cloned().collect();
        drop(config);
        let mut overrides: Vec<_> = Vec::new();
        for shard in self.shards() {
            let each = shard.overridden().map(|(key, d)| (key.to_owned(), d.limit().clone()));
            overrides.extend(each);
        }
        overrides.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (name, is_paused, totals) = (self.name.clone(), false, None);
        Some(LimitState { name, defined, pinned, overrides, history, is_paused, totals })
    }
}

/// Locks, spinning a while first: a shard is held for tens of nanoseconds, and parking a thread
/// costs thousands. Looks less and less often, so that the one who holds it keeps its cache line.
#[inline]
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    match shard.try_lock() {
        Some(guard) => guard,
        None => lock_contended(shard),
    }
}

#[cold]
fn lock_contended(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    for round in 0..SPIN_ROUNDS {
        for _ in 0..1 << round {
            std::hint::spin_loop();
        }
        if !shard.is_locked()
            && let Some(guard) = shard.try_lock()
        {
            return guard;
        }
    }
    shard.lock()
}

/// Several shards of one limit, locked.
pub(crate) struct Guards<'a>([Option<MutexGuard<'a, Shard>>; SHARDS + 1]);

impl Guards<'_> {
    /// The shard of an address that was locked.
    pub(crate) fn shard(&mut self, entry: &Entry, address: Address<'_>) -> Option<&mut Shard> {
        self.0[entry.lock_order(address).1].as_deref_mut()
    }
}

fn shard_index(hash: u64) -> usize {
    // From the middle: the top bits pick the segment, the low ones the slot.
    usize::try_from(hash >> 36).unwrap_or(0) & (SHARDS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Barrier, mpsc};
    use std::thread;
    use std::time::Duration;

    #[test]
    fn a_batch_with_the_first_partition_and_a_change_do_not_wait_for_each_other() {
        let (ends, ended) = mpsc::channel();
        thread::spawn(move || {
            for id in 0..5_000 {
                let entry = Entry::new("api".into(), id, Arc::default());
                let one = Definition::new(Limit::concurrency(1)).map(Arc::new).unwrap();
                let both_are_here = Barrier::new(2);
                thread::scope(|scope| {
                    scope.spawn(|| {
                        let addresses = [None, Some("acme")].map(|name| entry.address(name));
                        both_are_here.wait();
                        entry.try_lock_many(&addresses).is_some()
                    });
                    both_are_here.wait();
                    entry.edit(Edit::Define(one), "test", Now::default());
                });
            }
            ends.send(()).unwrap();
        });
        assert_eq!(
            ended.recv_timeout(Duration::from_secs(120)),
            Ok(()),
            "they wait for each other"
        );
    }
}
