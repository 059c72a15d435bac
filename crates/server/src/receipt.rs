//! Receipts as callers hold them: all that settling needs, sealed, so that nothing is kept here.
//!
//! A receipt is base64url of `version, id, expires, lines, tag`, or with the call that it leases in
//! place of the lines: numbers are eight bytes, big endian; a text is its length in two bytes, then its
//! bytes.

use crate::seal::{Seal, TAG_BYTES};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tollgate::lanes::{CallId, Lease};
use tollgate::{HoldId, Now, Payment, Receipt, ReceiptLine, TOLLS_MAX, Timestamp};

/// The first byte, so that another form can be told apart.
const VERSION: u8 = 1;
/// The first byte of one that leases a call.
const LEASE: u8 = 2;

/// Whose a receipt is: the bytes that are sealed with it, though not sent.
// Without a namespace there are none. With one they begin with 0, as no receipt does, and say how long
// they are: what is sealed for one reads as nothing else for another.
fn owner(namespace: Option<&str>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(namespace) = namespace {
        bytes.push(0);
        put_text(&mut bytes, namespace);
    }
    bytes
}

/// Writes a receipt so that only this server can have written it, for callers of that namespace alone.
pub(crate) fn encode(receipt: &Receipt, seal: &Seal, namespace: Option<&str>) -> String {
    let mut bytes = vec![if receipt.lease.is_some() { LEASE } else { VERSION }];
    put_number(&mut bytes, receipt.id);
    put_number(&mut bytes, receipt.expires.as_nanos());
    if let Some(lease) = receipt.lease {
        put_number(&mut bytes, lease.call.0);
    }
    for line in &receipt.lines {
        put_line(&mut bytes, line);
    }
    let tag = seal.tag_of(&[&owner(namespace), &bytes]);
    bytes.extend_from_slice(&tag);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a receipt; `None` unless this server wrote it for callers of that namespace.
pub(crate) fn decode(text: &str, seal: &Seal, namespace: Option<&str>) -> Option<Receipt> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    let (written, tag) = bytes.split_at_checked(bytes.len().checked_sub(TAG_BYTES)?)?;
    if !seal.is_tag_of(tag, &[&owner(namespace), written]) {
        return None;
    }
    let mut rest = Reader(written);
    let version = rest.byte()?;
    if version != VERSION && version != LEASE {
        return None;
    }
    let (id, expires) = (rest.number()?, rest.instant()?);
    if version == LEASE {
        let lease = Some(Lease { call: CallId(rest.number()?), token: id });
        return Some(Receipt { id, expires, lines: Vec::new(), lease });
    }
    let mut lines = Vec::new();
    while !rest.0.is_empty() && lines.len() < TOLLS_MAX {
        lines.push(rest.line()?);
    }
    Some(Receipt { id, expires, lines, lease: None })
}

fn put_line(bytes: &mut Vec<u8>, line: &ReceiptLine) {
    let Payment { weight, paid_at, starts, hold, sequence, promised } = line.payment;
    put_text(bytes, &line.limit);
    // No partition is empty, so the empty text is free to mean none.
    put_text(bytes, line.partition.as_deref().unwrap_or_default());
    put_number(bytes, weight);
    for instant in [paid_at, starts.at, starts.wall] {
        put_number(bytes, instant.as_nanos());
    }
    put_number(bytes, sequence);
    bytes.extend([promised, u8::from(hold.is_some())]);
    if let Some(HoldId(id)) = hold {
        put_number(bytes, id);
    }
}

fn put_number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend_from_slice(&number.to_be_bytes());
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    // Names have at most 512 bytes; a longer one would make a receipt that is not read again.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// What is left to read.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn instant(&mut self) -> Option<Timestamp> {
        self.number().map(Timestamp::from_nanos)
    }

    fn text(&mut self) -> Option<String> {
        let length = self.take().map(u16::from_be_bytes)?;
        let (text, rest) = self.0.split_at_checked(length.into())?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    fn line(&mut self) -> Option<ReceiptLine> {
        let limit = self.text()?;
        let partition = Some(self.text()?).filter(|partition| !partition.is_empty());
        let (weight, paid_at) = (self.number()?, self.instant()?);
        let starts = Now { at: self.instant()?, wall: self.instant()? };
        let (sequence, promised) = (self.number()?, self.byte()?);
        let hold = match self.byte()? {
            0 => None,
            _ => Some(HoldId(self.number()?)),
        };
        let payment = Payment { weight, paid_at, starts, hold, sequence, promised };
        Some(ReceiptLine { limit, partition, payment })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        let payment = Payment {
            weight: 3,
            paid_at: Timestamp::from_nanos(1),
            starts: Now { at: Timestamp::from_nanos(2), wall: Timestamp::from_nanos(3) },
            hold: None,
            sequence: 4,
            promised: 5,
        };
        let global = ReceiptLine { limit: "api".to_owned(), partition: None, payment };
        let held = ReceiptLine {
            limit: "größe".to_owned(),
            partition: Some("☃".to_owned()),
            payment: Payment { hold: Some(HoldId(u64::MAX)), ..payment },
        };
        Receipt { id: 7, expires: Timestamp::MAX, lines: vec![global, held], lease: None }
    }

    #[test]
    fn reads_what_it_wrote() {
        let seal = Seal::random().unwrap();
        let text = encode(&receipt(), &seal, None);
        assert_eq!(decode(&text, &seal, None), Some(receipt()));
    }

    #[test]
    fn a_changed_bit_makes_it_unknown() {
        let seal = Seal::random().unwrap();
        let written = URL_SAFE_NO_PAD.decode(encode(&receipt(), &seal, None)).unwrap();
        for bit in 0..written.len() * 8 {
            let mut changed = written.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&URL_SAFE_NO_PAD.encode(changed), &seal, None), None, "bit {bit}");
        }
    }

    #[test]
    fn another_process_does_not_know_it() {
        let text = encode(&receipt(), &Seal::random().unwrap(), None);
        assert_eq!(decode(&text, &Seal::random().unwrap(), None), None);
    }

    #[test]
    fn another_namespace_does_not_know_it() {
        let seal = Seal::random().unwrap();
        let namespaces = [None, Some("acme"), Some("globex")];
        for (index, writer) in namespaces.into_iter().enumerate() {
            let text = encode(&receipt(), &seal, writer);
            for (other, reader) in namespaces.into_iter().enumerate() {
                assert_eq!(decode(&text, &seal, reader).is_some(), index == other);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused() {
        let seal = Seal::random().unwrap();
        for text in ["", "a", "AA", "====", "ü", &"A".repeat(43), &"A".repeat(100_000)] {
            assert_eq!(decode(text, &seal, None), None, "{text:.20}");
        }
    }
}
