//! What happens on a connection, so that one on which nothing does can be let go.

use crate::handed_out::HandedOut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::interval;

/// How often a connection is looked at. One on which no request began since the last look, nor is
/// being answered, is let go: idle, or a head that comes byte by byte. So it may last twice as long.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After so many looks without a byte that was taken, a client that is to read its answer does not.
const STALLED_LOOKS: u32 = 3;

/// How many requests a connection has seen, and how its answers get on.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicU64,
    answered: AtomicU64,
    /// Writes that took bytes.
    written: AtomicU64,
    /// Whether a write waits for the client.
    is_writing: AtomicBool,
    /// Calls whose answers hyper has taken, and the system not yet.
    unsent: Mutex<Vec<Arc<HandedOut>>>,
    has_unsent: AtomicBool,
}

/// A request that is being answered, until this is dropped.
#[derive(Debug)]
pub(super) struct Answering(Arc<Activity>);

/// What a look saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    begun: u64,
    written: u64,
}

impl Activity {
    /// A request begins.
    pub(super) fn begin(self: &Arc<Self>) -> Answering {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Answering(self.clone())
    }

    /// The client took bytes.
    pub(super) fn wrote(&self) {
        self.written.fetch_add(1, Ordering::Relaxed);
        self.is_writing.store(false, Ordering::Relaxed);
    }

    /// Nothing waits to be written.
    pub(super) fn has_flushed(&self) {
        self.is_writing.store(false, Ordering::Relaxed);
    }

    /// The client must read before more can be written.
    pub(super) fn waits_to_write(&self) {
        self.is_writing.store(true, Ordering::Relaxed);
    }

    /// An answer that hands out calls waits to be written.
    pub(super) fn waits_to_be_sent(&self, calls: Arc<HandedOut>) {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner).push(calls);
        self.has_unsent.store(true, Ordering::Relaxed);
    }

    /// The system has taken all that was written.
    pub(super) fn sent(&self) {
        // One task has the connection, so that no order but its own is needed.
        if self.has_unsent.load(Ordering::Relaxed) {
            self.has_unsent.store(false, Ordering::Relaxed);
            let unsent =
                std::mem::take(&mut *self.unsent.lock().unwrap_or_else(PoisonError::into_inner));
            unsent.iter().for_each(|calls| calls.arrived());
        }
    }

    /// Returns once nothing happened for a while.
    pub(super) async fn none(&self) {
        let mut looks = interval(LOOK_EVERY);
        // The first comes at once.
        looks.tick().await;
        let (mut before, mut stalled) = (self.seen(), 0);
        loop {
            looks.tick().await;
            let seen = self.seen();
            let is_writing = self.is_writing.load(Ordering::Relaxed);
            let is_answering = seen.begun != self.answered.load(Ordering::Relaxed);
            stalled = if is_writing && seen.written == before.written { stalled + 1 } else { 0 };
            if stalled >= STALLED_LOOKS || (seen == before && !is_answering && !is_writing) {
                return;
            }
            before = seen;
        }
    }

    fn seen(&self) -> Seen {
        Seen {
            begun: self.begun.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
        }
    }
}

impl Answering {
    /// The connection it is on.
    pub(super) fn activity(&self) -> &Activity {
        &self.0
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::{Instant, timeout};

    /// Whether it is let go within so many looks from now.
    async fn is_let_go(activity: &Activity, looks: u32) -> bool {
        timeout(LOOK_EVERY * looks + LOOK_EVERY / 2, activity.none()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_let_go() {
        assert!(is_let_go(&Activity::default(), 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_answered_is_not_until_it_is() {
        let activity = Arc::new(Activity::default());
        let answering = activity.begin();
        assert!(!is_let_go(&activity, 100).await);
        drop(answering);
        assert!(is_let_go(&activity, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_waited_for() {
        let activity = Arc::new(Activity::default());
        let _answering = activity.begin();
        activity.waits_to_write();
        let reads = async {
            for _ in 0..100 {
                tokio::time::advance(LOOK_EVERY * 2).await;
                activity.wrote();
                activity.waits_to_write();
            }
        };
        tokio::select! {
            biased;
            () = activity.none() => panic!("it was let go"),
            () = reads => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_is_let_go_after_half_a_minute() {
        let activity = Arc::new(Activity::default());
        let (_answering, began) = (activity.begin(), Instant::now());
        activity.waits_to_write();
        assert!(is_let_go(&activity, 100).await);
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }
}
