//! What waits for the writer: commands from anywhere, and news from the committer.

use super::upkeep::UpkeepNews;
use crate::embedded::committer::Refused;
use crate::embedded::log::BatchPlace;
use crate::store::command::{Command, Reply};
use crate::store::home::Commands;
use crate::store::slices::Unsynced;
use crate::store::together::is_heard_later;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tollgate_core::Span;
use tollgate_core::lanes::{CallId, Event};

/// What went into one batch, besides its records.
#[derive(Default)]
pub(super) struct Cargo {
    pub(super) replies: Vec<Reply>,
    /// Some of them wait for nothing but this batch.
    pub(super) is_urgent: bool,
    /// Calls whose bodies are in the batch.
    pub(super) bodies: Vec<InBatch>,
    /// Where bodies were that are needed no more once the batch lasts.
    pub(super) freed: Vec<u64>,
    /// What was consumed and answered already.
    pub(super) ahead: Unsynced,
    /// What happened, to be told once the batch lasts.
    pub(super) events: Vec<Event>,
}

/// Where in a batch the record with a call's body is, and how long it is.
pub(super) struct InBatch {
    pub(super) call: CallId,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

/// What the committer has to say.
pub(super) enum News {
    /// A batch of so many bytes lasts, so long after it was handed over, and is being answered.
    Committed {
        place: BatchPlace,
        bytes: usize,
        took: Duration,
        /// The same on the limits' clock.
        answered_after: Span,
        cargo: Cargo,
    },
    /// A batch was not committed.
    Refused(Refused, Cargo),
    /// From the upkeep.
    Upkeep(UpkeepNews),
}

impl News {
    /// It does not wait for the next command.
    fn is_urgent(&self) -> bool {
        !matches!(self, Self::Committed { .. })
    }
}

/// What the writer expects of the committer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Nothing,
    /// Nothing hangs on it.
    Sometime,
    /// Someone waits for it.
    Soon,
}

/// Where commands and news wait.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// A command, and how it came.
pub(super) struct Sent {
    pub(super) command: Box<dyn Command>,
    /// Who sent it sends more with it, and waits for all of them.
    pub(super) is_one_of_several: bool,
    /// Until when it lingers, if it does.
    pub(super) stays_until: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) commands: VecDeque<Sent>,
    pub(super) news: VecDeque<News>,
    /// Nobody is left who could send commands.
    pub(super) is_closed: bool,
    /// Nobody is left who could do them.
    has_ended: bool,
    /// Nothing hangs on what was committed: the writer hears of it with the next command.
    is_patient: bool,
}

impl Commands for Inbox {
    fn take(&self, command: Box<dyn Command>) {
        let mut waiting = self.lock();
        // Dropped, it tells whoever waits that there is no answer.
        if waiting.has_ended {
            return;
        }
        let is_one_of_several = is_heard_later(self);
        waiting.commands.push_back(Sent { command, is_one_of_several, stays_until: None });
        // The writer would wait for the lock.
        drop(waiting);
        if !is_one_of_several {
            self.announce();
        }
    }

    fn announce(&self) {
        self.arrived.notify_one();
    }
}

impl Inbox {
    /// The writer has ended: whoever waits for an answer is told that there is none.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.commands.clear();
    }

    pub(super) fn news(&self, news: News) {
        let mut waiting = self.lock();
        let is_urgent = !waiting.is_patient || news.is_urgent();
        waiting.news.push_back(news);
        drop(waiting);
        if is_urgent {
            self.arrived.notify_one();
        }
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Takes all there is; waits until there is something, or for `at_most`. Once it is closed, that
    /// is something, unless news are expected.
    pub(super) fn wait(&self, at_most: Option<Duration>, expected: Expected) -> Waiting {
        let is_patient = expected == Expected::Sometime;
        let is_empty = |waiting: &mut Waiting| {
            // Whoever closes waits for the end.
            let is_patient = is_patient && !waiting.is_closed;
            waiting.is_patient = is_patient;
            let is_open = !waiting.is_closed || expected != Expected::Nothing;
            let has_news = waiting.news.iter().any(|news| !is_patient || news.is_urgent());
            waiting.commands.is_empty() && !has_news && is_open
        };
        let waiting = self.lock();
        let mut waiting = match at_most {
            None => {
                self.arrived.wait_while(waiting, is_empty).unwrap_or_else(PoisonError::into_inner)
            }
            Some(at_most) => {
                let woken = self.arrived.wait_timeout_while(waiting, at_most, is_empty);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        let Waiting { is_closed, has_ended, .. } = *waiting;
        let empty = Waiting { is_closed, has_ended, ..Waiting::default() };
        std::mem::replace(&mut *waiting, empty)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
