//! A call: the durable unit of work, and one start of it.

use super::payload::Payload;
use crate::name::{Key, LaneName, QueueName};
use crate::time::Timestamp;
use crate::tolls::Tolls;
use crate::turn::Priority;

/// Names a call: numbers in the order in which calls were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

impl CallId {
    /// How many fall side by side.
    const BLOCK: u32 = 6;

    /// Where it falls in a table. Blocks of calls that follow each other are spread, for which are still there is
    /// no chance; those of a block lie side by side, for what came together is mostly settled together, and then is
    /// in the processor's caches. The names are ours: nobody chooses where they fall.
    #[inline]
    pub fn place(self) -> u64 {
        let block = self.0 >> Self::BLOCK;
        let spread = block.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let within = self.0 & ((1 << Self::BLOCK) - 1);
        // Tables tell those that are side by side by the highest bits.
        (spread << Self::BLOCK | within) ^ (self.0 << 57)
    }
}

/// A call as it is handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCall {
    /// Where it goes.
    pub queue: QueueName,
    /// Behind whom it waits.
    pub lane: LaneName,
    /// What it owes. Two tolls at one meter add up.
    pub tolls: Tolls,
    /// Who goes first in the lane and at the meters.
    pub priority: Priority,
    /// It joins its lane at this instant of the wall clock; `None`: at once.
    pub not_before: Option<Timestamp>,
    /// It ends unstarted at this instant of the wall clock.
    pub expires: Option<Timestamp>,
    /// A second call with this key within the queue's window is the first one.
    pub dedupe: Option<Key>,
    /// It takes the place of the call of this key that waits in the same lane.
    pub supersedes: Option<Key>,
    /// What the worker gets.
    pub payload: Payload,
}

impl NewCall {
    /// A call that owes nothing, has no payload, and is due at once.
    pub fn new(queue: QueueName, lane: LaneName) -> Self {
        Self {
            queue,
            lane,
            tolls: Tolls::new(),
            priority: Priority::default(),
            not_before: None,
            expires: None,
            dedupe: None,
            supersedes: None,
            payload: Payload::default(),
        }
    }
}

/// A started call's hold on its lane and its slots. The token fences: a later lease has a higher
/// one, and what is settled with an older one changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// Which call.
    pub call: CallId,
    /// Which start of it.
    pub token: u64,
}

/// How often a call was tried, by what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Attempts {
    /// It failed and was to be tried again.
    pub failures: u32,
    /// Its lease expired.
    pub crashes: u32,
    /// The upstream asked for a pause.
    pub limited: u32,
}

/// A call that a worker is to start now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a started call holds its lane until it is settled or its lease expires"]
pub struct Started {
    /// What settles it.
    pub lease: Lease,
    /// The lane it is of.
    pub lane: LaneName,
    /// How often it was tried before.
    pub attempts: Attempts,
    /// When it started: its tolls were paid for this instant.
    pub at: Timestamp,
    /// When the lease ends unless it is renewed.
    pub expires: Timestamp,
}

/// A call that a worker is to start now, with what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a started call holds its lane until it is settled or its lease expires"]
pub struct Claimed {
    /// What was decided.
    pub started: Started,
    /// What was handed in with the call.
    pub payload: Payload,
}

/// How a call ended.
// Not `non_exhaustive`: the stores write each of them down, and are to be told of a new one when they
// are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// It was done.
    Done,
    /// It failed, crashed or was limited too often, or was given up: it is among the dead, with its
    /// body, until it is revived or cancelled.
    Dead,
    /// It was taken back.
    Cancelled,
    /// It was too old to start.
    Expired,
    /// A newer call took its place.
    Superseded,
    /// It was among the dead, and its queue keeps no more of them: see
    /// [`dead_max`](super::QueueSpec::dead_max).
    Dropped,
}

/// Why a call is among the dead.
// Not `non_exhaustive`: the stores write each of them down, and are to be told of a new one when they
// are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeathCause {
    /// It failed too often.
    Failed,
    /// Its lease expired too often.
    Crashed,
    /// The upstream asked for a pause too often.
    Limited,
    /// A worker gave it up. Also said of a call that died before causes were written down.
    GivenUp,
}

/// How a call came to be among the dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death {
    /// Why.
    pub cause: DeathCause,
    /// When, in limit time.
    pub at: Timestamp,
}
