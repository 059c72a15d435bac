//! A handler at work on one call.

use super::{Job, Outcome};
use crate::clock::Clock;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate_core::Span;

/// What all calls of a worker are handled by.
pub(super) struct Handler<H> {
    pub(super) handle: H,
    pub(super) clock: Arc<dyn Clock>,
    /// A call that has waited longer than this since it was let go is not begun.
    pub(super) start_by: Span,
}

pin_project_lite::pin_project! {
    /// First the call, then what the handler does with it: a task for it is as large as the larger of the two, and not
    /// as both.
    #[project = Stage]
    pub(super) enum Handling<H, F> {
        Given { given: Option<(Arc<Handler<H>>, Job)> },
        Running { #[pin] running: F },
    }
}

impl<H, F> Handling<H, F> {
    pub(super) fn new(handler: Arc<Handler<H>>, job: Job) -> Self {
        Self::Given { given: Some((handler, job)) }
    }
}

impl<H, F> Future for Handling<H, F>
where
    H: Fn(Job) -> F,
    F: Future<Output: Into<Outcome>>,
{
    /// What came of it; `None` if it came too late to be begun.
    type Output = Option<Outcome>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Given { given } = self.as_mut().project() {
            // There is none if the handler panicked at once: then this is not asked again.
            let Some((handler, job)) = given.take() else { return Poll::Pending };
            // Here, where it would begin: the runtime may have had other things to do.
            if handler.clock.now() > job.started.plus(handler.start_by) {
                return Poll::Ready(None);
            }
            let running = (handler.handle)(job);
            self.set(Self::Running { running });
        }
        match self.project() {
            Stage::Given { .. } => Poll::Pending,
            Stage::Running { running } => running.poll(context).map(|it| Some(it.into())),
        }
    }
}
