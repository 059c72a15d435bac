//! Authenticates what leaves the server and comes back: HMAC-SHA256 under a key that is kept with the
//! rest, so that a receipt is known after a restart, and to every server of a store that several share;
//! in memory, under a key of this process.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::sync::OnceCell;
use tollgate::lanes::{ActError, Key, Revision, StoreError as KeptError, Write};
use tollgate::{Error, NameError, StoreError, Tollgate};

/// Bytes of a tag.
pub(crate) const TAG_BYTES: usize = 32;

/// Bytes of the key: one block of SHA-256, what HMAC uses as it is.
const KEY_BYTES: usize = 64;

/// Where the key is kept.
const KEY: &str = "tollgate/seal";

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The system has none to give.
    #[error("the system gives no random bytes for the key that seals receipts")]
    Random(#[from] getrandom::Error),
    /// It could not be kept or read.
    #[error("the key that seals receipts cannot be had: {0}")]
    Store(#[from] Error),
    /// Something else is in its place.
    #[error("the key that seals receipts is damaged: remove the record {KEY:?}")]
    Damaged,
}

impl From<NameError> for SealError {
    fn from(error: NameError) -> Self {
        Self::Store(error.into())
    }
}

impl SealError {
    /// The store is not there now, and may be later.
    fn is_for_now(&self) -> bool {
        let Self::Store(Error::Store(StoreError::Kept(error))) = self else { return false };
        matches!(error, KeptError::Unreachable { .. } | KeptError::Full { .. })
    }
}

/// The seal of a server, which may start before the store that has the key.
#[derive(Default)]
pub(crate) struct SealOnce {
    seal: OnceCell<Seal>,
}

impl SealOnce {
    /// Has the key now, if the store is there.
    pub(crate) async fn early(gate: &Tollgate) -> Result<Self, SealError> {
        let once = Self::default();
        match once.of(gate).await {
            Err(error) if !error.is_for_now() => Err(error),
            _ => Ok(once),
        }
    }

    /// The seal of this gate: asked for until it is there, and known from then on.
    pub(crate) async fn of(&self, gate: &Tollgate) -> Result<&Seal, SealError> {
        self.seal.get_or_try_init(|| Seal::kept(gate)).await
    }
}

/// Proof that this process saw some bytes.
pub(crate) type Tag = [u8; TAG_BYTES];

/// A key that no one else knows.
#[derive(Clone)]
pub(crate) struct Seal {
    keyed: Hmac<Sha256>,
}

impl Seal {
    /// A new key from the system's source of randomness.
    #[cfg(test)]
    pub(crate) fn random() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key)?;
        Ok(Self { keyed: Hmac::new(&key.into()) })
    }

    /// The key that is kept with a gate, made if there is none.
    pub(crate) async fn kept(gate: &Tollgate) -> Result<Self, SealError> {
        let mut made = [0; KEY_BYTES];
        getrandom::fill(&mut made)?;
        if gate.limiter().is_some() {
            return Ok(Self { keyed: Hmac::new(&made.into()) });
        }
        let write = Write { key: Key::new(KEY)?, expected: Revision(0), bytes: Some(made.into()) };
        match gate.keep(write).await {
            Ok(_) => return Ok(Self { keyed: Hmac::new(&made.into()) }),
            // There is one.
            Err(Error::Act(ActError::RevisionDiffers { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        let kept = gate.record(KEY).await?.and_then(|record| record.bytes[..].try_into().ok());
        let kept: [u8; KEY_BYTES] = kept.ok_or(SealError::Damaged)?;
        Ok(Self { keyed: Hmac::new(&kept.into()) })
    }

    /// The tag of some parts, one after the other.
    pub(crate) fn tag_of(&self, parts: &[&[u8]]) -> Tag {
        self.with(parts).finalize().into_bytes().into()
    }

    /// Whether `tag` is the beginning of the tag of some parts, as far as it goes. Takes as long for a
    /// near miss as for a wild guess.
    pub(crate) fn is_tag_of(&self, tag: &[u8], parts: &[&[u8]]) -> bool {
        self.with(parts).verify_truncated_left(tag).is_ok()
    }

    fn with(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        parts.iter().fold(self.keyed.clone(), |keyed, part| keyed.chain_update(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_own_tags_alone() {
        let (ours, theirs) = (Seal::random().unwrap(), Seal::random().unwrap());
        let tag = ours.tag_of(&[b"paid"]);
        assert!(ours.is_tag_of(&tag, &[b"pa", b"id"]));
        assert!(!ours.is_tag_of(&tag, &[b"Paid"]));
        assert!(!ours.is_tag_of(&tag[1..], &[b"paid"]));
        assert!(!theirs.is_tag_of(&tag, &[b"pa", b"id"]));
    }
}
