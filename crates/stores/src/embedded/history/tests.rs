//! History: kept over crashes, found again, set aside when it is broken, and dropped when it is old.

use super::shelf::Shelf;
use super::{History, HistorySettings, Told, check};
use crate::embedded::disk::simulated::Host;
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::log::Position;
use crate::embedded::waiting::wait;
use crate::store::TimeSource;
use proptest::prelude::*;
use std::io;
use std::sync::{Arc, Mutex};
use tollgate_core::contract::HistoryQuery;
use tollgate_core::lanes::act::REPORT_BYTES_MAX;
use tollgate_core::lanes::{CallId, End, Event, Outcome, What};
use tollgate_core::{LaneName, Now, QueueName, Span, Timestamp};

/// A disk with history, and a clock that is set by hand.
struct World {
    host: Host,
    clock: Arc<Mutex<Now>>,
    settings: HistorySettings,
    history: Option<History>,
    told: u64,
}

impl World {
    fn new(seed: u64, bytes: u64) -> Self {
        let clock = Arc::new(Mutex::new(Now::both(Timestamp::from_nanos(1 << 60))));
        let settings = HistorySettings { age: Span::from_hours(16), bytes };
        let mut world = Self { host: Host::new(seed), clock, settings, history: None, told: 0 };
        world.open();
        world
    }

    /// Opens history; says up to where it reaches.
    fn open(&mut self) -> u64 {
        let shelf = Shelf::open(self.host.open().unwrap()).unwrap();
        let until = shelf.until().to_bits();
        let clock = self.clock.clone();
        let now: TimeSource = Arc::new(move || *clock.lock().unwrap());
        self.history = Some(History::start(shelf, self.settings, now).unwrap());
        until
    }

    fn close(&mut self) {
        self.history = None;
    }

    fn crash(&mut self) {
        self.host.crash();
        self.history = None;
    }

    fn history(&self) -> &History {
        self.history.as_ref().unwrap()
    }

    /// Tells of so many ends, call by call, and waits until they are kept.
    fn tell(&mut self, ends: u64) {
        let at = *self.clock.lock().unwrap();
        for _ in 0..ends {
            let until = Position::from_bits(self.told + 1);
            self.history().intake().tell(Told { events: vec![event(self.told, at)], until });
            self.told += 1;
        }
        wait(self.history().flushed());
    }

    fn wait(&self, hours: u64) {
        let mut clock = self.clock.lock().unwrap();
        *clock = clock.moved_to(clock.at.plus(Span::from_hours(hours)));
    }

    /// The calls in history, oldest first, each found by its id too.
    fn kept(&self) -> Vec<u64> {
        let mut query = HistoryQuery { most: 7, ..HistoryQuery::default() };
        let mut calls = Vec::new();
        loop {
            let page = self.history().page(&query).unwrap();
            calls.extend(page.events.iter().map(|event| event.call.0));
            query.after = page.next;
            if page.next.is_none() {
                break;
            }
        }
        for call in &calls {
            let found = self.history().find(CallId(*call)).unwrap();
            assert_eq!(found.iter().map(|it| it.call.0).collect::<Vec<_>>(), [*call]);
        }
        calls.reverse();
        calls
    }

    /// The logs of history, oldest first.
    fn logs(&self) -> Vec<String> {
        let names = self.host.files().into_keys();
        let mut logs: Vec<_> = names.filter(|it| it.starts_with("history-")).collect();
        logs.retain(|name| name.ends_with(".log"));
        logs.sort_by_key(|name| (name.len(), name.clone()));
        logs
    }
}

fn event(call: u64, at: Now) -> Event {
    let (queue, lane) = (QueueName::new("q").unwrap(), LaneName::new("a").unwrap());
    let what = What::Ended { end: End::Done, attempts: 1 };
    Event { at, call: CallId(call), queue, lane, what }
}

