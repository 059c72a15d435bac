//! An append-only log of records: bytes go in, and come out in order after any crash.
//!
//! # On disk
//! A folder of segments, `journal-00000000000000000001.log` and so on without a gap. A segment is
//! a header (`log/segment.rs`) and frames; a frame is one committed batch (`log/frame.rs`). Frames
//! are numbered over all segments, and each segment's header holds the number of its first. The
//! next write starts only when the last one is synced, so that a crash can leave one frame broken:
//! the last one of the last segment.
//!
//! # What a broken frame means
//! At the end of the last segment, with no trace of a later frame behind it, it is a *torn tail*: a
//! commit that was never answered. Opening cuts it off and says so. Anywhere else it is corruption,
//! and opening refuses and touches nothing.
//!
//! One case cannot be told from a torn tail: damage on the medium to the very last frame. The
//! header of a segment vouches for all frames before it, so opening starts a new segment and so
//! does [`Log::close`]. What remains is the last commit before a crash, until the next start.
//!
//! # What is never done
//! No byte of a file is written twice: neither what was cut off nor what was there when the log
//! was opened is followed by frames in the same file. No frame is written before the last one is
//! synced. No sync is tried again.

mod batch;
mod error;
mod frame;
mod position;
mod reader;
mod scan;
mod segment;
#[cfg(test)]
mod tests;
mod window;
mod writing;

pub use batch::Batch;
pub use error::LogError;
pub use position::{BatchPlace, Position};
pub use reader::Reader;
pub use scan::{Report, TornTail, read, verify};
pub use segment::SegmentNumber;
pub(in crate::embedded) use segment::{lengths, missing};

use self::reader::OpenFiles;
use self::scan::Scanned;
use self::segment::HEADER_BYTES;
use self::writing::Writing;
use super::disk::Disk;
use std::sync::Arc;

/// How a log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A segment that would become longer is followed by a new one. A batch that is longer by
    /// itself has a segment of its own.
    pub segment_bytes: u64,
}

impl Default for Settings {
    /// Segments of 64 MiB: dropped one by one they free space in small portions, and a terabyte is
    /// still a number of files that a folder holds easily.
    fn default() -> Self {
        Self { segment_bytes: 64 << 20 }
    }
}

/// A log that is open for writing.
///
/// After an error other than [`LogError::Full`] and [`LogError::TooLarge`] it writes no more, and
/// that error is the answer to every later commit: what a failed sync left behind is known only to
/// the disk. Dropping a log is like a kill, and loses nothing that was answered; closing it is
/// better, see [`Log::close`].
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    settings: Settings,
    files: Arc<OpenFiles>,
    oldest: SegmentNumber,
    writing: Writing,
    /// The number of the next frame.
    sequence: u64,
    failed: Option<LogError>,
}

impl Log {
    /// Gives `each` every record from the segment `from` on, in order, and is then ready to write.
    ///
    /// A torn tail is cut off and reported. Corruption, and an error of `each`, leave the disk as
    /// it was. Segments before `from` are kept, readable and not looked at.
    pub fn open<E: From<LogError>>(
        disk: Arc<dyn Disk>,
        settings: Settings,
        from: SegmentNumber,
        each: impl FnMut(Position, &[u8]) -> Result<(), E>,
    ) -> Result<(Self, Report), E> {
        let present = segment::present(&*disk)?;
        let (oldest, scanned) = match &present {
            Some(present) if present.contains(&from) => {
                (*present.start(), Some(scan::scan(&*disk, from..=*present.end(), each)?))
            }
            None if from == SegmentNumber::FIRST => (from, None),
            _ => return Err(segment::missing(from).into()),
        };
        segment::remove_drafts(&*disk)?;
        let (writing, sequence, report) = match scanned {
            Some(scanned) => (go_on(&*disk, &scanned)?, scanned.next_sequence, scanned.report),
            None => (Writing::create(&*disk, from, 1)?, 1, Report::default()),
        };
        let files = Arc::new(OpenFiles::new(disk.clone()));
        Ok((Self { disk, settings, files, oldest, writing, sequence, failed: None }, report))
    }

