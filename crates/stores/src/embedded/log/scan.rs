//! Reading the log from its files, and judging what is broken.

use super::error::LogError;
use super::frame::{self, FRAME_HEADER_BYTES, FrameHeader};
use super::position::Position;
use super::segment::{self, HEADER_BYTES, Header, SegmentNumber};
use super::window::Window;
use crate::embedded::disk::Disk;
use std::fmt::Display;
use std::ops::{Bound, RangeBounds, RangeInclusive};

/// What was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many segments.
    pub segments: u64,
    /// How many frames, those without records too.
    pub frames: u64,
    /// How many records.
    pub records: u64,
    /// How many bytes, without the torn tail.
    pub bytes: u64,
    /// The commit that a crash interrupted, if there is one.
    pub torn: Option<TornTail>,
}

/// A commit that was never answered, of which a part was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The file that ends with it.
    pub file: String,
    /// Where it begins.
    pub offset: u64,
    /// How much of it is there.
    pub bytes: u64,
}

/// Reads the whole log and changes nothing, not even a torn tail.
///
/// The first corruption is the error.
pub fn verify(disk: &dyn Disk) -> Result<Report, LogError> {
    match segment::present(disk)? {
        Some(present) => Ok(scan(disk, present, |_, _| Ok::<(), LogError>(()))?.report),
        None => Ok(Report::default()),
    }
}

/// Gives `each` every record of the segments in a range, in order, and changes nothing. Those of a
/// log that is being written can be read if they are sealed.
pub fn read<E: From<LogError>>(
    disk: &dyn Disk,
    range: impl RangeBounds<SegmentNumber>,
    each: impl FnMut(Position, &[u8]) -> Result<(), E>,
) -> Result<Report, E> {
    let Some(present) = segment::present(disk)? else { return Ok(Report::default()) };
    let (first, newest) = present.into_inner();
    let first = match range.start_bound() {
        Bound::Included(start) if *start >= first => *start,
        Bound::Unbounded => first,
        Bound::Included(start) | Bound::Excluded(start) => {
            return Err(segment::missing(*start).into());
        }
    };
    let last = match range.end_bound() {
        Bound::Unbounded => newest,
        Bound::Included(end) => *end,
        Bound::Excluded(end) => SegmentNumber::new(end.as_u32().saturating_sub(1)),
    };
    if last < first {
        return Ok(Report::default());
    }
    let scanned = scan(disk, first..=last, each)?;
    if last < newest {
        check_sealed(disk, &scanned)?;
    }
    Ok(scanned.report)
}

/// Refuses a segment that is not all there though another was begun behind it: no commit was under way there.
fn check_sealed(disk: &dyn Disk, scanned: &Scanned) -> Result<(), LogError> {
    if let Some(TornTail { file, offset, .. }) = &scanned.report.torn {
        let found = "a frame is not whole, and a later segment follows";
        return Err(LogError::corrupt(file.clone(), *offset, found));
    }
    let next = scanned.last.number.next()?;
    SegmentScan::open(disk, next, Some(scanned.next_sequence)).map(drop)
}

/// What was read, and where to go on.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) report: Report,
    pub(super) next_sequence: u64,
    /// The last segment.
    pub(super) last: Header,
    /// The end of its last whole frame.
    pub(super) end: u64,
}

/// Gives `each` every record of these segments, in order. Changes nothing.
pub(super) fn scan<E: From<LogError>>(
    disk: &dyn Disk,
    segments: RangeInclusive<SegmentNumber>,
    mut each: impl FnMut(Position, &[u8]) -> Result<(), E>,
) -> Result<Scanned, E> {
    let (first, last) = segments.into_inner();
    let mut report = Report::default();
    let mut due = None;
    for number in first.until(last) {
        let mut segment = SegmentScan::open(disk, number, due)?;
        if let Some(broken) = segment.read(&mut report, &mut each)? {
            return Err(segment.corrupt(broken.found).into());
        }
        due = Some(segment.sequence);
    }
    let mut segment = SegmentScan::open(disk, last, due)?;
    if let Some(broken) = segment.read(&mut report, &mut each)? {
        report.torn = Some(segment.torn_tail(&broken)?);
    }
    let SegmentScan { header: last, at: end, sequence: next_sequence, .. } = segment;
    Ok(Scanned { report, next_sequence, last, end })
}

/// One segment, read up to `at`.
#[derive(Debug)]
struct SegmentScan {
    window: Window,
    header: Header,
    at: u64,
    /// The number of the frame that is due there.
    sequence: u64,
}

/// A frame that is not whole.
#[derive(Debug)]
struct Broken {
    found: &'static str,
    /// Where it ends, if its header is whole.
    end: Option<u64>,
}

