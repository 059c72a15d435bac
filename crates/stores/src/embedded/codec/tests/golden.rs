//! The format as it is: records of every kind, byte for byte. These bytes never change, for there
//! are journals that hold them; a new kind adds to them.

mod calls;
mod others;

use super::{KINDS, kind, record};
use crate::embedded::codec::decode;
use std::collections::BTreeSet;
use tollgate_core::lanes::Effect;
use tollgate_core::{Now, Timestamp};

/// Each record in hex, with what it tells.
pub(super) fn golden() -> Vec<(&'static str, Effect)> {
    others::golden().into_iter().chain(calls::golden()).collect()
}

/// Bytes from hex; spaces are for the reader.
pub(super) fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|digit| *digit != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// So many nanoseconds after a morning in 2026.
fn instant(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(1_780_000_000_000_000_000 + nanos)
}

/// The wall clock is 3 ns behind.
fn now() -> Now {
    Now { at: instant(5), wall: instant(2) }
}

#[test]
fn records_are_written_as_they_always_were() {
    for (hex, effect) in golden() {
        let written: String = record(&effect).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, hex.replace(' ', ""), "{effect:?}");
    }
}

#[test]
fn records_are_read_as_they_always_were() {
    for (hex, effect) in golden() {
        assert_eq!(decode(&bytes(hex)), Ok(effect), "{hex}");
    }
}

#[test]
fn there_is_a_record_of_every_kind() {
    let kinds: BTreeSet<usize> = golden().iter().map(|(_, effect)| kind(effect)).collect();
    assert_eq!(kinds, (0..KINDS).collect());
    let tags: BTreeSet<u8> = golden().iter().map(|(hex, _)| bytes(hex)[0]).collect();
    // A tag for each kind, and one for each of: a start that waited, a call in an envelope, new and
    // kept, and a start with a report.
    assert_eq!(tags.len(), KINDS + 4);
}
