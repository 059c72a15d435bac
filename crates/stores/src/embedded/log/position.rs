//! Where a record is: its segment and the offset of its bytes there, in one word.

use super::segment::SegmentNumber;

/// Where a record's bytes begin. Later records have higher positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(u64);

impl Position {
    #[inline]
    pub(super) fn new(segment: SegmentNumber, offset: u32) -> Self {
        Self(u64::from(segment.as_u32()) << 32 | u64::from(offset))
    }

    /// The position that [`Position::to_bits`] was asked of.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The segment in the high 32 bits, the offset in the low ones.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The segment that the record is in.
    pub fn segment(self) -> SegmentNumber {
        let [a, b, c, d, ..] = self.0.to_be_bytes();
        SegmentNumber::new(u32::from_be_bytes([a, b, c, d]))
    }

    /// How many bytes of the segment come before the record's own.
    pub fn offset(self) -> u32 {
        let [.., a, b, c, d] = self.0.to_be_bytes();
        u32::from_be_bytes([a, b, c, d])
    }
}

/// Where a committed batch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPlace {
    segment: SegmentNumber,
    // Invariant: with any offset in the batch added it is below 2^32, or the batch would not have
    // been committed.
    start: u64,
}

impl BatchPlace {
    pub(super) fn new(segment: SegmentNumber, start: u64) -> Self {
        Self { segment, start }
    }

    /// The segment that the batch is in.
    pub fn segment(self) -> SegmentNumber {
        self.segment
    }

    /// Where a record is that was pushed to the batch, from the offset that pushing it returned.
    pub fn position(self, offset: usize) -> Position {
        let offset = u32::try_from(self.start.saturating_add(offset as u64));
        assert!(offset.is_ok(), "the offset is not one of the batch that was committed here");
        Position::new(self.segment, offset.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_two_numbers_in_one_word() {
        let place = BatchPlace::new(SegmentNumber::new(0xfedc_ba98), 0x7654_3000);
        let position = place.position(0x210);
        assert_eq!(position.to_bits(), 0xfedc_ba98_7654_3210);
        assert_eq!(position.segment().as_u32(), 0xfedc_ba98);
        assert_eq!(position.offset(), 0x7654_3210);
        assert_eq!(Position::from_bits(position.to_bits()), position);
    }
}
