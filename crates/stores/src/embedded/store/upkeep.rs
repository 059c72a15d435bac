//! Upkeep: checkpoints, segments that are dropped, and bodies that move so that they can be. All of it
//! beside the writer, on a thread that lives as long as one job.

use super::inbox::{Inbox, News};
use super::open::OpenError;
use super::segments::Segments;
use super::{checkpoint, records};
use crate::embedded::disk::Disk;
use crate::embedded::log::{self, LogError, Position, SegmentNumber};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use tollgate_core::Timestamp;
use tollgate_core::lanes::{CallId, Payload};

/// Bodies that are handed to the writer at once.
const MOVED_BYTES: usize = 1 << 20;

/// A body in an old segment.
pub(super) struct OldBody {
    pub(super) id: CallId,
    pub(super) at: Position,
    pub(super) payload: Payload,
}

/// What the upkeep has to say.
pub(super) enum UpkeepNews {
    /// A new segment was begun for a checkpoint of all before it.
    Rotated(SegmentNumber),
    /// There is a checkpoint of so many bytes.
    Made(SegmentNumber, u64),
    /// Bodies of an old segment, some of them of calls that have ended.
    Bodies(Vec<OldBody>),
    /// All bodies of an old segment were handed over.
    Moved,
    /// A job found no space on the disk: it is tried again after some time.
    Full(String),
    /// A job was given up: it is tried again after some time, and may never succeed.
    Failed(String),
    /// A job panicked. It is tried again as well, for nothing hangs on how far it came: a checkpoint
    /// counts once its last file is there, a body has moved once the writer has written it, and the
    /// next job finds all else on the disk. To fail the store would help nobody: if the cause is in
    /// the journal, a new start would meet it too, with nothing in memory to go on with.
    Panicked,
    /// The journal writes no more, or a sync failed: the store ends.
    Lost(LogError),
}

impl UpkeepNews {
    /// What comes of a job that did not succeed: a full disk and what else leaves nothing behind is
    /// tried again, but what a failed sync left behind is known only to the disk.
    fn failed(error: OpenError) -> Self {
        match error {
            OpenError::Journal(unsynced @ LogError::Unsynced { .. }) => Self::Lost(unsynced),
            OpenError::Journal(full @ LogError::Full { .. }) => Self::Full(full.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

/// What is known of the journal's upkeep.
pub(super) struct Upkeep {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) segments: Segments,
    /// All before it is in the checkpoint.
    pub(super) checkpoint: Option<SegmentNumber>,
    /// How many bytes were committed since the last checkpoint.
    pub(super) since: u64,
    /// After how many there is another.
    pub(super) every: u64,
    /// The least of that.
    pub(super) least: u64,
    /// Before this segment everything was dropped.
    pub(super) dropped: SegmentNumber,
    /// The segment whose bodies are being moved.
    pub(super) moving: Option<SegmentNumber>,
    /// A job is under way.
    pub(super) is_busy: bool,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Whether it is time for a checkpoint.
    pub(super) fn is_due(&self) -> bool {
        !self.is_busy && self.since >= self.every
    }

    /// Makes a checkpoint of all before a segment.
    pub(super) fn make(&mut self, until: SegmentNumber, wall: Timestamp) {
        let disk = self.disk.clone();
        self.start(move |_| {
            let bytes = checkpoint::make(&disk, until, wall)?;
            Ok(UpkeepNews::Made(until, bytes))
        });
    }

    /// Hands the bodies of an old segment to the writer.
    pub(super) fn move_bodies(&mut self, segment: SegmentNumber) {
        self.moving = Some(segment);
        let disk = self.disk.clone();
        self.start(move |inbox| {
            let (mut bodies, mut bytes) = (Vec::new(), 0);
            log::read(&*disk, segment..=segment, |at, record| {
                let found =
                    records::payload_of(record).map_err(|error| OpenError::record(at, error))?;
                if let Some((id, payload)) = found {
                    bytes += payload.bytes();
                    bodies.push(OldBody { id, at, payload });
                }
                if bytes >= MOVED_BYTES {
                    inbox.news(News::Upkeep(UpkeepNews::Bodies(std::mem::take(&mut bodies))));
                    bytes = 0;
                }
                Ok::<(), OpenError>(())
            })?;
            inbox.news(News::Upkeep(UpkeepNews::Bodies(bodies)));
            Ok(UpkeepNews::Moved)
        });
    }

    /// The segment before which all can be dropped, if there is anything.
    pub(super) fn droppable(&mut self) -> Option<SegmentNumber> {
        let needed = self.segments.first_needed(self.checkpoint?);
        let droppable = Some(needed).filter(|needed| *needed > self.dropped);
        self.dropped = self.dropped.max(needed);
        droppable
    }

    /// A job is over without having been done: another one may begin after as many bytes again.
    pub(super) fn give_up(&mut self) {
        (self.is_busy, self.since, self.moving) = (false, 0, None);
    }

    fn start(
        &mut self,
        job: impl FnOnce(&Inbox) -> Result<UpkeepNews, OpenError> + Send + 'static,
    ) {
        self.is_busy = true;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let inbox = self.inbox.clone();
        let run = move || {
            let outcome = catch_unwind(AssertUnwindSafe(|| job(&inbox)));
            inbox.news(News::Upkeep(match outcome {
                Ok(outcome) => outcome.unwrap_or_else(UpkeepNews::failed),
                Err(_) => UpkeepNews::Panicked,
            }));
        };
        match thread::Builder::new().name("tollgate-upkeep".to_owned()).spawn(run) {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => {
                self.inbox.news(News::Upkeep(UpkeepNews::Failed(error.to_string())));
            }
        }
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