    /// Writes the batch as one frame and syncs it: when this returns, it lasts.
    ///
    /// After [`LogError::Full`] and [`LogError::TooLarge`] nothing of it was written and the log
    /// can be used. After any other error it may be there at the next start, all of it or nothing.
    pub fn commit(&mut self, batch: &mut Batch) -> Result<BatchPlace, LogError> {
        self.check()?;
        let outcome = self.make_room(batch.bytes()).and_then(|()| self.write(batch));
        self.remember(outcome)
    }

    /// Starts a new segment, unless the present one is empty. Returns the number of the segment
    /// that is written from now on: all before it are sealed.
    pub fn rotate(&mut self) -> Result<SegmentNumber, LogError> {
        self.check()?;
        let outcome = if self.writing.is_empty() { Ok(()) } else { self.start_segment() };
        self.remember(outcome.map(|()| self.writing.number()))
    }

    /// The segments that are no longer written, oldest first.
    pub fn sealed(&self) -> Vec<SegmentNumber> {
        self.oldest.until(self.writing.number()).collect()
    }

    /// Removes all sealed segments before `segment`.
    ///
    /// One at a time, each to last before the next: whatever crash comes, no segment is missing
    /// between two others.
    pub fn drop_before(&mut self, segment: SegmentNumber) -> Result<(), LogError> {
        self.check()?;
        for number in self.oldest.until(segment.min(self.writing.number())) {
            let outcome = segment::remove(&*self.disk, number).and_then(|()| number.next());
            self.oldest = self.remember(outcome)?;
            self.files.forget(number);
        }
        Ok(())
    }

    /// Reads records back, from any thread, also while the log is written.
    pub fn reader(&self) -> Reader {
        Reader::new(self.files.clone())
    }

    /// Ends a log in good order: seals the last segment, so that the header of the next vouches for
    /// it. A bit that flips after this is found, wherever it is.
    pub fn close(mut self) -> Result<(), LogError> {
        self.rotate().map(drop)
    }

    /// Sees to it that `frame_bytes` fit the segment that is being written.
    fn make_room(&mut self, frame_bytes: usize) -> Result<(), LogError> {
        if frame_bytes > FRAME_BYTES_MAX {
            return Err(LogError::TooLarge { bytes: frame_bytes, bytes_max: FRAME_BYTES_MAX });
        }
        let end = self.writing.end() + frame_bytes as u64;
        let is_over = end > self.settings.segment_bytes.min(u64::from(u32::MAX));
        let is_needed = self.writing.is_spoiled() || (is_over && !self.writing.is_empty());
        if is_needed { self.start_segment() } else { Ok(()) }
    }

    fn start_segment(&mut self) -> Result<(), LogError> {
        self.writing = self.writing.followed(&*self.disk, self.sequence)?;
        // Where it takes the place of an empty one, that may be open.
        self.files.forget(self.writing.number());
        Ok(())
    }

    fn write(&mut self, batch: &mut Batch) -> Result<BatchPlace, LogError> {
        let start = self.writing.end();
        self.writing.append(batch.seal(self.sequence, self.writing.salt()))?;
        self.sequence += 1;
        Ok(BatchPlace::new(self.writing.number(), start))
    }

    fn check(&self) -> Result<(), LogError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Takes note of an error after which nothing may be written.
    fn remember<T>(&mut self, outcome: Result<T, LogError>) -> Result<T, LogError> {
        if let Err(error) = &outcome
            && !matches!(error, LogError::Full { .. } | LogError::TooLarge { .. })
        {
            self.failed = Some(error.clone());
        }
        outcome
    }
}

/// The longest frame that fits a segment: offsets in it have 32 bits.
const FRAME_BYTES_MAX: usize = u32::MAX as usize - HEADER_BYTES;

/// Goes on after what was read: in the next segment, or a new one in place of the last if empty.
///
/// So no byte of a file is written twice, and what was read is vouched for by the new header.
fn go_on(disk: &dyn Disk, scanned: &Scanned) -> Result<Writing, LogError> {
    // A process that was killed may have left its last frame unsynced. What was read here must last
    // before anything is built on it.
    let last = Writing::open(disk, scanned.last, scanned.end)?;
    last.cut()?;
    last.followed(disk, scanned.next_sequence)
}
