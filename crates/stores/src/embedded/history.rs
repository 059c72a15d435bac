//! History: what came of attempts and how calls ended, in segments beside the journal. It never
//! delays a call, and losing it loses none.
//!
//! # On disk
//! A segment is a log of its own, `history-7-journal-…`, whose records are events; with each commit
//! it is also told up to which position of the journal they reach. A segment that is sealed has a file
//! `history-7-index` with the ids of its calls in order; without one, or with a broken one, it is made
//! again from the log. Segments are cut by size and age, and dropped whole, the oldest first. One that
//! is broken is set aside: its log is renamed to end with `.broken`.
//!
//! # What may be lost
//! Events come after their commit, are kept in memory for about a second, and synced together. After
//! a crash those that follow the last position in history are made again from the journal, as far back
//! as its checkpoint. What is lost is what was committed before a checkpoint that was finished within
//! that second; and what comes faster than the disk takes it, which is counted.

mod check;
mod held;
mod index;
mod intake;
mod keeper;
mod query;
mod segment;
mod shelf;
#[cfg(test)]
mod tests;

pub(super) use check::check;
pub use check::{CheckedHistory, DamagedHistory};
pub(super) use held::HeldHistory;
pub(super) use shelf::Shelf;

pub(super) use intake::{BYTES_MAX, Intake};

use self::keeper::Keeper;
use super::log::{LogError, Position};
use crate::store::TimeSource;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tollgate_core::Span;
use tollgate_core::contract::{HistoryPage, HistoryQuery};
use tollgate_core::lanes::{CallId, Event};

/// How many events wait in memory at most: some 40 MB. More than that are dropped and counted.
pub(super) const WAITING_MAX: usize = 262_144;

/// How much history is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistorySettings {
    /// What is older goes.
    pub age: Span,
    /// The oldest goes when there is more than this. With 0 there is no history, and what there was
    /// goes.
    pub bytes: u64,
}

impl Default for HistorySettings {
    /// A week, and up to 1 GiB: some ten million calls.
    fn default() -> Self {
        Self { age: Span::from_hours(7 * 24), bytes: 1 << 30 }
    }
}

impl HistorySettings {
    /// No history.
    pub const OFF: Self = Self { age: Span::ZERO, bytes: 0 };

    /// A segment holds a sixteenth, so that no more than that goes too early or stays too long; and
    /// at most 16 MiB, which is read in some milliseconds.
    fn segment_bytes(self) -> u64 {
        (self.bytes / 16).clamp(4 << 10, 16 << 20)
    }

    fn segment_age(self) -> Span {
        Span::from_nanos(self.age.as_nanos() / 16)
    }
}

/// The history of a store that is open. Dropped, it keeps what it was told and ends.
#[derive(Debug)]
pub(super) struct History {
    intake: Arc<Intake>,
    shelf: Arc<Shelf>,
    /// Taken only by `drop`.
    thread: Option<JoinHandle<()>>,
}

impl History {
    /// Begins to keep what it is told.
    pub(super) fn start(
        shelf: Shelf,
        settings: HistorySettings,
        now: TimeSource,
    ) -> io::Result<Self> {
        let (intake, shelf) = (Arc::new(Intake::default()), Arc::new(shelf));
        let keeper = Keeper::new(shelf.clone(), intake.clone(), settings, now);
        let thread = thread::Builder::new().name("tollgate-history".to_owned());
        let thread = Some(thread.spawn(move || keeper.run())?);
        Ok(Self { intake, shelf, thread })
    }

    /// Where it is told what happened.
    pub(super) fn intake(&self) -> Arc<Intake> {
        self.intake.clone()
    }

    /// Waits until what it was told can be read.
    pub(super) async fn flushed(&self) {
        // An end without an answer is an answer: there will be no more.
        let _ = self.intake.flush().await;
    }

    /// How many events were dropped since the store was opened.
    pub(super) fn dropped(&self) -> u64 {
        self.intake.dropped()
    }

    /// The events of a call, oldest first.
    pub(super) fn find(&self, call: CallId) -> Result<Vec<Event>, LogError> {
        self.shelf.find(call)
    }

    /// Some of the events that are asked for, newest first.
    pub(super) fn page(&self, query: &HistoryQuery) -> Result<HistoryPage, LogError> {
        self.shelf.page(query)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.intake.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Events of one commit, and up to where in the journal they reach.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) events: Vec<Event>,
    pub(super) until: Position,
}
