//! Claims that came a moment too early: they stay with the writer until the next limit opens.
//!
//! Sent away, each would wait outside, be woken by who watches the time and come again, through two more threads:
//! that takes longer than such a moment, and more of the processors than the start itself. As long as claims come
//! like that, the writer watches the time itself.

use super::inbox::Sent;
use std::time::{Duration, Instant};
use tollgate_core::{Now, Timestamp};

/// How long a claim stays at most, whatever the clock of the limits does.
const STAY: Duration = Duration::from_millis(4);
/// For how long the writer watches the time when the last one has come.
const WATCH: Duration = Duration::from_millis(3);
/// Most that stay at a time: they are tried again with everything that is done meanwhile.
const STAYING_MAX: usize = 8;

/// Those that stay.
#[derive(Default)]
pub(super) struct Lingering {
    staying: Vec<Sent>,
    /// Until when the writer watches the time, if it does.
    watches_until: Option<Instant>,
    /// When something is due next.
    pub(super) due: Option<Timestamp>,
    is_closed: bool,
}

impl Lingering {
    /// Keeps a claim, unless it has been here for long enough or there are too many.
    pub(super) fn keep(&mut self, mut claim: Sent, elapsing: Instant) -> Result<(), Sent> {
        let until = *claim.stays_until.get_or_insert(elapsing + STAY);
        let is_full = self.staying.len() >= STAYING_MAX || self.is_closed;
        if is_full || until <= elapsing {
            return Err(claim);
        }
        self.staying.push(claim);
        self.watches_until = Some(elapsing + WATCH);
        Ok(())
    }

    /// How long until there is something to do, if the writer watches the time.
    pub(super) fn wait(&self, now: impl FnOnce() -> Now, elapsing: Instant) -> Option<Duration> {
        let stay = self.staying.iter().filter_map(|claim| claim.stays_until);
        let until = stay.min().or(self.watches_until)?.saturating_duration_since(elapsing);
        let due = self.due.map(|due| due.since(now().at).into());
        Some(due.map_or(until, |due: Duration| due.min(until)))
    }

    /// Whether some have stayed for long enough; `None` if the writer does not watch the time, or from now on.
    pub(super) fn watch(&mut self, elapsing: Instant) -> Option<bool> {
        let mut stay = self.staying.iter().filter_map(|claim| claim.stays_until);
        let is_over = self.is_closed || stay.any(|until| until <= elapsing);
        let is_needed = !self.staying.is_empty();
        self.watches_until = self.watches_until.filter(|until| is_needed || *until > elapsing);
        self.watches_until.map(|_| is_over)
    }

    /// All that stay, to be tried again.
    pub(super) fn take(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.staying)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.staying.is_empty()
    }

    /// Whether the writer watches the time: nobody else need be told what is due.
    pub(super) fn is_watching(&self) -> bool {
        self.watches_until.is_some()
    }

    /// None stays any longer.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
    }
}
