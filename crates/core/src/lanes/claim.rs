//! Asking for calls to start, and what an operator may hold back.

use crate::name::{LaneName, LimitName, QueueName};
use crate::time::Span;

/// Most calls of one claim: a claim is one write, held in memory whole.
pub const CLAIM_MAX: usize = 10_000;
/// Who got calls asks for more when it has started them: whoever is back so soon has been there all the time. Others
/// let the queue's calls go first for so long, which is half of what a start may be late.
pub const BACK_WITHIN: Span = Span::from_millis(1);

/// A worker asks for calls that it starts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Of which queue.
    pub queue: QueueName,
    /// At most so many: the worker's free hands.
    pub most: usize,
    /// How long each is leased; `None`: as the queue says.
    pub lease: Option<Span>,
    /// How long it goes on asking if it gets fewer: so long the queue's calls keep their turn.
    pub asks: Span,
}

/// What can be held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// No call of the queue starts.
    Queue(QueueName),
    /// No call of the lane starts.
    Lane(QueueName, LaneName),
    /// No call that pays at the limit starts.
    Limit(LimitName),
}
