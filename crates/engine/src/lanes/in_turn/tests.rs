//! An engine over a store of limits alone: who goes first, who waits, and what is left behind.

mod alone;
mod passes;
mod reach;
mod store;
mod turns;

use crate::error::{Error, Refusal};
use crate::{Acquire, Acquiring, Engine, LimitsSettings, ManualClock, OutOfReach, Pass, global};
use std::future::{Future, IntoFuture, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use store::Plain;
use tollgate_core::{Limit, Span};

/// A store that two engines share, and the clock of all.
struct World {
    store: Plain,
    clock: ManualClock,
    engine: Engine<Plain>,
    other: Engine<Plain>,
}

impl World {
    fn new() -> Self {
        Self::with(1_000)
    }

    fn with(waiting_max: usize) -> Self {
        Self::set(LimitsSettings { waiting_max, ..LimitsSettings::default() })
    }

    /// Where that is done while the store is out of reach.
    async fn doing(out_of_reach: OutOfReach, limit: Limit) -> Self {
        let world = Self::set(LimitsSettings { out_of_reach, ..LimitsSettings::default() });
        world.engine.define("l", limit).await.unwrap();
        world
    }

    fn set(settings: LimitsSettings) -> Self {
        let clock = ManualClock::new();
        let store = Plain::new(clock.clone());
        let start = || {
            let clock = Arc::new(clock.clone());
            Engine::of_limits_with(store.clone(), clock, settings).unwrap()
        };
        let (engine, other) = (start(), start());
        Self { store, clock, engine, other }
    }

    /// With a limit `l`.
    async fn limited(limit: Limit) -> Self {
        let world = Self::new();
        world.engine.define("l", limit).await.unwrap();
        world
    }

    fn wait(&self, millis: u64) {
        self.clock.advance(Span::from_millis(millis));
    }

    /// Begins to wait for one unit at `l`.
    fn comes(&self) -> Acquiring<'static> {
        begun(self.engine.acquire(global("l")))
    }

    async fn refusal(&self) -> Refusal {
        refused(self.engine.consume(global("l")).await)
    }

    /// Changes a limit as another process would.
    async fn define_elsewhere(&self, limit: Option<Limit>) {
        match limit {
            Some(limit) => self.other.define("l", limit).await.unwrap(),
            None => self.other.remove("someone", "l").await.unwrap(),
        }
    }
}

/// One that has asked and been refused.
fn begun(acquire: Acquire<'static>) -> Acquiring<'static> {
    let mut acquiring = acquire.into_future();
    assert!(polled(&mut acquiring).is_pending());
    acquiring
}

/// Looks whether it is there by now.
fn polled(acquiring: &mut Acquiring<'_>) -> Poll<Result<Pass, Error>> {
    Pin::new(acquiring).poll(&mut Context::from_waker(Waker::noop()))
}

fn is_waiting(acquiring: &mut Acquiring<'_>) -> bool {
    polled(acquiring).is_pending()
}

fn is_granted(acquiring: &mut Acquiring<'_>) -> bool {
    matches!(polled(acquiring), Poll::Ready(Ok(_)))
}

fn refused(outcome: Result<Pass, Error>) -> Refusal {
    match outcome {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Polls until it is there, and says when it was first looked at in vain.
async fn telling<F: Future + Unpin>(
    mut future: F,
    told: tokio::sync::oneshot::Sender<()>,
) -> F::Output {
    let mut told = Some(told);
    poll_fn(move |context| {
        let polled = Pin::new(&mut future).poll(context);
        if let (true, Some(told)) = (polled.is_pending(), told.take()) {
            told.send(()).unwrap();
        }
        polled
    })
    .await
}
