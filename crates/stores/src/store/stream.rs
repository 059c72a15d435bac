//! Events as they happen, told to whoever follows once they last.

use super::closed;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tollgate_core::Timestamp;
use tollgate_core::contract::{Answer, EventCursor, EventPage, EventRing};
use tollgate_core::lanes::Event;

/// The last events, from when someone first asked for them.
pub(crate) struct Stream {
    followed: Mutex<Followed>,
}

struct Followed {
    ring: EventRing,
    is_on: bool,
    wakers: Vec<Waker>,
    has_ended: bool,
}

impl Stream {
    pub(crate) fn new(opened: Timestamp) -> Self {
        let (ring, wakers) = (EventRing::new(opened), Vec::new());
        Self { followed: Mutex::new(Followed { ring, is_on: false, wakers, has_ended: false }) }
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
        let mut followed = self.lock();
        followed.ring.extend(events);
        followed.wakers.drain(..).for_each(Waker::wake);
    }

    pub(crate) fn end(&self) {
        let mut followed = self.lock();
        followed.has_ended = true;
        followed.wakers.drain(..).for_each(Waker::wake);
    }

    /// Waits until there is something to tell.
    pub(crate) async fn page(&self, after: Option<EventCursor>, most: usize) -> Answer<EventPage> {
        let after = after.unwrap_or_else(|| self.lock().ring.end());
        poll_fn(|context| {
            let mut followed = self.lock();
            if let Some(page) = followed.ring.page(after, most) {
                return Poll::Ready(Ok(page));
            }
            if followed.has_ended {
                return Poll::Ready(Err(closed()));
            }
            followed.wakers.retain(|waker| !waker.will_wake(context.waker()));
            followed.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
