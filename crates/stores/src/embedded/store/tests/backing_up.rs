//! A folder is copied while its store goes on: the copy has all that was answered before.

use super::{Machine, enqueue, wait};
use crate::embedded::disk::simulated::Host;
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::store::backup::copy;
use crate::embedded::{Checked, check, contents};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::contract::{HistoryQuery, Lanes};
use tollgate_core::lanes::{CallId, Effect, Kept, Lease, Settle, Settlement};

/// A store at work: what it has answered by now, and what it does next.
struct Work {
    machine: Machine,
    /// What was enqueued and has not ended, with the lengths of its bodies.
    live: BTreeMap<CallId, usize>,
    leases: Vec<Lease>,
    /// What was done, oldest first.
    done: Vec<CallId>,
    /// Chooses what is done.
    chance: u64,
}

impl Work {
    fn new(seed: u64) -> Self {
        let machine = Machine::new(seed);
        machine.define();
        let (live, leases, done) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { machine, live, leases, done, chance: seed | 1 }
    }

    fn below(&mut self, bound: usize) -> usize {
        // Numbers enough that differ; which ones matters little.
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.chance >> 33).unwrap() % bound
    }

    /// Enqueues a call, or claims and ends one: mostly an old one, so that segments go.
    fn go_on(&mut self) {
        if self.below(10) == 0 {
            // History is synced for whoever looks at it, and grows.
            let _ = self.machine.kept(0);
        }
        if self.live.len() < 8 || self.below(2) == 0 {
            let bytes = self.below(900);
            let acted = wait(self.machine.store().act(vec![enqueue(bytes)])).unwrap().remove(0);
            self.live.insert(acted.unwrap().enqueued[0], bytes);
            return;
        }
        self.leases.extend(self.machine.claim(2).iter().map(|claimed| claimed.started.lease));
        if self.leases.is_empty() {
            return;
        }
        let oldest = self.below(self.leases.len().min(2));
        let lease = self.leases.remove(oldest);
        self.machine.settle(vec![Settle::new(lease, Settlement::Done)]);
        self.live.remove(&lease.call);
        self.done.push(lease.call);
    }
}

/// A disk whose store goes on with its work whenever it is looked at.
struct Restless<T: ?Sized> {
    work: Arc<Mutex<Work>>,
    /// How much it does while files are listed and opened, and while they are read.
    steps: (usize, usize),
    inner: Arc<T>,
}

impl<T: ?Sized> fmt::Debug for Restless<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a restless disk")
    }
}

impl<T: ?Sized> Restless<T> {
    fn stir(&self, steps: usize) -> &T {
        let mut work = self.work.lock().unwrap();
        (0..steps).for_each(|_| work.go_on());
        &self.inner
    }
}

impl Disk for Restless<dyn Disk> {
    fn names(&self) -> io::Result<Vec<String>> {
        // As a real one does: what comes or goes while it is listed is on the list or not.
        let before = self.stir(self.steps.0).names()?;
        let mut names = self.stir(8 * self.steps.0).names()?;
        let mut work = self.work.lock().unwrap();
        let gone = before.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>();
        names.retain(|name| before.contains(name) || work.below(2) == 0);
        names.extend(gone.into_iter().filter(|_| work.below(2) == 0));
        Ok(names)
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        panic!("a backup makes no file in the folder that it copies");
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let inner = self.stir(self.steps.0).open(name)?;
        Ok(Arc::new(Restless { work: self.work.clone(), steps: self.steps, inner }))
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        panic!("a backup removes nothing");
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        panic!("a backup renames nothing");
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a backup syncs nothing that is not its own");
    }
}

impl DiskFile for Restless<dyn DiskFile> {
    fn length(&self) -> io::Result<u64> {
        self.stir(self.steps.1).length()
    }

    fn append(&self, _: &[u8]) -> io::Result<()> {
        panic!("a backup writes nothing to what it copies");
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.stir(self.steps.1).read(offset, bytes)
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        panic!("a backup cuts nothing off");
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a backup syncs nothing that is not its own");
    }
}

