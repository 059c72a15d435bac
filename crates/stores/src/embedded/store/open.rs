//! Opening: what was written comes back, and limit time goes on from where it was.

use super::Folder;
use super::checkpoint;
use super::events::Audience;
use super::inbox::{Inbox, News};
use super::replay::{Replay, Retold};
use super::segments::Segments;
use super::upkeep::{Upkeep, UpkeepNews};
use super::writer::Writer;
use crate::embedded::codec::CodecError;
use crate::embedded::committer::Committer;
use crate::embedded::disk::telling::Telling;
use crate::embedded::disk::{Disk, FolderError, RealDisk};
use crate::embedded::history::{History, HistorySettings, Shelf};
use crate::embedded::log::{self, Log, LogError, Position, Report, SegmentNumber, Settings};
use crate::store::home::Listeners;
use crate::store::state::State;
use crate::store::stream::Stream;
use crate::store::{Store, TimeSource};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use tollgate_core::lanes::{Scheduler, Watch};
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
    /// How much history is kept.
    pub history: HistorySettings,
    /// Meters that open within so long of each other are looked at together.
    pub gather: Span,
}

impl Default for StoreSettings {
    /// A checkpoint every 256 MiB: read again in a second or two.
    fn default() -> Self {
        let (log, history) = (Settings::default(), HistorySettings::default());
        Self { log, checkpoint_bytes: 256 << 20, history, gather: Scheduler::GATHER }
    }
}

/// A store that was opened, and what was found.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// What was read.
    pub report: Report,
    /// How far its limit time is ahead of the clock that it was given: that had been set back.
    pub ahead: Span,
}

impl Store {
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
        let inbox = Arc::<Inbox>::default();
        let shelf = shelf(telling(disk.clone(), inbox.clone()), settings.history);
        let mut replay = Replay::default();
        if let Some(checkpoint) = checkpoint {
            checkpoint::read(&disk, checkpoint, &mut replay)?;
        }
        replay.retold = shelf.as_ref().map(|shelf| Retold::new(shelf.until()));
        let from = checkpoint.unwrap_or(SegmentNumber::FIRST);
        let (log, report) =
            Log::open::<OpenError>(disk.clone(), settings.log, from, |position, record| {
                replay.journal(position, record)
            })?;
        let retold = replay.take_retold();
        let Replay { mut scheduler, given, .. } = replay;
        checkpoint::remove_others(&*disk, checkpoint)?;
        let bytes = log::lengths(&*disk)?;
        scheduler.gather(settings.gather);
        // What ended before is nobody's news.
        drop(scheduler.take_freed());
        let ahead = scheduler.latest().since(now().at);
        let now = going_on(now, ahead);
        let committer = Committer::start(log)?;
        let reader = committer.reader();
        let history = shelf.and_then(|shelf| start_history(shelf, settings.history, &now));
        let listeners = Listeners {
            condition: Arc::default(),
            woken: Arc::default(),
            stream: Arc::new(Stream::new(now().at)),
            elsewhere: Arc::default(),
        };
        let audience = Audience { listeners, history: history.as_ref().map(History::intake) };
        scheduler.watch(if history.is_some() { Watch::History } else { Watch::Nothing });
        if let Some(Retold { events, until, .. }) = retold {
            audience.keep(events, until);
        }
        let upkeep = Upkeep {
            disk,
            inbox: inbox.clone(),
            segments: Segments::of(scheduler.locations(), &given, bytes),
            checkpoint,
            since: report.bytes,
            every: settings.checkpoint_bytes,
            least: settings.checkpoint_bytes,
            dropped: SegmentNumber::FIRST,
            moving: None,
            is_busy: false,
            thread: None,
        };
        let writer =
            Writer::new(State::new(scheduler), committer, now.clone(), audience.clone(), upkeep);
        let run = move || writer.run();
        let thread = thread::Builder::new().name("tollgate-writer".to_owned()).spawn(run);
        let thread = thread.map_err(|error| LogError::failed("starting its writer", error))?;
        let thread = Some(thread);
        let folder = Folder { inbox, audience, reader, now, thread, history };
        Ok(Opened { store: Store::at(folder), report, ahead })
    }
}

/// The disk as history has it. A sync that fails there ends the store as any other does: of the folder,
/// nobody else would be told.
fn telling(disk: Arc<dyn Disk>, inbox: Arc<Inbox>) -> Arc<dyn Disk> {
    let tell = move |file: Option<&str>, error: &io::Error| {
        let source = io::Error::new(error.kind(), error.to_string());
        let lost = LogError::unsynced(file.unwrap_or("its folder"), source);
        inbox.news(News::Upkeep(UpkeepNews::Lost(lost)));
    };
    Arc::new(Telling::new(disk, Arc::new(tell)))
}

/// The history on a disk, if there is to be one. Whatever is wrong with it, the store opens.
fn shelf(disk: Arc<dyn Disk>, settings: HistorySettings) -> Option<Shelf> {
    let shelf = Shelf::open(disk).and_then(|shelf| {
        if settings.bytes > 0 {
            return Ok(Some(shelf));
        }
        shelf.clear().map(|()| None)
    });
    shelf.unwrap_or_else(|error| {
        tracing::warn!(%error, "history cannot be read and is off until the next start");
        None
    })
}

fn start_history(shelf: Shelf, settings: HistorySettings, now: &TimeSource) -> Option<History> {
    let started = History::start(shelf, settings, now.clone());
    let failed = |error: &io::Error| tracing::warn!(%error, "history is off until the next start");
    started.inspect_err(failed).ok()
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
