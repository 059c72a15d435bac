//! The driver: one thread that lets happen what is due in a store, and wakes who asks for its calls.

use super::claims::{Claims, TOLD_AFTER};
use super::pulse::{Chore, Pulse};
use crate::clock::Bell;
use crate::error::{Error, StoreError};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle};
use tollgate_core::contract::{Answer, Lanes, Woken};
use tollgate_core::{QueueName, Span, Timestamp};

/// Joins, expiries and schedules follow the wall clock, and nobody is told when that is set: so long
/// it may take until the driver sees it.
const LOOK_AGAIN: Span = Span::from_secs(10);

/// Ends the thread when it is dropped.
pub(super) struct Driver {
    bell: Arc<Bell>,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    pub(super) fn start<S: Lanes + 'static>(
        store: S,
        pulse: &Arc<Pulse>,
        claims: &Arc<Claims>,
    ) -> Result<Self, Error> {
        let run = Run { store, pulse: pulse.clone(), claims: claims.clone() };
        Self::spawn(pulse, move |is_closed| run.run(is_closed))
    }
}

impl Driver {
    /// Sees chores through and wakes who sleeps: all there is to do where the store has no lanes.
    pub(super) fn of_chores(pulse: &Arc<Pulse>, claims: &Arc<Claims>) -> Result<Self, Error> {
        let (pulse, claims) = (pulse.clone(), claims.clone());
        Self::spawn(&pulse.clone(), move |is_closed| {
            let _ends = Ends(pulse.clone(), claims);
            let waker = Waker::from(Arc::new(Rings(pulse.bell.clone())));
            let mut context = Context::from_waker(&waker);
            let mut chores: Vec<Chore> = Vec::new();
            while !is_closed.load(Ordering::Acquire) {
                chores.extend(pulse.take_chores());
                chores.retain_mut(|chore| is_to_go_on(chore, &mut context));
                let until = pulse.wake_due(pulse.clock.now(), Timestamp::MAX);
                let until = Some(until).filter(|until| *until < Timestamp::MAX);
                pulse.clock.wait(&pulse.bell, until);
            }
        })
    }

    fn spawn(
        pulse: &Arc<Pulse>,
        run: impl FnOnce(&AtomicBool) + Send + 'static,
    ) -> Result<Self, Error> {
        let (bell, is_closed) = (pulse.bell.clone(), Arc::new(AtomicBool::new(false)));
        let closed = is_closed.clone();
        let thread = thread::Builder::new().name("tollgate-driver".to_owned());
        let thread = thread.spawn(move || run(&closed));
        let thread = thread.map_err(|error| StoreError::NoThread { reason: error.to_string() })?;
        Ok(Self { bell, is_closed, thread: Some(thread) })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        self.bell.ring();
        // The last one who holds the engine may be its own driver's guest: a waker that it drops.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // If it panicked, there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

struct Run<S> {
    store: S,
    pulse: Arc<Pulse>,
    claims: Arc<Claims>,
}

/// Something that the store was told, and what: it is told again if the store has no room.
type Told<'a> = (Telling, Pin<Box<dyn Future<Output = Answer<()>> + Send + 'a>>);

enum Telling {
    Advance,
    Ask(QueueName),
}

/// How long a store without room is left alone.
const AGAIN: Span = Span::from_millis(250);

/// Leaves nobody waiting, also if the driver panics.
struct Ends(Arc<Pulse>, Arc<Claims>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
        self.1.wake_all();
    }
}

impl<S: Lanes> Run<S> {
    fn run(self, is_closed: &AtomicBool) {
        let _ends = Ends(self.pulse.clone(), self.claims.clone());
        let waker = Waker::from(Arc::new(Rings(self.pulse.bell.clone())));
        let mut context = Context::from_waker(&waker);
        let mut woken: Pin<Box<dyn Future<Output = Answer<Woken>> + Send>> =
            Box::pin(self.store.woken());
        let mut told: Vec<Told<'_>> = vec![(Telling::Advance, Box::pin(self.store.advance()))];
        let mut chores: Vec<Chore> = Vec::new();
        let (mut due, mut look_again) = (None::<Timestamp>, Timestamp::default());
        while !is_closed.load(Ordering::Acquire) {
            while let Poll::Ready(answer) = woken.as_mut().poll(&mut context) {
                let Ok(news) = answer else { return };
                due = news.due.or(due);
                news.queues.iter().for_each(|queue| self.claims.wake(queue));
                woken = Box::pin(self.store.woken());
            }
            // Before the clock is read: of those who left by now, all are due.
            self.pulse.passes();
            let now = self.pulse.clock.now();
            if due.is_some_and(|due| due <= now) || look_again <= now {
                due = None;
                look_again = now.plus(LOOK_AGAIN);
                told.push((Telling::Advance, Box::pin(self.store.advance())));
            }
            let mut is_refused = false;
            let left = self.claims.tell_left(now, |queue, until| {
                let telling = Telling::Ask(queue.clone());
                let mut ask: Pin<Box<dyn Future<Output = _> + Send>> =
                    Box::pin(self.store.ask(queue.clone(), until));
                match ask.as_mut().poll(&mut context) {
                    Poll::Pending => told.push((telling, ask)),
                    Poll::Ready(Ok(())) => {}
                    Poll::Ready(Err(_)) => {
                        is_refused = true;
                        self.claims.tell_again(queue);
                    }
                }
            });
            if is_refused {
                due = Some(now.plus(AGAIN));
            }
            chores.extend(self.pulse.take_chores());
            // What is polled once is on its way to the store.
            told.retain_mut(|(what, telling)| match telling.as_mut().poll(&mut context) {
                Poll::Pending => true,
                Poll::Ready(Ok(())) => false,
                // For good or not: `woken` says so if it is.
                Poll::Ready(Err(_)) => {
                    due = Some(now.plus(AGAIN));
                    if let Telling::Ask(queue) = what {
                        self.claims.tell_again(queue.clone());
                    }
                    false
                }
            });
            chores.retain_mut(|chore| is_to_go_on(chore, &mut context));
            let left = left.map(|told_at| told_at.plus(TOLD_AFTER));
            let other = [due, left].into_iter().flatten().fold(look_again, Timestamp::min);
            let until = self.pulse.wake_due(self.pulse.clock.now(), other);
            self.pulse.clock.wait(&self.pulse.bell, Some(until));
        }
    }
}

/// Sees a chore on. One that panics is over, and the others go on.
fn is_to_go_on(chore: &mut Chore, context: &mut Context<'_>) -> bool {
    let polled = catch_unwind(AssertUnwindSafe(|| chore.as_mut().poll(context)));
    match polled {
        Ok(polled) => polled.is_pending(),
        Err(_) => {
            tracing::error!("a chore of the driver panicked, and is given up");
            false
        }
    }
}

/// Wakes the driver.
struct Rings(Arc<Bell>);

impl Wake for Rings {
    fn wake(self: Arc<Self>) {
        self.0.ring();
    }
}
