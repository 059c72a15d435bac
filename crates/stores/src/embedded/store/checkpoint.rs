//! Checkpoints: all that lasts as of the start of a segment, so that the segments before need not be
//! read again.
//!
//! A checkpoint is a log of its own, `checkpoint-7-journal-…`, for all that happened before segment 7
//! of the journal; a file `checkpoint-7.whole` says that it is complete. It is made from the
//! checkpoint before and the sealed segments since, on a thread of its own: the writer knows nothing
//! of it. Bodies stay in the journal, and the checkpoint says where.

use super::open::OpenError;
use super::records;
use super::replay::Replay;
use super::segments::Segments;
use crate::embedded::disk::Disk;
use crate::embedded::disk::part::Part;
use crate::embedded::log::{self, Batch, Log, LogError, Report, SegmentNumber, Settings};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tollgate_core::lanes::{Effect, Kept};
use tollgate_core::{Now, Timestamp};

const PREFIX: &str = "checkpoint-";
const WHOLE: &str = ".whole";
/// Written at once.
const BATCH_BYTES: usize = 4 << 20;

/// The newest whole checkpoint: what is before that segment is in it.
pub(super) fn newest(disk: &dyn Disk) -> io::Result<Option<SegmentNumber>> {
    disk.names().map(|names| newest_of(&names))
}

/// The newest whole checkpoint among files of these names.
pub(super) fn newest_of(names: &[String]) -> Option<SegmentNumber> {
    let whole = names.iter().filter_map(|name| {
        let number = name.strip_prefix(PREFIX)?.strip_suffix(WHOLE)?;
        number.parse().ok().map(SegmentNumber::new)
    });
    whole.max()
}

/// The files of a checkpoint among these, but for the one that says that it is whole.
pub(super) fn names_of(number: SegmentNumber, names: &[String]) -> Vec<String> {
    let prefix = part_prefix(number);
    let ours = names.iter().filter(|name| {
        let segment = name.strip_prefix(&prefix);
        segment.is_some_and(|name| SegmentNumber::of_file(name).is_some())
    });
    ours.cloned().collect()
}

/// The name of the file that says that a checkpoint is whole.
pub(super) fn whole_name(number: SegmentNumber) -> String {
    format!("{PREFIX}{}{WHOLE}", number.as_u32())
}

/// Removes all checkpoints but one: what is older, and what a crash left unfinished.
pub(super) fn remove_others(disk: &dyn Disk, kept: Option<SegmentNumber>) -> Result<(), LogError> {
    let kept = kept.map(|number| format!("{PREFIX}{}", number.as_u32()));
    let is_kept = |name: &String| {
        let rest = kept.as_ref().and_then(|kept| name.strip_prefix(kept.as_str()));
        rest.is_some_and(|rest| rest == WHOLE || rest.starts_with('-'))
    };
    let failed = |error| LogError::failed("removing old checkpoints", error);
    let names = disk.names().map_err(failed)?.into_iter();
    let others = names.filter(|name| name.starts_with(PREFIX) && !is_kept(name));
    let (whole, others): (Vec<_>, Vec<_>) = others.partition(|name| name.ends_with(WHOLE));
    if whole.is_empty() && others.is_empty() {
        return Ok(());
    }
    // One that is not whole any more is not taken for one, whatever is left of it.
    whole.iter().try_for_each(|name| disk.remove(name)).map_err(failed)?;
    sync_folder(disk)?;
    others.iter().try_for_each(|name| disk.remove(name)).map_err(failed)?;
    sync_folder(disk)
}

fn sync_folder(disk: &dyn Disk) -> Result<(), LogError> {
    disk.sync().map_err(|error| LogError::unsynced("its folder", error))
}

