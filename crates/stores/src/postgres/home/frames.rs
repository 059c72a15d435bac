//! What an entry of the log says: records, each behind its length in four bytes, low ones first. Most
//! are effects; some are notes from node to node that change nothing that lasts. What history is told is records of
//! the same form, apart from these.

use crate::embedded::codec::{self, CodecError};
use tollgate_core::lanes::{Effect, Scheduler};
use tollgate_core::{QueueName, Timestamp};

/// The first byte of a note; those of effects are lower.
const HERE: u8 = 0xF4;
const ASKED: u8 = 0xF5;
const LEVELLED: u8 = 0xF6;

/// What is wrong with bytes that are not records behind their lengths.
const LENGTH: CodecError =
    CodecError::Damaged { offset: 0, found: "its length is not what it should be" };

/// What a record says.
pub(super) enum Frame {
    Effect(Effect),
    Note(Note),
}

/// Something that a node tells the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Note {
    /// It is there.
    Here,
    /// Until when someone asks it for the calls of a queue, whatever was said before.
    Asked(QueueName, Timestamp),
    /// Here the meters were levelled at which nobody stood.
    Levelled,
}

/// Appends an effect.
pub(super) fn push(effect: &Effect, frames: &mut Vec<u8>) {
    framed(frames, |frames| codec::encode(effect, frames));
}

/// Appends a note.
pub(super) fn push_note(note: &Note, frames: &mut Vec<u8>) {
    framed(frames, |frames| match note {
        Note::Here => frames.push(HERE),
        Note::Levelled => frames.push(LEVELLED),
        Note::Asked(queue, until) => {
            frames.push(ASKED);
            frames.extend(until.as_nanos().to_le_bytes());
            frames.extend(queue.as_str().as_bytes());
        }
    });
}

/// Appends a record.
pub(super) fn framed(frames: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = frames.len();
    frames.extend([0; size_of::<u32>()]);
    write(frames);
    let bytes = u32::try_from(frames.len() - start - size_of::<u32>()).unwrap_or(u32::MAX);
    if let Some(length) = frames.get_mut(start..start + size_of::<u32>()) {
        length.copy_from_slice(&bytes.to_le_bytes());
    }
}

/// Reads each effect and note.
pub(super) fn each(
    frames: &[u8],
    mut take: impl FnMut(Frame) -> Result<(), CodecError>,
) -> Result<(), CodecError> {
    for record in records(frames) {
        let record = record?;
        take(match record.split_first() {
            Some((&HERE, _)) => Frame::Note(Note::Here),
            Some((&LEVELLED, _)) => Frame::Note(Note::Levelled),
            Some((&ASKED, said)) => Frame::Note(asked(said).ok_or(LENGTH)?),
            // A note that newer nodes write: it changes nothing that lasts.
            Some((HERE.., _)) => continue,
            _ => Frame::Effect(codec::decode(record)?),
        })?;
    }
    Ok(())
}

/// The records, in order, up to one that is not whole.
pub(super) fn records(mut frames: &[u8]) -> impl Iterator<Item = Result<&[u8], CodecError>> {
    std::iter::from_fn(move || {
        if frames.is_empty() {
            return None;
        }
        let record = split(frames);
        frames = record.map_or(&[], |(_, after)| after);
        Some(record.map(|(record, _)| record).ok_or(LENGTH))
    })
}

/// The first record, and what is after it.
fn split(frames: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = frames.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn asked(said: &[u8]) -> Option<Note> {
    let (until, queue) = said.split_first_chunk()?;
    let queue = QueueName::new(std::str::from_utf8(queue).ok()?).ok()?;
    Some(Note::Asked(queue, Timestamp::from_nanos(u64::from_le_bytes(*until))))
}

/// Lets happen what was decided long ago; notes are of then.
pub(super) fn replay(frames: &[u8], scheduler: &mut Scheduler) -> Result<(), CodecError> {
    each(frames, |frame| {
        let Frame::Effect(effect) = frame else { return Ok(()) };
        if let Effect::Kept(kept) = &effect
            && let Some(found) = scheduler.objection(kept)
        {
            return Err(CodecError::Damaged { offset: 0, found });
        }
        scheduler.replay(&effect);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let queue = QueueName::new("q").unwrap();
        let until = Timestamp::from_nanos(7);
        let notes = [Note::Here, Note::Asked(queue.clone(), until), Note::Levelled];
        let effect = Effect::QueueRemoved(queue);
        let mut frames = Vec::new();
        notes.iter().for_each(|note| push_note(note, &mut frames));
        push(&effect, &mut frames);
        let (mut found, mut effects) = (Vec::new(), Vec::new());
        let read = each(&frames, |frame| {
            match frame {
                Frame::Note(note) => found.push(note),
                Frame::Effect(effect) => effects.push(effect),
            }
            Ok(())
        });
        assert_eq!((read, found, effects), (Ok(()), notes.to_vec(), vec![effect]));
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(bytes: Vec<u8>) {
            let _ = each(&bytes, |_| Ok(()));
        }
    }
}