impl SegmentScan {
    /// `due` is the number of the first frame, if the segment before was read.
    fn open(disk: &dyn Disk, number: SegmentNumber, due: Option<u64>) -> Result<Self, LogError> {
        let mut window = Window::open(disk, number.file_name())?;
        let header = Header::decode(window.at(0, HEADER_BYTES)?, number)?;
        let first = header.first_sequence;
        if let Some(due) = due.filter(|due| *due != first) {
            let found = format!("it begins with frame {first} where frame {due} is due");
            return Err(LogError::corrupt(number.file_name(), 0, found));
        }
        Ok(Self { window, header, at: HEADER_BYTES as u64, sequence: first })
    }

    /// Gives `each` the records up to the end, or up to a frame that is broken.
    fn read<E: From<LogError>>(
        &mut self,
        report: &mut Report,
        each: &mut impl FnMut(Position, &[u8]) -> Result<(), E>,
    ) -> Result<Option<Broken>, E> {
        report.segments += 1;
        report.bytes += HEADER_BYTES as u64;
        while self.at < self.window.length() {
            let content_bytes = match self.check_frame()? {
                Ok(content_bytes) => content_bytes,
                Err(broken) => return Ok(Some(broken)),
            };
            report.records += self.give_records(content_bytes, each)?;
            report.frames += 1;
            report.bytes += (FRAME_HEADER_BYTES + content_bytes) as u64;
            self.at += (FRAME_HEADER_BYTES + content_bytes) as u64;
            self.sequence += 1;
        }
        Ok(None)
    }

    /// How long the content of the next frame is, if the frame is whole and due.
    fn check_frame(&mut self) -> Result<Result<usize, Broken>, LogError> {
        let broken = |found, end| Ok(Err(Broken { found, end }));
        let Some(bytes) = self.window.at(self.at, FRAME_HEADER_BYTES)?.first_chunk() else {
            return broken("the file ends within the header of a frame", None);
        };
        let Some(header) = FrameHeader::decode(*bytes, self.header.salt) else {
            return broken("the header of a frame does not match its checksum", None);
        };
        if header.sequence != self.sequence {
            let (found, due) = (header.sequence, self.sequence);
            return Err(self.corrupt(format_args!("frame {found} where frame {due} is due")));
        }
        let start = self.at + FRAME_HEADER_BYTES as u64;
        let end = start + u64::from(header.content_bytes);
        if end > self.window.length() {
            return broken("the file ends within a frame", Some(end));
        }
        let content = self.window.at(start, header.content_bytes as usize)?;
        if !header.is_of(content) {
            return broken("the content of a frame does not match its checksum", Some(end));
        }
        Ok(Ok(content.len()))
    }

    /// Gives `each` the records of the next frame, and tells how many there were.
    fn give_records<E: From<LogError>>(
        &mut self,
        content_bytes: usize,
        each: &mut impl FnMut(Position, &[u8]) -> Result<(), E>,
    ) -> Result<u64, E> {
        let start = self.at + FRAME_HEADER_BYTES as u64;
        let content = self.window.at(start, content_bytes)?;
        let (mut records, mut at) = (0, 0);
        while at < content.len() {
            let record = frame::record_at(content, at);
            let offset =
                record.as_ref().and_then(|record| u32::try_from(start + record.start as u64).ok());
            let (Some(record), Some(offset)) = (record, offset) else {
                return Err(self.corrupt("a record that is longer than its frame").into());
            };
            at = record.end;
            records += 1;
            each(Position::new(self.header.number, offset), &content[record])?;
        }
        Ok(records)
    }

    /// The broken frame as a torn tail, or corruption if a later frame was begun: that happens only
    /// once this one is synced.
    fn torn_tail(&mut self, broken: &Broken) -> Result<TornTail, LogError> {
        let length = self.window.length();
        let is_last = match broken.end {
            Some(end) => length <= end,
            None => !self.has_later_frame()?,
        };
        if !is_last {
            return Err(self.corrupt(format_args!("{}, and later frames follow", broken.found)));
        }
        let file = self.header.number.file_name();
        Ok(TornTail { file, offset: self.at, bytes: length - self.at })
    }

    /// Whether the header of a later frame is somewhere behind.
    fn has_later_frame(&mut self) -> Result<bool, LogError> {
        let most = self.sequence.saturating_add(self.window.length());
        let later = self.sequence.saturating_add(1)..=most;
        for offset in self.at + 1..self.window.length() {
            let Some(bytes) = self.window.at(offset, FRAME_HEADER_BYTES)?.first_chunk() else {
                return Ok(false);
            };
            // Few places look like a number that could follow, so few checksums are computed.
            if later.contains(&frame::sequence(*bytes))
                && FrameHeader::decode(*bytes, self.header.salt).is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn corrupt(&self, found: impl Display) -> LogError {
        LogError::corrupt(self.header.number.file_name(), self.at, found)
    }
}
