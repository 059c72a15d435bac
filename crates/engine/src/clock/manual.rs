//! A clock that stands still until it is moved: for tests, ours and yours.

use super::{Bell, Clock};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use tollgate_core::{Now, Span, Timestamp};

/// A clock that moves when it is told to. Clones are the same clock.
///
/// ```
/// use tollgate_engine::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(3));
/// assert_eq!(clock.now().since(before), tollgate_core::Span::from_secs(3));
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    now: Mutex<Now>,
    /// Who waits for the time to change.
    bells: Mutex<Vec<Weak<Bell>>>,
}

impl ManualClock {
    /// Starts at 1,000,000 seconds after the epoch on both clocks.
    pub fn new() -> Self {
        let now = Now::both(Timestamp::default().plus(Span::from_secs(1_000_000)));
        Self { shared: Arc::new(Shared { now: Mutex::new(now), bells: Mutex::default() }) }
    }

    /// Moves both clocks on and wakes whoever waits for them.
    pub fn advance(&self, by: impl Into<Span>) {
        let by = by.into();
        self.change(|now| Now { at: now.at.plus(by), wall: now.wall.plus(by) });
    }

    /// Sets the wall clock, as an operator or NTP would. Limit time does not move.
    pub fn set_wall(&self, wall: Timestamp) {
        self.change(|now| Now { wall, ..now });
    }

    fn change(&self, change: impl FnOnce(Now) -> Now) {
        {
            let mut now = self.shared.now.lock();
            *now = change(*now);
        }
        for bell in self.shared.bells.lock().iter().filter_map(Weak::upgrade) {
            bell.ring();
        }
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.shared.now.lock().at
    }

    fn wall(&self) -> Timestamp {
        self.shared.now.lock().wall
    }

    fn wait(&self, bell: &Arc<Bell>, deadline: Option<Timestamp>) {
        {
            let mut bells = self.shared.bells.lock();
            bells.retain(|known| known.strong_count() > 0 && known.as_ptr() != Arc::as_ptr(bell));
            bells.push(Arc::downgrade(bell));
        }
        // Whoever moves the clock rings after moving it, so a deadline passed here is not missed.
        if deadline.is_none_or(|deadline| self.now() < deadline) {
            bell.wait(None);
        }
    }
}
