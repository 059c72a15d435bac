//! Whoever traces pushes: asked when an attempt begins, and told what came of it.

use crate::envelope::TraceParent;
use crate::lanes::Job;
use std::fmt;
use std::sync::Arc;
use tollgate_core::Timestamp;
use tollgate_core::lanes::Settlement;

/// Begins the trace of an attempt at a call of a queue, at an instant of the wall clock; `None` if it is
/// not traced.
type Begin = dyn Fn(&str, &Job, Timestamp) -> Option<TracedAttempt> + Send + Sync;

/// Asked when attempts begin.
#[derive(Clone)]
pub struct AttemptTracer(Arc<Begin>);

/// An attempt that is traced.
pub struct TracedAttempt {
    /// What is sent along in place of the call's own.
    pub parent: TraceParent,
    /// Told once, when it is over.
    pub end: Box<dyn FnOnce(AttemptEnd) + Send>,
}

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptEnd {
    /// In a word: `done`, `retry`, `dead` or `limited`.
    pub outcome: &'static str,
    /// When, on the wall clock.
    pub at: Timestamp,
}

impl AttemptTracer {
    /// Asks this when attempts begin.
    pub fn new(
        begin: impl Fn(&str, &Job, Timestamp) -> Option<TracedAttempt> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(begin))
    }

    pub(super) fn begin(&self, queue: &str, job: &Job, wall: Timestamp) -> Option<TracedAttempt> {
        (self.0)(queue, job, wall)
    }
}

impl fmt::Debug for AttemptTracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AttemptTracer")
    }
}

impl fmt::Debug for TracedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracedAttempt").field("parent", &self.parent).finish_non_exhaustive()
    }
}

/// What came of an attempt, in a word.
pub(super) fn word(settlement: Settlement) -> &'static str {
    match settlement {
        Settlement::Done => "done",
        Settlement::Retry(_) => "retry",
        Settlement::Release => "release",
        Settlement::Dead => "dead",
        Settlement::Limited(_) => "limited",
    }
}
