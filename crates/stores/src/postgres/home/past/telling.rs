//! What history is told of a commit, until it is written with it.

use crate::embedded::codec;
use crate::postgres::home::frames;
use tollgate_core::lanes::Event;

/// How large a part is: whoever makes rows of it reads some thousand events at a time.
const PART_BYTES: usize = 128 << 10;

/// Records of events, in parts.
#[derive(Default)]
pub(in crate::postgres::home) struct Telling {
    parts: Vec<Vec<u8>>,
    bytes: usize,
}

impl Telling {
    /// Adds events, in order: a record for each, or for an attempt and the end that came with it.
    pub(in crate::postgres::home) fn push(&mut self, mut events: &[Event]) {
        while !events.is_empty() {
            if self.parts.last().is_none_or(|part| part.len() >= PART_BYTES) {
                self.parts.push(Vec::new());
            }
            let Some(part) = self.parts.last_mut() else { return };
            let (before, mut taken) = (part.len(), 0);
            frames::framed(part, |part| taken = codec::encode_events(events, part));
            self.bytes += part.len() - before;
            events = events.get(taken..).unwrap_or_default();
        }
    }

    pub(in crate::postgres::home) fn parts(&self) -> &[Vec<u8>] {
        &self.parts
    }

    pub(in crate::postgres::home) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::postgres::home) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}
