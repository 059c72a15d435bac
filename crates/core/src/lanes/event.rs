//! Events: what happened to a call. History is events that are kept; a stream is events as they
//! happen.

use super::call::{CallId, End};
use super::payload::Payload;
use crate::name::{LaneName, LimitName, Partition, QueueName};
use crate::time::{Now, Span, Timestamp};
use smallvec::SmallVec;
use std::ops::Deref;

/// How much of a call's body is told with [`What::Unknown`]: enough for a name at its beginning.
pub const BEGINS_BYTES_MAX: usize = 256;

/// At how many meters it is told each second that they let fewer go than stood ready: enough to see which,
/// and a small part of what a stream keeps.
pub const THROTTLED_MAX: usize = 1_000;

/// Something that happened to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Now,
    /// To which call.
    pub call: CallId,
    /// Its queue.
    pub queue: QueueName,
    /// Its lane.
    pub lane: LaneName,
    /// What.
    pub what: What,
}

impl Event {
    /// Whether history keeps it: what came of an attempt, how a call ended, that a dead one was revived,
    /// that a call waits for a limit which nobody defined, and that one was accepted or started where its
    /// queue tells that.
    pub fn is_history(&self) -> bool {
        match &self.what {
            What::Settled { .. } | What::Ended { .. } | What::Revived | What::Unknown { .. } => {
                true
            }
            What::Enqueued { payload } => !payload.envelope().is_empty(),
            What::Started { is_told, .. } => *is_told,
            What::Throttled { .. } => false,
        }
    }

    /// How long the report, the payload or the part of it is that comes with it.
    pub fn bytes(&self) -> usize {
        match &self.what {
            What::Settled { report, .. } => report.len(),
            What::Enqueued { payload } => payload.bytes(),
            What::Unknown { begins, .. } => begins.len(),
            What::Throttled { .. } | What::Started { .. } | What::Ended { .. } | What::Revived => 0,
        }
    }

    /// How the call ended, if it did.
    pub fn end(&self) -> Option<End> {
        match self.what {
            What::Ended { end, .. } => Some(end),
            _ => None,
        }
    }
}

/// What happened to a call.
// Not `non_exhaustive`: the stores write each of them down, and are to be told of a new one when they
// are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// It was accepted.
    Enqueued {
        /// What goes with its body, and that if it has up to
        /// [4 KiB](super::payload::TOLD_BODY_BYTES_MAX), where its queue
        /// [tells](super::QueueSpec::tells_accepted) that; empty: nothing.
        payload: Payload,
    },
    /// It was accepted, and waits for a limit that nobody had defined. Told once for each of its meters.
    Unknown {
        /// Which limit.
        limit: LimitName,
        /// The partition of the meter where it owes.
        partition: Option<Partition>,
        /// What its body begins with, up to [256 bytes](BEGINS_BYTES_MAX), for who knows what that says.
        begins: Box<[u8]>,
    },
    /// It stood first at a meter that let fewer of its queue's calls go than stood ready there, and waits.
    /// Told as it happens and in no history, at most once a second of a meter and a queue, and
    /// [of so many](THROTTLED_MAX) of them; all of it is [counted](crate::contract::LimitCounts).
    Throttled {
        /// Which limit.
        limit: LimitName,
        /// The meter's partition.
        partition: Option<Partition>,
        /// How many calls stood ready there, each the first of its lane when it came.
        wanted: u64,
        /// How many of them went in the same claim.
        granted: u64,
    },
    /// It was started, and paid.
    Started {
        /// The token of the start's lease.
        token: u64,
        /// Which attempt it is, from 1 on. One that was handed back unstarted is counted again.
        attempt: u32,
        /// What it waited for before.
        waits: Waits,
        /// Its queue [tells](super::QueueSpec::tells_accepted) of its calls as they live.
        is_told: bool,
    },
    /// A start was settled.
    Settled {
        /// The token of the start's lease.
        token: u64,
        /// Which attempt it was.
        attempt: u32,
        /// When it was started.
        started: Now,
        /// What it had waited for before.
        waits: Waits,
        /// What came of it.
        outcome: Outcome,
        /// What was said about it; empty: nothing.
        report: Box<[u8]>,
    },
    /// It ended. A dead one may be revived, and ends again if it is not.
    Ended {
        /// How.
        end: End,
        /// How often it was tried.
        attempts: u32,
    },
    /// It was dead, and waits again. Its attempts are counted anew.
    Revived,
}

/// What came of an attempt.
// Not `non_exhaustive`, as `What`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It failed, and is to be tried again.
    Failed {
        /// Not before.
        again_at: Timestamp,
    },
    /// It was handed back unstarted.
    Released,
    /// It was the last: given up, or failed or limited once too often.
    Dead,
    /// The upstream asked for a pause.
    Limited {
        /// Until when.
        until: Timestamp,
    },
    /// Its lease ran out.
    Crashed,
    /// It was not done, and is not tried again: the call had been taken back.
    Cancelled,
}

/// How long a call waited at which limit, from when it was the first of its lane and a worker asked
/// for it in vain. What it waited behind others of its lane, at rest, or for a worker, is the rest of
/// the time since it was enqueued. Counted while the store is open: a restart begins at zero.
pub type Waits = Box<[(LimitName, Span)]>;

/// [`Waits`] as they are written with a start: by the number of the call's meter in the order of its
/// tolls. Meters where it did not wait are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineWaits(SmallVec<[(usize, Span); 1]>);

impl LineWaits {
    /// Adds what a call waited at one of its meters.
    pub(super) fn add(&mut self, line: usize, span: Span) {
        match self.0.iter_mut().find(|(known, _)| *known == line) {
            _ if span.is_zero() => {}
            Some((_, known)) => *known = known.plus(span),
            None => self.0.push((line, span)),
        }
    }
}

impl Deref for LineWaits {
    type Target = [(usize, Span)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromIterator<(usize, Span)> for LineWaits {
    fn from_iter<T: IntoIterator<Item = (usize, Span)>>(waits: T) -> Self {
        Self(waits.into_iter().collect())
    }
}

/// Which events are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Watch {
    /// None, at no cost.
    #[default]
    Nothing,
    /// Those that history keeps.
    History,
    /// All.
    Everything,
}
