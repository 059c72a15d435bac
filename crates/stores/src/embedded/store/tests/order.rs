//! Answers wait for all that they saw, on a disk whose syncs wait for the test.

use super::{Store, StoreSettings, enqueue, queue, wait};
use crate::embedded::disk::simulated::Host;
use crate::embedded::disk::{Disk, DiskFile};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use tollgate_core::contract::{Ask, Configure, Lanes, Meters};
use tollgate_core::lanes::{Act, NewCall, QueueSpec};
use tollgate_core::{Definition, Key, Limit, LimitName, Now, Priority, Span, Toll};

/// Open or shut: syncs of files wait until it is open.
#[derive(Debug, Default)]
struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, is_shut: bool) {
        *self.is_shut.lock().unwrap() = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        drop(self.changed.wait_while(self.is_shut.lock().unwrap(), |is_shut| *is_shut).unwrap());
    }
}

struct Opens(Arc<Gate>);

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[derive(Debug)]
struct Gated<T: ?Sized> {
    gate: Arc<Gate>,
    inner: Arc<T>,
}

impl Gated<dyn Disk> {
    fn file(&self, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(Gated { gate: self.gate.clone(), inner })
    }
}

impl Disk for Gated<dyn Disk> {
    fn names(&self) -> io::Result<Vec<String>> {
        self.inner.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.create(name).map(|file| self.file(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.inner.open(name).map(|file| self.file(file))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
}

impl DiskFile for Gated<dyn DiskFile> {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.inner.append(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.gate.pass();
        self.inner.sync()
    }
}

/// A store on a disk whose syncs wait while the gate is shut.
fn gated() -> (Store, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let inner = Host::new(1).open().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(Gated::<dyn Disk> { gate: gate.clone(), inner });
    let now = Arc::new(Now::default);
    (Store::on(disk, StoreSettings::default(), now).unwrap().store, gate)
}

#[test]
fn a_duplicate_is_answered_when_the_first_call_lasts() {
    let (store, gate) = gated();
    wait(store.define_queue(queue(), QueueSpec::default())).unwrap().unwrap();
    gate.set(true);
    // Also if the test fails: the store waits for its syncs when it is dropped.
    let opens = Opens(gate);
    let once = || {
        let mut act: Act = enqueue(3);
        let dedupe = Some(Key::new("k").unwrap());
        act.enqueue = act
            .enqueue
            .into_iter()
            .map(|call| NewCall { dedupe: dedupe.clone(), ..call })
            .collect();
        vec![act]
    };
    let mut context = Context::from_waker(Waker::noop());
    let (mut first, mut again) = (pin!(store.act(once())), pin!(store.act(once())));
    // Each is done in memory before the next: what only looks is answered after what came before.
    for act in [&mut first, &mut again] {
        assert!(act.as_mut().poll(&mut context).is_pending());
        wait(store.inspect(vec![])).unwrap();
    }
    wait(store.inspect(vec![])).unwrap();
    assert!(matches!(again.as_mut().poll(&mut context), Poll::Pending), "told too early");
    drop(opens);
    let ids = [wait(first), wait(again)].map(|acted| acted.unwrap().remove(0).unwrap().enqueued[0]);
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn what_a_slice_covers_is_answered_before_the_sync_and_no_more() {
    let (store, gate) = gated();
    let opens = Opens(gate.clone());
    let limit = LimitName::new("l").unwrap();
    let definition = Definition::new(Limit::per_hour(100)).unwrap();
    wait(store.configure(Configure::limit(limit.clone(), Some(definition)))).unwrap().unwrap();
    let ask = || {
        let toll = Toll { limit: limit.clone(), partition: None, weight: 1, hears_feedback: false };
        let (priority, life) = (Priority::default(), Span::from_secs(30));
        vec![Ask { tolls: [toll].into(), priority, delay_max: None, life }]
    };
    // The second finds the meter busy, and its slice lasts when it is answered.
    for _ in 0..2 {
        let _ = wait(store.consume(ask())).unwrap().remove(0).unwrap();
    }
    gate.set(true);
    for _ in 0..6 {
        let _ = wait(store.consume(ask())).unwrap().remove(0).unwrap();
    }
    let mut context = Context::from_waker(Waker::noop());
    let mut beyond = pin!(store.consume(ask()));
    assert!(beyond.as_mut().poll(&mut context).is_pending());
    let mut too_much = ask();
    too_much[0].tolls[0].weight = 99;
    assert!(wait(store.consume(too_much)).unwrap().remove(0).is_err(), "refused at once");
    assert!(beyond.as_mut().poll(&mut context).is_pending(), "the slice is used up");
    drop(opens);
    let _ = wait(beyond).unwrap().remove(0).unwrap();
}
