//! Opening: what was written comes back, and limit time goes on from where it was.

use super::checkpoint;
use super::inbox::Inbox;
use super::replay::Replay;
use super::segments::Segments;
use super::upkeep::Upkeep;
use super::writer::{State, Writer};
use super::{COMMANDS_MAX, Embedded, Shared, TimeSource, Wakes};
use crate::embedded::codec::CodecError;
use crate::embedded::committer::Committer;
use crate::embedded::disk::{Disk, FolderError, RealDisk};
use crate::embedded::log::{Log, LogError, Position, Report, SegmentNumber, Settings};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tokio::sync::Semaphore;
use tollgate_core::{Now, Span};

/// Why a store could not be opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The folder cannot be had.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] LogError),
    /// A record of the journal cannot be understood.
    #[error("the record at offset {offset} of {file} cannot be read: {source}")]
    Record {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong with it.
        source: CodecError,
    },
}

impl OpenError {
    /// A record that cannot be understood.
    pub(super) fn record(position: Position, source: CodecError) -> Self {
        let (file, offset) = (position.segment().file_name(), position.offset().into());
        Self::Record { file, offset, source }
    }
}

/// How a store is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSettings {
    /// How its journal is.
    pub log: Settings,
    /// How many bytes are written at least before there is another checkpoint: a restart reads no
    /// more than that, or as much again as the last checkpoint had.
    pub checkpoint_bytes: u64,
}

impl Default for StoreSettings {
    /// A checkpoint every 256 MiB: read again in a second or two.
    fn default() -> Self {
        Self { log: Settings::default(), checkpoint_bytes: 256 << 20 }
    }
}

/// A store that was opened, and what was found.
pub struct Opened {
    /// The store.
    pub store: Embedded,
    /// What was read.
    pub report: Report,
    /// How far its limit time is ahead of the clock that it was given: that had been set back.
    pub ahead: Span,
}

impl Embedded {
    /// Opens a folder, made if there is none; `now` tells the time.
    pub fn open(folder: &Path, now: TimeSource) -> Result<Opened, OpenError> {
        let disk = RealDisk::open(folder)?;
        Self::on(Arc::new(disk), StoreSettings::default(), now)
    }

    /// Opens what is on a disk.
    pub fn on(
        disk: Arc<dyn Disk>,
        settings: StoreSettings,
        now: TimeSource,
    ) -> Result<Opened, OpenError> {
        let failed = |error| LogError::failed("looking for checkpoints", error);
        let checkpoint = checkpoint::newest(&*disk).map_err(failed)?;
        let mut replay = Replay::default();
        if let Some(checkpoint) = checkpoint {
            checkpoint::read(&disk, checkpoint, &mut replay)?;
        }
        let from = checkpoint.unwrap_or(SegmentNumber::FIRST);
        let (log, report) =
            Log::open::<OpenError>(disk.clone(), settings.log, from, |position, record| {
                replay.journal(position, record)
            })?;
        let Replay { mut scheduler, bodies } = replay;
        checkpoint::remove_others(&*disk, checkpoint)?;
        // What ended before is nobody's news.
        let _ = scheduler.take_freed();
        let ahead = scheduler.latest().since(now().at);
        let now = going_on(now, ahead);
        let committer = Committer::start(log)?;
        let (reader, inbox, woken) = (committer.reader(), Arc::default(), Arc::default());
        let (writers_inbox, writers_woken): (Arc<Inbox>, Arc<Wakes>) =
            (Arc::clone(&inbox), Arc::clone(&woken));
        let upkeep = Upkeep {
            disk,
            inbox: writers_inbox,
            segments: Segments::of(scheduler.locations(), &bodies),
            checkpoint,
            since: report.bytes,
            every: settings.checkpoint_bytes,
            least: settings.checkpoint_bytes,
            dropped: SegmentNumber::FIRST,
            moving: None,
            is_busy: false,
            thread: None,
        };
        let writers_now = now.clone();
        let run = move || {
            let state = State::new(scheduler);
            Writer::new(state, committer, writers_now, writers_woken, upkeep).run();
        };
        let thread = thread::Builder::new().name("tollgate-writer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| LogError::failed("starting its writer", error))?;
        let room = Arc::new(Semaphore::new(COMMANDS_MAX));
        let shared = Shared { inbox, woken, reader, now, room, thread: Some(thread) };
        Ok(Opened { store: Embedded { shared: Arc::new(shared) }, report, ahead })
    }
}

/// Limit time never goes back: if the clock was set back while nothing ran, it goes on from the last
/// instant that was written.
fn going_on(now: TimeSource, ahead: Span) -> TimeSource {
    if ahead.is_zero() {
        return now;
    }
    Arc::new(move || {
        let Now { at, wall } = now();
        Now { at: at.plus(ahead), wall }
    })
}
