//! A frame: one committed batch, with the checksums that tell whether it is whole.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | checksum of the next 16, begun with the segment's salt |
//! | 4 | checksum of the content |
//! | 4 | length of the content |
//! | 8 | sequence number |
//! | … | content: each record's length (`embedded/varint.rs`), then its bytes |
//!
//! The header has a checksum of its own, so that a frame's length can be trusted where its content
//! is broken, and the header of a later frame be recognised behind it. The salt is random: no
//! record, whoever made it up, can pass for such a header. Numbers are little-endian.

use crate::embedded::varint;
use std::ops::Range;

pub(super) const FRAME_HEADER_BYTES: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) content_checksum: u32,
    pub(super) content_bytes: u32,
    pub(super) sequence: u64,
}

impl FrameHeader {
    pub(super) fn of(content: &[u8], sequence: u64) -> Self {
        let content_bytes = u32::try_from(content.len());
        assert!(content_bytes.is_ok(), "a batch of 4 GiB is refused before it comes here");
        Self {
            content_checksum: crc32fast::hash(content),
            content_bytes: content_bytes.unwrap_or(u32::MAX),
            sequence,
        }
    }

    pub(super) fn encode(self, salt: u32) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[4..8].copy_from_slice(&self.content_checksum.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.content_bytes.to_le_bytes());
        bytes[12..].copy_from_slice(&self.sequence.to_le_bytes());
        let checksum = checksum(&bytes[4..], salt);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in these bytes, if they are one.
    pub(super) fn decode(bytes: [u8; FRAME_HEADER_BYTES], salt: u32) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|place| bytes[at + place]));
        (word(0) == checksum(&bytes[4..], salt)).then(|| Self {
            content_checksum: word(4),
            content_bytes: word(8),
            sequence: sequence(bytes),
        })
    }

    pub(super) fn is_of(self, content: &[u8]) -> bool {
        crc32fast::hash(content) == self.content_checksum
    }
}

/// The sequence number in these bytes, should they be a header.
pub(super) fn sequence(bytes: [u8; FRAME_HEADER_BYTES]) -> u64 {
    u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|place| bytes[12 + place]))
}

/// Where the bytes of the record are whose length stands at `start`; `None` if it does not fit.
#[inline]
pub(super) fn record_at(content: &[u8], start: usize) -> Option<Range<usize>> {
    let (length, used) = varint::decode(content.get(start..)?)?;
    let end = usize::try_from(length).ok()?.checked_add(start + used)?;
    (end <= content.len()).then_some(start + used..end)
}

fn checksum(bytes: &[u8], salt: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(salt);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 0x5eed;

    #[test]
    fn a_header_comes_back() {
        let header = FrameHeader::of(b"content", 7);
        assert_eq!(FrameHeader::decode(header.encode(SALT), SALT), Some(header));
        assert!(header.is_of(b"content") && !header.is_of(b"contend"));
    }

    #[test]
    fn a_header_with_one_bit_flipped_is_none() {
        let bytes = FrameHeader::of(b"content", 7).encode(SALT);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(flipped, SALT), None, "bit {bit}");
        }
    }

    #[test]
    fn a_header_of_another_segment_is_none() {
        let bytes = FrameHeader::of(b"content", 7).encode(SALT);
        assert_eq!(FrameHeader::decode(bytes, SALT + 1), None);
    }

    #[test]
    fn a_record_that_does_not_fit_is_none() {
        let content = [2, b'a', b'b', 3, b'c'];
        assert_eq!(record_at(&content, 0), Some(1..3));
        assert_eq!(record_at(&content, 3), None);
        assert_eq!(record_at(&content, 5), None);
        assert_eq!(record_at(&[0xff; 12], 0), None);
    }
}
