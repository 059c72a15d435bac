//! How far commits are ahead of history, as far as a node knows, and who waits until they are not.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// How many bytes of events a node writes while history is not told of them, and how many in one commit. What is more
/// is dropped and counted: it is not to fill the disk, nor to hold up the commit.
const BYTES_MAX: usize = 256 << 20;
const COMMIT_BYTES_MAX: usize = 32 << 20;
/// So many bytes are told before their time.
const EAGER_BYTES: usize = 1 << 20;
/// How long events are collected: a statement costs more than an event.
const GATHER: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(in crate::postgres::home) struct Backlog {
    state: Mutex<State>,
    arrived: Notify,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// How many bytes of events this node wrote that nobody has looked for, and how many that are being told.
    new: usize,
    taken: usize,
    /// Who waits until all of it can be read.
    flushes: Vec<oneshot::Sender<()>>,
    dropped: u64,
    /// The last events were dropped.
    is_over: bool,
    is_closed: bool,
    has_ended: bool,
}

/// Why history is told now.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) flushes: Vec<oneshot::Sender<()>>,
    pub(super) is_closed: bool,
}

impl State {
    fn is_something(&self) -> bool {
        self.new > 0 || self.is_urgent()
    }

    /// Whether it is told before its time.
    fn is_urgent(&self) -> bool {
        self.new >= EAGER_BYTES || !self.flushes.is_empty() || self.is_closed
    }
}

impl Backlog {
    /// Whether events may be told of a commit that has so many bytes of them already; if not, they are counted.
    pub(in crate::postgres::home) fn has_room_for(&self, events: usize, already: usize) -> bool {
        let mut state = self.lock();
        let is_over = already >= COMMIT_BYTES_MAX || state.new + state.taken + already >= BYTES_MAX;
        let was_over = std::mem::replace(&mut state.is_over, is_over);
        if is_over {
            state.dropped += events as u64;
        }
        if is_over && !was_over {
            tracing::warn!(dropped = state.dropped, "history cannot keep up and has gaps");
        }
        !is_over
    }

    /// So many bytes of events were committed.
    pub(in crate::postgres::home) fn grow(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut state = self.lock();
        let (was_something, was_urgent) = (state.is_something(), state.is_urgent());
        state.new += bytes;
        if !was_something || (!was_urgent && state.is_urgent()) {
            self.arrived.notify_one();
        }
    }

    /// Asks to be told when all that was committed can be read.
    pub(super) fn flush(&self) -> oneshot::Receiver<()> {
        let (done, flushed) = oneshot::channel();
        let mut state = self.lock();
        if !state.has_ended {
            // Those who gave up while nothing could be written.
            state.flushes.retain(|flush| !flush.is_closed());
            state.flushes.push(done);
            self.arrived.notify_one();
        }
        flushed
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Nothing is told any more.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.has_ended = true;
        state.flushes.clear();
        self.ended.notify_all();
    }

    /// Waits until nothing is told any more, but not for longer than this.
    pub(super) fn has_ended_within(&self, at_most: Duration) -> bool {
        let is_under_way = |state: &mut State| !state.has_ended;
        let woken = self.ended.wait_timeout_while(self.lock(), at_most, is_under_way);
        woken.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// So many events were given up.
    pub(super) fn note_dropped(&self, events: usize) {
        self.lock().dropped += events as u64;
    }

    pub(super) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Waits until something was collected for a while, until someone waits for it, or for so long.
    pub(super) async fn take(&self, at_most: Duration) -> Asked {
        if self.until(at_most, State::is_something).await {
            self.until(GATHER, State::is_urgent).await;
        }
        let mut state = self.lock();
        state.taken += std::mem::take(&mut state.new);
        Asked { flushes: std::mem::take(&mut state.flushes), is_closed: state.is_closed }
    }

    /// All that there was when it was taken is in history.
    pub(super) fn note_told(&self) {
        self.lock().taken = 0;
    }

    /// Waits for so long, or until it is closed; says whether it is.
    pub(super) async fn pause(&self, at_most: Duration) -> bool {
        self.until(at_most, |state| state.is_closed).await
    }

    /// Waits until something is so; says whether it is.
    async fn until(&self, at_most: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let arrival = async {
            while !is_so(&self.lock()) {
                self.arrived.notified().await;
            }
        };
        tokio::time::timeout(at_most, arrival).await.is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_comes_while_history_is_far_behind_is_dropped_and_counted() {
        let ahead = Backlog::default();
        ahead.grow(BYTES_MAX - 1);
        assert!(ahead.has_room_for(3, 0));
        assert!(!ahead.has_room_for(3, 1), "what is not committed yet counts, too");
        ahead.grow(1);
        assert!(!ahead.has_room_for(3, 0));
        assert_eq!(ahead.dropped(), 6);
        ahead.take(Duration::ZERO).await;
        assert!(!ahead.has_room_for(2, 0), "what is being told is not told yet");
        assert_eq!(ahead.dropped(), 8);
        ahead.note_told();
        assert!(ahead.has_room_for(2, COMMIT_BYTES_MAX - 1));
        assert!(!ahead.has_room_for(1, COMMIT_BYTES_MAX), "a commit has a bound of its own");
        assert_eq!(ahead.dropped(), 9);
    }

    #[tokio::test]
    async fn whoever_waits_is_not_kept_waiting_for_more() {
        let ahead = Backlog::default();
        let flushed = ahead.flush();
        let Asked { flushes, is_closed } = ahead.take(Duration::MAX).await;
        assert_eq!((flushes.len(), is_closed), (1, false));
        drop(flushed);
        ahead.grow(EAGER_BYTES);
        assert!(ahead.take(Duration::MAX).await.flushes.is_empty());
        ahead.close();
        assert!(ahead.take(Duration::MAX).await.is_closed);
    }
}