#[test]
fn what_was_told_is_there_after_a_restart() {
    let mut world = World::new(1, 1 << 20);
    world.tell(100);
    world.close();
    assert_eq!(world.open(), 100, "and up to where in the journal");
    world.tell(20);
    assert_eq!(world.kept(), (0..120).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_crash_loses_nothing_that_was_synced(
        seed in any::<u64>(),
        parts in prop::collection::vec(1..40_u64, 1..8),
        unsynced in 0..50_u64,
    ) {
        let mut world = World::new(seed, 64 << 10);
        parts.iter().for_each(|part| world.tell(*part));
        let at = *world.clock.lock().unwrap();
        let synced = world.told;
        for call in synced..synced + unsynced {
            let until = Position::from_bits(call + 1);
            world.history().intake().tell(Told { events: vec![event(call, at)], until });
        }
        world.crash();
        let until = world.open();
        let kept = world.kept();
        prop_assert!(until >= synced, "{} of {}", until, synced);
        prop_assert_eq!(kept, (0..until).collect::<Vec<_>>());
    }
}

#[test]
fn a_torn_tail_is_passed_over() {
    let mut world = World::new(1, 1 << 20);
    world.tell(10);
    world.crash();
    let log = world.logs().remove(0);
    let disk = world.host.open().unwrap();
    let file = disk.open(&log).unwrap();
    file.append(&[7; 11]).unwrap();
    file.sync().unwrap();
    drop((disk, file));
    world.open();
    assert_eq!(world.kept(), (0..10).collect::<Vec<_>>());
    assert_eq!(world.logs(), [log]);
}

#[test]
fn a_broken_segment_is_set_aside_and_the_others_are_kept() {
    let mut world = World::new(1, 1 << 20);
    for _ in 0..3 {
        // Two commits: what is wrong with the last one is taken for a torn tail.
        world.tell(5);
        world.tell(5);
        world.close();
        world.open();
    }
    world.close();
    let [first, second, third] = world.logs().try_into().unwrap();
    // Without its index it is read when history is opened; with it, when something is looked for.
    let disk = world.host.open().unwrap();
    disk.remove("history-1-index").unwrap();
    disk.sync().unwrap();
    world.host.flip(&first, 8 * 60);
    world.host.flip(&second, 8 * 60);
    let damaged = check(&disk).unwrap().damaged.into_iter().map(|it| it.file);
    assert_eq!(damaged.collect::<Vec<_>>(), [first.clone(), second.clone()]);
    drop(disk);
    world.open();
    assert_eq!(world.kept(), (20..30).collect::<Vec<_>>());
    assert_eq!(world.logs(), [third]);
    world.tell(1);
    assert!(world.kept().ends_with(&[30]));
    world.close();
    let checked = check(&world.host.open().unwrap()).unwrap();
    let damaged = checked.damaged.into_iter().map(|it| it.file).collect::<Vec<_>>();
    assert_eq!(damaged, [first, second].map(|name| format!("{name}.broken")));
    assert_eq!((checked.segments, checked.events), (2, 11));
}

#[test]
fn a_broken_index_loses_nothing() {
    let mut world = World::new(1, 1 << 20);
    world.tell(10);
    world.close();
    // In the header, then among the calls.
    for bit in [8 * 20, 8 * 80] {
        world.host.flip("history-1-index", bit);
        world.open();
        assert_eq!(world.kept(), (0..10).collect::<Vec<_>>());
        world.close();
    }
}

#[test]
fn the_oldest_segments_go_when_there_is_too_much() {
    let mut world = World::new(1, 64 << 10);
    for _ in 0..100 {
        world.tell(50);
    }
    let kept = world.kept();
    let files = world.host.files().into_iter().filter(|(name, _)| name.starts_with("history-"));
    let bytes: usize = files.map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes <= 72 << 10, "{bytes}");
    assert!(kept.len() > 500 && kept.len() < 4_000, "{}", kept.len());
    assert_eq!(kept, (kept[0]..5_000).collect::<Vec<_>>());
}

