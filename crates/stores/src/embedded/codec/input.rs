//! Taking a record apart: each part is checked against what is left of the bytes before it is made.

use super::Form;
use super::error::CodecError;
use crate::embedded::varint;
use tollgate_core::lanes::Payload;
use tollgate_core::{NameError, Now, Span, Timestamp};

type Taken<T> = Result<T, CodecError>;

/// What is left of a record.
#[derive(Debug)]
pub(super) struct Input<'a> {
    left: &'a [u8],
    record_bytes: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(record: &'a [u8]) -> Self {
        Self { left: record, record_bytes: record.len() }
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Taken<u8> {
        let Some((first, left)) = self.left.split_first() else { return Err(self.cut()) };
        self.left = left;
        Ok(*first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Taken<u64> {
        match self.left {
            [small @ 0..0x80, left @ ..] => {
                self.left = left;
                Ok(u64::from(*small))
            }
            _ => {
                let Some((value, used)) = varint::decode(self.left) else {
                    return Err(self.damaged("no number"));
                };
                self.left = &self.left[used..];
                Ok(value)
            }
        }
    }

    /// A number that has 32 bits.
    #[inline]
    pub(super) fn number_u32(&mut self) -> Taken<u32> {
        let value = self.number()?;
        u32::try_from(value).map_err(|_| self.damaged("a number over its bound"))
    }

    /// A number that counts something in memory.
    #[inline]
    pub(super) fn number_usize(&mut self) -> Taken<usize> {
        let value = self.number()?;
        usize::try_from(value).map_err(|_| self.damaged("a number over its bound"))
    }

    #[inline]
    pub(super) fn span(&mut self) -> Taken<Span> {
        self.number().map(Span::from_nanos)
    }

    #[inline]
    pub(super) fn instant(&mut self) -> Taken<Timestamp> {
        self.number().map(Timestamp::from_nanos)
    }

    #[inline]
    pub(super) fn instant_from(&mut self, first: Timestamp) -> Taken<Timestamp> {
        let folded = self.number()?;
        let ahead = (folded >> 1) ^ (folded & 1).wrapping_neg();
        Ok(Timestamp::from_nanos(first.as_nanos().wrapping_add(ahead)))
    }

    #[inline]
    pub(super) fn now(&mut self) -> Taken<Now> {
        let at = self.instant()?;
        Ok(Now { at, wall: self.instant_from(at)? })
    }

    #[inline]
    pub(super) fn text(&mut self) -> Taken<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a text that is not UTF-8"))
    }

    #[inline]
    pub(super) fn name<T>(&mut self, new: impl FnOnce(&str) -> Result<T, NameError>) -> Taken<T> {
        let text = self.text()?;
        new(text).map_err(|source| CodecError::Name { offset: self.offset(), source })
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Taken<&'a [u8]> {
        let length = self.number_usize()?;
        self.take(length)
    }

    /// What was said about a start, where something was.
    pub(super) fn report(&mut self) -> Taken<Box<[u8]>> {
        match self.bytes()? {
            [] => Err(self.damaged("no report where there is one")),
            report => Ok(report.into()),
        }
    }

    /// A payload, right behind the tag.
    #[inline]
    pub(super) fn payload(&mut self, form: Form) -> Taken<Payload> {
        let length = self.payload_length()?;
        let bytes = self.take(length)?;
        form.read(bytes).ok_or_else(|| self.damaged("an envelope that is none"))
    }

    /// How long the payload is that follows.
    #[inline]
    pub(super) fn payload_length(&mut self) -> Taken<usize> {
        let Some((length, left)) = self.left.split_first_chunk() else { return Err(self.cut()) };
        self.left = left;
        let length = u32::from_le_bytes(*length);
        usize::try_from(length).map_err(|_| self.damaged("a payload over its bound"))
    }

    #[inline]
    pub(super) fn flags<const COUNT: usize>(&mut self) -> Taken<[bool; COUNT]> {
        const { assert!(COUNT <= 8, "more statements than bits") };
        let byte = self.byte()?;
        if COUNT < 8 && byte >> COUNT != 0 {
            return Err(newer("flags", byte));
        }
        Ok(std::array::from_fn(|place| byte >> place & 1 == 1))
    }

    /// What is there if its flag is set.
    #[inline]
    pub(super) fn when<T>(
        &mut self,
        is_there: bool,
        take: impl FnOnce(&mut Self) -> Taken<T>,
    ) -> Taken<Option<T>> {
        if is_there { take(self).map(Some) } else { Ok(None) }
    }

    /// A list of what takes at least `item_bytes` each. Room is made for no more than could follow.
    #[inline]
    pub(super) fn list<T>(
        &mut self,
        item_bytes: usize,
        mut each: impl FnMut(&mut Self) -> Taken<T>,
    ) -> Taken<Vec<T>> {
        let count = self.count(item_bytes)?;
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(each(self)?);
        }
        Ok(items)
    }

    /// How many of a list follow, of at least `item_bytes` each: no more than there is room for.
    #[inline]
    pub(super) fn count(&mut self, item_bytes: usize) -> Taken<usize> {
        let count = self.number_usize()?;
        if count > self.left.len() / item_bytes { Err(self.cut()) } else { Ok(count) }
    }

    /// Refuses what is left over.
    #[inline]
    pub(super) fn end(&self) -> Taken<()> {
        if self.left.is_empty() { Ok(()) } else { Err(self.damaged("more than its fields")) }
    }

    #[cold]
    pub(super) fn damaged(&self, found: &'static str) -> CodecError {
        CodecError::Damaged { offset: self.offset(), found }
    }

    #[inline]
    fn take(&mut self, length: usize) -> Taken<&'a [u8]> {
        let Some((taken, left)) = self.left.split_at_checked(length) else {
            return Err(self.cut());
        };
        self.left = left;
        Ok(taken)
    }

    #[cold]
    fn cut(&self) -> CodecError {
        self.damaged("it ends before its last field")
    }

    fn offset(&self) -> usize {
        self.record_bytes - self.left.len()
    }
}

/// A number that this release has no meaning for.
#[cold]
pub(super) fn newer(what: &'static str, number: u8) -> CodecError {
    CodecError::Newer { what, number }
}
