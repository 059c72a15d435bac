//! The record: what was asked of the scheduler, and what it answered.

use tollgate_core::lanes::{
    Act, ActError, Acted, CallId, End, Lease, QueueError, QueueSpec, Scope, Started,
};
use tollgate_core::{Definition, LimitName, Now, Partition, QueueName, Span};

/// One command, with its answer.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) now: Now,
    pub(super) event: Event,
    /// The calls that are reported to have ended with it.
    pub(super) ends: Vec<(CallId, End)>,
}

#[derive(Debug, Clone)]
pub(super) enum Event {
    Queue(QueueName, QueueSpec, Result<(), QueueError>),
    RemoveQueue(QueueName, Result<bool, QueueError>),
    Limit(LimitName, Option<Definition>),
    Act(Box<Act>, Result<Acted, ActError>),
    Claim {
        queue: QueueName,
        most: usize,
        lease: Option<Span>,
        expected: Expected,
        started: Vec<Started>,
    },
    Renew(Lease, Span, bool),
    Pause(Scope),
    Resume(Scope),
    Reopen(LimitName, Option<Partition>),
    Advance,
}

/// What a claim must bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    Anything,
    /// A claim at the same instant got fewer than it asked for, or nothing was due since.
    Nothing,
    /// This call, and whoever else: it is alone, and now is the instant it was told.
    Start(CallId),
}

impl Entry {
    /// In one short line: names of 512 bytes are cut.
    pub(super) fn line(&self) -> String {
        let text = format!("{:?}", self.event);
        let text: String = text.replace(&"x".repeat(500), "…").chars().take(600).collect();
        let (at, wall) = (self.now.at.as_nanos(), self.now.wall.as_nanos());
        let ends = if self.ends.is_empty() { String::new() } else { format!(" {:?}", self.ends) };
        format!("{at} (wall {wall}): {text}{ends}")
    }
}
