//! Who drives a store, and what that one is to be told.

use super::closed;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use tollgate_core::contract::{Answer, Woken};
use tollgate_core::{QueueName, Timestamp};

/// What whoever drives the store is to be told, and who waits to hear of it.
#[derive(Default)]
pub(crate) struct Wakes {
    waiting: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    queues: BTreeSet<QueueName>,
    due: Option<Timestamp>,
    wakers: Vec<Waker>,
    /// Nobody will be woken any more.
    has_ended: bool,
}

impl Wakes {
    pub(crate) fn add(&self, queues: Vec<QueueName>, due: Option<Timestamp>) {
        if queues.is_empty() && due.is_none() {
            return;
        }
        let mut waiting = self.lock();
        waiting.queues.extend(queues);
        // The newest is the soonest, or all before it have passed.
        waiting.due = due.or(waiting.due);
        let wakers = std::mem::take(&mut waiting.wakers);
        // Whoever is woken would wait for the lock.
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.wakers.drain(..).for_each(Waker::wake);
    }

    pub(crate) async fn take(&self) -> Answer<Woken> {
        poll_fn(|context| {
            let mut waiting = self.lock();
            if !waiting.queues.is_empty() || waiting.due.is_some() {
                let queues = std::mem::take(&mut waiting.queues).into_iter().collect();
                return Poll::Ready(Ok(Woken { queues, due: waiting.due.take() }));
            }
            if waiting.has_ended {
                return Poll::Ready(Err(closed()));
            }
            waiting.wakers.retain(|waker| !waker.will_wake(context.waker()));
            waiting.wakers.push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
