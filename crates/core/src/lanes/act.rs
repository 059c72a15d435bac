//! An act: one atomic change. Define, settle, cancel, revive, write records, enqueue, count down; all or
//! nothing, and only if the records are there that it needs.

use super::call::{CallId, Lease, NewCall};
use super::ids::CallIds;
use crate::contract::ConfigureError;
use crate::limit::Definition;
use crate::name::{Key, LimitName, NameError, QueueName};
use crate::time::{Span, Timestamp};
use crate::toll::{Toll, TollError};

/// Most changes in one act: an act is one write, held in memory whole. Ten thousand runs fit that begin
/// together, each with its record and its first call.
pub const ACT_CHANGES_MAX: usize = 25_000;

/// Longest body of a call.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Longest report on a start: some tens of thousands of them are held in memory.
pub const REPORT_BYTES_MAX: usize = 64 << 10;
/// No part of an act is too long that has up to so many bytes.
pub(super) const FITS_BYTES: usize =
    if BODY_BYTES_MAX < REPORT_BYTES_MAX { BODY_BYTES_MAX } else { REPORT_BYTES_MAX };
/// Most bytes of payloads, reports and records in one act.
pub const ACT_BYTES_MAX: usize = 64 << 20;

/// One atomic change: every part is done in the order in which they stand here, or none is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Act {
    /// Limits that come along with calls: the newest definition of one counts, also for calls that wait,
    /// and what was spent stays spent. One that was defined in its own right stays as it is.
    ///
    /// They go with their calls: one that is as new, is not held back and has no partition with rules of
    /// its own is not there any more once no call owes anything at it.
    pub define: Vec<(LimitName, Definition)>,
    /// Calls in flight that end, or go back to wait.
    pub settle: Vec<Settle>,
    /// Calls that are to stop: those that wait or are dead end for good, those in flight are not tried
    /// again.
    pub cancel: Vec<CallId>,
    /// Dead calls that are to end for good; what is not dead is left alone.
    pub delete: Vec<CallId>,
    /// Dead calls that are to be tried again. They count for the depth of their queue.
    pub revive: Vec<Revive>,
    /// Opaque records.
    pub write: Vec<Write>,
    /// New calls, in order.
    pub enqueue: Vec<NewCall>,
    /// Joins that come one closer.
    pub count_down: Vec<Count>,
    /// Joins that nobody counts down any more: they are no more. One of the same key counts from its beginning.
    pub forget: Vec<Key>,
    /// Records that must be there before, whatever they say.
    pub needs: Vec<Key>,
    /// What becomes of new calls that no rules let pass.
    pub door: Door,
}

/// What becomes of new calls that owe at a limit which nobody defined, or more than it ever lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Door {
    /// The act is refused.
    #[default]
    Refuses,
    /// They are accepted and wait, holding nobody's turn, until there is a limit that lets them pass.
    Parks,
}

/// A dead call that is to be tried again, as one that never started: at the end of its lane, with no
/// attempt counted, paying what it always paid. It does not expire and is not superseded any more.
///
/// A lane that dead calls hold goes on, and the call has its old place there, unless it is to come
/// later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revive {
    /// Which.
    pub call: CallId,
    /// It joins its lane at this instant of the wall clock; `None`: at once. Many can be revived at a
    /// chosen rate by instants that grow.
    pub not_before: Option<Timestamp>,
}

/// What came of one start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settle {
    /// Which start.
    pub lease: Lease,
    /// What came of it.
    pub settlement: Settlement,
    /// The true cost at a limit, for all of the call's tolls of that name. What is not named cost
    /// what it paid.
    pub actual: Vec<(LimitName, u64)>,
    /// What there is to say about it, for the history: an answer, an error. No decision looks into it;
    /// empty: nothing.
    pub report: Box<[u8]>,
}

impl Settle {
    /// A start that cost what it paid, and nothing is said about it.
    pub fn new(lease: Lease, settlement: Settlement) -> Self {
        Self { lease, settlement, actual: Vec::new(), report: [].into() }
    }
}

/// What came of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It is done.
    Done,
    /// It failed: again after so long, or after the queue's backoff.
    Retry(Option<Span>),
    /// It was never started: everything it paid is handed back, and no attempt is counted.
    Release,
    /// It is to be given up.
    Dead,
    /// The upstream asked for a pause of so long: the meters that hear feedback close, and the
    /// call keeps its place.
    Limited(Span),
}

/// A revision of a record: 0 is a record that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// A change of a record, if it is still as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Which record.
    pub key: Key,
    /// At which revision it must be.
    pub expected: Revision,
    /// Its new bytes; `None` removes it.
    pub bytes: Option<Box<[u8]>>,
}

