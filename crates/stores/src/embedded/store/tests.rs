//! The store against the contracts, against the naive reference, and against crashes.

mod backing_up;
mod checking;
mod claiming;
mod conforming;
mod crashing;
mod exporting;
mod full;
mod leaving;
mod order;
mod restoring;
mod slices;
mod time;
mod told;
mod trouble;
mod upkeep;

use super::StoreSettings;
use crate::embedded::HistorySettings;
use crate::embedded::disk::simulated::Host;
use crate::embedded::log::Settings;
use crate::embedded::waiting::wait;
use crate::store::{Store, TimeSource};
use std::sync::{Arc, Mutex};
use tollgate_core::contract::Lanes;
use tollgate_core::contract::conformance::MetersStage;
use tollgate_core::lanes::{Act, NewCall, Order, QueueSpec};
use tollgate_core::{LaneName, Now, QueueName, Span, Timestamp};

/// A simulated machine with a store, and a clock that is set by hand.
struct Machine {
    host: Host,
    store: Option<Store>,
    clock: Arc<Mutex<Now>>,
    settings: StoreSettings,
}

impl Machine {
    fn new(seed: u64) -> Self {
        Self::at(seed, Timestamp::from_nanos(1_790_000_000 << 30))
    }

    /// A machine whose clock stands at `now` when the store is opened.
    fn at(seed: u64, now: Timestamp) -> Self {
        let clock = Arc::new(Mutex::new(Now::both(now)));
        // Segments so small that there are several.
        let log = Settings { segment_bytes: 4 << 10 };
        let history = HistorySettings { age: Span::from_hours(24), bytes: 256 << 10 };
        let settings =
            StoreSettings { log, checkpoint_bytes: 6 << 10, history, ..StoreSettings::default() };
        let mut machine = Self { host: Host::new(seed), store: None, clock, settings };
        machine.start();
        machine
    }

    fn start(&mut self) {
        let disk = self.host.open().unwrap();
        let opened = Store::on(disk, self.settings, self.time_source()).unwrap();
        self.store = Some(opened.store);
    }

    fn time_source(&self) -> TimeSource {
        let clock = self.clock.clone();
        Arc::new(move || *clock.lock().unwrap())
    }

    /// Defines a queue.
    fn define(&self) {
        let spec = QueueSpec { order: Order::Parallel(1_000), ..QueueSpec::default() };
        wait(self.store().define_queue(queue(), spec)).unwrap().unwrap();
    }

    /// Stops the store as a kill of the machine would.
    fn crash(&mut self) {
        self.host.crash();
        self.store = None;
    }
}

impl MetersStage for Machine {
    type Store = Store;

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn set_now(&mut self, now: Now) {
        *self.clock.lock().unwrap() = now;
    }
}

fn queue() -> QueueName {
    QueueName::new("q").unwrap()
}

/// An act that enqueues one call with a body of so many bytes.
fn enqueue(bytes: usize) -> Act {
    let call = NewCall::new(queue(), LaneName::new("a").unwrap());
    let call = NewCall { payload: vec![7; bytes].into(), ..call };
    Act { enqueue: vec![call], ..Act::default() }
}