/// Reads a checkpoint; says what was read.
pub(super) fn read(
    disk: &Arc<dyn Disk>,
    number: SegmentNumber,
    replay: &mut Replay,
) -> Result<Report, OpenError> {
    let read =
        log::read(&part(disk, number), .., |position, record| replay.checkpoint(position, record));
    let report = read.map_err(|error| of_checkpoint(number, error))?;
    // It was closed in good order, and has at least its counters.
    if report.records == 0 || report.torn.is_some() {
        let found = "the checkpoint is not all there".to_owned();
        let file = whole_name(number);
        return Err(LogError::Corrupt { file, offset: 0, found }.into());
    }
    Ok(report)
}

/// The same error with the names that its files have in the folder.
fn of_checkpoint(number: SegmentNumber, mut error: OpenError) -> OpenError {
    if let OpenError::Journal(LogError::Corrupt { file, .. } | LogError::Newer { file, .. })
    | OpenError::Record { file, .. } = &mut error
    {
        *file = format!("{}{file}", part_prefix(number));
    }
    error
}

/// Makes a checkpoint of all that happened before segment `until`, from the newest that is there and
/// the segments since; says how many bytes it has.
pub(super) fn make(
    disk: &Arc<dyn Disk>,
    until: SegmentNumber,
    wall: Timestamp,
) -> Result<u64, OpenError> {
    let failed = |error| LogError::full_or_failed("making a checkpoint", error);
    let base = newest(&**disk).map_err(failed)?;
    let mut replay = Replay::default();
    if let Some(base) = base {
        read(disk, base, &mut replay)?;
    }
    let from = base.unwrap_or(SegmentNumber::FIRST);
    log::read(&**disk, from..until, |position, record| replay.journal(position, record))?;
    let whole = whole_name(until);
    let written = write(disk, until, &replay, wall).and_then(|bytes| {
        disk.create(&whole).map_err(failed)?;
        sync_folder(&**disk).map(|()| bytes)
    });
    // What is old or was begun in vain goes now, or with the next checkpoint.
    let kept = if written.is_ok() { Some(until) } else { base };
    match remove_others(&**disk, kept) {
        Err(unsynced @ LogError::Unsynced { .. }) => return Err(unsynced.into()),
        Err(error) => tracing::warn!(%error, "old checkpoints were not removed"),
        Ok(()) => {}
    }
    Ok(written?)
}

fn write(
    disk: &Arc<dyn Disk>,
    number: SegmentNumber,
    Replay { scheduler, given, .. }: &Replay,
    wall: Timestamp,
) -> Result<u64, LogError> {
    let settings = Settings { segment_bytes: 1 << 30 };
    let unread = |_, _: &[u8]| Ok(());
    let part: Arc<dyn Disk> = Arc::new(part(disk, number));
    let (mut log, _) = Log::open::<LogError>(part, settings, SegmentNumber::FIRST, unread)?;
    let (mut batch, mut bytes, mut outcome) = (Batch::new(), 0, Ok(()));
    let now = Now { at: scheduler.latest(), wall };
    scheduler.snapshot(now, |effect| {
        batch.push_with(|buffer| records::encode(&effect, buffer));
        if let Effect::Kept(Kept::Call { id, .. }) = effect {
            let body = scheduler.located(id).unwrap_or_default();
            batch.push_with(|buffer| records::encode_located(id, body, buffer));
        }
        if batch.bytes() >= BATCH_BYTES {
            bytes += batch.bytes() as u64;
            if outcome.is_ok() {
                outcome = log.commit(&mut batch).map(|_| ());
            }
            batch.clear();
        }
    });
    outcome?;
    let needed = Segments::of(scheduler.locations(), given, BTreeMap::new());
    for (segment, given) in needed.given() {
        batch.push_with(|buffer| records::encode_given(segment, given, buffer));
    }
    bytes += batch.bytes() as u64;
    log.commit(&mut batch)?;
    log.close()?;
    Ok(bytes)
}

fn part(disk: &Arc<dyn Disk>, number: SegmentNumber) -> Part {
    Part::new(disk.clone(), part_prefix(number))
}

/// What the names of a checkpoint's files begin with.
fn part_prefix(number: SegmentNumber) -> String {
    format!("{PREFIX}{}-", number.as_u32())
}
