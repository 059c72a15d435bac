//! Authenticates what leaves the server and comes back: HMAC-SHA256 under a key of this process.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 32;

/// Bytes of the key: one block of SHA-256, what HMAC uses as it is.
const KEY_BYTES: usize = 64;

/// Proof that this process saw some bytes.
pub(crate) type Tag = [u8; TAG_BYTES];

/// A key that no one else knows.
#[derive(Clone)]
pub(crate) struct Seal {
    keyed: Hmac<Sha256>,
}

impl Seal {
    /// A new key from the system's source of randomness.
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self { keyed: Hmac::new(&key.into()) })
    }

    /// The tag of `bytes`.
    pub(crate) fn tag(&self, bytes: &[u8]) -> Tag {
        self.keyed.clone().chain_update(bytes).finalize().into_bytes().into()
    }

    /// Whether `tag` is the tag of `bytes`. Takes as long for a near miss as for a wild guess.
    pub(crate) fn is_tag(&self, tag: &[u8], bytes: &[u8]) -> bool {
        self.keyed.clone().chain_update(bytes).verify_slice(tag).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_tags_alone() {
        let (ours, theirs) = (Seal::random().unwrap(), Seal::random().unwrap());
        let tag = ours.tag(b"paid");
        assert!(ours.is_tag(&tag, b"paid"));
        assert!(!ours.is_tag(&tag, b"Paid"));
        assert!(!ours.is_tag(&tag[1..], b"paid"));
        assert!(!theirs.is_tag(&tag, b"paid"));
    }
}
