//! What waits to be kept: handed over without waiting, and bounded.

use super::{Told, WAITING_MAX};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tollgate_core::lanes::Event;

/// So many events are taken before their time, so that few wait.
const EAGER: usize = 16_384;

/// So many bytes of reports and payloads are, too.
const EAGER_BYTES: usize = 8 << 20;

/// Most bytes of reports and payloads that may wait.
pub(in crate::embedded) const BYTES_MAX: usize = 64 << 20;

/// Events that were committed and not taken yet.
#[derive(Debug, Default)]
pub(in crate::embedded) struct Intake {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) told: Vec<Told>,
    /// How many events these are, and how long their reports and envelopes.
    events: usize,
    bytes: usize,
    /// Who waits until all of it can be read.
    pub(super) flushes: Vec<oneshot::Sender<()>>,
    dropped: u64,
    /// The last events were dropped.
    is_over: bool,
    pub(super) is_closed: bool,
    has_ended: bool,
}

impl Waiting {
    /// Whether so much waits that it is taken before its time.
    fn is_much(&self) -> bool {
        self.events >= EAGER || self.bytes >= EAGER_BYTES
    }
}

impl Intake {
    /// Takes events, or drops them if too many wait. Does not wait for anything.
    pub(in crate::embedded) fn tell(&self, told: Told) {
        let events = told.events.len();
        if events == 0 {
            return;
        }
        let bytes: usize = told.events.iter().map(Event::bytes).sum();
        let mut waiting = self.lock();
        let is_over = waiting.events + events > WAITING_MAX || waiting.bytes + bytes > BYTES_MAX;
        if waiting.has_ended || is_over {
            waiting.dropped += events as u64;
            if !std::mem::replace(&mut waiting.is_over, true) {
                tracing::warn!(dropped = waiting.dropped, "history cannot keep up and has gaps");
            }
            return;
        }
        waiting.is_over = false;
        let (before, was_eager) = (waiting.events, waiting.is_much());
        waiting.events += events;
        waiting.bytes += bytes;
        waiting.told.push(told);
        if before == 0 || (!was_eager && waiting.is_much()) {
            self.arrived.notify_one();
        }
    }

    /// Asks to be told when all that waits can be read.
    pub(super) fn flush(&self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        let mut waiting = self.lock();
        if !waiting.has_ended {
            waiting.flushes.push(done);
            self.arrived.notify_one();
        }
        flushed
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Nothing is taken any more.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.flushes.clear();
        waiting.told.clear();
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Counts events that were taken and could not be kept.
    pub(super) fn count_dropped(&self, events: u64) {
        self.lock().dropped += events;
    }

    /// Takes all there is after `at_most`, or as soon as someone waits for it, or it is closed; many
    /// events are taken earlier, and so are a few if `is_eager`.
    pub(super) fn take(&self, at_most: Duration, is_eager: bool) -> Waiting {
        let is_early = |waiting: &mut Waiting| {
            let is_enough = waiting.is_much() || (is_eager && waiting.events > 0);
            waiting.flushes.is_empty() && !waiting.is_closed && !is_enough
        };
        let woken = self.arrived.wait_timeout_while(self.lock(), at_most, is_early);
        let mut waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        let Waiting { dropped, is_over, is_closed, has_ended, .. } = *waiting;
        let empty = Waiting { dropped, is_over, is_closed, has_ended, ..Waiting::default() };
        std::mem::replace(&mut *waiting, empty)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
