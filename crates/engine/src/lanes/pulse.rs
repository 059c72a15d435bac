//! What the driver's thread does for others: wakes who sleeps until an instant of the clock, and sees
//! chores through that nobody waits for.

use crate::clock::{Bell, Clock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tollgate_core::{Span, Timestamp};

/// Something to be seen through.
pub(super) type Chore = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Pulse {
    pub(super) clock: Arc<dyn Clock>,
    /// Rung when there is something for the driver to do.
    pub(super) bell: Arc<Bell>,
    sleepers: Mutex<Sleepers>,
    /// New ones; `None` once nobody sees them through any more.
    chores: Mutex<Option<Vec<Chore>>>,
}

#[derive(Default)]
struct Sleepers {
    wakers: BTreeMap<(Timestamp, u64), Waker>,
    named: u64,
}

impl Pulse {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (bell, sleepers, chores) = (Arc::default(), Mutex::default(), Mutex::new(Some(vec![])));
        Self { clock, bell, sleepers, chores }
    }

    /// Ready at this instant.
    pub(super) fn sleep_until(self: &Arc<Self>, at: Timestamp) -> Sleep {
        Sleep { pulse: self.clone(), at, name: None }
    }

    /// Ready after so long.
    pub(super) fn sleep(self: &Arc<Self>, span: Span) -> Sleep {
        self.sleep_until(self.clock.now().plus(span))
    }

    /// Sees this through, or drops it when the engine ends.
    pub(super) fn see_through(&self, chore: impl Future<Output = ()> + Send + 'static) {
        if let Some(chores) = &mut *self.chores.lock() {
            chores.push(Box::pin(chore));
        }
        self.bell.ring();
    }

    pub(super) fn take_chores(&self) -> Vec<Chore> {
        self.chores.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sees nothing through any more. A chore may hold what holds this: they go together.
    pub(super) fn close(&self) {
        let left = self.chores.lock().take();
        drop(left);
    }

    /// Wakes everyone whose instant has come, and says when the next one's does.
    pub(super) fn wake_due(&self, now: Timestamp) -> Option<Timestamp> {
        loop {
            let mut sleepers = self.sleepers.lock();
            let first = sleepers.wakers.first_entry()?;
            let at = first.key().0;
            if at > now {
                return Some(at);
            }
            let waker = first.remove();
            drop(sleepers);
            waker.wake();
        }
    }
}

/// Until an instant of the clock.
pub(super) struct Sleep {
    pulse: Arc<Pulse>,
    at: Timestamp,
    name: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let pulse = self.pulse.clone();
        if pulse.clock.now() >= self.at {
            return Poll::Ready(());
        }
        let mut sleepers = pulse.sleepers.lock();
        let name = *self.name.get_or_insert_with(|| {
            sleepers.named += 1;
            sleepers.named
        });
        let known = sleepers.wakers.get(&(self.at, name));
        let is_known = known.is_some_and(|waker| waker.will_wake(context.waker()));
        if !is_known {
            sleepers.wakers.insert((self.at, name), context.waker().clone());
        }
        let is_first = sleepers.wakers.first_key_value().map(|(first, _)| first.1) == Some(name);
        drop(sleepers);
        // One that slept before is known to the driver.
        if is_first && !is_known {
            pulse.bell.ring();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.pulse.sleepers.lock().wakers.remove(&(self.at, name));
        }
    }
}
