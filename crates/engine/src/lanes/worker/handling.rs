//! A handler at work on one call.

use super::{Job, Outcome};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pin_project_lite::pin_project! {
    /// First the call, then what the handler does with it: a task for it is as large as the larger of the two, and not
    /// as both.
    #[project = Stage]
    pub(super) enum Handling<H, F> {
        Given { given: Option<(Arc<H>, Job)> },
        Running { #[pin] running: F },
    }
}

impl<H, F> Handling<H, F> {
    pub(super) fn new(handler: Arc<H>, job: Job) -> Self {
        Self::Given { given: Some((handler, job)) }
    }
}

impl<H, F> Future for Handling<H, F>
where
    H: Fn(Job) -> F,
    F: Future<Output: Into<Outcome>>,
{
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if let Stage::Given { given } = self.as_mut().project() {
            // There is none if the handler panicked at once: then this is not asked again.
            let Some((handler, job)) = given.take() else { return Poll::Pending };
            let running = handler(job);
            self.set(Self::Running { running });
        }
        match self.project() {
            Stage::Given { .. } => Poll::Pending,
            Stage::Running { running } => running.poll(context).map(Into::into),
        }
    }
}