/// The calls in a folder that was copied and then lost its power, with the lengths of their bodies.
fn calls(copied: &Host) -> (Checked, BTreeMap<CallId, usize>) {
    copied.crash();
    let contents = contents(&copied.open().unwrap()).unwrap();
    let calls = contents.facts.into_iter().filter_map(|fact| match fact {
        Effect::Kept(Kept::Call { id, call, .. }) => Some((id, call.payload.body().len())),
        _ => None,
    });
    (contents.checked, calls.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_backup_has_all_that_was_answered_before_it_began(
        seed in any::<u64>(),
        before in 0..150_usize,
        steps in (0..2_usize, 0..40_usize),
    ) {
        let work = Arc::new(Mutex::new(Work::new(seed)));
        (0..before).for_each(|_| work.lock().unwrap().go_on());
        let answered = work.lock().unwrap().live.clone();
        let ids = answered.keys().next_back().map_or(0, |id| id.0 + 1);
        let inner = work.lock().unwrap().machine.host.look();
        let target = Host::new(seed);
        copy(&Restless { work: work.clone(), steps, inner }, &*target.open().unwrap()).unwrap();
        let (_, found) = calls(&target);
        let live = work.lock().unwrap().live.clone();
        for (id, bytes) in &answered {
            // Those that ended while it was made are there or not.
            if found.contains_key(id) || live.contains_key(id) {
                prop_assert_eq!(found.get(id), Some(bytes), "call {:?}", id);
            }
        }
        for id in found.keys().filter(|id| id.0 < ids) {
            prop_assert!(answered.contains_key(id), "call {:?} had ended", id);
        }
    }

    #[test]
    fn a_backup_has_the_history_of_what_it_has_and_of_nothing_else(
        seed in any::<u64>(),
        before in 0..150_usize,
        steps in (0..2_usize, 0..40_usize),
    ) {
        let work = Arc::new(Mutex::new(Work::new(seed)));
        (0..before).for_each(|_| work.lock().unwrap().go_on());
        // What it looks at is synced, and so is in files.
        let _ = work.lock().unwrap().machine.kept(0);
        let done = work.lock().unwrap().done.clone();
        let inner = work.lock().unwrap().machine.host.look();
        let host = Host::new(seed);
        copy(&Restless { work: work.clone(), steps, inner }, &*host.open().unwrap()).unwrap();
        host.crash();
        prop_assert_eq!(check(&host.open().unwrap()).unwrap().history.damaged, []);
        let (clock, settings) = {
            let Work { machine, .. } = &*work.lock().unwrap();
            (machine.clock.clone(), machine.settings)
        };
        let mut restored = Machine { host, store: None, clock, settings };
        restored.start();
        for CallId(id) in done {
            prop_assert_eq!(restored.kept(id), (1, 1), "call {}", id);
        }
        let query = HistoryQuery { most: 10_000, ..HistoryQuery::default() };
        let known = wait(restored.store().history(query)).unwrap().events;
        let ended = known.iter().filter(|event| event.end().is_some()).map(|event| event.call);
        let ended: Vec<_> = ended.collect();
        let there = wait(restored.store().look(ended.clone())).unwrap();
        for (id, view) in ended.into_iter().zip(there) {
            prop_assert_eq!(view, None, "call {:?} has not ended here", id);
        }
    }
}

#[test]
fn a_backup_is_made_while_checkpoints_are_and_segments_go() {
    let work = Arc::new(Mutex::new(Work::new(7)));
    (0..300).for_each(|_| work.lock().unwrap().go_on());
    let before = work.lock().unwrap().machine.segments();
    let inner = work.lock().unwrap().machine.host.look();
    let target = Host::new(7);
    copy(&Restless { work: work.clone(), steps: (1, 40), inner }, &*target.open().unwrap())
        .unwrap();
    let after = work.lock().unwrap().machine.segments();
    assert!(!after.contains(&before[0]), "what was read first is gone by now");
    let (checked, _) = calls(&target);
    assert!(checked.checkpoint.is_some() && checked.waiting + checked.in_flight > 0, "{checked:?}");
}
