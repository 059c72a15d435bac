//! Leases as workers hold them: which start of which call, sealed, so that a lease is held by whom it
//! was given to, within their namespace.

use crate::seal::Seal;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate::Timestamp;
use tollgate::lanes::{CallId, Lease};

/// Bytes of the seal: enough that nobody finds one by trying.
const TAG_BYTES: usize = 16;
/// Bytes of call and token.
const KNOWN_BYTES: usize = 16;
/// Most bytes of the trace of an attempt, with the name of its queue.
pub(crate) const TRACE_BYTES_MAX: usize = 45 + 512;
/// Bytes of an instant.
const UNTIL_BYTES: usize = 8;
/// Most bytes of a lease.
const BYTES_MAX: usize = KNOWN_BYTES + UNTIL_BYTES + TRACE_BYTES_MAX + TAG_BYTES;

/// Says what a seal is for: a receipt is no lease.
const PURPOSE: &[u8] = b"lease\0";
/// The same, for a lease that carries something.
const CARRYING: &[u8] = b"lease that carries\0";
/// The same, for the lease of a task.
const OF_TASK: &[u8] = b"lease of a task\0";

/// A lease as a worker holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) lease: Lease,
    /// Until when a task may be held, in limit time; `None` for a call that is no task.
    pub(crate) until: Option<Timestamp>,
    /// The trace of the attempt, or nothing.
    pub(crate) trace: Box<[u8]>,
}

/// Writes a lease for callers of a namespace.
pub(crate) fn encode(held: &Held, namespace: Option<&str>, seal: &Seal) -> String {
    let mut bytes = Vec::with_capacity(KNOWN_BYTES + UNTIL_BYTES + held.trace.len() + TAG_BYTES);
    bytes.extend(held.lease.call.0.to_be_bytes());
    bytes.extend(held.lease.token.to_be_bytes());
    if let Some(until) = held.until {
        bytes.extend(until.as_nanos().to_be_bytes());
    }
    bytes.extend(&held.trace);
    let purpose = if held.until.is_some() { OF_TASK } else { of_call(bytes.len()) };
    let tag = parts(purpose, &bytes, namespace, |parts| seal.tag_of(parts));
    bytes.extend(&tag[..TAG_BYTES]);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a lease; `None` unless it was given to callers of this namespace.
pub(crate) fn decode(text: &str, namespace: Option<&str>, seal: &Seal) -> Option<Held> {
    // A buffer of the exact size does for the decoder's estimate, too.
    let mut bytes = [0; BYTES_MAX + 2];
    let length = URL_SAFE_NO_PAD.decode_slice(text, &mut bytes).ok()?;
    let (sealed, tag) = bytes.get(..length)?.split_last_chunk::<TAG_BYTES>()?;
    let (call, rest) = sealed.split_first_chunk()?;
    let (token, rest) = rest.split_first_chunk()?;
    let is_sealed_as = |purpose| parts(purpose, sealed, namespace, |it| seal.is_tag_of(tag, it));
    let (until, trace) = if is_sealed_as(of_call(sealed.len())) {
        (None, rest)
    } else if is_sealed_as(OF_TASK) {
        let (until, trace) = rest.split_first_chunk()?;
        (Some(Timestamp::from_nanos(u64::from_be_bytes(*until))), trace)
    } else {
        return None;
    };
    let lease =
        Lease { call: CallId(u64::from_be_bytes(*call)), token: u64::from_be_bytes(*token) };
    Some(Held { lease, until, trace: trace.into() })
}

/// What the seal of a call's lease is for.
fn of_call(length: usize) -> &'static [u8] {
    if length == KNOWN_BYTES { PURPOSE } else { CARRYING }
}

/// What is sealed. How long it is stands before what a lease carries: the end of that is not to be taken
/// for the beginning of a namespace.
fn parts<T>(
    purpose: &[u8],
    sealed: &[u8],
    namespace: Option<&str>,
    seal: impl FnOnce(&[&[u8]]) -> T,
) -> T {
    let namespace = namespace.unwrap_or_default().as_bytes();
    match sealed.len() {
        KNOWN_BYTES => seal(&[purpose, sealed, namespace]),
        length => seal(&[purpose, &length.to_be_bytes(), sealed, namespace]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters of a lease that carries nothing: three bytes are four.
    const CHARS: usize = ((KNOWN_BYTES + TAG_BYTES) * 4).div_ceil(3);

    fn held(until: Option<u64>, trace: &[u8]) -> Held {
        let lease = Lease { call: CallId(u64::MAX - 7), token: 3 };
        Held { lease, until: until.map(Timestamp::from_nanos), trace: trace.into() }
    }

    #[test]
    fn a_lease_is_known_where_it_was_given_and_nowhere_else() {
        let (ours, theirs) = (Seal::random().unwrap(), Seal::random().unwrap());
        for namespace in [None, Some("acme")] {
            for trace in [&b""[..], b"carried", &[7; TRACE_BYTES_MAX]] {
                for until in [None, Some(0), Some(u64::MAX)] {
                    let held = held(until, trace);
                    let text = encode(&held, namespace, &ours);
                    assert_eq!(decode(&text, namespace, &ours), Some(held));
                    assert_eq!(decode(&text, Some("acm"), &ours), None);
                    assert_eq!(decode(&text, namespace, &theirs), None);
                }
            }
        }
        assert_eq!(encode(&held(None, b""), None, &ours).len(), CHARS);
        let text = encode(&held(None, b""), Some("acme"), &ours);
        assert_eq!(decode(&text, None, &ours), None);
    }

    #[test]
    fn what_a_lease_carries_cannot_be_taken_for_a_namespace() {
        let seal = Seal::random().unwrap();
        let text = encode(&held(None, b"x"), Some("acme"), &seal);
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
