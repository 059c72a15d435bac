//! What a call carries: the body that was handed in, and an envelope around it.

use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// Longest envelope: it is read whole whenever its call starts.
pub const ENVELOPE_BYTES_MAX: usize = 32 << 10;

/// Longest body that is told with the acceptance of its call: what one would read of it.
pub const TOLD_BODY_BYTES_MAX: usize = 4 << 10;

/// How long the envelope is, in front of it.
const LENGTH_BYTES: usize = 2;
/// Joined without memory of its own up to here.
const SHORT_BYTES: usize = 512;

/// A call's body, and the envelope that tells how it is to be delivered. No decision looks into the
/// envelope: it is the engine's. The scheduler keeps neither in memory; payloads are the store's. Clones
/// share the bytes.
// Invariant: nothing, or the envelope's length in two bytes, low one first, the envelope, and the body, which
// are not both empty.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Payload(Option<Arc<[u8]>>);

/// An envelope that is too long.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "what goes with a body (destination, headers, callbacks) may have up to {ENVELOPE_BYTES_MAX} bytes, and this has {bytes}: send fewer headers, or move them into the body"
)]
pub struct EnvelopeTooLong {
    /// How many.
    pub bytes: usize,
}

impl Payload {
    /// A body alone.
    pub fn body_alone(body: &[u8]) -> Self {
        if body.is_empty() { Self::default() } else { Self::joined(0, &[], body) }
    }

    /// A body in an envelope.
    pub fn new(envelope: &[u8], body: &[u8]) -> Result<Self, EnvelopeTooLong> {
        let bytes = envelope.len();
        match u16::try_from(bytes) {
            Ok(0) => Ok(Self::body_alone(body)),
            Ok(length) if bytes <= ENVELOPE_BYTES_MAX => Ok(Self::joined(length, envelope, body)),
            _ => Err(EnvelopeTooLong { bytes }),
        }
    }

    fn joined(length: u16, envelope: &[u8], body: &[u8]) -> Self {
        // Most payloads are short: they are joined on the stack, and take memory once.
        let mut joined = SmallVec::<[u8; SHORT_BYTES]>::new();
        joined.reserve_exact(LENGTH_BYTES + envelope.len() + body.len());
        joined.extend_from_slice(&length.to_le_bytes());
        joined.extend_from_slice(envelope);
        joined.extend_from_slice(body);
        Self(Some(joined[..].into()))
    }

    /// What was handed in with the call.
    #[inline]
    pub fn body(&self) -> &[u8] {
        self.as_kept().get(self.body_start()..).unwrap_or_default()
    }

    /// What goes with the body; empty if nothing does.
    #[inline]
    pub fn envelope(&self) -> &[u8] {
        self.as_kept().get(LENGTH_BYTES..self.body_start()).unwrap_or_default()
    }

    /// What is told of it: its envelope, and its body if that is short.
    pub fn told(&self) -> Self {
        if self.body().len() <= TOLD_BODY_BYTES_MAX {
            return self.clone();
        }
        let kept = self.as_kept().get(..self.body_start()).unwrap_or_default();
        if self.envelope().is_empty() { Self::default() } else { Self(Some(kept.into())) }
    }

    /// How many bytes it has.
    pub fn bytes(&self) -> usize {
        self.as_kept().len().saturating_sub(LENGTH_BYTES)
    }

    fn body_start(&self) -> usize {
        let length = self.as_kept().first_chunk().map_or(0, |length| u16::from_le_bytes(*length));
        LENGTH_BYTES + usize::from(length)
    }

    /// As a store keeps it: one string of bytes.
    #[inline]
    pub fn as_kept(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    /// From what a store kept; `None` if no payload is kept so.
    pub fn from_kept(kept: impl Into<Arc<[u8]>>) -> Option<Self> {
        let kept = kept.into();
        if kept.is_empty() {
            return Some(Self::default());
        }
        let bytes = kept.len();
        let payload = Self(Some(kept));
        let is_one_way = bytes != LENGTH_BYTES;
        let is_whole = payload.body_start() <= bytes;
        let is_short = payload.body_start() <= LENGTH_BYTES + ENVELOPE_BYTES_MAX;
        (is_one_way && is_whole && is_short).then_some(payload)
    }
}

impl From<&[u8]> for Payload {
    /// A body alone.
    fn from(body: &[u8]) -> Self {
        Self::body_alone(body)
    }
}

impl From<Vec<u8>> for Payload {
    /// A body alone.
    fn from(body: Vec<u8>) -> Self {
        Self::body_alone(&body)
    }
}

impl<const BYTES: usize> From<[u8; BYTES]> for Payload {
    /// A body alone.
    fn from(body: [u8; BYTES]) -> Self {
        Self::body_alone(&body)
    }
}

impl fmt::Debug for Payload {
    /// Bodies and headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (envelope, body) = (self.envelope().len(), self.body().len());
        f.debug_struct("Payload").field("envelope_bytes", &envelope).field("bytes", &body).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gives_back_what_went_in_and_is_kept_in_one_way(envelope: Vec<u8>, body: Vec<u8>) {
            let payload = Payload::new(&envelope, &body).unwrap();
            prop_assert_eq!((payload.envelope(), payload.body()), (&envelope[..], &body[..]));
            prop_assert_eq!(Payload::from_kept(payload.as_kept()), Some(payload));
        }

        #[test]
        fn what_is_no_payload_is_not_taken_for_one(kept: Vec<u8>) {
            if let Some(payload) = Payload::from_kept(&kept[..]) {
                let again = Payload::new(payload.envelope(), payload.body()).unwrap();
                prop_assert_eq!(again.as_kept(), &kept[..]);
            }
        }
    }

    #[test]
    fn an_envelope_has_a_bound() {
        assert!(Payload::new(&[1; ENVELOPE_BYTES_MAX], b"b").is_ok());
        let bytes = ENVELOPE_BYTES_MAX + 1;
        assert_eq!(Payload::new(&vec![1; bytes], b"b"), Err(EnvelopeTooLong { bytes }));
    }
}
