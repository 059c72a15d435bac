//! Paying: now, for a start later, or when the turn comes.

use super::{Tollgate, on_store};
use std::future::Future;
use tollgate_core::{Span, Standing};
use tollgate_engine::{Acquire, Asking, Error, Pass, Receipt, Toll, TryError};

impl Tollgate {
    /// Pays all tolls now, or none. Never overtakes a call that waits.
    pub async fn consume<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, Error> {
        on_store! {
            &self.backend,
            limiter => limiter.consume(ask),
            engine => engine.consume(ask).await,
        }
    }

    /// Pays now for a start at the first instant the limits allow; the pass says how long to wait.
    /// Refused if that is over `max_wait`.
    pub async fn consume_delayed<'a>(
        &self,
        ask: impl Asking<'a>,
        max_wait: impl Into<Span>,
    ) -> Result<Pass, Error> {
        let max_wait = max_wait.into();
        on_store! {
            &self.backend,
            limiter => limiter.consume_delayed(ask, max_wait),
            engine => engine.consume_delayed(ask, max_wait).await,
        }
    }

    /// Decides each toll on its own; faster than one by one.
    pub async fn consume_many(&self, tolls: &[Toll<'_>]) -> Vec<Result<Pass, TryError>> {
        on_store! {
            &self.backend,
            limiter => limiter.consume_many(tolls),
            engine => engine.consume_many(tolls).await,
        }
    }

    /// Waits until all tolls can be paid, in turn.
    pub fn acquire<'a>(&self, ask: impl Asking<'a>) -> Acquire<'a> {
        on_store! {
            &self.backend,
            limiter => limiter.acquire(ask),
            engine => engine.acquire(ask),
        }
    }

    /// Runs a future once its tolls are paid; slots are held until it ends.
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

    /// Says what `consume` would, and pays nothing.
    pub async fn peek<'a>(&self, ask: impl Asking<'a>) -> Result<Standing, Error> {
        on_store! {
            &self.backend,
            limiter => limiter.peek(ask),
            engine => engine.peek(ask).await,
        }
    }

    /// Settles a receipt: each limit named at its true cost, all others at what they paid. Once.
    pub async fn settle_receipt(
        &self,
        receipt: &Receipt,
        actual: &[(&str, u64)],
    ) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.settle(receipt, actual),
            engine => engine.settle_receipt(receipt, actual).await,
        }
    }

    /// Hands back a call that was never started. Once.
    pub async fn hand_back(&self, receipt: &Receipt) -> Result<(), Error> {
        on_store! {
            &self.backend,
            limiter => limiter.hand_back(receipt),
            engine => engine.hand_back(receipt).await,
        }
    }

    /// Holds a receipt's slots for `life` from now.
    pub async fn renew_receipt(
        &self,
        receipt: &Receipt,
        life: impl Into<Span>,
    ) -> Result<Receipt, Error> {
        on_store! {
            &self.backend,
            limiter => limiter.renew(receipt, life),
            engine => engine.renew(receipt, life).await,
        }
    }
}
