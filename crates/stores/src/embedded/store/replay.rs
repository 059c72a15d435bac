//! Reading a folder: what was decided happens again, and the bodies of each segment are counted.

use super::open::OpenError;
use super::records;
use super::segments::Given;
use crate::embedded::history::{BYTES_MAX, WAITING_MAX};
use crate::embedded::log::{Position, SegmentNumber};
use std::collections::BTreeMap;
use tollgate_core::lanes::{Event, Scheduler, Watch};

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) scheduler: Scheduler,
    /// The bodies that each segment of the journal was ever given.
    pub(super) given: BTreeMap<SegmentNumber, Given>,
    /// What happened behind a position of the journal, if that is asked for.
    pub(super) retold: Option<Retold>,
}

/// What history may not have.
#[derive(Debug)]
pub(super) struct Retold {
    /// Up to where it has all.
    after: Position,
    /// The newest that happened since.
    pub(super) events: Vec<Event>,
    /// How long their reports and payloads are.
    bytes: usize,
    /// Up to where they reach.
    pub(super) until: Position,
}

impl Retold {
    pub(super) fn new(after: Position) -> Self {
        Self { after, events: Vec::new(), bytes: 0, until: after }
    }

    /// Leaves as many of the newest as history takes at once.
    fn cut(&mut self) {
        let mut excess = 0;
        let mut events = self.events.iter();
        while (self.events.len() - excess > WAITING_MAX || self.bytes > BYTES_MAX)
            && let Some(event) = events.next()
        {
            excess += 1;
            self.bytes -= event.bytes();
        }
        self.events.drain(..excess);
    }
}

impl Replay {
    /// A record of the journal.
    pub(super) fn journal(&mut self, position: Position, record: &[u8]) -> Result<(), OpenError> {
        if records::has_payload(record) {
            self.given.entry(position.segment()).or_default().add(record.len());
        }
        let Some(retold) = &mut self.retold else { return self.replay(position, record) };
        if position > retold.after {
            // History reaches to the end of a batch, and events do not reach over one.
            self.scheduler.watch(Watch::History);
            retold.until = position;
        }
        self.replay(position, record)?;
        if let Some(retold) = &mut self.retold {
            let before = retold.events.len();
            self.scheduler.move_events(&mut retold.events);
            let new = retold.events.iter().skip(before);
            retold.bytes += new.map(Event::bytes).sum::<usize>();
            // Not one by one, for all that are left move.
            if retold.events.len() > 2 * WAITING_MAX || retold.bytes > 2 * BYTES_MAX {
                retold.cut();
            }
        }
        Ok(())
    }

    /// What happened behind the position, as much of it as is kept.
    pub(super) fn take_retold(&mut self) -> Option<Retold> {
        let mut retold = self.retold.take()?;
        retold.cut();
        Some(retold)
    }

    /// A record of a checkpoint.
    pub(super) fn checkpoint(
        &mut self,
        position: Position,
        record: &[u8],
    ) -> Result<(), OpenError> {
        let given = records::given(record);
        match given.map_err(|error| OpenError::record(position, error))? {
            Some((segment, given)) => {
                self.given.insert(segment, given);
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
