//! What a record of the journal means: an [`Effect`] as bytes, and back.
//!
//! # Format 1
//! What segments of format 1 hold, and every later release reads.
//!
//! - The first byte is a tag that says which effect it is (`codec/tag.rs`); its fields follow.
//! - Numbers take few bytes if they are small (`embedded/varint.rs`). Texts and lists start with their
//!   length or count.
//! - The first instant of a record is its nanoseconds since the epoch. Others are told by how much they
//!   are after or before it, or one that is closer to them.
//! - What is there or not, and what is true or not, is a bit of a byte of flags.
//! - A record with a call's payload begins with the tag, the payload's length in four bytes, low ones
//!   first, and the payload, so that it can be found without reading the rest: see [`payload`]. The tag
//!   says whether that is a body alone, or one in an envelope.
//! - There is one way to write each effect, and any other is refused: what [`decode`] takes,
//!   [`encode`] writes again byte for byte.
//!
//! Tags, kinds and bits are for good. A new effect has the next tag; what is added to an old one has a
//! bit that was free, or a new tag. A release that does not know them says that a newer one wrote the
//! record.

mod call;
mod effect;
mod error;
mod event;
mod input;
mod kept;
mod limit;
mod meter;
mod output;
mod queue;
mod queue_toll;
mod tag;
#[cfg(test)]
pub(in crate::embedded) mod tests;

pub use error::CodecError;

use self::input::Input;
use self::output::Output;
use std::ops::Range;
use tollgate_core::lanes::{Effect, Event, Payload};

/// Appends the record of an effect.
///
/// A payload over `u32::MAX` bytes would make a record that cannot be read. It never comes to that: no
/// segment holds such a record, and the log refuses its batch.
pub fn encode(effect: &Effect, out: &mut Vec<u8>) {
    effect::write(effect, &mut Output::new(out));
}

/// The effect that a record tells of: the whole record, and nothing else.
pub fn decode(record: &[u8]) -> Result<Effect, CodecError> {
    let mut input = Input::new(record);
    let effect = effect::read(&mut input)?;
    input.end()?;
    Ok(effect)
}

/// Appends the first of these events, as history keeps it; says how many it was: an attempt and the
/// end that came with it, as most are, are one record.
pub fn encode_events(events: &[Event], out: &mut Vec<u8>) -> usize {
    let [event, rest @ ..] = events else { return 0 };
    let end = rest.first().and_then(|next| event::ends_with(event, next));
    event::write(event, end, &mut Output::new(out));
    if end.is_some() { 2 } else { 1 }
}

/// The event at the front of these bytes, and the end that came with it, whatever follows.
pub fn decode_events(bytes: &[u8]) -> Result<(Event, Option<Event>), CodecError> {
    event::read(&mut Input::new(bytes))
}

/// How a payload stands in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A body alone, as it was handed in.
    Body,
    /// A body in an envelope, as [`Payload::as_kept`] says.
    InEnvelope,
}

impl Form {
    /// That of a payload.
    pub fn of(payload: &Payload) -> Self {
        if payload.envelope().is_empty() { Self::Body } else { Self::InEnvelope }
    }

    /// The bytes of a payload in its form.
    pub fn bytes(self, payload: &Payload) -> &[u8] {
        match self {
            Self::Body => payload.body(),
            Self::InEnvelope => payload.as_kept(),
        }
    }

    /// The payload of such bytes; `None` if they are of none.
    pub fn read(self, bytes: &[u8]) -> Option<Payload> {
        match self {
            Self::Body => Some(Payload::body_alone(bytes)),
            Self::InEnvelope => {
                Payload::from_kept(bytes).filter(|payload| Self::of(payload) == self)
            }
        }
    }
}

/// Where in its record the payload of a call lies, and how.
///
/// Takes the first bytes of a record, at least [`PAYLOAD_START`] and not necessarily more: the payload
/// may end after them. `None` if there are fewer, or if such a record has no payload.
pub fn payload(record_start: &[u8]) -> Option<(Form, Range<usize>)> {
    let mut input = Input::new(record_start);
    let form = match input.byte().ok()? {
        tag::ACCEPTED | tag::KEPT_CALL => Form::Body,
        tag::ACCEPTED_IN_ENVELOPE | tag::KEPT_CALL_IN_ENVELOPE => Form::InEnvelope,
        _ => return None,
    };
    let length = input.payload_length().ok()?;
    Some((form, PAYLOAD_START..PAYLOAD_START.checked_add(length)?))
}

/// Where the payload of a call begins: behind the tag and the payload's length.
pub const PAYLOAD_START: usize = 1 + size_of::<u32>();
