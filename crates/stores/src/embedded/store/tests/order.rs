//! Answers wait for all that they saw, on a disk whose syncs wait for the test.

use super::{Embedded, StoreSettings, enqueue, queue, wait};
use crate::embedded::disk::simulated::Host;
use crate::embedded::disk::{Disk, DiskFile};
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use tollgate_core::contract::{Lanes, Meters};
use tollgate_core::lanes::{Act, NewCall, QueueSpec};
use tollgate_core::{Key, Now};

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

#[test]
fn a_duplicate_is_answered_when_the_first_call_lasts() {
    let gate = Arc::new(Gate::default());
    let inner = Host::new(1).open().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(Gated::<dyn Disk> { gate: gate.clone(), inner });
    let now = Arc::new(Now::default);
    let store = Embedded::on(disk, StoreSettings::default(), now).unwrap().store;
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
