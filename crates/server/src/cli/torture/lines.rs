//! What parent and child say to each other, one line of JSON each. No one else reads it: both are
//! the same program.

use super::model::Part;
use super::random::Random;
use serde::{Deserialize, Serialize};
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

/// What a child is to do, from the parent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) folder: PathBuf,
    pub(super) seed: u64,
    pub(super) segment_bytes: u64,
    pub(super) checkpoint_bytes: u64,
    /// Calls of a part that have not ended; where there are more, they are ended first.
    pub(super) calls_max: usize,
    /// What was found, so that the child goes on from there.
    pub(super) parts: Vec<Part>,
}

/// What a child says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Line {
    /// The store is open.
    Opened,
    /// A command is about to be sent for a part.
    Begun(usize, Command),
    /// The command of a part was answered.
    Answered(usize, Answer),
    /// The store could not go on.
    Failed(String),
    /// The disk is full, which is nobody's loss.
    Full(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Command {
    Act(Change),
    Claim { most: usize },
    Consume { weight: u64 },
}

/// One act.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Change {
    pub(super) settle: Vec<Settled>,
    pub(super) cancel: Vec<u64>,
    pub(super) write: Vec<Written>,
    pub(super) enqueue: Vec<Fresh>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Settled {
    pub(super) call: u64,
    pub(super) token: u64,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    Done,
    /// It failed, and may start again at once.
    Retry,
    /// It failed, and rests for longer than anyone watches.
    Rest,
    Release,
    Dead,
}

/// A record that is written, or removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) key: u64,
    pub(super) expected: u64,
    pub(super) bytes: Option<Blob>,
}

/// A new call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Fresh {
    pub(super) lane: u64,
    pub(super) priority: u64,
    /// What it owes; 0 for nothing.
    pub(super) weight: u64,
    pub(super) dedupe: Option<u64>,
    pub(super) body: Blob,
}

/// Bytes that both sides can make again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blob {
    /// No other of the same part has it.
    pub(super) number: u64,
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Answer {
    Acted { enqueued: Vec<u64>, cancelled: Vec<bool>, written: Vec<u64> },
    Claimed(Vec<Start>),
    Paid,
    Refused(String),
}

/// A call that was started.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Start {
    pub(super) call: u64,
    pub(super) token: u64,
    pub(super) failures: u32,
    /// Of its body.
    pub(super) digest: u64,
}

impl Blob {
    /// Its bytes, in a part.
    pub(super) fn make(self, part: usize) -> Box<[u8]> {
        let mut random = Random::of(self.number, u64::try_from(part).unwrap_or(u64::MAX));
        let words = self.bytes.div_ceil(size_of::<u64>());
        let mut bytes: Vec<u8> = (0..words).flat_map(|_| random.next().to_le_bytes()).collect();
        bytes.truncate(self.bytes);
        bytes.into()
    }
}

impl Command {
    /// The blobs that are in it.
    pub(super) fn blobs(&self) -> impl Iterator<Item = Blob> {
        let change = match self {
            Self::Act(change) => Some(change),
            Self::Claim { .. } | Self::Consume { .. } => None,
        };
        change.into_iter().flat_map(|Change { write, enqueue, .. }| {
            let written = write.iter().filter_map(|write| write.bytes);
            written.chain(enqueue.iter().map(|fresh| fresh.body))
        })
    }
}

/// A number that other bytes hardly have.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
