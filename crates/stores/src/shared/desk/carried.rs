//! Something under way that is carried by whoever waits for it, and goes on by itself if that one is gone.

use super::queue::Queue;
use crate::shared::cells::Doing;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Ends when it is done, or when its runtime has ended.
pub(super) struct Carried {
    doing: Option<Doing<'static, ()>>,
    runtime: Handle,
    /// Closed once the runtime has ended.
    queue: Arc<Queue>,
}

impl Carried {
    /// Its timers, and what becomes of it when it is dropped, are the runtime's.
    pub(super) fn new(doing: Doing<'static, ()>, runtime: Handle, queue: Arc<Queue>) -> Self {
        Self { doing: Some(doing), runtime, queue }
    }
}

impl Future for Carried {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Self { doing, runtime, queue } = self.get_mut();
        // Timers of a runtime that has ended must not be looked at.
        if queue.is_closed() {
            *doing = None;
        }
        let Some(under_way) = doing else { return Poll::Ready(()) };
        // Whoever asks may be on another runtime, or on none.
        let _entered = runtime.enter();
        if under_way.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        *doing = None;
        Poll::Ready(())
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        if let Some(doing) = self.doing.take() {
            self.runtime.spawn(doing);
        }
    }
}
