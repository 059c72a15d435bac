//! Reading an export: each line is checked, and at last all of them together.

use super::line::{EndLine, Line};
use super::text::Wrong;
use super::{ExportError, FORMAT, Header, VERSION, each_line, json};
use crate::embedded::codec;
use crate::embedded::disk::fresh::Fresh;
use crate::embedded::disk::{Disk, FolderError};
use crate::embedded::log::{Batch, Log, LogError, SegmentNumber, Settings};
use crate::embedded::store::check::{CheckError, Checked};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;
use tollgate_core::Timestamp;
use tollgate_core::lanes::act::ACT_BYTES_MAX;
use tollgate_core::lanes::{CallId, Effect, Kept, KeptFlight, Revision, Scheduler};

/// Longest line: the longest record, with each of its bytes written as six, and what is around it.
const LINE_BYTES_MAX: u64 = 6 * ACT_BYTES_MAX as u64 + (1 << 20);
/// Written at once.
const BATCH_BYTES: usize = 4 << 20;

/// A folder that was made of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// What is in it.
    pub checked: Checked,
    /// How many lines were read.
    pub lines: u64,
}

/// Why there is no folder of an export. Where it was to be, nothing is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The folder cannot be had.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A line is wrong.
    #[error("line {line}: {found}")]
    Line {
        /// Which, counted from 1.
        line: u64,
        /// What is wrong with it.
        found: String,
    },
    /// The lines could not be read.
    #[error("the export cannot be read: {0}")]
    Unread(#[source] io::Error),
    /// The folder could not be written.
    #[error(transparent)]
    Journal(#[from] LogError),
    /// What was written is not sound.
    #[error(transparent)]
    Unsound(#[from] CheckError),
}

/// Makes a folder of an export. It must not exist, or be empty; it is there once it is whole, and what
/// it holds exports as the same lines.
pub fn import(lines: impl BufRead, folder: &Path) -> Result<Imported, ImportError> {
    let fresh = Fresh::begin(folder)?;
    let imported = import_on(lines, fresh.disk())?;
    fresh.finish()?;
    Ok(imported)
}

/// Makes an empty disk hold what an export says.
pub(in crate::embedded::store) fn import_on(
    mut lines: impl BufRead,
    disk: &Arc<dyn Disk>,
) -> Result<Imported, ImportError> {
    let (first, unread) = (SegmentNumber::FIRST, |_, _: &[u8]| Ok(()));
    let (log, _) = Log::open::<LogError>(disk.clone(), Settings::default(), first, unread)?;
    let mut import = Import::new(log);
    let (mut line, mut number) = (Vec::new(), 0);
    while next_line(&mut lines, &mut line).map_err(ImportError::Unread)? {
        number += 1;
        import.take(&line, number)?;
    }
    import.finish(disk, number)
}

/// Reads a line, without what ends it; says whether there was one.
fn next_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    // One that is longer is cut off here, and refused for what is missing.
    let bytes = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(bytes > 0)
}

/// What has been read so far.
struct Import {
    log: Log,
    batch: Batch,
    /// What a store would have: facts are checked against it.
    scheduler: Scheduler,
    counters: Option<Counters>,
    has_header: bool,
    has_ended: bool,
    /// The lines as an export of the new folder must have them, by their hashes.
    expected: HashMap<u64, u64>,
    hashing: RandomState,
}

#[derive(Debug, Clone, Copy)]
struct Counters {
    ids: u64,
    tokens: u64,
    arrivals: u64,
    revisions: u64,
    now: Timestamp,
}

impl Import {
    fn new(log: Log) -> Self {
        Self {
            log,
            batch: Batch::new(),
            scheduler: Scheduler::new(),
            counters: None,
            has_header: false,
            has_ended: false,
            expected: HashMap::new(),
            hashing: RandomState::new(),
        }
    }

    fn take(&mut self, line: &[u8], number: u64) -> Result<(), ImportError> {
        let wrong = |found| ImportError::Line { line: number, found };
        if !self.has_header {
            check_header(line).map_err(wrong)?;
            self.has_header = true;
            return Ok(());
        }
        if self.has_ended {
            return Err(wrong("nothing may follow the last line".to_owned()));
        }
        let Some(fact) = self.read(line, number).map_err(wrong)? else { return Ok(()) };
        let Some(again) = Line::of(&fact).and_then(|line| json(&line).ok()) else {
            return Err(wrong("it cannot be written again".to_owned()));
        };
        if let Some(before) = self.expected.insert(self.hashing.hash_one(again.as_str()), number) {
            return Err(wrong(format!("line {before} says the same")));
        }
        self.scheduler.replay(&fact);
        self.batch.push_with(|buffer| codec::encode(&fact, buffer));
        if self.batch.bytes() >= BATCH_BYTES {
            self.log.commit(&mut self.batch)?;
            self.batch.clear();
        }
        Ok(())
    }

    /// The fact of a line; `None` for the last line.
    fn read(&mut self, line: &[u8], number: u64) -> Result<Option<Effect>, Wrong> {
        // Which line it is in, only we know.
        let wrong = |error: serde_json::Error| error.to_string().replace("line 1 column", "column");
        let line: Line = serde_json::from_slice(line).map_err(wrong)?;
        if let Line::End(EndLine { lines }) = line {
            self.has_ended = lines == number;
            let found = format!("{lines} lines were written, and this is line {number}");
            return if self.has_ended { Ok(None) } else { Err(found) };
        }
        let now = self.counters.map_or(Timestamp::default(), |counters| counters.now);
        let Some(fact) = line.read(now)? else { return Ok(None) };
        match (&fact, self.counters) {
            (Effect::Kept(Kept::Counters { ids, tokens, arrivals, revisions, now }), None) => {
                let (ids, tokens, arrivals) = (*ids, *tokens, *arrivals);
                let (revisions, now) = (*revisions, *now);
                self.counters = Some(Counters { ids, tokens, arrivals, revisions, now });
            }
            (Effect::Kept(Kept::Counters { .. }), Some(_)) => {
                return Err("there are counters already".to_owned());
            }
            (_, None) => return Err("counters come before all other facts".to_owned()),
            (fact, Some(counters)) => counters.check(fact)?,
        }
        match &fact {
            Effect::Kept(kept) => match self.scheduler.objection(kept) {
                Some(found) => Err(format!("it cannot be made true: it is {found}")),
                None => Ok(Some(fact)),
            },
            _ => Ok(Some(fact)),
        }
    }

    /// Writes what is left, and reads everything again: what it says must be what was read.
    fn finish(mut self, disk: &Arc<dyn Disk>, lines: u64) -> Result<Imported, ImportError> {
        if !self.has_ended {
            let found = "the last line, with \"fact\":\"end\", is missing: the export was cut off";
            return Err(ImportError::Line { line: lines + 1, found: found.to_owned() });
        }
        self.log.commit(&mut self.batch)?;
        self.log.close()?;
        let (mut expected, hashing) = (self.expected, self.hashing);
        let checked = each_line(disk, |line| {
            expected.remove(&hashing.hash_one(line));
            Ok(())
        });
        let checked = checked.map_err(|error| match error {
            ExportError::Unsound(error) => ImportError::Unsound(error),
            ExportError::Failed(error) => ImportError::Unread(error),
        })?;
        match expected.into_values().min() {
            Some(line) => {
                let found = "it does not last: another line says otherwise, or it is over already";
                Err(ImportError::Line { line, found: found.to_owned() })
            }
            None => Ok(Imported { checked, lines }),
        }
    }
}

impl Counters {
    /// Whether what counts on is not behind what it has counted.
    fn check(&self, fact: &Effect) -> Result<(), Wrong> {
        let is_known = |id: &CallId| id.0 < self.ids;
        let is_counted = match fact {
            Effect::Kept(Kept::Call { id, arrival, flight, .. }) => {
                let arrived = arrival.is_none_or(|arrival| arrival < self.arrivals);
                let is_started = |flight: &KeptFlight| flight.token <= self.tokens;
                is_known(id) && arrived && flight.as_ref().is_none_or(is_started)
            }
            Effect::Kept(Kept::Dedupe { id, .. }) => is_known(id),
            Effect::Kept(Kept::Receipt { id, .. }) => *id <= self.tokens,
            Effect::Written { revision: Revision(revision), .. } => *revision <= self.revisions,
            _ => true,
        };
        let found = "it has a number that the counters have not come to";
        if is_counted { Ok(()) } else { Err(found.to_owned()) }
    }
}

fn check_header(line: &[u8]) -> Result<(), Wrong> {
    let example = format!("{{\"tollgate\":\"{FORMAT}\",\"version\":{VERSION}}}");
    let header: Header = serde_json::from_slice(line)
        .map_err(|error| format!("an export begins with {example}: {error}"))?;
    match header {
        Header { tollgate, .. } if tollgate != FORMAT => {
            Err(format!("an export begins with {example}"))
        }
        Header { version, .. } if version > VERSION => Err(format!(
            "it has version {version}, and this release knows up to {VERSION}: import it with the release that wrote it, or a later one"
        )),
        _ => Ok(()),
    }
}
