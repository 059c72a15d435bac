//! What came of calls, both ways.

use super::apis::APIS;
use std::sync::atomic::{AtomicU64, Ordering};

/// How a call is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// At once, and again on every 429.
    Naive,
    Tollgate,
}

/// Of one API, one way.
#[derive(Debug, Default)]
pub(super) struct Score {
    /// Answered with 200.
    pub(super) done: AtomicU64,
    /// Answered with 429.
    pub(super) refused: AtomicU64,
    /// Given up.
    pub(super) lost: AtomicU64,
}

/// Of all.
#[derive(Debug, Default)]
pub(super) struct Scores([[Score; 2]; APIS.len()]);

impl Scores {
    pub(super) fn of(&self, api: usize, way: Way) -> &Score {
        &self.0[api][usize::from(way == Way::Tollgate)]
    }

    /// Whether all calls of both ways ended.
    pub(super) fn is_over(&self) -> bool {
        let ways = [Way::Naive, Way::Tollgate];
        APIS.iter()
            .enumerate()
            .all(|(api, spec)| ways.iter().all(|way| self.of(api, *way).ended() >= spec.calls()))
    }
}

impl Score {
    pub(super) fn ended(&self) -> u64 {
        read(&self.done) + read(&self.lost)
    }
}

pub(super) fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

pub(super) fn count(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}
