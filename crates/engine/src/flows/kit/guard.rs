//! The last guard of a test: real time, for a handler that never ends while the clock stands still.

use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long handlers may take, in real time.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Ready when nothing went on for too long. A thread and not the runtime's timers: those may be paused.
pub(super) struct Guard {
    tell: mpsc::Sender<()>,
    over: oneshot::Receiver<()>,
}

impl Guard {
    /// One that waits for so long.
    pub(super) fn new(patience: Duration) -> Self {
        let (tell, told) = mpsc::channel();
        let (end, over) = oneshot::channel();
        // Without a thread it is over at once, and says so.
        let _ = thread::Builder::new().name("tollgate-kit-guard".to_owned()).spawn(move || {
            while told.recv_timeout(patience).is_ok() {}
            drop(end);
        });
        Self { tell, over }
    }

    /// Something went on.
    pub(super) fn goes_on(&self) {
        // The one who listens goes with this.
        let _ = self.tell.send(());
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.over).poll(context).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn it_is_over_when_nothing_went_on_for_so_long() {
        let mut guard = Guard::new(Duration::ZERO);
        poll_fn(|context| guard.poll(context)).await;
    }

    #[tokio::test]
    async fn it_is_not_over_before() {
        let mut guard = Guard::new(Duration::MAX);
        guard.goes_on();
        poll_fn(|context| {
            assert!(guard.poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
}
