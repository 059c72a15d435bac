//! A segment: its number, its name, its header, and how a new one comes to be.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `tollgate`, in ASCII |
//! | 4 | version of the format |
//! | 4 | number of the segment |
//! | 8 | sequence number of its first frame |
//! | 4 | salt of its frames' checksums |
//! | 4 | checksum of the 28 before |
//!
//! Every version keeps this header, so that a later one can be told from a flipped bit.

use super::error::LogError;
use crate::embedded::disk::{Disk, DiskFile};
use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The version that is written, and the latest that is read.
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"tollgate";
/// Behind the name of a segment whose header may not be whole.
const DRAFT: &str = ".new";

/// The number of a segment: 1 is the first, and each has the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(u32);

impl SegmentNumber {
    /// Where a new log begins.
    pub const FIRST: Self = Self(1);

    /// The segment of that number, whether it exists or not.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn as_u32(self) -> u32 {
        self.0
    }

    /// The name of its file.
    pub fn file_name(self) -> String {
        format!("journal-{:020}.log", self.0)
    }

    /// The segment that a file of that name is.
    pub(in crate::embedded) fn of_file(name: &str) -> Option<Self> {
        let number = name.strip_prefix("journal-")?.strip_suffix(".log")?.parse().ok()?;
        // Any other way to write the number is none of ours.
        Some(Self(number)).filter(|segment| segment.file_name() == name)
    }

    pub(super) fn next(self) -> Result<Self, LogError> {
        let next = self.0.checked_add(1).map(Self);
        next.ok_or_else(|| LogError::corrupt(self.file_name(), 0, "no segment can follow this one"))
    }

    /// All from `self` on that come before `end`.
    pub(super) fn until(self, end: Self) -> impl DoubleEndedIterator<Item = Self> + use<> {
        (self.0..end.0).map(Self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) number: SegmentNumber,
    pub(super) first_sequence: u64,
    pub(super) salt: u32,
}

impl Header {
    pub(super) fn new(number: SegmentNumber, first_sequence: u64) -> Self {
        // The one source of chance in std, which seeds each of its hash maps from the system's.
        let [a, b, c, d, ..] = RandomState::new().hash_one(number.0).to_le_bytes();
        Self { number, first_sequence, salt: u32::from_le_bytes([a, b, c, d]) }
    }

    pub(super) fn encode(self) -> [u8; HEADER_BYTES] {
        self.encode_as(VERSION)
    }

    pub(super) fn encode_as(self, version: u32) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.number.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.salt.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header at the start of the segment `number`.
    pub(super) fn decode(bytes: &[u8], number: SegmentNumber) -> Result<Self, LogError> {
        let corrupt = |found| Err(LogError::corrupt(number.file_name(), 0, found));
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            return corrupt("it ends within its header");
        };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|place| bytes[at + place]));
        if bytes[..8] != *MAGIC || word(28) != crc32fast::hash(&bytes[..28]) {
            return corrupt("its header does not match its checksum");
        }
        if word(8) > VERSION {
            return Err(LogError::Newer { file: number.file_name(), version: word(8) });
        }
        if word(12) != number.0 {
            return corrupt("its header is that of another segment");
        }
        let first_sequence = u64::from(word(20)) << 32 | u64::from(word(16));
        Ok(Self { number, first_sequence, salt: word(24) })
    }
}

/// The oldest and the newest segment in the folder, if there is any. One missing between them is
/// corruption: segments are dropped one at a time, oldest first.
pub(super) fn present(disk: &dyn Disk) -> Result<Option<RangeInclusive<SegmentNumber>>, LogError> {
    let names = names(disk)?;
    let mut numbers: Vec<_> =
        names.iter().filter_map(|name| SegmentNumber::of_file(name)).collect();
    numbers.sort_unstable();
    let (Some(&oldest), Some(&newest)) = (numbers.first(), numbers.last()) else { return Ok(None) };
    match oldest.until(newest).zip(numbers).find(|(expected, found)| expected != found) {
        Some((expected, _)) => Err(missing(expected)),
        None => Ok(Some(oldest..=newest)),
    }
}

/// How many bytes each segment in the folder has.
pub(in crate::embedded) fn lengths(
    disk: &dyn Disk,
) -> Result<BTreeMap<SegmentNumber, u64>, LogError> {
    let names = names(disk)?;
    let numbers = names.iter().filter_map(|name| SegmentNumber::of_file(name));
    let lengths = numbers.map(|number| {
        let name = number.file_name();
        let length = disk.open(&name).and_then(|file| file.length());
        let failed = |error| LogError::failed(format_args!("looking at {name}"), error);
        Ok((number, length.map_err(failed)?))
    });
    lengths.collect()
}

