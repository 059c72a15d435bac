//! Events as they happen, told to whoever follows and to history once they last.

use super::condition::Condition;
use super::{Wakes, closed};
use crate::embedded::history::{Intake, Told};
use crate::embedded::log::{BatchPlace, Position};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tollgate_core::Timestamp;
use tollgate_core::contract::{Answer, EventCursor, EventPage, EventRing};
use tollgate_core::lanes::Event;

/// Who hears of what happens.
#[derive(Clone)]
pub(super) struct Listeners {
    /// For those who only look.
    pub(super) condition: Arc<Condition>,
    pub(super) woken: Arc<Wakes>,
    pub(super) stream: Arc<Stream>,
    pub(super) history: Option<Arc<Intake>>,
}

impl Listeners {
    /// Tells history the events of a batch of so many bytes that lasts, and gives back those that
    /// followers are to be told. Waits for nobody.
    pub(super) fn keep_batch(
        &self,
        events: Vec<Event>,
        place: BatchPlace,
        bytes: usize,
    ) -> Vec<Event> {
        if events.is_empty() {
            return events;
        }
        let followed = self.stream.is_on().then(|| events.clone());
        self.keep(events, place.position(bytes.saturating_sub(1)));
        followed.unwrap_or_default()
    }

    /// Tells history alone of events that reach up to a position of the journal.
    pub(super) fn keep(&self, mut events: Vec<Event>, until: Position) {
        if let Some(history) = &self.history {
            events.retain(Event::is_history);
            history.tell(Told { events, until });
        }
    }

    pub(super) fn end(&self) {
        self.condition.end();
        self.woken.end();
        self.stream.end();
    }
}

/// The last events, from when someone first asked for them.
pub(super) struct Stream {
    followed: Mutex<Followed>,
}

struct Followed {
    ring: EventRing,
    is_on: bool,
    wakers: Vec<Waker>,
    has_ended: bool,
}

impl Stream {
    pub(super) fn new(opened: Timestamp) -> Self {
        let (ring, wakers) = (EventRing::new(opened), Vec::new());
        Self { followed: Mutex::new(Followed { ring, is_on: false, wakers, has_ended: false }) }
    }

    pub(super) fn is_on(&self) -> bool {
        self.lock().is_on
    }

    pub(super) fn turn_on(&self) {
        self.lock().is_on = true;
    }

    pub(super) fn tell(&self, events: Vec<Event>) {
        if events.is_empty() {
            return;
        }
        let mut followed = self.lock();
        followed.ring.extend(events);
        followed.wakers.drain(..).for_each(Waker::wake);
    }

    fn end(&self) {
        let mut followed = self.lock();
        followed.has_ended = true;
        followed.wakers.drain(..).for_each(Waker::wake);
    }

    /// Waits until there is something to tell.
    pub(super) async fn page(&self, after: Option<EventCursor>, most: usize) -> Answer<EventPage> {
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
