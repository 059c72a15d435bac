//! What other nodes changed: for who keeps at hand what it read, and is to read it again.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
#[cfg(feature = "postgres")]
use tollgate_core::lanes::Effect;
use tollgate_core::{Key, QueueName};

/// Most names that are kept for whoever asks; with more, everything may have changed.
#[cfg(feature = "postgres")]
const NAMES_MAX: usize = 10_000;

/// What other nodes changed since this was asked last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changed {
    /// Queues that were defined, changed or removed.
    pub queues: BTreeSet<QueueName>,
    /// Keys of records that were written or removed.
    pub records: BTreeSet<Key>,
    /// Anything may have changed, beyond what is named.
    pub is_all: bool,
}

impl Changed {
    fn is_nothing(&self) -> bool {
        self.queues.is_empty() && self.records.is_empty() && !self.is_all
    }

    /// Takes an effect of another node into account.
    #[cfg(feature = "postgres")]
    pub(crate) fn add(&mut self, effect: &Effect) {
        match effect {
            Effect::QueueDefined { name, .. } | Effect::QueueRemoved(name) => {
                self.queues.insert(name.clone());
            }
            Effect::Written { key, .. } => {
                self.records.insert(key.clone());
            }
            _ => {}
        }
    }
}

/// Where it is noted, and who waits to hear of it.
#[derive(Default)]
pub(crate) struct Elsewhere {
    noted: Mutex<(Changed, Option<Waker>)>,
}

impl Elsewhere {
    /// Notes what effects of another node changed.
    #[cfg(feature = "postgres")]
    pub(crate) fn note(&self, change: Changed) {
        if change.is_nothing() {
            return;
        }
        let mut noted = self.lock();
        let (all, waker) = &mut *noted;
        all.is_all |= change.is_all;
        all.queues.extend(change.queues);
        all.records.extend(change.records);
        if all.queues.len() + all.records.len() > NAMES_MAX {
            *all = Changed { is_all: true, ..Changed::default() };
        }
        let waker = waker.take();
        // Whoever is woken would wait for the lock.
        drop(noted);
        waker.into_iter().for_each(Waker::wake);
    }

    /// What changed since this was asked last, as soon as something has. One at a time may ask.
    pub(crate) async fn changed(&self) -> Changed {
        poll_fn(|context| {
            let mut noted = self.lock();
            if noted.0.is_nothing() {
                noted.1 = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(std::mem::take(&mut noted.0))
        })
        .await
    }

    fn lock(&self) -> MutexGuard<'_, (Changed, Option<Waker>)> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
