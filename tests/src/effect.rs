//! What Effect's `RateLimiter` promises, as tests: kept, or different on purpose as
//! `docs/effect.md` says.

mod errors;
mod feedback;
mod fixed_window;
mod throttling;
mod token_bucket;

use crate::world::{World, remaining};
use tollgate::{Pass, Span, Toll, toll};

/// The key that is limited, and what it consumes.
fn tokens(count: u64) -> Toll<'static> {
    toll("api", "user-42").weight(count)
}

/// Effect's `ConsumeResult`, in milliseconds.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    delay: u64,
    remaining: i64,
    reset_after: u64,
}

impl From<Pass> for Told {
    fn from(pass: Pass) -> Self {
        let millis = Span::as_millis_ceil;
        let (delay, reset_after) = (millis(pass.delay()), millis(pass.reset_after()));
        Self { delay, remaining: pass.remaining(), reset_after }
    }
}

/// Effect's `RateLimitExceeded`, in milliseconds.
#[derive(Debug, PartialEq, Eq)]
struct Exceeded {
    retry_after: u64,
    remaining: i64,
}

/// `consume` with `onExceeded: "delay"`.
async fn delay(world: &World, count: u64) -> Told {
    world.gate.consume_delayed(tokens(count), Span::from_hours(1)).await.unwrap().into()
}

/// `consume` with `onExceeded: "fail"`, which succeeds.
async fn pass(world: &World, count: u64) -> Told {
    world.gate.consume(tokens(count)).await.unwrap().into()
}

/// `consume` with `onExceeded: "fail"`, which fails.
async fn fail(world: &World, count: u64) -> Exceeded {
    let refusal = world.refusal(tokens(count)).await;
    let retry_after = refusal.retry_after.map(Span::as_millis_ceil).unwrap();
    Exceeded { retry_after, remaining: remaining(&refusal) }
}

/// What a `consume` of 0 tells in Effect: how the meter stands, for nothing.
async fn stands(world: &World) -> Told {
    let (remaining, reset_after) = world.stands("api", Some("user-42")).await;
    Told { delay: 0, remaining, reset_after: reset_after.as_millis_ceil() }
}
