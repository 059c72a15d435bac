//! Lengths of records: seven bits a byte, low ones first, the high bit set on all but the last.

/// The most bytes that a length takes.
pub(super) const VARINT_BYTES_MAX: usize = 10;

/// The encoded length, and how many of the bytes it takes.
#[inline]
pub(super) fn encode(mut value: u64) -> ([u8; VARINT_BYTES_MAX], usize) {
    let mut bytes = [0; VARINT_BYTES_MAX];
    let mut used = 0;
    loop {
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        bytes[used] = if value == 0 { low } else { low | 0x80 };
        used += 1;
        if value == 0 {
            return (bytes, used);
        }
    }
}

/// The length at the front of `bytes`, and how many of them it takes; `None` if there is none.
#[inline]
pub(super) fn decode(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(VARINT_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, place + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back() {
        let edges = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
        for value in edges.chain([u64::MAX]) {
            let (bytes, used) = encode(value);
            assert_eq!(decode(&bytes[..used]), Some((value, used)));
            assert_eq!(decode(&bytes[..used - 1]), None, "{value} cut short");
        }
    }

    #[test]
    fn short_records_cost_one_byte() {
        assert_eq!((encode(127).1, encode(128).1, encode(16_384).1), (1, 2, 3));
    }
}
