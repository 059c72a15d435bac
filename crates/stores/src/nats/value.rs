//! The value of a key: when it expires, in eight bytes, then the cell's own.

use tollgate_core::Timestamp;

/// How many bytes say when it expires.
const EXPIRY_BYTES: usize = 8;

/// The value of a cell that expires then; at the end of time: never.
pub(super) fn encode(expires: Timestamp, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(EXPIRY_BYTES + value.len());
    bytes.extend_from_slice(&expires.as_nanos().to_be_bytes());
    bytes.extend_from_slice(value);
    bytes
}

/// When a value expires, and the cell's own; `None` if it is no cell, such as what a key that was
/// deleted with other tools leaves behind.
pub(super) fn decode(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (expires, value) = bytes.split_first_chunk::<EXPIRY_BYTES>()?;
    Some((Timestamp::from_nanos(u64::from_be_bytes(*expires)), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back_with_its_expiry() {
        let at = Timestamp::from_nanos(7);
        assert_eq!(decode(&encode(at, b"abc")), Some((at, &b"abc"[..])));
        assert_eq!(decode(&encode(Timestamp::MAX, b"")), Some((Timestamp::MAX, &b""[..])));
        assert_eq!(decode(b""), None);
    }
}
