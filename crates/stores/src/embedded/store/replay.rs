//! Reading a folder: what was decided happens again, and the bodies of each segment are counted.

use super::open::OpenError;
use super::records;
use crate::embedded::log::{Position, SegmentNumber};
use std::collections::BTreeMap;
use tollgate_core::lanes::Scheduler;

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) scheduler: Scheduler,
    /// How many bodies each segment of the journal was ever given.
    pub(super) bodies: BTreeMap<SegmentNumber, u64>,
}

impl Replay {
    /// A record of the journal.
    pub(super) fn journal(&mut self, position: Position, record: &[u8]) -> Result<(), OpenError> {
        if records::has_body(record) {
            *self.bodies.entry(position.segment()).or_default() += 1;
        }
        self.replay(position, record)
    }

    /// A record of a checkpoint.
    pub(super) fn checkpoint(
        &mut self,
        position: Position,
        record: &[u8],
    ) -> Result<(), OpenError> {
        let counted = records::counted(record);
        match counted.map_err(|error| OpenError::record(position, error))? {
            Some((segment, bodies)) => {
                self.bodies.insert(segment, bodies);
                Ok(())
            }
            None => self.replay(position, record),
        }
    }

    fn replay(&mut self, position: Position, record: &[u8]) -> Result<(), OpenError> {
        let replayed = records::replay(&mut self.scheduler, position, record);
        replayed.map_err(|error| OpenError::record(position, error))
    }
}
