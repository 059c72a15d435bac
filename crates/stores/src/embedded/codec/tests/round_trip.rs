//! What is written comes back, and a payload is found without the rest.

use super::generated::{effect, effect_of};
use super::{KINDS, kind, record};
use crate::embedded::codec::{Form, PAYLOAD_START, decode, encode, payload};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate_core::lanes::{Effect, Kept, NewCall};

/// The call of an effect whose record has a payload.
fn call_of(effect: &mut Effect) -> Option<&mut NewCall> {
    match effect {
        Effect::Accepted { call, .. } | Effect::Kept(Kept::Call { call, .. }) => Some(call),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn every_effect_comes_back(effect in effect()) {
        prop_assert_eq!(decode(&record(&effect)), Ok(effect));
    }

    #[test]
    fn a_record_is_appended_to_what_is_there(effect in effect()) {
        let mut out = b"before".to_vec();
        encode(&effect, &mut out);
        prop_assert_eq!(out.strip_prefix(b"before"), Some(&record(&effect)[..]));
    }

    #[test]
    fn a_payload_is_found_by_the_first_bytes(mut effect in effect()) {
        let record = record(&effect);
        prop_assert_eq!(payload(&record[..PAYLOAD_START.min(record.len()) - 1]), None);
        let found = payload(&record[..PAYLOAD_START.min(record.len())]);
        let found = found.map(|(form, range)| form.read(&record[range]).unwrap());
        prop_assert_eq!(found, call_of(&mut effect).map(|call| call.payload.clone()));
    }
}

#[test]
fn the_generator_makes_every_kind() {
    let mut runner = TestRunner::deterministic();
    for expected in 0..KINDS {
        let effect = effect_of(expected).new_tree(&mut runner).unwrap().current();
        assert_eq!(kind(&effect), expected, "{effect:?}");
    }
}

#[test]
fn bodies_from_nothing_to_a_mebibyte_come_back() {
    let mut runner = TestRunner::deterministic();
    for bytes in [0, 1, 127, 128, 65_535, 65_536, 1 << 20] {
        for kind in 0..KINDS {
            let mut effect = effect_of(kind).new_tree(&mut runner).unwrap().current();
            let Some(call) = call_of(&mut effect) else { continue };
            let body: Vec<_> = (0..bytes).map(|at: usize| at.to_le_bytes()[0]).collect();
            call.payload = body.into();
            let record = record(&effect);
            let expected = (Form::Body, PAYLOAD_START..PAYLOAD_START + bytes);
            assert_eq!(payload(&record), Some(expected));
            assert_eq!(decode(&record), Ok(effect));
        }
    }
}