#[test]
fn what_is_old_goes() {
    let mut world = World::new(1, 1 << 20);
    world.tell(10);
    world.wait(8);
    world.tell(10);
    world.wait(9);
    // Looked at with what comes next, before and after it is written.
    world.tell(1);
    world.tell(1);
    assert_eq!(world.kept(), (10..22).collect::<Vec<_>>());
}

#[test]
fn a_folder_without_history_has_none_after_it_is_cleared() {
    let mut world = World::new(1, 1 << 20);
    world.tell(10);
    world.close();
    Shelf::open(world.host.open().unwrap()).unwrap().clear().unwrap();
    assert_eq!(world.host.files().into_keys().collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn what_comes_too_fast_is_dropped_and_counted() {
    let world = World::new(1, 1 << 20);
    let at = *world.clock.lock().unwrap();
    let events = vec![event(0, at); super::WAITING_MAX + 1];
    world.history().intake().tell(Told { events, until: Position::from_bits(1) });
    assert_eq!(world.history().dropped(), super::WAITING_MAX as u64 + 1);
    assert_eq!(world.kept(), Vec::<u64>::new());
}

#[test]
fn long_reports_are_kept_whole_and_a_page_holds_no_more_of_them_than_fits() {
    let mut world = World::new(1, 256 << 20);
    let at = *world.clock.lock().unwrap();
    let reported = |call| {
        let (waits, report) = ([].into(), vec![7; REPORT_BYTES_MAX].into());
        let what = What::Settled {
            token: 1,
            attempt: 1,
            started: at,
            waits,
            outcome: Outcome::Done,
            report,
        };
        Event { what, ..event(call, at) }
    };
    let fit = (super::query::PAGE_TOLD_MAX / REPORT_BYTES_MAX) as u64;
    for call in 0..fit + 9 {
        let until = Position::from_bits(call + 1);
        world.history().intake().tell(Told { events: vec![reported(call)], until });
    }
    wait(world.history().flushed());
    for _ in 0..2 {
        let mut query = HistoryQuery { most: 10_000, ..HistoryQuery::default() };
        let first = world.history().page(&query).unwrap();
        assert_eq!(first.events.len() as u64, fit);
        query.after = first.next;
        assert_eq!(world.history().page(&query).unwrap().events.len(), 9);
        for call in [0, fit] {
            assert_eq!(world.history().find(CallId(call)).unwrap(), [reported(call)]);
        }
        world.close();
        world.open();
    }
}

/// A disk that has someone look for a call whenever the index of a segment is begun.
#[derive(Debug)]
struct LookedAt {
    disk: Arc<dyn Disk>,
    by: Arc<Mutex<Looking>>,
}

#[derive(Debug, Default)]
struct Looking {
    shelf: Option<Arc<Shelf>>,
    found: Vec<usize>,
}

impl Disk for LookedAt {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut by = self.by.lock().unwrap();
        if let Some(shelf) = by.shelf.clone().filter(|_| name.contains("index")) {
            by.found.push(shelf.find(CallId(0)).unwrap().len());
        }
        self.disk.create(name)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(name)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
}

#[test]
fn what_is_kept_is_found_while_its_segment_is_sealed() {
    let mut world = World::new(1, 1 << 20);
    world.close();
    let by = Arc::new(Mutex::new(Looking::default()));
    let disk = Arc::new(LookedAt { disk: world.host.open().unwrap(), by: by.clone() });
    let clock = world.clock.clone();
    let now: TimeSource = Arc::new(move || *clock.lock().unwrap());
    let history = History::start(Shelf::open(disk).unwrap(), world.settings, now).unwrap();
    by.lock().unwrap().shelf = Some(history.shelf.clone());
    world.history = Some(history);
    world.tell(1);
    world.close();
    let mut by = by.lock().unwrap();
    // The disk is the shelf's, and the shelf the disk's.
    by.shelf = None;
    assert_eq!(by.found, [1]);
}
