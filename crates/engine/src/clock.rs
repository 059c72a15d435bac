//! Clocks: the one place that reads the time, and the one place that waits for it.

mod ahead;
mod dial;
mod manual;
mod of_store;
mod system;

pub use ahead::Ahead;
pub(crate) use dial::Dial;
pub use manual::ManualClock;
pub use of_store::StoreClock;
pub use system::{CoarseClock, SystemClock};

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use tollgate_core::{Now, Timestamp};

/// A source of time. Limits count on `now`; calendars follow `wall`.
pub trait Clock: Send + Sync + 'static {
    /// Limit time: monotonic; never earlier than a value returned before.
    fn now(&self) -> Timestamp;

    /// The wall clock, which may be set.
    fn wall(&self) -> Timestamp;

    /// Blocks the calling thread until the bell rings or `deadline` is reached (`None`: the bell
    /// alone). May return early.
    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>);

    /// Both clocks at one reading.
    fn both(&self) -> Now {
        Now { at: self.now(), wall: self.wall() }
    }

    /// The exact clock, if this is one: a limiter reads its own copy in place.
    fn exact(&self) -> Option<SystemClock> {
        None
    }
}

/// Wakes the thread that waits with [`Clock::wait`]. A ring before the wait is not lost.
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Wakes the one who waits, or the next one who will.
    pub fn ring(&self) {
        *self.rung.lock() = true;
        self.changed.notify_all();
    }

    /// Waits for a ring, for `at_most` if given, and takes it.
    fn wait(&self, at_most: Option<std::time::Duration>) {
        let mut rung = self.rung.lock();
        match at_most {
            None => self.changed.wait_while(&mut rung, |rung| !*rung),
            Some(at_most) => {
                self.changed.wait_while_for(&mut rung, |rung| !*rung, at_most);
            }
        }
        *rung = false;
    }
}
