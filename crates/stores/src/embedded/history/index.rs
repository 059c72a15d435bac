//! The index of a sealed segment: its calls in order, each with the place of its record.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `tollhist`, in ASCII |
//! | 4 | version of the format |
//! | 4 | how many records |
//! | 8 | where the log ends |
//! | 16 | the earliest and the latest event, on the wall clock |
//! | 16 | the least and the highest call |
//! | 8 | up to where in the journal it reaches |
//! | 4 | checksum of all before |
//! | 12 each | call and offset, sorted |
//! | 4 | checksum of these |
//!
//! Numbers are little-endian.

use super::segment::{Entry, Summary};
use crate::embedded::disk::{Disk, DiskFile};
use crate::embedded::log::Position;
use std::io;
use tollgate_core::Timestamp;
use tollgate_core::lanes::CallId;

/// Its name within its segment's part.
pub(super) const NAME: &str = "index";
const DRAFT: &str = "index.new";
const MAGIC: &[u8; 8] = b"tollhist";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 68;
const ENTRY_BYTES: usize = 12;
const CHECKSUM_BYTES: usize = 4;

/// Writes the index of a segment, to last.
pub(super) fn write(disk: &dyn Disk, summary: &Summary, mut entries: Vec<Entry>) -> io::Result<()> {
    // Mostly in order, which the stable sort makes use of.
    entries.sort();
    let mut bytes = header(summary);
    for (CallId(call), offset) in entries {
        bytes.extend(call.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes[HEADER_BYTES..]).to_le_bytes());
    // One that a crash left half made.
    remove_if_there(disk, DRAFT)?;
    let file = disk.create(DRAFT)?;
    file.append(&bytes)?;
    file.sync()?;
    disk.rename(DRAFT, NAME)?;
    disk.sync()
}

/// Removes an index, if there is one.
pub(super) fn remove(disk: &dyn Disk) -> io::Result<()> {
    remove_if_there(disk, DRAFT)?;
    remove_if_there(disk, NAME)
}

/// What the index says of its segment; `None` if there is none, or none that can be trusted.
pub(super) fn summary(disk: &dyn Disk) -> Option<Summary> {
    let file = disk.open(NAME).ok()?;
    let mut bytes = [0; HEADER_BYTES];
    file.read(0, &mut bytes).ok()?;
    let long = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let end = HEADER_BYTES - CHECKSUM_BYTES;
    let is_ours = bytes[..8] == *MAGIC && word(8)? == VERSION;
    let instant = |at| long(at).map(Timestamp::from_nanos);
    let summary = Summary {
        records: word(12)?,
        bytes: long(16)?,
        walls: (instant(24)?, instant(32)?),
        calls: (CallId(long(40)?), CallId(long(48)?)),
        until: Position::from_bits(long(56)?),
    };
    let is_whole = word(end)? == crc32fast::hash(&bytes[..end]);
    let is_long_enough = file.length().ok()? == bytes_of(&summary);
    (is_ours && is_whole && is_long_enough).then_some(summary)
}

/// How many bytes the index of a segment has.
pub(super) fn bytes_of(summary: &Summary) -> u64 {
    HEADER_BYTES as u64 + u64::from(summary.records) * ENTRY_BYTES as u64 + CHECKSUM_BYTES as u64
}

/// Whether all of an index is as it was written.
pub(super) fn is_whole(file: &dyn DiskFile, summary: &Summary) -> io::Result<bool> {
    let bytes = usize::try_from(bytes_of(summary)).unwrap_or(usize::MAX) - HEADER_BYTES;
    let mut entries = vec![0; bytes];
    file.read(HEADER_BYTES as u64, &mut entries)?;
    let (entries, checksum) = entries.split_at(bytes - CHECKSUM_BYTES);
    Ok(crc32fast::hash(entries).to_le_bytes() == *checksum)
}

/// The offsets of a call's events, in order: a binary search, then as many as there are.
pub(super) fn find(file: &dyn DiskFile, summary: &Summary, call: CallId) -> io::Result<Vec<u32>> {
    let (mut low, mut high) = (0, summary.records);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(file, middle)?.0 < call { low = middle + 1 } else { high = middle }
    }
    let mut offsets = Vec::new();
    while low < summary.records {
        let (other, offset) = entry(file, low)?;
        if other != call {
            break;
        }
        offsets.push(offset);
        low += 1;
    }
    Ok(offsets)
}

fn entry(file: &dyn DiskFile, place: u32) -> io::Result<Entry> {
    let mut bytes = [0; ENTRY_BYTES];
    file.read(HEADER_BYTES as u64 + u64::from(place) * ENTRY_BYTES as u64, &mut bytes)?;
    let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
    Ok((CallId(u64::from_le_bytes([a, b, c, d, e, f, g, h])), u32::from_le_bytes([i, j, k, l])))
}

fn header(summary: &Summary) -> Vec<u8> {
    let Summary { records, bytes, walls, calls, until } = summary;
    let mut header = MAGIC.to_vec();
    header.extend(VERSION.to_le_bytes());
    header.extend(records.to_le_bytes());
    let longs = [*bytes, walls.0.as_nanos(), walls.1.as_nanos(), calls.0.0, calls.1.0];
    longs.into_iter().chain([until.to_bits()]).for_each(|long| header.extend(long.to_le_bytes()));
    header.extend(crc32fast::hash(&header).to_le_bytes());
    header
}

fn remove_if_there(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
