//! Bytes that no one wrote: refused with a reason, or taken for what writes the very same bytes.

use super::generated::effect;
use super::golden::{bytes, golden};
use super::record;
use crate::embedded::codec::{CodecError, Form, decode, payload};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_core::LimitError;
use tollgate_core::lanes::QueueError;

/// Whatever is taken is written again as it was read: nothing was lost, and nothing made up.
fn is_borne(bytes: &[u8]) -> bool {
    decode(bytes).map_or(true, |effect| record(&effect) == bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_borne(tag in 0..96_u8, rest in vec(any::<u8>(), 0..80)) {
        let bytes = [&[tag], &rest[..]].concat();
        prop_assert!(is_borne(&bytes) && is_borne(&rest));
        let _ = payload(&bytes);
    }

    /// Small numbers are lengths, counts, flags and kinds: they get further than any others.
    #[test]
    fn small_bytes_are_borne(tag in 0..96_u8, rest in vec(0..4_u8, 0..80)) {
        prop_assert!(is_borne(&[&[tag], &rest[..]].concat()));
    }

    #[test]
    fn a_changed_byte_is_borne(effect in effect(), at in any::<usize>(), change in 1..=255_u8) {
        let mut record = record(&effect);
        let at = at % record.len();
        record[at] ^= change;
        prop_assert!(is_borne(&record));
    }

    #[test]
    fn a_record_that_was_cut_or_goes_on_is_refused(effect in effect(), at in any::<usize>()) {
        let mut record = record(&effect);
        prop_assert!(decode(&record[..at % record.len()]).is_err());
        record.push(0);
        prop_assert!(decode(&record).is_err());
    }
}

#[test]
fn every_change_and_every_cut_of_every_kind_is_borne() {
    for (_, effect) in golden() {
        let record = record(&effect);
        for at in 0..record.len() {
            assert!(decode(&record[..at]).is_err(), "cut at {at}: {effect:?}");
            for change in 1..=255 {
                let mut changed = record.clone();
                changed[at] ^= change;
                assert!(is_borne(&changed), "{change:#x} at {at}: {effect:?}");
            }
        }
    }
}

/// Room for so many would be asked of the system at once, and not be had.
#[test]
fn no_room_is_made_for_what_cannot_follow() {
    // 1 << 40, as a count or a length.
    let many = "808080808020";
    for front in [
        "41 00 0161",                                 // words of a meter
        "0b 01 01 01 00",                             // costs of a settled start
        "10 01 01 00 00 00",                          // what was owed
        "11 01 01 00 00",                             // meters of a renewed receipt
        "12 01 00 00 01 00",                          // lines of a settled receipt
        "01 01 0161 01 00",                           // rules of a limit
        "17 01 0161 0161 01 00",                      // rules of a partition
        "07 00000000 00 01 01 00 0161 0161",          // tolls of a call
        "43 00000000 08 01 01 00 0161 0161 00 01 00", // payments of a flight
        "13 01 0161 01",                              // bytes of a written record
        "14",                                         // a key
    ] {
        let refused = decode(&bytes(&format!("{front} {many}")));
        let offset = bytes(front).len() + 6;
        let found = "it ends before its last field";
        assert_eq!(refused, Err(CodecError::Damaged { offset, found }), "{front}");
    }
    assert!(decode(&bytes("07 ffffffff 00 00 00")).is_err());
    let lies = payload(&bytes("07 ffffffff 00"));
    assert_eq!(lies, Some((Form::Body, 5..5 + u32::MAX as usize)));
}

#[test]
fn what_is_not_known_was_written_by_a_newer_release() {
    for (record, what, number) in [
        ("1f", "tag", 31),
        ("3f 01", "tag", 63),
        ("47 01", "tag", 71),
        ("ff", "tag", 255),
        ("0f 01 06", "end of a call", 6),
        ("15 01 00 00 00 04", "cause of death", 4),
        ("02 0161 00 01 01 01 01 00 00 20 01 00 00", "way with the dead", 32),
        ("02 0161 00 01 01 01 01 00 00 00 01 00 01 40 0161 04626f6479 04", "value", 4),
        ("04 03 0161", "scope", 3),
        ("01 01 0161 01 00 01 08 01", "kind of rule", 8),
        ("01 02 0161 01 00", "flags", 2),
        ("02 0161 02", "order", 2),
    ] {
        let refused = decode(&bytes(record)).unwrap_err();
        assert_eq!(refused, CodecError::Newer { what, number }, "{record}");
        assert!(refused.to_string().contains("newer release"), "{refused}");
    }
}

#[test]
fn zeros_are_no_record() {
    for zeros in [&[][..], &[0], &[0; 64]] {
        assert!(matches!(decode(zeros), Err(CodecError::Damaged { .. })));
    }
}

#[test]
fn a_limit_that_no_longer_checks_is_told_by_its_name() {
    let refused = decode(&bytes("01 01 026162 01 00 01 05 00")).unwrap_err();
    let CodecError::Limit { name, source } = &refused else { panic!("{refused:?}") };
    assert_eq!((name.as_str(), source), ("ab", &LimitError::Zero { setting: "limit" }));
    assert!(refused.to_string().contains("limit ab in a way that is not taken"), "{refused}");
}

#[test]
fn a_queue_that_no_longer_checks_is_told_by_its_name() {
    // A lease of no time.
    let refused = decode(&bytes("02 026162 00 00 01 01 01 00 00 00 01 00 00")).unwrap_err();
    let CodecError::Queue { name, source } = &refused else { panic!("{refused:?}") };
    assert_eq!(name.as_str(), "ab");
    assert!(matches!(source, QueueError::Lease { .. }));
}

#[test]
fn a_name_that_is_none_is_refused() {
    assert!(matches!(decode(&bytes("14 00 01")), Err(CodecError::Name { offset: 2, .. })));
    let long = [&[0x14, 0x81, 0x08], &[b'x'; 1025][..], &[1]].concat();
    assert!(matches!(decode(&long), Err(CodecError::Name { offset: 1028, .. })));
    assert!(matches!(decode(&bytes("14 01ff 01")), Err(CodecError::Damaged { .. })));
}

#[test]
fn what_is_usual_is_not_written_out() {
    // 100,000 dead calls.
    let refused = decode(&bytes("02 0161 00 01 01 01 01 00 00 02 01 00 00 a08d06"));
    assert!(matches!(refused, Err(CodecError::Damaged { .. })), "{refused:?}");
}

#[test]
fn numbers_over_their_bounds_are_refused() {
    let over_u32 = "8080808010";
    for record in [format!("03 0161 0161 {over_u32}"), format!("0d 01 00 00 {over_u32} 01")] {
        assert!(matches!(decode(&bytes(&record)), Err(CodecError::Damaged { .. })), "{record}");
    }
    // A priority of 10.
    let refused = decode(&bytes("07 00000000 00 01 01 0a 0161 0161 00"));
    assert!(matches!(refused, Err(CodecError::Damaged { .. })));
}
