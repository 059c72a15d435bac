//! The thread that sleeps until the next waiting call can start. Started when the first waits.

use crate::clock::Bell;
use crate::limiter::Inner;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use tollgate_core::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Timer {
    bell: Arc<Bell>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Timer {
    /// Makes the thread look again at what is due next; starts it if need be.
    pub(super) fn ring(&self, inner: &Arc<Inner>) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let (bell, inner) = (self.bell.clone(), Arc::downgrade(inner));
            let named = std::thread::Builder::new().name("tollgate-timer".to_owned());
            match named.spawn(move || run(&bell, &inner)) {
                Ok(handle) => *thread = Some(handle),
                Err(error) => tracing::error!(%error, "cannot start the thread that wakes calls"),
            }
        }
        self.bell.ring();
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.bell.ring();
        if let Some(thread) = self.thread.lock().take() {
            // The thread itself may hold the last share of the limiter: it ends on its own then.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn run(bell: &Arc<Bell>, inner: &Weak<Inner>) {
    let mut told = Timestamp::default();
    while let Some(alive) = inner.upgrade() {
        let (deadline, relays) = alive.run_due(&mut told);
        let clock = alive.settings.clock.clone();
        drop(alive);
        clock.wait(bell, deadline);
        drop(relays);
    }
}
