//! Exports: all that lasts as lines of JSON, one fact a line, and back.
//!
//! # Format 1
//! The first line is a header, `{"tollgate":"export","version":1}`; the last one,
//! `{"fact":"end","lines":…}`, says how many lines there are. Each line between has a `fact` and is of
//! one thing as it is: counters, limits with their meters, queues with their lanes, calls, dedupe keys,
//! settled receipts, records, joins. What a line builds on stands before it. Durations are in the one
//! grammar, instants are RFC 3339 with nanoseconds, bytes are text or base64. What is left out is
//! absent, false or empty. History is not exported, nor is what calls in flight waited for before.
//!
//! The same state makes the same lines, in the same order.

mod calls;
mod import;
mod line;
mod queue_toll;
mod rules;
mod text;

#[cfg(test)]
pub(super) use import::import_on;
pub use import::{ImportError, Imported, import};

use self::line::{EndLine, Line};
use super::check::{self, CheckError, Checked};
use super::records;
use crate::embedded::disk::Disk;
use crate::embedded::log::{LogError, Position, Reader};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::sync::Arc;
use tollgate_core::Now;
use tollgate_core::lanes::{CallId, Effect, Kept, Payload, Scheduler};

/// The version that is written, and the latest that is read.
const VERSION: u32 = 1;
const FORMAT: &str = "export";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    tollgate: String,
    version: u32,
}

/// An export that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// What is in it.
    pub checked: Checked,
    /// How many lines it has.
    pub lines: u64,
}

/// Why an export is not whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The folder is not sound, or could not be read.
    #[error(transparent)]
    Unsound(#[from] CheckError),
    /// It could not be written.
    #[error("the export cannot be written: {0}")]
    Failed(#[from] io::Error),
}

/// Writes all that a disk holds as lines, after it has been checked. Nothing is changed. Takes as much
/// memory as the store does, without bodies.
pub fn export(disk: &Arc<dyn Disk>, out: &mut dyn Write) -> Result<Exported, ExportError> {
    let mut lines = 0;
    let checked = each_line(disk, |line| {
        lines += 1;
        out.write_all(line.as_bytes())?;
        Ok(out.write_all(b"\n")?)
    })?;
    out.flush()?;
    Ok(Exported { checked, lines })
}

/// Hands out all that a disk holds, after it has been checked: each fact after those it builds on, calls
/// with their payloads. What may have been consumed and was not written down counts as consumed.
#[cfg(feature = "postgres")]
pub(crate) fn each_fact(
    disk: &Arc<dyn Disk>,
    mut each: impl FnMut(Effect) -> Result<(), ExportError>,
) -> Result<(Checked, tollgate_core::Timestamp), ExportError> {
    let (checked, mut scheduler) = check::read(disk, |_, _| ())?;
    let now = Now::both(scheduler.latest());
    scheduler.charge_allowed(now);
    let reader = Reader::on(disk.clone());
    let mut outcome = Ok(());
    scheduler.snapshot(now, |fact| {
        if outcome.is_ok() {
            outcome = with_payload(fact, &reader, &scheduler).and_then(&mut each);
        }
    });
    outcome?;
    Ok((checked, now.at))
}

/// Hands out the lines of an export, one after the other.
fn each_line(
    disk: &Arc<dyn Disk>,
    mut each: impl FnMut(&str) -> Result<(), ExportError>,
) -> Result<Checked, ExportError> {
    let (checked, scheduler) = check::read(disk, |_, _| ())?;
    let header = Header { tollgate: FORMAT.to_owned(), version: VERSION };
    each(&json(&header)?)?;
    let reader = Reader::on(disk.clone());
    let mut lines = Lines { each, group: Vec::new(), kind: 0, count: 1 };
    let mut outcome = Ok(());
    scheduler.snapshot(Now::both(scheduler.latest()), |fact| {
        if outcome.is_ok() {
            outcome = with_payload(fact, &reader, &scheduler).and_then(|fact| lines.take(&fact));
        }
    });
    outcome?;
    lines.finish()?;
    Ok(checked)
}

/// Lines of a snapshot on their way out: what the scheduler has in no order is sorted, kind by kind.
struct Lines<F> {
    each: F,
    /// Of one kind, not yet handed out.
    group: Vec<Line>,
    kind: u8,
    count: u64,
}

impl<F: FnMut(&str) -> Result<(), ExportError>> Lines<F> {
    fn take(&mut self, fact: &Effect) -> Result<(), ExportError> {
        // History stays behind, and with it what a call in flight waited for before.
        if matches!(fact, Effect::Kept(Kept::Start { .. })) {
            return Ok(());
        }
        let line = Line::of(fact);
        assert!(line.is_some(), "a snapshot says what is, not what happened: {fact:?}");
        let Some(line) = line else { return Ok(()) };
        let (kind, ..) = line.order();
        if kind != self.kind {
            self.hand_out()?;
            self.kind = kind;
        }
        // Calls are most of it, and come in order.
        if matches!(line, Line::Call(_)) {
            self.count += 1;
            return (self.each)(&json(&line)?);
        }
        self.group.push(line);
        Ok(())
    }

    fn hand_out(&mut self) -> Result<(), ExportError> {
        self.group.sort_by_cached_key(Line::order);
        for line in std::mem::take(&mut self.group) {
            self.count += 1;
            (self.each)(&json(&line)?)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), ExportError> {
        self.hand_out()?;
        (self.each)(&json(&Line::End(EndLine { lines: self.count + 1 }))?)
    }
}

/// The same fact, a call with its payload.
fn with_payload(
    mut fact: Effect,
    reader: &Reader,
    scheduler: &Scheduler,
) -> Result<Effect, ExportError> {
    if let Effect::Kept(Kept::Call { id, call, .. }) = &mut fact {
        call.payload = payload(*id, reader, scheduler).map_err(CheckError::from)?;
    }
    Ok(fact)
}

fn payload(id: CallId, reader: &Reader, scheduler: &Scheduler) -> Result<Payload, LogError> {
    let at = Position::from_bits(scheduler.located(id).unwrap_or_default());
    records::payload(reader, at)
}

fn json(value: &impl Serialize) -> Result<String, ExportError> {
    serde_json::to_string(value).map_err(|error| ExportError::Failed(error.into()))
}
