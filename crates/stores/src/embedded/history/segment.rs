//! A segment of history: its files, what is known of it, and its records.

use crate::embedded::codec;
use crate::embedded::disk::part::Part;
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::log::{self, LogError, Position, Report, SegmentNumber};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use tollgate_core::Timestamp;
use tollgate_core::lanes::act::REPORT_BYTES_MAX;
use tollgate_core::lanes::{CallId, Event};

const PREFIX: &str = "history-";
/// What is behind the name of a log that is set aside.
pub(super) const BROKEN: &str = ".broken";
/// The first byte of a record that says up to where in the journal its segment reaches; those of
/// events are lower.
const REACHES: u8 = 0xF0;
/// Longer than any event: two names, and one for each toll, of 512 bytes, and a report.
const EVENT_BYTES_MAX: usize = (16 << 10) + REPORT_BYTES_MAX;
/// Read at first: most events are shorter.
const EVENT_BYTES: usize = 1 << 10;

/// Where the event of a call is.
pub(super) type Entry = (CallId, u32);

/// What is known of a segment without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    /// How many records of events it has.
    pub(super) records: u32,
    /// Where its log ends.
    pub(super) bytes: u64,
    /// The earliest and the latest event, on the wall clock.
    pub(super) walls: (Timestamp, Timestamp),
    /// The least and the highest call.
    pub(super) calls: (CallId, CallId),
    /// Up to where in the journal it reaches.
    pub(super) until: Position,
}

impl Default for Summary {
    fn default() -> Self {
        Self {
            records: 0,
            bytes: 0,
            walls: (Timestamp::MAX, Timestamp::default()),
            calls: (CallId(u64::MAX), CallId(0)),
            until: Position::from_bits(0),
        }
    }
}

impl Summary {
    /// Adds a record, by its first event.
    pub(super) fn add(&mut self, event: &Event) {
        let (wall, call) = (event.at.wall, event.call);
        self.records += 1;
        self.walls = (self.walls.0.min(wall), self.walls.1.max(wall));
        self.calls = (self.calls.0.min(call), self.calls.1.max(call));
    }

    /// Adds what is known of what follows.
    pub(super) fn join(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes = self.bytes.max(other.bytes);
        self.walls = (self.walls.0.min(other.walls.0), self.walls.1.max(other.walls.1));
        self.calls = (self.calls.0.min(other.calls.0), self.calls.1.max(other.calls.1));
        self.until = self.until.max(other.until);
    }

    pub(super) fn has_call(&self, call: CallId) -> bool {
        (self.calls.0..=self.calls.1).contains(&call)
    }
}

/// A segment's files, as if they were a folder.
pub(super) fn part(disk: &Arc<dyn Disk>, number: SegmentNumber) -> Part {
    Part::new(disk.clone(), prefix(number))
}

fn prefix(number: SegmentNumber) -> String {
    format!("{PREFIX}{}-", number.as_u32())
}

/// The name of a segment's log within its part.
pub(super) fn log_name() -> String {
    SegmentNumber::FIRST.file_name()
}

/// The name of a segment's log in the folder.
pub(super) fn file_name(number: SegmentNumber) -> String {
    name_of(number, &log_name())
}

/// The name in the folder of what has this name within a segment's part.
pub(super) fn name_of(number: SegmentNumber, name: &str) -> String {
    format!("{}{name}", prefix(number))
}

/// The numbers of all segments of which there is a file, and of those whose log is there and not set
/// aside.
pub(super) fn numbers(
    disk: &dyn Disk,
) -> io::Result<(BTreeSet<SegmentNumber>, BTreeSet<SegmentNumber>)> {
    Ok(numbers_of(&disk.names()?))
}

/// As [`numbers`], of files that are called so.
pub(super) fn numbers_of(names: &[String]) -> (BTreeSet<SegmentNumber>, BTreeSet<SegmentNumber>) {
    let (mut all, mut whole) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        let rest = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let Some((number, rest)) = rest else { continue };
        let Ok(number) = number.parse().map(SegmentNumber::new) else { continue };
        all.insert(number);
        if rest == log_name() {
            whole.insert(number);
        }
    }
    (all, whole)
}

/// Appends a record that says up to where in the journal a segment reaches.
pub(super) fn encode_until(until: Position, buffer: &mut Vec<u8>) {
    buffer.push(REACHES);
    buffer.extend(until.to_bits().to_le_bytes());
}

/// Gives `each` every event of a segment with its place, in order, and says what is known of it: the
/// offset of its record, or one more for an end that came with an attempt. A tail that a crash left is
/// passed over.
pub(super) fn read(
    disk: &Arc<dyn Disk>,
    number: SegmentNumber,
    mut each: impl FnMut(u32, Event),
) -> Result<Summary, LogError> {
    let mut summary = Summary::default();
    let read = log::read::<LogError>(&part(disk, number), .., |position, record| {
        if let Some((&REACHES, until)) = record.split_first() {
            let until = until.first_chunk().map(|bits| u64::from_le_bytes(*bits));
            summary.until = Position::from_bits(until.unwrap_or_default());
            return Ok(());
        }
        let (event, ended) = codec::decode_events(record)
            .map_err(|error| LogError::corrupt(log_name(), position.offset().into(), error))?;
        summary.add(&event);
        each(position.offset(), event);
        if let Some(ended) = ended {
            each(position.offset() + 1, ended);
        }
        Ok(())
    });
    let Report { bytes, .. } = read.map_err(|error| of_segment(number, error))?;
    Ok(Summary { bytes, ..summary })
}

/// The event at an offset of a segment's log, with the end that came with it; nothing if there is none.
pub(super) fn events_at(file: &dyn DiskFile, offset: u32) -> io::Result<Vec<Event>> {
    let offset = u64::from(offset);
    let rest = file.length()?.saturating_sub(offset);
    let rest = usize::try_from(rest).unwrap_or(usize::MAX);
    for most in [EVENT_BYTES, EVENT_BYTES_MAX] {
        let mut record = vec![0; rest.min(most)];
        file.read(offset, &mut record)?;
        if let Ok((event, ended)) = codec::decode_events(&record) {
            return Ok([event].into_iter().chain(ended).collect());
        }
    }
    Ok(vec![])
}

/// The same error with the name that its file has in the folder.
fn of_segment(number: SegmentNumber, mut error: LogError) -> LogError {
    if let LogError::Corrupt { file, .. } | LogError::Newer { file, .. } = &mut error {
        *file = format!("{}{file}", prefix(number));
    }
    error
}

/// Whether an error means that files are gone: dropped, because they are old.
pub(super) fn is_gone(error: &LogError) -> bool {
    matches!(error, LogError::Failed { source, .. } if source.kind() == io::ErrorKind::NotFound)
}
