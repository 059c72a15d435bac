//! Leases as workers hold them: which start of which call, sealed, so that a lease is held by whom it
//! was given to, within their namespace.

use crate::seal::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate::lanes::{CallId, Lease};

/// Bytes of the seal: enough that nobody finds one by trying.
const TAG_BYTES: usize = 16;
/// Bytes of call and token.
const KNOWN_BYTES: usize = 16;
/// Most bytes that a lease carries besides: the trace of an attempt, with the name of its queue.
pub(crate) const CARRIED_BYTES_MAX: usize = 45 + 512;
/// Most bytes of a lease.
const BYTES_MAX: usize = KNOWN_BYTES + CARRIED_BYTES_MAX + TAG_BYTES;

/// Says what a seal is for: a receipt is no lease.
const PURPOSE: &[u8] = b"lease\0";
/// The same, for a lease that carries something.
const CARRYING: &[u8] = b"lease that carries\0";

/// Writes a lease for callers of a namespace, with what it carries for us, which may be nothing.
pub(crate) fn encode(lease: Lease, carried: &[u8], namespace: Option<&str>, seal: &Seal) -> String {
    let mut bytes = Vec::with_capacity(KNOWN_BYTES + carried.len() + TAG_BYTES);
    bytes.extend(lease.call.0.to_be_bytes());
    bytes.extend(lease.token.to_be_bytes());
    bytes.extend(carried);
    let tag = parts(&bytes, namespace, |parts| seal.tag_of(parts));
    bytes.extend(&tag[..TAG_BYTES]);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a lease; `None` unless it was given to callers of this namespace.
pub(crate) fn decode(text: &str, namespace: Option<&str>, seal: &Seal) -> Option<Lease> {
    decode_carrying(text, namespace, seal).map(|(lease, _)| lease)
}

/// Reads a lease and what it carries; `None` unless it was given to callers of this namespace.
pub(crate) fn decode_carrying(
    text: &str,
    namespace: Option<&str>,
    seal: &Seal,
) -> Option<(Lease, Box<[u8]>)> {
    // A buffer of the exact size does for the decoder's estimate, too.
    let mut bytes = [0; BYTES_MAX + 2];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (sealed, tag) = bytes.get(..length)?.split_last_chunk::<TAG_BYTES>()?;
    if sealed.len() < KNOWN_BYTES || !parts(sealed, namespace, |it| seal.is_tag_of(tag, it)) {
        return None;
    }
    let (call, rest) = sealed.split_first_chunk()?;
    let (token, carried) = rest.split_first_chunk()?;
    let call = CallId(u64::from_be_bytes(*call));
    Some((Lease { call, token: u64::from_be_bytes(*token) }, carried.into()))
}

/// What is sealed. How long it is stands before what a lease carries: the end of that is not to be taken
/// for the beginning of a namespace.
fn parts<T>(sealed: &[u8], namespace: Option<&str>, seal: impl FnOnce(&[&[u8]]) -> T) -> T {
    let namespace = namespace.unwrap_or_default().as_bytes();
    match sealed.len() {
        KNOWN_BYTES => seal(&[PURPOSE, sealed, namespace]),
        length => seal(&[CARRYING, &length.to_be_bytes(), sealed, namespace]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of a lease that carries nothing: three bytes are four.
    const CHARS: usize = ((KNOWN_BYTES + TAG_BYTES) * 4).div_ceil(3);

    #[test]
    fn a_lease_is_known_where_it_was_given_and_nowhere_else() {
        let (ours, theirs) = (Seal::random().unwrap(), Seal::random().unwrap());
        let lease = Lease { call: CallId(u64::MAX - 7), token: 3 };
        for namespace in [None, Some("acme")] {
            for carried in [&b""[..], b"carried", &[7; CARRIED_BYTES_MAX]] {
                let text = encode(lease, carried, namespace, &ours);
                let (read, back) = decode_carrying(&text, namespace, &ours).unwrap();
                assert_eq!((read, &*back), (lease, carried));
                assert_eq!(decode(&text, Some("acm"), &ours), None);
                assert_eq!(decode(&text, namespace, &theirs), None);
            }
        }
        assert_eq!(encode(lease, b"", None, &ours).len(), CHARS);
        let text = encode(lease, b"", Some("acme"), &ours);
        assert_eq!(decode(&text, None, &ours), None);
    }

    #[test]
    fn what_a_lease_carries_cannot_be_taken_for_a_namespace() {
        let seal = Seal::random().unwrap();
        let lease = Lease { call: CallId(1), token: 2 };
        let text = encode(lease, b"x", Some("acme"), &seal);
        let mut bytes = URL_SAFE_NO_PAD.decode(text).unwrap();
        bytes.splice(17..17, *b"ac");
        assert_eq!(decode(&URL_SAFE_NO_PAD.encode(bytes), Some("me"), &seal), None);
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
