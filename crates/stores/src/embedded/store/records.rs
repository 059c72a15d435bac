//! The records of the journal, from effects and back.

use super::segments::Given;
use crate::embedded::codec::{self, CodecError, Form};
use crate::embedded::log::{LogError, Position, Reader, SegmentNumber};
use std::ops::Range;
use tollgate_core::lanes::{CallId, Effect, Kept, Payload, Scheduler};

/// Read at once with a payload's length: most payloads are no longer.
const START_BYTES: usize = 512;

/// The first byte of the store's own records; those of effects are lower.
const LOCATED: u8 = 0xF0;
const MOVED: u8 = 0xF1;
const COUNTED: u8 = 0xF2;
const MOVED_IN_ENVELOPE: u8 = 0xF3;
/// As `COUNTED`, with the length of the bodies' records: earlier releases did not write it.
const GIVEN: u8 = 0xF4;

/// What is wrong with a record of the store's own that is too short or too long.
const LENGTH: CodecError =
    CodecError::Damaged { offset: 0, found: "its length is not what it should be" };

/// Appends a record that says where a call's body is.
pub(super) fn encode_located(id: CallId, body: u64, buffer: &mut Vec<u8>) {
    buffer.push(LOCATED);
    buffer.extend(id.0.to_le_bytes());
    buffer.extend(body.to_le_bytes());
}

/// Appends a record with a call's payload, which moves here from an older segment.
pub(super) fn encode_moved(id: CallId, payload: &Payload, buffer: &mut Vec<u8>) {
    let form = Form::of(payload);
    let bytes = form.bytes(payload);
    buffer.push(if form == Form::Body { MOVED } else { MOVED_IN_ENVELOPE });
    buffer.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    buffer.extend_from_slice(bytes);
    buffer.extend(id.0.to_le_bytes());
}

/// Appends a record that says what bodies a segment of the journal was given.
pub(super) fn encode_given(segment: SegmentNumber, given: Given, buffer: &mut Vec<u8>) {
    buffer.push(GIVEN);
    buffer.extend(segment.as_u32().to_le_bytes());
    buffer.extend(given.bodies.to_le_bytes());
    buffer.extend(given.bytes.to_le_bytes());
}

/// What bodies a segment was given, if a record says that.
pub(super) fn given(record: &[u8]) -> Result<Option<(SegmentNumber, Given)>, CodecError> {
    let Some((&tag @ (COUNTED | GIVEN), rest)) = record.split_first() else { return Ok(None) };
    let (segment, rest) = rest.split_first_chunk().ok_or(LENGTH)?;
    let (bodies, rest) = rest.split_first_chunk().ok_or(LENGTH)?;
    let bytes = match tag {
        COUNTED if rest.is_empty() => u64::MAX,
        _ => u64::from_le_bytes(rest.try_into().map_err(|_| LENGTH)?),
    };
    let given = Given { bodies: u64::from_le_bytes(*bodies), bytes };
    Ok(Some((SegmentNumber::new(u32::from_le_bytes(*segment)), given)))
}

/// Whether a call's payload is in a record.
pub(super) fn has_payload(record: &[u8]) -> bool {
    place(record).is_some()
}

/// The call whose payload is in a record, with it, if there is one.
pub(super) fn payload_of(record: &[u8]) -> Result<Option<(CallId, Payload)>, CodecError> {
    let Some((form, range)) = place(record) else { return Ok(None) };
    if !is_moved(record) {
        return Ok(match codec::decode(record)? {
            Effect::Accepted { id, call, .. } | Effect::Kept(Kept::Call { id, call, .. }) => {
                Some((id, call.payload))
            }
            _ => None,
        });
    }
    let payload = record.get(range).and_then(|bytes| form.read(bytes)).ok_or(LENGTH)?;
    Ok(trailing_id(record).map(|id| (id, payload)))
}

/// As [`payload_of`], and whatever the record is, all of it was read and made sense.
pub(super) fn whole(record: &[u8]) -> Result<Option<(CallId, Payload)>, CodecError> {
    const ID_BYTES: usize = size_of::<u64>();
    let bytes = match record.first() {
        Some(&LOCATED) => Some(1 + 2 * ID_BYTES),
        _ if is_moved(record) => place(record).and_then(|(_, it)| it.end.checked_add(ID_BYTES)),
        _ => {
            codec::decode(record)?;
            Some(record.len())
        }
    };
    if bytes != Some(record.len()) {
        return Err(LENGTH);
    }
    payload_of(record)
}

/// Appends an effect as a record.
pub(super) fn encode(effect: &Effect, buffer: &mut Vec<u8>) {
    codec::encode(effect, buffer);
}

/// Lets happen again what a record says.
pub(super) fn replay(
    scheduler: &mut Scheduler,
    position: Position,
    record: &[u8],
) -> Result<(), CodecError> {
    match record.first() {
        Some(&LOCATED) => {
            let (id, body) = located(record).ok_or(LENGTH)?;
            scheduler.locate(id, body);
            return Ok(());
        }
        _ if is_moved(record) => {
            let id = trailing_id(record).ok_or(LENGTH)?;
            scheduler.locate(id, position.to_bits());
            return Ok(());
        }
        _ => {}
    }
    let effect = codec::decode(record)?;
    if let Effect::Kept(kept) = &effect
        && let Some(found) = scheduler.objection(kept)
    {
        return Err(CodecError::Damaged { offset: 0, found });
    }
    scheduler.replay(&effect);
    // In a checkpoint, which has no bodies, the next record says where the body is.
    if let Effect::Accepted { id, .. } | Effect::Kept(Kept::Call { id, .. }) = effect {
        scheduler.locate(id, position.to_bits());
    }
    Ok(())
}

fn located(record: &[u8]) -> Option<(CallId, u64)> {
    let (id, body) = record.get(1..)?.split_first_chunk()?;
    Some((CallId(u64::from_le_bytes(*id)), u64::from_le_bytes(body.try_into().ok()?)))
}

fn trailing_id(record: &[u8]) -> Option<CallId> {
    record.last_chunk().map(|id| CallId(u64::from_le_bytes(*id)))
}

fn is_moved(record: &[u8]) -> bool {
    matches!(record.first(), Some(&MOVED | &MOVED_IN_ENVELOPE))
}

/// Where a payload is in the record that starts so, and in which form.
fn place(start: &[u8]) -> Option<(Form, Range<usize>)> {
    let form = match start.first() {
        Some(&MOVED) => Form::Body,
        Some(&MOVED_IN_ENVELOPE) => Form::InEnvelope,
        _ => return codec::payload(start),
    };
    let bytes = u32::from_le_bytes(*start.get(1..)?.first_chunk()?);
    Some((form, 5..5 + usize::try_from(bytes).ok()?))
}

/// The payload in the record at a position.
pub(super) fn payload(reader: &Reader, position: Position) -> Result<Payload, LogError> {
    let start = reader.read_up_to(position, START_BYTES)?;
    let read = place(&start).map(|(form, range)| {
        Ok(match start.get(range.clone()) {
            Some(bytes) => form.read(bytes),
            None => {
                let record = reader.read(position, range.end)?;
                record.get(range).and_then(|bytes| form.read(bytes))
            }
        })
    });
    // Handed out as if there were none, it would be taken for what was enqueued.
    read.transpose()?.flatten().ok_or_else(|| {
        let found = "the body of a call should be there, and is not";
        LogError::corrupt(position.segment().file_name(), u64::from(position.offset()), found)
    })
}
