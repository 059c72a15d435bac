//! Waiting one's turn: the future that becomes a pass.

use crate::ask::{Ask, Asking, Toll};
use crate::error::Error;
use crate::lanes::{Acquires, Doing};
use crate::limiter::{Limiter, Tracking};
use crate::pass::Pass;
use crate::report;
use crate::turns::{Arrival, HeadId, Seat};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate_core::{Priority, Span};

/// An ask that waits its turn when it is awaited.
#[must_use = "nothing is asked until it is awaited"]
pub struct Acquire<'a> {
    backing: Backing,
    ask: Ask<'a>,
    max_wait: Option<Span>,
}

/// Where one waits.
#[derive(Clone)]
enum Backing {
    Memory(Limiter),
    Kept(Arc<dyn Acquires>),
}

impl Limiter {
    /// Waits until all tolls can be paid, in turn: higher priority first, then first come, first
    /// served, and never overtaken by `consume`. Dropping the future gives up the place, and gives
    /// back what was paid for a start that did not happen.
    pub fn acquire<'a>(&self, ask: impl Asking<'a>) -> Acquire<'a> {
        Acquire { backing: Backing::Memory(self.clone()), ask: ask.into_ask(), max_wait: None }
    }

    /// Runs a future once its tolls are paid. Slots are held until it ends.
    ///
    /// The future does not start before its turn, and does not run at all if the ask is refused.
    pub async fn throttle<'a, F: Future>(
        &self,
        ask: impl Asking<'a>,
        future: F,
    ) -> Result<F::Output, Error> {
        let pass = self.acquire(ask).await?;
        let output = future.await;
        drop(pass);
        Ok(output)
    }
}

impl<'a> Acquire<'a> {
    /// To wait in a store.
    pub(crate) fn kept(engine: Arc<dyn Acquires>, ask: Ask<'a>) -> Self {
        Self { backing: Backing::Kept(engine), ask, max_wait: None }
    }

    /// Another toll: all are paid or none.
    pub fn and(self, toll: Toll<'a>) -> Self {
        Self { ask: self.ask.and(toll), ..self }
    }

    /// Higher goes first; 0 by default.
    pub fn priority(self, priority: Priority) -> Self {
        Self { ask: self.ask.priority(priority), ..self }
    }

    /// Gives up after so long: at once, if it is known to take longer.
    pub fn max_wait(self, span: impl Into<Span>) -> Self {
        Self { max_wait: Some(span.into()), ..self }
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<Pass, Error>;
    type IntoFuture = Acquiring<'a>;

    fn into_future(self) -> Acquiring<'a> {
        let Self { backing, ask, max_wait } = self;
        let stage = match backing {
            Backing::Memory(limiter) => Stage::Asking { limiter, ask, max_wait },
            Backing::Kept(engine) => Stage::Kept(engine.acquire(ask, max_wait)),
        };
        Acquiring { stage }
    }
}

/// The future of an [`Acquire`]. Takes its place in the order when it is first polled.
#[must_use = "futures do nothing unless they are polled"]
pub struct Acquiring<'a> {
    stage: Stage<'a>,
}

enum Stage<'a> {
    Asking { limiter: Limiter, ask: Ask<'a>, max_wait: Option<Span> },
    Waiting { limiter: Limiter, head: HeadId, seat: Arc<Seat> },
    Kept(Doing<'a, Result<Pass, Error>>),
    Done,
}

impl fmt::Debug for Acquiring<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquiring").finish_non_exhaustive()
    }
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("ask", &self.ask).finish_non_exhaustive()
    }
}

impl Future for Acquiring<'_> {
    type Output = Result<Pass, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Stage::Kept(acquiring) = &mut self.stage {
            return acquiring.as_mut().poll(context);
        }
        if let Stage::Asking { limiter, ask, max_wait } = &self.stage {
            match limiter.inner.arrive(ask, Tracking::Always, *max_wait) {
                Ok(Arrival::Waiting { head, seat }) => {
                    let limiter = limiter.clone();
                    self.stage = Stage::Waiting { limiter, head, seat };
                }
                Ok(Arrival::Granted(pass)) => {
                    self.stage = Stage::Done;
                    return Poll::Ready(Ok(pass));
                }
                Err(error) => {
                    self.stage = Stage::Done;
                    report::failed(&error);
                    return Poll::Ready(Err(error));
                }
            }
        }
        let Stage::Waiting { seat, .. } = &self.stage else { return Poll::Pending };
        match seat.poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                self.stage = Stage::Done;
                Poll::Ready(outcome.inspect_err(report::failed))
            }
        }
    }
}

impl Drop for Acquiring<'_> {
    fn drop(&mut self) {
        let Stage::Waiting { limiter, head, seat } = &self.stage else { return };
        limiter.inner.leave(*head);
        seat.abandon();
    }
}
