//! Checking a folder offline: every checksum, every record, every body, and nothing is changed.

use super::open::OpenError;
use super::replay::Replay;
use super::{checkpoint, records};
use crate::embedded::codec::CodecError;
use crate::embedded::disk::Disk;
use crate::embedded::history::{self, CheckedHistory};
use crate::embedded::log::{self, LogError, Position, Report, SegmentNumber};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tollgate_core::Now;
use tollgate_core::lanes::{CallId, Effect, Kept, Payload, Scheduler};

/// What a sound folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// The whole journal, with its torn tail if a crash left one.
    pub journal: Report,
    /// The oldest segment of the journal that has records: those before it were dropped, or are empty.
    pub oldest: Option<SegmentNumber>,
    /// The newest checkpoint.
    pub checkpoint: Option<CheckedCheckpoint>,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// Queues.
    pub queues: u64,
    /// Limits.
    pub limits: u64,
    /// Records that callers wrote.
    pub records: u64,
    /// History, whatever is wrong with it: no call hangs on it.
    pub history: CheckedHistory,
}

/// A checkpoint that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedCheckpoint {
    /// All that happened before this segment is in it.
    pub before: SegmentNumber,
    /// How many records it has.
    pub records: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// All that lasts in a folder, in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// What was read.
    pub checked: Checked,
    /// Everything as it is, calls with their bodies.
    pub facts: Vec<Effect>,
}

/// Why a folder is not known to be sound. Nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// What was written is not what is read.
    #[error("{file} is damaged at offset {offset}: {found}")]
    Damaged {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        found: String,
    },
    /// It could not be read, or not by this release.
    #[error(transparent)]
    Failed(OpenError),
}

impl From<LogError> for CheckError {
    fn from(error: LogError) -> Self {
        OpenError::from(error).into()
    }
}

impl From<OpenError> for CheckError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Journal(LogError::Corrupt { file, offset, found }) => {
                Self::Damaged { file, offset, found }
            }
            OpenError::Record {
                file,
                offset,
                source: source @ (CodecError::Name { .. } | CodecError::Damaged { .. }),
            } => Self::Damaged { file, offset, found: source.to_string() },
            error => Self::Failed(error),
        }
    }
}

/// Reads all that a disk holds and changes nothing, not even a torn tail. The first damage is the
/// error.
pub fn check(disk: &Arc<dyn Disk>) -> Result<Checked, CheckError> {
    read(disk, |_, _| ()).map(|(checked, _)| checked)
}

/// As [`check`], with all that lasts: for who compares it with what should. Takes as much memory as
/// the calls have bytes.
pub fn contents(disk: &Arc<dyn Disk>) -> Result<Contents, CheckError> {
    let mut payloads = BTreeMap::new();
    let keep = |id, payload| drop(payloads.insert(id, payload));
    let (checked, scheduler) = read(disk, keep)?;
    let mut facts = Vec::new();
    scheduler.snapshot(Now::both(scheduler.latest()), |mut fact| {
        if let Effect::Kept(Kept::Call { id, call, .. }) = &mut fact {
            call.payload = payloads.remove(id).unwrap_or_default();
        }
        facts.push(fact);
    });
    Ok(Contents { checked, facts })
}

/// Reads everything, and hands out the bodies of calls that have not ended, or are dead.
pub(super) fn read(
    disk: &Arc<dyn Disk>,
    payload: impl FnMut(CallId, Payload),
) -> Result<(Checked, Scheduler), CheckError> {
    let newest = checkpoint::newest(&**disk);
    let newest = newest.map_err(|error| LogError::failed("looking for checkpoints", error))?;
    let (mut replay, mut checkpoint) = (Replay::default(), None);
    if let Some(before) = newest {
        let Report { records, bytes, .. } = checkpoint::read(disk, before, &mut replay)?;
        checkpoint = Some(CheckedCheckpoint { before, records, bytes });
    }
    let from = newest.unwrap_or(SegmentNumber::FIRST);
    let since = log::read::<OpenError>(&**disk, from.., |position, record| {
        replay.journal(position, record)
    })?;
    let scheduler = replay.scheduler;
    if since.segments == 0 && newest.is_some() {
        return Err(log::missing(from).into());
    }
    let (journal, oldest) = find_bodies(disk, &scheduler, payload)?;
    let history = history::check(disk);
    let history = history.map_err(|error| LogError::failed("reading history", error))?;
    let mut checked = Checked { journal, oldest, checkpoint, history, ..Checked::default() };
    scheduler.snapshot(Now::both(scheduler.latest()), |fact| checked.count(&fact));
    Ok((checked, scheduler))
}

impl Checked {
    fn count(&mut self, fact: &Effect) {
        // One that was removed and is still owed at comes twice: as it was, and gone.
        if let Effect::LimitDefined { definition: None, .. } = fact {
            self.limits = self.limits.saturating_sub(1);
            return;
        }
        *match fact {
            Effect::Kept(Kept::Call { death: Some(_), .. }) => &mut self.dead,
            Effect::Kept(Kept::Call { flight: None, .. }) => &mut self.waiting,
            Effect::Kept(Kept::Call { .. }) => &mut self.in_flight,
            Effect::QueueDefined { .. } => &mut self.queues,
            Effect::LimitDefined { .. } | Effect::LimitCame { .. } => &mut self.limits,
            Effect::Written { .. } => &mut self.records,
            _ => return,
        } += 1;
    }
}

/// Reads the whole journal, also what is before the checkpoint: bodies are there, each where the
/// scheduler says.
fn find_bodies(
    disk: &Arc<dyn Disk>,
    scheduler: &Scheduler,
    mut each: impl FnMut(CallId, Payload),
) -> Result<(Report, Option<SegmentNumber>), CheckError> {
    let (mut sought, mut oldest) = (BTreeSet::new(), None);
    scheduler.snapshot(Now::both(scheduler.latest()), |fact| {
        if let Effect::Kept(Kept::Call { id, .. }) = fact {
            let at = Position::from_bits(scheduler.located(id).unwrap_or_default());
            sought.insert((at, id));
        }
    });
    let report = log::read::<CheckError>(&**disk, .., |position, record| {
        oldest.get_or_insert(position.segment());
        let found = records::whole(record).map_err(|error| OpenError::record(position, error))?;
        if let Some((id, payload)) = found
            && sought.remove(&(position, id))
        {
            each(id, payload);
        }
        Ok(())
    })?;
    match sought.pop_first() {
        None => Ok((report, oldest)),
        Some((at, id)) => Err(CheckError::Damaged {
            file: at.segment().file_name(),
            offset: at.offset().into(),
            found: format!("the body of call {} should be there, and is not", id.0),
        }),
    }
}
