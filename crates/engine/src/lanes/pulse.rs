//! What the driver's thread does for others: wakes who sleeps until an instant of the clock, and sees
//! chores through that nobody waits for.

use crate::clock::{Bell, Clock};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tollgate_core::contract::StoreError;
use tollgate_core::{Span, Timestamp};

/// Something to be seen through.
pub(super) type Chore = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Pulse {
    pub(super) clock: Arc<dyn Clock>,
    /// Where the engine was started: for chores that begin outside of any.
    runtime: Option<Handle>,
    /// Rung when there is something for the driver to do.
    pub(super) bell: Arc<Bell>,
    sleepers: Mutex<Sleepers>,
    /// New ones; `None` once nobody sees them through any more.
    chores: Mutex<Option<Vec<Chore>>>,
    /// How many of them are to come to an end.
    pending: AtomicUsize,
    /// Wakes who waits for that, or for the end.
    ended: Notify,
}

#[derive(Default)]
struct Sleepers {
    wakers: BTreeMap<(Timestamp, u64), Waker>,
    named: u64,
    /// The driver is to pass by then.
    pass_by: Option<Timestamp>,
    /// Until when it waits, or waited last: it need not be rung for what comes later. While it does not
    /// wait, it need not be rung at all, for it looks here before it does.
    waits_until: Timestamp,
}

impl Pulse {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        let (bell, sleepers, chores) = (Arc::default(), Mutex::default(), Mutex::new(Some(vec![])));
        let (pending, ended) = (AtomicUsize::new(0), Notify::new());
        let runtime = Handle::try_current().ok();
        Self { clock, runtime, bell, sleepers, chores, pending, ended }
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
    pub(super) fn see_through(self: &Arc<Self>, chore: impl Future<Output = ()> + Send + 'static) {
        self.pending.fetch_add(1, Ordering::AcqRel);
        let pending = Pending(self.clone());
        self.go_on_with(async move {
            chore.await;
            drop(pending);
        });
    }

    /// Goes on with this for as long as the engine runs.
    pub(super) fn go_on_with(&self, chore: impl Future<Output = ()> + Send + 'static) {
        let chore: Chore = Box::pin(chore);
        let chore = match Handle::try_current().ok().or_else(|| self.runtime.clone()) {
            Some(runtime) => Box::pin(Within { runtime, chore }),
            None => chore,
        };
        if let Some(chores) = &mut *self.chores.lock() {
            chores.push(chore);
        }
        self.bell.ring();
    }

    pub(super) fn take_chores(&self) -> Vec<Chore> {
        self.chores.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sees nothing through any more, and lets nobody sleep. A chore may hold what holds this: they go
    /// together.
    pub(super) fn end(&self) {
        let left = self.chores.lock().take();
        drop(left);
        let sleepers = std::mem::take(&mut self.sleepers.lock().wakers);
        sleepers.into_values().for_each(Waker::wake);
        self.ended.notify_waiters();
    }

    /// Whether nobody sees anything through any more.
    pub(super) fn has_ended(&self) -> bool {
        self.chores.lock().is_none()
    }

    /// Waits until all is seen through that is to come to an end.
    pub(super) async fn until_quiet(&self) {
        loop {
            let quiet = self.ended.notified();
            let mut quiet = pin!(quiet);
            quiet.as_mut().enable();
            if self.pending.load(Ordering::Acquire) == 0 || self.has_ended() {
                return;
            }
            quiet.await;
        }
    }

    /// Waits until nobody does.
    pub(super) async fn until_ended(&self) {
        loop {
            let ended = self.ended.notified();
            let mut ended = pin!(ended);
            ended.as_mut().enable();
            if self.has_ended() {
                return;
            }
            ended.await;
        }
    }

    /// Sees to it that the driver passes at this instant, or soon after.
    pub(super) fn pass_by(&self, at: Timestamp) {
        let mut sleepers = self.sleepers.lock();
        sleepers.pass_by = Some(sleepers.pass_by.map_or(at, |before| before.min(at)));
        let is_sooner = at < sleepers.waits_until;
        drop(sleepers);
        if is_sooner {
            self.bell.ring();
        }
    }

    /// The driver passes: whatever is still to be done later says so again.
    pub(super) fn passes(&self) {
        self.sleepers.lock().pass_by = None;
    }

    /// Wakes everyone whose instant has come; says until when the driver may wait that has something
    /// else to do at `other`.
    pub(super) fn wake_due(&self, now: Timestamp, other: Timestamp) -> Timestamp {
        loop {
            let mut sleepers = self.sleepers.lock();
            let until = sleepers.pass_by.map_or(other, |at| at.min(other));
            match sleepers.wakers.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(sleepers);
                    waker.wake();
                }
                first => {
                    let until = first.map_or(until, |first| first.key().0.min(until));
                    sleepers.waits_until = until;
                    return until;
                }
            }
        }
    }
}

/// A chore that goes on within the runtime where it began: a store's connections and timers may be of
/// that one.
struct Within {
    runtime: Handle,
    chore: Chore,
}

impl Future for Within {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { runtime, chore } = &mut *self;
        let _within = runtime.enter();
        chore.as_mut().poll(context)
    }
}

/// One that is to come to an end, and has not.
struct Pending(Arc<Pulse>);

impl Drop for Pending {
    fn drop(&mut self) {
        if self.0.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

/// What whoever waits is told when the driver ended.
pub(super) fn ended() -> StoreError {
    StoreError::Failed { reason: "it has failed, or is closed".to_owned() }
}

/// Until an instant of the clock, or until nobody would wake it.
pub(super) struct Sleep {
    pulse: Arc<Pulse>,
    at: Timestamp,
    name: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let pulse = self.pulse.clone();
        if pulse.clock.now() >= self.at || pulse.has_ended() {
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
        let is_sooner = self.at < sleepers.waits_until;
        drop(sleepers);
        // One that slept before is known to the driver.
        if is_sooner && !is_known {
            pulse.bell.ring();
        }
        if pulse.has_ended() { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(name) = self.name {
            self.pulse.sleepers.lock().wakers.remove(&(self.at, name));
        }
    }
}