/// A record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Counts the writes of the store, so that a record that was removed and written again has a
    /// revision of its own.
    pub revision: Revision,
    /// What the caller wrote.
    pub bytes: Box<[u8]>,
}

/// A join that comes one closer. The first count of a key opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Which join.
    pub key: Key,
    /// From where it counts, if this is its first; at least 1.
    pub from: u64,
    /// What is enqueued when it reaches zero.
    pub then: NewCall,
}

/// What an act did, in the order of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Acted {
    /// The calls that were enqueued; for a duplicate the call that was first.
    pub enqueued: CallIds,
    /// The places in `enqueue` of those that were known already, in order.
    pub duplicates: Vec<usize>,
    /// Of each call to be cancelled, whether it was there.
    pub cancelled: Vec<bool>,
    /// Of each call to be deleted, whether it was among the dead.
    pub deleted: Vec<bool>,
    /// Of each call to be revived, whether it was among the dead.
    pub revived: Vec<bool>,
    /// The new revisions of the records.
    pub written: Vec<Revision>,
    /// What is left to count, with the call that was enqueued at zero.
    pub counted: Vec<(u64, Option<CallId>)>,
}

/// Why nothing of an act was done. Positions count from 0 within their part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ActError {
    /// The start to be settled is not in flight any more: settled, expired, or never was.
    #[error("settlement {at}: the lease is lost; another worker may have the call")]
    LeaseLost {
        /// Which settlement.
        at: usize,
    },
    /// A settlement names a limit that the call does not pay.
    #[error("settlement {at}: the call pays nothing at {limit}")]
    NotPaid {
        /// Which settlement.
        at: usize,
        /// What it named.
        limit: LimitName,
    },
    /// The record is at another revision.
    #[error("write {at}: the record is at revision {}: read it again", found.0)]
    RevisionDiffers {
        /// Which write.
        at: usize,
        /// Where it is.
        found: Revision,
    },
    /// A record is not there that must be.
    #[error("need {at}: there is no such record")]
    RecordMissing {
        /// Which need.
        at: usize,
    },
    /// There is no such queue.
    #[error("call {at}: there is no queue {queue}: define it first")]
    UnknownQueue {
        /// Which new call.
        at: usize,
        /// What it named.
        queue: QueueName,
    },
    /// A toll that can never be paid.
    #[error("call {at}: {error}")]
    Toll {
        /// Which new call.
        at: usize,
        /// What is wrong with it.
        error: TollError,
    },
    /// The queue is as deep as it may be.
    #[error("queue {queue} holds {depth} calls, the most it may: enqueue again later")]
    QueueFull {
        /// Which queue.
        queue: QueueName,
        /// Its bound.
        depth: u64,
    },
    /// A join that counts from nothing.
    #[error("count {at}: a join counts from at least 1")]
    CountFromZero {
        /// Which count.
        at: usize,
    },
    /// More changes than one act may hold.
    #[error("an act holds up to {ACT_CHANGES_MAX} changes, and this one {given}: split it")]
    TooManyChanges {
        /// How many.
        given: usize,
    },
    /// A body that is too long.
    #[error(
        "call {at}: a body may have up to {BODY_BYTES_MAX} bytes, and this one has {bytes}: keep it elsewhere and send a reference"
    )]
    BodyTooLong {
        /// Which new call.
        at: usize,
        /// How many.
        bytes: usize,
    },
    /// A report that is too long.
    #[error(
        "settlement {at}: a report may have up to {REPORT_BYTES_MAX} bytes, and this one has {bytes}: cut it"
    )]
    ReportTooLong {
        /// Which settlement.
        at: usize,
        /// How many.
        bytes: usize,
    },
    /// More bytes than one act may hold.
    #[error("an act holds up to {ACT_BYTES_MAX} bytes, and this one {bytes}: split it")]
    TooManyBytes {
        /// How many.
        bytes: usize,
    },
    /// A name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// The one thing that an act consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// A call, refused if no rules let it pass.
    Call,
    /// A start that is settled.
    Settlement,
}

/// A write that expects another revision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stale {
    /// Which write.
    pub(super) at: usize,
    /// Where its record is.
    pub(super) found: Revision,
}

impl From<Stale> for ActError {
    fn from(Stale { at, found }: Stale) -> Self {
        Self::RevisionDiffers { at, found }
    }
}

impl From<Stale> for ConfigureError {
    fn from(Stale { at, found }: Stale) -> Self {
        Self::RevisionDiffers { at, found }
    }
}

