//! Records on their way to the log, already in the form in which they are written.

use super::frame::{FRAME_HEADER_BYTES, FrameHeader};
use crate::embedded::varint;

/// Records that are committed together: after a crash all of them are there, or none.
///
/// A buffer that is filled, committed, cleared and filled again without giving up its memory.
#[derive(Debug, Clone)]
pub struct Batch {
    // Invariant: starts with the room for a frame's header, so that the frame is one piece.
    frame: Vec<u8>,
    records: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self { frame: vec![0; FRAME_HEADER_BYTES], records: 0 }
    }
}

impl Batch {
    /// A batch without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. Returns its offset in the batch, from which
    /// [`BatchPlace::position`](super::BatchPlace::position) tells where it is once committed.
    pub fn push(&mut self, record: &[u8]) -> usize {
        let (length, used) = varint::encode(record.len() as u64);
        self.frame.extend_from_slice(&length[..used]);
        let offset = self.frame.len();
        self.frame.extend_from_slice(record);
        self.records += 1;
        offset
    }

    /// Adds a record that `encode` appends to the buffer it is given; it must leave alone what is
    /// already there. Returns the record's offset, as [`Batch::push`] does.
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.frame.len();
        // Most records are shorter than 128 bytes, and their lengths fit the byte kept free here.
        // The others move by the rest of theirs.
        self.frame.push(0);
        encode(&mut self.frame);
        assert!(self.frame.len() > start, "an encoder appends to the batch and removes nothing");
        let record_bytes = self.frame.len() - start - 1;
        self.records += 1;
        if let Ok(short @ 0..0x80) = u8::try_from(record_bytes) {
            self.frame[start] = short;
            return start + 1;
        }
        let (length, used) = varint::encode(record_bytes as u64);
        self.frame.resize(self.frame.len() + used - 1, 0);
        self.frame.copy_within(start + 1..start + 1 + record_bytes, start + used);
        self.frame[start..start + used].copy_from_slice(&length[..used]);
        start + used
    }

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.records
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// How many bytes it takes in the log.
    pub fn bytes(&self) -> usize {
        self.frame.len()
    }

    /// Takes all records out and keeps the memory.
    pub fn clear(&mut self) {
        self.frame.truncate(FRAME_HEADER_BYTES);
        self.records = 0;
    }

    /// How many bytes it can have before it takes more memory.
    #[cfg(test)]
    pub(crate) fn room(&self) -> usize {
        self.frame.capacity()
    }

    /// The whole frame, ready to be written. The content must be shorter than 4 GiB.
    pub(super) fn seal(&mut self, sequence: u64, salt: u32) -> &[u8] {
        let (header, content) = self.frame.split_at_mut(FRAME_HEADER_BYTES);
        header.copy_from_slice(&FrameHeader::of(content, sequence).encode(salt));
        &self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_the_same_pushed_or_encoded() {
        let (mut pushed, mut encoded) = (Batch::new(), Batch::new());
        for bytes in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let record: Vec<u8> = (0..bytes).map(|place: usize| place.to_le_bytes()[0]).collect();
            let offset = pushed.push(&record);
            assert_eq!(encoded.push_with(|buffer| buffer.extend_from_slice(&record)), offset);
            assert_eq!(pushed.frame[offset..], record);
        }
        assert_eq!(pushed.frame, encoded.frame);
        assert_eq!((pushed.len(), encoded.len()), (8, 8));
    }

    #[test]
    fn a_cleared_batch_keeps_its_memory_and_nothing_else() {
        let mut batch = Batch::new();
        batch.push(&[1; 10_000]);
        let room = batch.frame.capacity();
        batch.clear();
        assert_eq!((batch.len(), batch.bytes()), (0, Batch::new().bytes()));
        assert_eq!(batch.frame.capacity(), room);
    }
}
