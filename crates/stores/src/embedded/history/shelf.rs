//! The segments of history: which there are, what is known of each, and which go.

use super::segment::{self, BROKEN, Entry, Summary};
use super::{HistorySettings, index};
use crate::embedded::disk::Disk;
use crate::embedded::log::{LogError, Position, SegmentNumber};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate_core::Timestamp;

/// All segments. Read by any thread, and changed by the keeper; a reader may find that one is gone.
#[derive(Debug)]
pub(in crate::embedded) struct Shelf {
    pub(super) disk: Arc<dyn Disk>,
    books: Mutex<Books>,
}

#[derive(Debug)]
pub(super) struct Books {
    pub(super) sealed: BTreeMap<SegmentNumber, Sealed>,
    /// The one that is being written.
    pub(super) writing: Option<Writing>,
    /// The number that was given last, also to one that is gone.
    last: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed {
    pub(super) summary: Summary,
    pub(super) index: Index,
}

/// What is known of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Index {
    /// There is none to rely on: the segment is read.
    Absent,
    /// It was written some time ago, and not looked at.
    Unchecked,
    /// It is as it was written.
    Whole,
}

#[derive(Debug)]
pub(super) struct Writing {
    pub(super) number: SegmentNumber,
    pub(super) summary: Summary,
    /// In the order of their offsets.
    pub(super) entries: Vec<Entry>,
}

impl Shelf {
    /// The segments on a disk. One without an index is read and given one; one that is broken is set
    /// aside.
    pub(in crate::embedded) fn open(disk: Arc<dyn Disk>) -> io::Result<Self> {
        let (all, whole) = segment::numbers(&*disk)?;
        let last = all.last().map_or(0, |number| number.as_u32());
        let books = Books { sealed: BTreeMap::new(), writing: None, last };
        let shelf = Self { disk, books: Mutex::new(books) };
        for number in all {
            if whole.contains(&number) {
                shelf.take_in(number)?;
            } else {
                index::remove(&segment::part(&shelf.disk, number))?;
            }
        }
        Ok(shelf)
    }

    /// Up to where in the journal there is history; what follows may be told again.
    pub(in crate::embedded) fn until(&self) -> Position {
        let books = self.books();
        let reached = books.sealed.values().map(|sealed| sealed.summary.until).max();
        reached.unwrap_or(Position::from_bits(0))
    }

    /// Removes everything.
    pub(in crate::embedded) fn clear(&self) -> io::Result<()> {
        let numbers: Vec<_> = self.books().sealed.keys().copied().collect();
        numbers.into_iter().try_for_each(|number| self.remove(number))
    }

    fn take_in(&self, number: SegmentNumber) -> io::Result<()> {
        if let Some(summary) = index::summary(&segment::part(&self.disk, number)) {
            self.books().sealed.insert(number, Sealed { summary, index: Index::Unchecked });
            return Ok(());
        }
        let mut entries = Vec::new();
        let read = segment::read(&self.disk, number, |place, event| {
            // An end that came with an attempt is found with it.
            if entries.last().is_none_or(|(_, last)| last + 1 != place) {
                entries.push((event.call, place));
            }
        });
        match read {
            // A crash came before its first commit.
            Ok(summary) if summary.records == 0 => self.remove(number),
            Ok(summary) => {
                // What a process that was killed wrote may be in memory alone, and an index must not outlast it.
                segment::part(&self.disk, number).open(&segment::log_name())?.sync()?;
                self.books().sealed.insert(number, Sealed { summary, index: Index::Absent });
                self.write_index(number, &summary, entries);
                Ok(())
            }
            Err(error) if error.is_damage() => self.set_aside(number, &error),
            // Such as that it is another user's: nothing is wrong with it.
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// Begins a segment; says which.
    pub(super) fn begin(&self) -> SegmentNumber {
        let mut books = self.books();
        books.last += 1;
        let number = SegmentNumber::new(books.last);
        let (summary, entries) = (Summary::default(), Vec::new());
        books.writing = Some(Writing { number, summary, entries });
        number
    }

    /// Events were written to the segment that is being written.
    pub(super) fn extend(&self, more: &Summary, entries: impl Iterator<Item = Entry>) {
        if let Some(writing) = &mut self.books().writing {
            writing.summary.join(more);
            writing.entries.extend(entries);
        }
    }

    /// Ends the segment that is being written.
    pub(super) fn seal(&self) {
        let mut books = self.books();
        let Some(Writing { number, summary, entries }) = books.writing.take() else { return };
        if summary.records == 0 {
            drop(books);
            if let Err(error) = self.remove(number) {
                tracing::warn!(%error, "an empty segment of history was not removed");
            }
            return;
        }
        // At once: who looks while the index is written reads the segment.
        books.sealed.insert(number, Sealed { summary, index: Index::Absent });
        drop(books);
        self.write_index(number, &summary, entries);
    }

    /// Gives a sealed segment its index.
    fn write_index(&self, number: SegmentNumber, summary: &Summary, entries: Vec<Entry>) {
        match index::write(&segment::part(&self.disk, number), summary, entries) {
            Ok(()) => self.note_index(number, Index::Whole),
            Err(error) => {
                tracing::warn!(%error, "a segment of history has no index and is read slowly");
            }
        }
    }

    /// Drops whole segments: those that are too old, and the oldest of too many.
    pub(super) fn drop_old(&self, settings: HistorySettings, wall: Timestamp) -> io::Result<()> {
        loop {
            let oldest = self.books().to_be_dropped(settings, wall);
            let Some(number) = oldest else { return Ok(()) };
            self.remove(number)?;
        }
    }

    fn remove(&self, number: SegmentNumber) -> io::Result<()> {
        self.books().sealed.remove(&number);
        let part = segment::part(&self.disk, number);
        // Without its log, an index is nothing.
        unless_gone(part.remove(&segment::log_name()))?;
        index::remove(&part)?;
        self.disk.sync()
    }

    /// Takes a broken segment out of use and keeps what is there for whoever wants to look at it.
    pub(super) fn set_aside(&self, number: SegmentNumber, error: &LogError) -> io::Result<()> {
        tracing::warn!(%error, "a segment of history is broken and was set aside");
        self.books().sealed.remove(&number);
        let (part, name) = (segment::part(&self.disk, number), segment::log_name());
        // Somebody else may have met it at the same time.
        unless_gone(part.rename(&name, &format!("{name}{BROKEN}")))?;
        index::remove(&part)?;
        self.disk.sync()
    }

    /// Notes what was found out of an index.
    pub(super) fn note_index(&self, number: SegmentNumber, index: Index) {
        if let Some(sealed) = self.books().sealed.get_mut(&number) {
            sealed.index = index;
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn to_be_dropped(&self, settings: HistorySettings, wall: Timestamp) -> Option<SegmentNumber> {
        let of = |summary: &Summary| summary.bytes + index::bytes_of(summary);
        let writing = self.writing.as_ref().map_or(0, |writing| of(&writing.summary));
        let sealed: u64 = self.sealed.values().map(|sealed| of(&sealed.summary)).sum();
        let (oldest, Sealed { summary, .. }) = self.sealed.first_key_value()?;
        let is_old = summary.walls.1.plus(settings.age) <= wall;
        // The newest stays: one burst may be larger than all that is to be kept.
        let is_too_much = writing + sealed > settings.bytes && self.sealed.len() > 1;
        (is_old || is_too_much).then_some(*oldest)
    }
}

fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}
