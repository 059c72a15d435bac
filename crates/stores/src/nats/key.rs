//! The keys of cells, in the few characters that a bucket allows: `m.<name>.<part>`, or without part.
//!
//! Letters, digits, `-`, `_` and `/` stand for themselves, any other byte is `=` and two hex digits,
//! and nothing at all is `=`. What would be long so is `=_` and base64.

use crate::shared::cells::{CellKey, Kind};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Longest piece that is written out: as long as base64 is at most. Two such pieces and what a
/// command needs besides fit into a line of the protocol, which is 4,096 bytes.
const WRITTEN_MAX: usize = 1_366;
/// Comes before base64. No hex digit, so it cannot be mistaken.
const PACKED: &str = "=_";

/// The key of a cell.
pub(super) fn encode(key: &CellKey) -> String {
    let mut text = String::from(key.kind.letter());
    for piece in [Some(&key.name), key.part.as_ref()].into_iter().flatten() {
        text.push('.');
        push_piece(&mut text, piece);
    }
    text
}

/// What all cells of a kind begin with.
pub(super) fn prefix(kind: Kind) -> String {
    format!("{}.", kind.letter())
}

/// The name in a key of a cell; `None` if it is of something else.
pub(super) fn name(key: &str) -> Option<Box<str>> {
    let (_, pieces) = key.split_once('.')?;
    let piece = pieces.split('.').next()?;
    let bytes = match piece.strip_prefix(PACKED) {
        Some(packed) => URL_SAFE_NO_PAD.decode(packed).ok()?,
        None if piece == "=" => Vec::new(),
        None => written(piece)?,
    };
    String::from_utf8(bytes).ok().map(String::into_boxed_str)
}

fn push_piece(text: &mut String, piece: &str) {
    if piece.is_empty() {
        text.push('=');
        return;
    }
    let written: usize =
        piece.bytes().map(|byte| if stands_for_itself(byte) { 1 } else { 3 }).sum();
    if written > WRITTEN_MAX {
        text.push_str(PACKED);
        URL_SAFE_NO_PAD.encode_string(piece, text);
        return;
    }
    for byte in piece.bytes() {
        if stands_for_itself(byte) {
            text.push(char::from(byte));
        } else {
            let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
            text.extend(['=', digit(byte >> 4), digit(byte & 0xf)]);
        }
    }
}

fn stands_for_itself(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'/')
}

/// The bytes of a piece that is written out.
fn written(piece: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(piece.len());
    let mut rest = piece.chars();
    while let Some(next) = rest.next() {
        if next == '=' {
            let high = rest.next()?.to_digit(16)?;
            let low = rest.next()?.to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(u8::try_from(next).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meter(name: &str, part: Option<&str>) -> CellKey {
        CellKey { kind: Kind::Meter, name: name.into(), part: part.map(Into::into) }
    }

    #[test]
    fn a_plain_name_can_be_read() {
        assert_eq!(
            encode(&meter("openai/gpt-4_o", Some("acme.com"))),
            "m.openai/gpt-4_o.acme=2ecom"
        );
        assert_eq!(encode(&meter("a", None)), "m.a");
        assert_eq!(encode(&meter("", Some(""))), "m.=.=");
    }

    #[test]
    fn the_longest_key_fits_into_a_line() {
        let long = "ü".repeat(512);
        let key = encode(&meter(&long, Some(&long)));
        assert!(key.len() < 2_800, "{}", key.len());
        assert_eq!(name(&key).as_deref(), Some(long.as_str()));
    }

    proptest! {
        #[test]
        fn any_two_keys_are_apart_and_legal(
            one in any::<String>(), other in any::<String>(), part in any::<Option<String>>(),
        ) {
            let (a, b) = (meter(&one, part.as_deref()), meter(&other, None));
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
            prop_assert_eq!(name(&encode(&a)), Some(one.into_boxed_str()));
            let is_legal = |c: char| c.is_ascii_alphanumeric() || "-/_=.".contains(c);
            prop_assert!(encode(&a).chars().all(is_legal));
            prop_assert!(encode(&a).split('.').all(|piece| !piece.is_empty()));
        }
    }
}
