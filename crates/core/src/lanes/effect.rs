//! Effects: what a command changed, as facts. Applied in order to an empty scheduler they make the
//! same state, and nothing is decided again.

use super::act::Revision;
use super::call::{Attempts, CallId, DeathCause, End, Lease, NewCall};
use super::claim::Scope;
use super::event::LineWaits;
use super::kept::Kept;
use super::queue::QueueSpec;
use crate::contract::{MeterName, Receipt};
use crate::limit::Definition;
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::time::{Now, Timestamp};
use smallvec::SmallVec;

impl Effect {
    /// When it was decided, if that matters.
    pub fn now(&self) -> Option<Now> {
        match self {
            Self::LimitDefined { now, .. }
            | Self::LimitCame { now, .. }
            | Self::PartitionDefined { now, .. }
            | Self::ClosedBy { now, .. }
            | Self::Reset { now, .. }
            | Self::Timed(now)
            | Self::Started { now, .. }
            | Self::Renewed { now, .. }
            | Self::Settled { now, .. }
            | Self::Closed { now, .. }
            | Self::Paid { now, .. }
            | Self::ReceiptRenewed { now, .. }
            | Self::ReceiptSettled { now, .. } => Some(*now),
            _ => None,
        }
    }
}

/// One fact.
// Not `non_exhaustive`: the stores write each of them down, and are to be told of a new one when they
// are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A limit was defined, changed or removed.
    LimitDefined {
        /// Which.
        name: LimitName,
        /// `None`: removed.
        definition: Option<Box<Definition>>,
        /// When: what was spent by then is carried over.
        now: Now,
    },
    /// A limit came along with calls, and goes with them.
    LimitCame {
        /// Which.
        name: LimitName,
        /// Its rules.
        definition: Box<Definition>,
        /// When: what was spent by then is carried over.
        now: Now,
    },
    /// A limit that had come along and was there for nobody any more is forgotten: calls are about to wait for
    /// one of its name.
    LimitWent(LimitName),
    /// A partition of a limit was given rules of its own, or lost them.
    PartitionDefined {
        /// Of which limit.
        limit: LimitName,
        /// Which.
        partition: Partition,
        /// `None`: it follows the limit again.
        definition: Option<Box<Definition>>,
        /// When: what was spent by then is carried over.
        now: Now,
    },
    /// An operator closed a meter.
    ClosedBy {
        /// Which.
        meter: MeterName,
        /// Until when.
        until: Timestamp,
        /// Why.
        reason: Box<str>,
        /// When.
        now: Now,
    },
    /// What was spent at a meter was forgotten.
    Reset {
        /// Which.
        meter: MeterName,
        /// When.
        now: Now,
    },
    /// A queue was defined or changed.
    QueueDefined {
        /// Which.
        name: QueueName,
        /// How it is now.
        spec: Box<QueueSpec>,
    },
    /// A queue that had no calls was removed, with all that was known of its lanes and its dedupe keys.
    QueueRemoved(QueueName),
    /// A lane is served so many times as much as others.
    LaneWeighed {
        /// Of which queue.
        queue: QueueName,
        /// Which lane.
        lane: LaneName,
        /// From 1 on.
        weight: u32,
    },
    /// Something is held back.
    Paused(Scope),
    /// Something is held back no more.
    Resumed(Scope),
    /// A meter that was closed is open.
    Reopened {
        /// Which limit.
        limit: LimitName,
        /// Which meter.
        partition: Option<Partition>,
    },
    /// A call was accepted.
    Accepted {
        /// Its name.
        id: CallId,
        /// What was handed in.
        call: Box<NewCall>,
        /// Its place in its lane; `None` if it joins later.
        arrival: Option<u64>,
        /// Until when its dedupe key is remembered.
        remembered: Timestamp,
    },
    /// A call that was to wait joined its lane.
    Joined {
        /// Which.
        id: CallId,
        /// Its place there.
        arrival: u64,
    },
    /// A call started, and paid.
    Started {
        /// Which start.
        lease: Lease,
        /// When.
        now: Now,
        /// When its lease ends.
        expires: Timestamp,
        /// What it waited for before.
        waits: LineWaits,
    },
    /// A lease lasts longer.
    Renewed {
        /// Which.
        lease: Lease,
        /// When it was renewed.
        now: Now,
        /// When it ends now.
        expires: Timestamp,
    },
    /// A start was settled; what becomes of the call follows.
    Settled {
        /// Which start.
        lease: Lease,
        /// The true cost at each of its meters; empty if the lease ran out.
        actual: SmallVec<[u64; 1]>,
        /// When.
        now: Now,
        /// What was said about it, for the history.
        report: Box<[u8]>,
    },
    /// A meter at which a call pays was closed.
    Closed {
        /// Whose upstream asked for it.
        id: CallId,
        /// Which of its meters.
        line: usize,
        /// Until when.
        until: Timestamp,
        /// When.
        now: Now,
    },
    /// A call waits again.
    CameBack {
        /// Which.
        id: CallId,
        /// How often it was tried.
        attempts: Attempts,
        /// Not before.
        eligible: Timestamp,
    },
    /// A call in flight is not to be tried again.
    CancelAsked(CallId),
    /// A call is not tried again; that it ended, dead, follows.
    Died {
        /// Which.
        id: CallId,
        /// How often it was tried.
        attempts: Attempts,
        /// Why.
        cause: DeathCause,
    },
    /// A call ended. A dead one stays, with its body, until it is revived or ends otherwise.
    Ended {
        /// Which.
        id: CallId,
        /// How.
        end: End,
    },
    /// A dead call waits again, as one that never started; if it held its lane, that goes on.
    Revived {
        /// Which.
        id: CallId,
        /// Its place in its lane; `None` if it joins later.
        arrival: Option<u64>,
        /// When it joins, on the wall clock, if that is later.
        not_before: Option<Timestamp>,
    },
    /// Tolls were paid without a lane.
    Paid {
        /// The receipt's name.
        id: u64,
        /// What, by meter.
        owed: Box<[(MeterName, u64)]>,
        /// When.
        now: Now,
        /// When the call starts.
        starts: Timestamp,
        /// Until when slots are held.
        expires: Timestamp,
    },
    /// So many units may be consumed at a meter before that is written down; after a crash they count
    /// as consumed.
    Allowed {
        /// Which.
        meter: MeterName,
        /// How many; 0 ends it.
        units: u64,
    },
    /// A receipt's slots are held for longer.
    ReceiptRenewed {
        /// Its name.
        id: u64,
        /// Where it holds slots.
        meters: Box<[MeterName]>,
        /// When.
        now: Now,
        /// Until when slots are held.
        expires: Timestamp,
    },
    /// A receipt was settled.
    ReceiptSettled {
        /// Which.
        receipt: Box<Receipt>,
        /// The true cost at each of its meters.
        actual: Box<[u64]>,
        /// When.
        now: Now,
        /// Until when it is remembered.
        remembered: Timestamp,
    },
    /// What follows and tells no time happened then. Only told where events are made.
    Timed(Now),
    /// Something is as it was when a checkpoint was made.
    Kept(Kept),
    /// A record was written, or removed.
    Written {
        /// Which.
        key: Key,
        /// Its revision.
        revision: Revision,
        /// `None`: removed.
        bytes: Option<Box<[u8]>>,
    },
    /// A join came closer; with nothing left it is over, or forgotten.
    Counted {
        /// Which.
        key: Key,
        /// What is left; 0 ends it.
        left: u64,
    },
}