pub(in crate::embedded) fn missing(number: SegmentNumber) -> LogError {
    LogError::corrupt(number.file_name(), 0, "the file is missing")
}

/// Makes a new segment, with its header, to last; in place of one of that number, if there is one.
/// After [`LogError::Full`] nothing has changed.
///
/// It has its name only once its header is synced. So a segment with a broken header was damaged
/// later, and is not one that a crash left half made.
pub(super) fn create(disk: &dyn Disk, header: Header) -> Result<Arc<dyn DiskFile>, LogError> {
    let name = header.number.file_name();
    let draft = format!("{name}{DRAFT}");
    match write_draft(disk, &draft, &name, header) {
        Ok(file) => sync_folder(disk).map(|()| file),
        Err(full @ LogError::Full { .. }) => remove_if_there(disk, &draft).and(Err(full)),
        Err(error) => Err(error),
    }
}

fn write_draft(
    disk: &dyn Disk,
    draft: &str,
    name: &str,
    header: Header,
) -> Result<Arc<dyn DiskFile>, LogError> {
    let stopped = |error| LogError::full_or_failed(format_args!("creating {name}"), error);
    let file = disk.create(draft).map_err(stopped)?;
    file.append(&header.encode()).map_err(stopped)?;
    file.sync().map_err(|error| LogError::unsynced(draft, error))?;
    disk.rename(draft, name).map_err(stopped)?;
    Ok(file)
}

/// Removes what a crash left of segments half made.
pub(super) fn remove_drafts(disk: &dyn Disk) -> Result<(), LogError> {
    let is_draft = |name: &&String| {
        name.strip_suffix(DRAFT).is_some_and(|name| SegmentNumber::of_file(name).is_some())
    };
    names(disk)?.iter().filter(is_draft).try_for_each(|draft| remove_if_there(disk, draft))
}

/// Removes a segment, to last.
pub(super) fn remove(disk: &dyn Disk, number: SegmentNumber) -> Result<(), LogError> {
    remove_if_there(disk, &number.file_name())?;
    sync_folder(disk)
}

fn remove_if_there(disk: &dyn Disk, name: &str) -> Result<(), LogError> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(LogError::failed(format_args!("removing {name}"), error))
        }
        _ => Ok(()),
    }
}

fn names(disk: &dyn Disk) -> Result<Vec<String>, LogError> {
    disk.names().map_err(|error| LogError::full_or_failed("listing its folder", error))
}

fn sync_folder(disk: &dyn Disk) -> Result<(), LogError> {
    disk.sync().map_err(|error| LogError::unsynced("its folder", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: SegmentNumber = SegmentNumber::new(7);

    #[test]
    fn a_name_is_read_as_it_is_written() {
        assert_eq!(NUMBER.file_name(), "journal-00000000000000000007.log");
        assert_eq!(SegmentNumber::of_file(&NUMBER.file_name()), Some(NUMBER));
        let others = ["journal-7.log", "journal-00000000000004294967296.log", "lock"];
        assert!(others.iter().all(|name| SegmentNumber::of_file(name).is_none()));
        assert_eq!(SegmentNumber::of_file("journal-00000000000000000007.log.new"), None);
    }

    #[test]
    fn a_header_comes_back_and_a_flipped_bit_is_found() {
        let header = Header::new(NUMBER, 1 << 40);
        assert_eq!(Header::decode(&header.encode(), NUMBER).unwrap(), header);
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header.encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = Header::decode(&bytes, NUMBER).unwrap_err();
            assert!(matches!(error, LogError::Corrupt { .. }), "bit {bit}: {error}");
        }
    }

    #[test]
    fn a_later_format_is_refused_with_what_to_do() {
        let bytes = Header::new(NUMBER, 1).encode_as(2);
        let error = Header::decode(&bytes, NUMBER).unwrap_err().to_string();
        let expected = "journal-00000000000000000007.log has format 2, and this release knows up to 1: open it with the release that wrote it";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn a_segment_under_another_name_is_refused() {
        let bytes = Header::new(NUMBER, 1).encode();
        let error = Header::decode(&bytes, SegmentNumber::new(8)).unwrap_err();
        assert!(error.to_string().contains("header is that of another segment"), "{error}");
    }
}
