//! Appending to a record: numbers, texts, instants, flags and lists.

use super::Form;
use crate::embedded::varint;
use tollgate_core::lanes::Payload;
use tollgate_core::{Now, Span, Timestamp};

/// The end of a record that is being written.
#[derive(Debug)]
pub(super) struct Output<'a>(&'a mut Vec<u8>);

impl<'a> Output<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self(out)
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    #[inline(always)]
    pub(super) fn number(&mut self, value: u64) {
        match u8::try_from(value) {
            Ok(small @ 0..0x80) => self.0.push(small),
            _ => self.large_number(value),
        }
    }

    fn large_number(&mut self, value: u64) {
        let (bytes, used) = varint::encode(value);
        let end = self.0.len() + used;
        // As many as ever: that is one instruction.
        self.0.extend_from_slice(&bytes);
        self.0.truncate(end);
    }

    #[inline]
    pub(super) fn span(&mut self, span: Span) {
        self.number(span.as_nanos());
    }

    /// The first instant of a record.
    #[inline]
    pub(super) fn instant(&mut self, instant: Timestamp) {
        self.number(instant.as_nanos());
    }

    /// Another instant of a record: how far it is from the first. Low bit set: before it.
    #[inline]
    pub(super) fn instant_from(&mut self, first: Timestamp, instant: Timestamp) {
        // A difference that wraps is undone by one that wraps, so that any two instants will do.
        let ahead = instant.as_nanos().wrapping_sub(first.as_nanos()).cast_signed();
        self.number(((ahead << 1) ^ (ahead >> 63)).cast_unsigned());
    }

    /// The present, if its limit time is the first instant.
    #[inline]
    pub(super) fn now(&mut self, now: Now) {
        let Now { at, wall } = now;
        self.instant(at);
        self.instant_from(at, wall);
    }

    #[inline]
    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// A payload behind the tag of its form.
    #[inline]
    pub(super) fn payload(&mut self, payload: &Payload, body_alone: u8, in_envelope: u8) {
        let form = Form::of(payload);
        self.byte(if form == Form::Body { body_alone } else { in_envelope });
        let bytes = form.bytes(payload);
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    /// Up to eight statements, the first in the lowest bit.
    #[inline]
    pub(super) fn flags<const COUNT: usize>(&mut self, flags: [bool; COUNT]) {
        self.byte(packed(flags));
    }

    #[inline]
    pub(super) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.number(items.len() as u64);
        for item in items {
            each(self, item);
        }
    }
}

/// Up to eight statements as bits, the first the lowest.
#[inline]
pub(super) fn packed<const COUNT: usize>(flags: [bool; COUNT]) -> u8 {
    const { assert!(COUNT <= 8, "more statements than bits") };
    flags.into_iter().rev().fold(0, |byte, flag| byte << 1 | u8::from(flag))
}
