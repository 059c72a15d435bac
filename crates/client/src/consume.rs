//! Paying: now, for a start later, or when the turn comes.

use crate::client::{Asked, Client};
use crate::clock;
use crate::error::ClientError;
use crate::pass::Pass;
use crate::wire::ask::{AskWire, GrantWire, OnExceeded};
use crate::wire::time::SpanWire;
use hyper::Method;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use tollgate_core::{Priority, Span};
use tollgate_engine::{Ask, Asking, Toll};

/// How long the cost of an estimate can be told: longer than calls take, and not so long that slots, which
/// a receipt holds, too, are lost for long when a process dies.
pub(crate) const RECEIPT_LIFE: Span = Span::from_minutes(10);
/// How long a server lets one wait at a time.
const WAIT_MAX: Span = Span::from_minutes(10);
/// How long to wait before asking anew where no one can know when.
const AGAIN: Span = Span::from_secs(1);

impl Client {
    /// Pays all tolls now, or none. Never overtakes a call that waits.
    pub async fn consume<'a>(&self, ask: impl Asking<'a>) -> Result<Pass, ClientError> {
        let wire = AskWire::new(&ask.into_ask(), OnExceeded::Fail, RECEIPT_LIFE);
        self.pay(wire).await
    }

    /// Pays now for a start at the first instant the limits allow; the pass says how long to wait.
    /// Refused if that is over `max_wait`.
    pub async fn consume_delayed<'a>(
        &self,
        ask: impl Asking<'a>,
        max_wait: impl Into<Span>,
    ) -> Result<Pass, ClientError> {
        let mut wire = AskWire::new(&ask.into_ask(), OnExceeded::Delay, RECEIPT_LIFE);
        wire.max_wait = Some(SpanWire(max_wait.into()));
        self.pay(wire).await
    }

    /// Waits until all tolls can be paid, in turn: higher priority first, then first come, first served,
    /// and never overtaken by `consume`. Dropping the future gives up the place. It has a connection of
    /// its own while it waits.
    pub fn acquire<'a>(&self, ask: impl Asking<'a>) -> Acquire<'a> {
        Acquire { client: self.clone(), ask: ask.into_ask(), max_wait: None }
    }

    /// Runs a future once its tolls are paid; slots are held until it ends.
    pub async fn throttle<'a, F: Future>(
        &self,
        ask: impl Asking<'a>,
        future: F,
    ) -> Result<F::Output, ClientError> {
        let pass = self.acquire(ask).await?;
        let output = future.await;
        drop(pass);
        Ok(output)
    }

    async fn pay(&self, wire: AskWire) -> Result<Pass, ClientError> {
        let wait = wire.waits();
        let asked = Asked::new(Method::POST, "/v1/consume").json(&wire)?.waits(wait);
        let grant: GrantWire = self.ask(asked).await?;
        Ok(Pass::new(self, grant, wire.estimates))
    }

    /// Waits for as long as it takes: the place is kept for ten minutes at a time.
    async fn acquire_in_the_end(&self, ask: &Ask<'_>) -> Result<Pass, ClientError> {
        loop {
            let mut wire = AskWire::new(ask, OnExceeded::Wait, RECEIPT_LIFE);
            wire.max_wait = Some(SpanWire(WAIT_MAX));
            match self.pay(wire).await {
                Err(error) if error.is_refused() => {
                    let opens = error.problem().and_then(|problem| problem.retry_after());
                    clock::rest(opens.unwrap_or(AGAIN).min(WAIT_MAX)).await;
                }
                answer => return answer,
            }
        }
    }
}

/// An ask that waits its turn when it is awaited.
#[must_use = "nothing is asked until it is awaited"]
pub struct Acquire<'a> {
    client: Client,
    ask: Ask<'a>,
    max_wait: Option<Span>,
}

impl fmt::Debug for Acquire<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acquire").field("ask", &self.ask).finish_non_exhaustive()
    }
}

impl<'a> Acquire<'a> {
    /// Another toll: all are paid or none.
    pub fn and(self, toll: Toll<'a>) -> Self {
        Self { ask: self.ask.and(toll), ..self }
    }

    /// Higher goes first; 0 by default.
    pub fn priority(self, priority: Priority) -> Self {
        Self { ask: self.ask.priority(priority), ..self }
    }

    /// Gives up after so long, up to ten minutes: at once, if it is known to take longer.
    pub fn max_wait(self, span: impl Into<Span>) -> Self {
        Self { max_wait: Some(span.into()), ..self }
    }
}

impl<'a> IntoFuture for Acquire<'a> {
    type Output = Result<Pass, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        let Self { client, ask, max_wait } = self;
        Box::pin(async move {
            let Some(max_wait) = max_wait else { return client.acquire_in_the_end(&ask).await };
            let mut wire = AskWire::new(&ask, OnExceeded::Wait, RECEIPT_LIFE);
            wire.max_wait = Some(SpanWire(max_wait));
            client.pay(wire).await
        })
    }
}
