//! Digests as text.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// SHA-256 of some bytes, in hexadecimal digits.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

/// SHA-256 of several parts, each told apart from the next by its length.
pub(super) fn sha256_hex_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        // Lengths fit: parts are in memory.
        digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(part);
    }
    hex(digest.finalize().as_slice())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_what_everyone_computes() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let digest = |parts: [&'static str; 2]| sha256_hex_of(parts.map(str::as_bytes));
        assert_eq!(digest(["ab", "c"]), digest(["ab", "c"]));
        assert_ne!(digest(["ab", "c"]), digest(["a", "bc"]));
    }
}