impl Act {
    /// Refuses what is larger than an act may be.
    pub(super) fn check_size(&self) -> Result<(), ActError> {
        let given = self.changes();
        if given > ACT_CHANGES_MAX {
            return Err(ActError::TooManyChanges { given });
        }
        let bytes = self.bytes();
        // None of its parts is longer than all of them.
        if bytes <= FITS_BYTES {
            return Ok(());
        }
        let new = self.enqueue.iter().enumerate();
        let thens = self.count_down.iter().map(|count| &count.then).enumerate();
        let too_long =
            new.chain(thens).find(|(_, call)| call.payload.body().len() > BODY_BYTES_MAX);
        if let Some((at, call)) = too_long {
            return Err(ActError::BodyTooLong { at, bytes: call.payload.body().len() });
        }
        let mut reports = self.settle.iter().map(|settle| settle.report.len()).enumerate();
        if let Some((at, bytes)) = reports.find(|(_, bytes)| *bytes > REPORT_BYTES_MAX) {
            return Err(ActError::ReportTooLong { at, bytes });
        }
        if bytes > ACT_BYTES_MAX {
            return Err(ActError::TooManyBytes { bytes });
        }
        Ok(())
    }

    /// How many bytes of payloads, reports and records there are.
    pub fn bytes(&self) -> usize {
        let mut bytes = 0_usize;
        for write in &self.write {
            bytes = bytes.saturating_add(write.bytes.as_ref().map_or(0, |bytes| bytes.len()));
        }
        for settle in &self.settle {
            bytes = bytes.saturating_add(settle.report.len());
        }
        for call in &self.enqueue {
            bytes = bytes.saturating_add(call.payload.bytes());
        }
        for count in &self.count_down {
            bytes = bytes.saturating_add(count.then.payload.bytes());
        }
        bytes
    }

    /// The calls that are enqueued, or would be when a join is complete.
    pub fn new_calls(&self) -> impl Iterator<Item = &NewCall> {
        self.enqueue.iter().chain(self.count_down.iter().map(|count| &count.then))
    }

    /// Changes all that another says, too, after what this one does of its kind.
    pub fn extend(&mut self, other: Self) {
        let Self {
            define,
            settle,
            cancel,
            delete,
            revive,
            write,
            enqueue,
            count_down,
            forget,
            needs,
            door,
        } = other;
        self.define.extend(define);
        self.settle.extend(settle);
        self.cancel.extend(cancel);
        self.delete.extend(delete);
        self.revive.extend(revive);
        self.write.extend(write);
        self.enqueue.extend(enqueue);
        self.count_down.extend(count_down);
        self.forget.extend(forget);
        self.needs.extend(needs);
        if door == Door::Parks {
            self.door = door;
        }
    }

    /// Leaves nothing of those acts that were made.
    pub fn clear_made(acts: &mut [Self], answers: &[Result<Acted, ActError>]) {
        for (act, _) in acts.iter_mut().zip(answers).filter(|(_, answer)| answer.is_ok()) {
            *act = Self::default();
        }
    }

    /// What it consists of, if that is one call or one settlement and nothing else.
    pub(super) fn only(&self) -> Option<Only> {
        let Self {
            define,
            settle,
            cancel,
            delete,
            revive,
            write,
            enqueue,
            count_down,
            forget,
            needs,
            door,
        } = self;
        let is_plain = define.is_empty()
            && cancel.is_empty()
            && delete.is_empty()
            && revive.is_empty()
            && write.is_empty()
            && count_down.is_empty()
            && forget.is_empty()
            && needs.is_empty()
            && *door == Door::Refuses;
        match (settle.len(), enqueue.len()) {
            (0, 1) if is_plain => Some(Only::Call),
            (1, 0) if is_plain => Some(Only::Settlement),
            _ => None,
        }
    }

    /// Lets some of its calls, in their order, owe these tolls.
    pub(super) fn owe(&mut self, owing: Vec<(usize, Vec<Toll>)>) {
        let mut owing = owing.into_iter().peekable();
        let thens = self.count_down.iter_mut().map(|count| &mut count.then);
        for (at, call) in self.enqueue.iter_mut().chain(thens).enumerate() {
            if let Some((_, tolls)) = owing.next_if(|(of, _)| *of == at) {
                call.tolls = tolls.into();
            }
        }
    }

    /// How many changes there are.
    pub fn changes(&self) -> usize {
        let Self { define, settle, cancel, delete, revive, write, .. } = self;
        let known = define.len() + settle.len() + cancel.len() + delete.len() + revive.len();
        let known = known + self.forget.len() + self.needs.len();
        known + write.len() + self.enqueue.len() + self.count_down.len()
    }
}
