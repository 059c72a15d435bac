//! The keeper: one thread that writes what it is told, syncs it about once a second, cuts segments
//! and drops the old ones.

use super::intake::{Intake, Waiting};
use super::segment::{self, Entry, Summary};
use super::shelf::Shelf;
use super::{HistorySettings, Told};
use crate::embedded::codec;
use crate::embedded::log::{Batch, Log, LogError, SegmentNumber, Settings};
use crate::store::TimeSource;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long events are collected before they are synced.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// So many bytes are not collected any longer.
const BATCH_BYTES_MAX: usize = 4 << 20;
/// How often it is looked for what is old while nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(60);

pub(super) struct Keeper {
    shelf: Arc<Shelf>,
    intake: Arc<Intake>,
    settings: HistorySettings,
    now: TimeSource,
    /// Of the segment that is being written.
    log: Option<Log>,
    batch: Batch,
    /// The records of the batch, with their offsets in it.
    entries: Vec<Entry>,
    /// How many events these are.
    events: u64,
    summary: Summary,
    /// When the first of them came.
    begun: Option<Instant>,
    /// The disk failed: nothing is written any more.
    has_failed: bool,
}

impl Keeper {
    pub(super) fn new(
        shelf: Arc<Shelf>,
        intake: Arc<Intake>,
        settings: HistorySettings,
        now: TimeSource,
    ) -> Self {
        Self {
            shelf,
            intake,
            settings,
            now,
            log: None,
            batch: Batch::new(),
            entries: Vec::new(),
            events: 0,
            summary: Summary::default(),
            begun: None,
            has_failed: false,
        }
    }

    pub(super) fn run(mut self) {
        let _ends = Ends(self.intake.clone());
        loop {
            self.look_after();
            let left =
                |begun| SYNC_EVERY.saturating_sub(elapsing().saturating_duration_since(begun));
            let at_most = self.begun.map_or(LOOK_EVERY, left);
            let Waiting { told, flushes, is_closed, .. } =
                self.intake.take(at_most, self.begun.is_none());
            told.into_iter().for_each(|told| self.add(told));
            let is_due = self.begun.is_some_and(|begun| left(begun).is_zero());
            if is_due || is_closed || !flushes.is_empty() {
                self.commit();
            }
            for flush in flushes {
                // Whoever asked may have gone.
                let _ = flush.send(());
            }
            if is_closed {
                return self.seal();
            }
        }
    }

    fn add(&mut self, Told { events, until }: Told) {
        self.begun.get_or_insert_with(elapsing);
        self.events += events.len() as u64;
        let mut left = events.as_slice();
        while let Some(event) = left.first() {
            let mut taken = 1;
            let encode = |buffer: &mut Vec<u8>| taken = codec::encode_events(left, buffer);
            let offset = self.batch.push_with(encode);
            self.entries.push((event.call, u32::try_from(offset).unwrap_or(u32::MAX)));
            self.summary.add(event);
            left = left.get(taken..).unwrap_or_default();
        }
        self.summary.until = until;
        if self.batch.bytes() >= BATCH_BYTES_MAX {
            self.commit();
        }
    }

    /// Writes and syncs what was collected.
    fn commit(&mut self) {
        self.begun = None;
        if self.batch.is_empty() {
            return;
        }
        // Before, so that a segment does not reach over a time in which nothing happened.
        self.look_after();
        if let Err(error) = self.try_commit() {
            self.intake.count_dropped(self.events);
            let is_full = matches!(error, LogError::Full { .. });
            if !self.has_failed {
                tracing::warn!(%error, "history has a gap");
            }
            self.has_failed |= !is_full;
            if is_full {
                // What was written in part is not written behind: the next begins a segment.
                self.seal();
            }
        }
        self.batch.clear();
        self.entries.clear();
        self.events = 0;
        self.summary = Summary::default();
    }

    fn try_commit(&mut self) -> Result<(), LogError> {
        if self.has_failed {
            return Err(LogError::failed("before", std::io::Error::other("history ended")));
        }
        let until = self.summary.until;
        self.batch.push_with(|buffer| segment::encode_until(until, buffer));
        if self.log.is_none() {
            self.log = Some(self.begin()?);
        }
        let Some(log) = &mut self.log else { return Ok(()) };
        let (bytes, place) = (self.batch.bytes(), log.commit(&mut self.batch)?);
        let at = |offset: u32| place.position(offset as usize).offset();
        self.summary.bytes = u64::from(place.position(bytes - 1).offset()) + 1;
        let entries = self.entries.iter().map(|(call, offset)| (*call, at(*offset)));
        self.shelf.extend(&self.summary, entries);
        Ok(())
    }

    fn begin(&self) -> Result<Log, LogError> {
        let part = Arc::new(segment::part(&self.shelf.disk, self.shelf.begin()));
        // Cut here, by age too, and not by the log.
        let settings = Settings { segment_bytes: u64::MAX };
        let unread = |_, _: &[u8]| Ok(());
        let (log, _) = Log::open::<LogError>(part, settings, SegmentNumber::FIRST, unread)?;
        Ok(log)
    }

    /// Cuts the segment that is being written if it is long or old, and drops what is.
    fn look_after(&mut self) {
        let wall = (self.now)().wall;
        let (bytes, age) = (self.settings.segment_bytes(), self.settings.segment_age());
        let is_over = self.shelf.books().writing.as_ref().is_some_and(|writing| {
            let Summary { bytes: written, walls: (oldest, _), records, .. } = writing.summary;
            records > 0 && (written >= bytes || oldest.plus(age) <= wall)
        });
        if is_over {
            self.seal();
        }
        if !self.has_failed
            && let Err(error) = self.shelf.drop_old(self.settings, wall)
        {
            tracing::warn!(%error, "old segments of history were not removed");
        }
    }

    fn seal(&mut self) {
        self.log = None;
        if !self.has_failed {
            self.shelf.seal();
        }
    }
}

/// Leaves nobody waiting, also if the keeper panics.
struct Ends(Arc<Intake>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// How often history is synced is the machine's time, not the limits'.
#[expect(clippy::disallowed_methods, reason = "no decision hangs on it")]
fn elapsing() -> Instant {
    Instant::now()
}
