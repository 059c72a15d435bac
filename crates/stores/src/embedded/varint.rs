//! Numbers in few bytes: seven bits a byte, low ones first, the high bit set on all but the last.

/// The most bytes that a number takes.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// The encoded number, and how many of the bytes it takes.
#[inline]
pub(super) fn encode(value: u64) -> ([u8; VARINT_BYTES_MAX], usize) {
    // Of a record's numbers most are instants, of nine bytes: all are spread at once, not one after the other.
    let low = value & ((1 << 56) - 1);
    let low = (low & 0x0fff_ffff) | ((low & (0x0fff_ffff << 28)) << 4);
    let low = (low & 0x3fff_0000_3fff) | ((low & (0x3fff_0000_3fff << 14)) << 2);
    let low = (low & 0x7f_007f_007f_007f) | ((low & (0x7f_007f_007f_007f << 7)) << 1);
    // Nine for eight bits come to the next of seven each time.
    let bits = u64::BITS - (value | 1).leading_zeros();
    let used = (9 * bits + 64) / 64;
    let all_but_last = 1_u64.checked_shl(8 * (used - 1)).unwrap_or(0).wrapping_sub(1);
    let low = low | (0x8080_8080_8080_8080 & all_but_last);
    let mut bytes = [0; VARINT_BYTES_MAX];
    bytes[..8].copy_from_slice(&low.to_le_bytes());
    // All seven bits of the ninth, and its high one if there is a tenth.
    bytes[8] = (value >> 56).to_le_bytes()[0];
    bytes[9] = (value >> 63).to_le_bytes()[0];
    (bytes, used as usize)
}

/// The number at the front of `bytes`, and how many of them it takes; `None` if there is none, or if
/// [`encode`] would have written it in another way.
#[inline]
pub(super) fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            let is_shortest = place == 0 || *byte != 0;
            // The last place has one bit of the 64.
            let fits = place < VARINT_BYTES_MAX - 1 || *byte == 1;
            return (is_shortest && fits).then_some((value, place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for value in edges.chain([u64::MAX]) {
            let (bytes, used) = encode(value);
            assert_eq!(decode(&bytes[..used]), Some((value, used)));
            assert_eq!(decode(&bytes[..used - 1]), None, "{value} cut short");
        }
    }

    #[test]
    fn small_numbers_cost_one_byte() {
        assert_eq!((encode(127).1, encode(128).1, encode(16_384).1), (1, 2, 3));
    }

    #[test]
    fn there_is_one_way_to_write_a_number() {
        assert_eq!(decode(&[0x80, 0x00]), None, "0 in two bytes");
        assert_eq!(decode(&[0xff, 0x80, 0x00]), None, "127 in three bytes");
        let with_last = |last: u8| [[0xff; 9].as_slice(), &[last]].concat();
        assert_eq!(decode(&with_last(1)), Some((u64::MAX, 10)));
        assert_eq!(decode(&with_last(2)), None, "65 bits");
    }
}
