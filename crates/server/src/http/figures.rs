//! What the server counts of itself: answers by what they said, connections, and how long it runs.

use super::problem::Problem;
use super::problem::kinds::{ALL, Kind};
use axum::response::Response;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// What was counted since the server was bound.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Answers that are no problem, which nearly all are.
    fine: AtomicU64,
    /// Problems, in the order of [`ALL`].
    problems: Box<[AtomicU64]>,
    /// How many connections there are, as of when one came or went.
    pub(crate) connections: AtomicUsize,
    /// By the runtime's clock: no limit hangs on it.
    began: Instant,
}

impl Figures {
    pub(crate) fn new() -> Self {
        Self {
            fine: AtomicU64::new(0),
            problems: ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            connections: AtomicUsize::new(0),
            began: Instant::now(),
        }
    }

    /// Counts an answer. It must have its problem still, if it is one.
    pub(super) fn count(&self, response: &Response) {
        let problem = response.extensions().get::<Problem>();
        let counter = problem.and_then(|problem| self.problems.get(problem.kind().position()));
        counter.unwrap_or(&self.fine).fetch_add(1, Ordering::Relaxed);
    }

    /// How many answers were no problem.
    pub(super) fn fine(&self) -> u64 {
        self.fine.load(Ordering::Relaxed)
    }

    /// How often each problem was answered.
    pub(super) fn problems(&self) -> impl Iterator<Item = (&'static Kind, u64)> {
        let counts = self.problems.iter().map(|count| count.load(Ordering::Relaxed));
        ALL.iter().zip(counts)
    }

    /// How long it has been.
    pub(super) fn uptime(&self) -> Duration {
        self.began.elapsed()
    }
}
