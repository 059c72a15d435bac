//! A gate on a clock that the test moves, and calls that wait there until the test looks.

use std::future::IntoFuture;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tollgate::{Asking, Builder, Error, Limit, ManualClock, Pass, Refusal, Span, Tollgate, global};

/// Longest real time that a test waits for something that happens at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The limit at which a test makes the timer look.
const FENCE: &str = "fence";

/// A gate, and the clock it goes by.
pub(crate) struct World {
    pub(crate) gate: Tollgate,
    pub(crate) clock: ManualClock,
}

impl World {
    /// A gate with one limit.
    pub(crate) async fn of(name: &str, limit: Limit) -> Self {
        let world = Self::with(Tollgate::builder()).await;
        world.limit(name, limit).await
    }

    /// A gate with these settings and no limits.
    pub(crate) async fn with(builder: Builder) -> Self {
        let clock = ManualClock::new();
        Self { gate: builder.clock(clock.clone()).memory(), clock }
    }

    /// The same with one more limit.
    pub(crate) async fn limit(self, name: &str, limit: Limit) -> Self {
        self.gate.limit(name, limit).await.unwrap();
        self
    }

    /// Moves the clock, and returns when all that came due by it is decided and told.
    pub(crate) async fn advance(&self, by: impl Into<Span>) {
        self.clock.advance(by);
        // The first look decides all that is due; when it looks again, it has told everyone.
        self.timer_looks().await;
        self.timer_looks().await;
    }

    /// Gives the timer something to do, and returns when it has done it.
    async fn timer_looks(&self) {
        self.gate.limit(FENCE, Limit::concurrency(2)).await.unwrap();
        let held = self.gate.consume(global(FENCE)).await.unwrap();
        let first = self.stand(global(FENCE).weight(2));
        let second = self.stand(global(FENCE));
        // Who leaves lets the timer look after those behind.
        drop(first);
        drop(second.answered().await.unwrap());
        drop(held);
    }

    /// Pays, which must succeed, and says what is left. Slots are let go at once.
    pub(crate) async fn pay<'a>(&self, ask: impl Asking<'a>) -> i64 {
        self.gate.consume(ask).await.unwrap().remaining()
    }

    /// Asks, which must be refused.
    pub(crate) async fn refusal<'a>(&self, ask: impl Asking<'a>) -> Refusal {
        refused(self.gate.consume(ask).await)
    }

    /// Waits in turn, which must take some waiting.
    #[track_caller]
    pub(crate) fn stand<'a>(&self, ask: impl Asking<'a>) -> Waiter<'a> {
        Waiter::stand(self.gate.acquire(ask))
    }

    /// How a meter stands: what is left, and how long until it is as new.
    pub(crate) async fn stands(&self, limit: &str, partition: Option<&str>) -> (i64, Span) {
        let standing = self.gate.meter(limit, partition).await.unwrap().standing;
        (standing.remaining, standing.reset_after)
    }

    /// What is left at a limit's global meter.
    pub(crate) async fn left(&self, limit: &str) -> i64 {
        self.stands(limit, None).await.0
    }
}

/// A call that waits, and is looked at only when the test does.
pub(crate) struct Waiter<'a, T = Result<Pass, Error>> {
    future: Pin<Box<dyn Future<Output = T> + 'a>>,
}

impl<'a, T> Waiter<'a, T> {
    /// A call that takes its place when it is first looked at.
    pub(crate) fn new<F: IntoFuture<Output = T, IntoFuture: 'a>>(call: F) -> Self {
        Self { future: Box::pin(call.into_future()) }
    }

    /// Takes a place; the call must not be answered at once.
    #[track_caller]
    pub(crate) fn stand<F: IntoFuture<Output = T, IntoFuture: 'a>>(call: F) -> Self {
        let mut waiter = Self::new(call);
        assert!(waiter.answer().is_none(), "it was to wait, and was answered at once");
        waiter
    }

    /// What became of it, once it is known.
    pub(crate) fn answer(&mut self) -> Option<T> {
        let mut context = Context::from_waker(Waker::noop());
        match self.future.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    /// The answer, waited for.
    pub(crate) async fn answered(self) -> T {
        let answer = tokio::time::timeout(PATIENCE, self.future).await;
        answer.expect("a waiting call was to be answered")
    }
}

/// The refusal that an ask was to end in.
#[track_caller]
pub(crate) fn refused(outcome: Result<Pass, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        Ok(_) => panic!("it was to be refused, and passed"),
        Err(other) => panic!("it was to be refused, and failed: {other}"),
    }
}

/// What is left at the meter that refused.
pub(crate) fn remaining(refusal: &Refusal) -> i64 {
    refusal.standing.remaining
}

/// `count` seconds.
pub(crate) const fn seconds(count: u64) -> Span {
    Span::from_secs(count)
}
