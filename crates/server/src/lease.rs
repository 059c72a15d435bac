//! Leases as workers hold them: which start of which call, sealed, so that a lease is held by whom it
//! was given to, within their namespace.

use crate::seal::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate::lanes::{CallId, Lease};

/// Bytes of the seal: enough that nobody finds one by trying.
const TAG_BYTES: usize = 16;
/// Bytes of call, token and seal.
const BYTES: usize = 16 + TAG_BYTES;
/// Characters of a lease: three bytes are four.
const CHARS: usize = (BYTES * 4).div_ceil(3);

/// Says what a seal is for: a receipt is no lease.
const PURPOSE: &[u8] = b"lease\0";

/// Writes a lease for callers of a namespace.
pub(crate) fn encode(lease: Lease, namespace: Option<&str>, seal: &Seal) -> String {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&lease.call.0.to_be_bytes());
    bytes[8..16].copy_from_slice(&lease.token.to_be_bytes());
    let tag = seal.tag_of(&[PURPOSE, &bytes[..16], namespace.unwrap_or_default().as_bytes()]);
    bytes[16..].copy_from_slice(&tag[..TAG_BYTES]);
    let mut text = String::with_capacity(CHARS);
    URL_SAFE_NO_PAD.encode_string(bytes, &mut text);
    text
}

/// Reads a lease; `None` unless it was given to callers of this namespace.
pub(crate) fn decode(text: &str, namespace: Option<&str>, seal: &Seal) -> Option<Lease> {
    // A buffer of the exact size does for the decoder's estimate, too.
    let mut bytes = [0; BYTES + 2];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (known, tag) = bytes.get(..length)?.split_at_checked(16)?;
    if length != BYTES {
        return None;
    }
    let parts = [PURPOSE, known, namespace.unwrap_or_default().as_bytes()];
    if !seal.is_tag_of(tag, &parts) {
        return None;
    }
    let number = |at: usize| Some(u64::from_be_bytes(known.get(at..at + 8)?.try_into().ok()?));
    Some(Lease { call: CallId(number(0)?), token: number(8)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_known_where_it_was_given_and_nowhere_else() {
        let (ours, theirs) = (Seal::random().unwrap(), Seal::random().unwrap());
        let lease = Lease { call: CallId(u64::MAX - 7), token: 3 };
        for namespace in [None, Some("acme")] {
            let text = encode(lease, namespace, &ours);
            assert_eq!(text.len(), CHARS);
            assert_eq!(decode(&text, namespace, &ours), Some(lease));
            assert_eq!(decode(&text, Some("acm"), &ours), None);
            assert_eq!(decode(&text, namespace, &theirs), None);
        }
        let text = encode(lease, Some("acme"), &ours);
        assert_eq!(decode(&text, None, &ours), None);
    }

    #[test]
    fn any_text_is_borne() {
        let seal = Seal::random().unwrap();
        let long = "A".repeat(100_000);
        for text in ["", "A", "=", "AAAA", "ü", &"A".repeat(CHARS), &"A".repeat(CHARS + 1), &long]
        {
            assert_eq!(decode(text, None, &seal), None);
        }
    }
}
