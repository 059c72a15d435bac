//! Events as they happen, told to whoever follows once they last.

use super::closed;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tollgate_core::Timestamp;
use tollgate_core::contract::{Answer, EventCursor, EventPage, EventRing};
use tollgate_core::lanes::Event;

/// The last events, from when someone first asked for them.
pub(crate) struct Stream {
    followed: Mutex<Followed>,
    /// Who waits leaves nothing here when it goes.
    changed: Notify,
}

struct Followed {
    ring: EventRing,
    is_on: bool,
    has_ended: bool,
}

impl Stream {
    pub(crate) fn new(opened: Timestamp) -> Self {
        let followed = Followed { ring: EventRing::new(opened), is_on: false, has_ended: false };
        Self { followed: Mutex::new(followed), changed: Notify::new() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.lock().is_on
    }

    pub(crate) fn turn_on(&self) {
        self.lock().is_on = true;
    }

    pub(crate) fn tell(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        self.lock().ring.extend(events);
        self.changed.notify_waiters();
    }

    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.changed.notify_waiters();
    }

    /// Waits until there is something to tell.
    pub(crate) async fn page(&self, after: Option<EventCursor>, most: usize) -> Answer<EventPage> {
        let after = after.unwrap_or_else(|| self.lock().ring.end());
        loop {
            let mut changed = pin!(self.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            if let Some(page) = self.page_now(after, most) {
                return page;
            }
            changed.await;
        }
    }

    fn page_now(&self, after: EventCursor, most: usize) -> Option<Answer<EventPage>> {
        let followed = self.lock();
        let page = followed.ring.page(after, most).map(Ok);
        page.or_else(|| followed.has_ended.then(|| Err(closed())))
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
