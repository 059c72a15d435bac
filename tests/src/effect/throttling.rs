//! Throttling a future, sleeping until allowed, and what belongs to a key.

use super::tokens;
use crate::world::{PATIENCE, Waiter, World, refused, seconds};
use std::cell::Cell;
use tollgate::{Limit, Span, Tollgate, toll};

async fn ten_in_five_seconds() -> World {
    World::of("api", Limit::fixed_window(10, seconds(5))).await
}

/// `makeWithRateLimiter`, within the limit.
#[tokio::test]
async fn a_throttled_future_runs_at_once_while_the_limit_allows() {
    let world = ten_in_five_seconds().await;
    for turn in 0..10 {
        let output = world.gate.throttle(tokens(1), async { turn }).await;
        assert_eq!(output.unwrap(), turn);
    }
}

/// `makeWithRateLimiter` with `onExceeded: "delay"`.
#[tokio::test]
async fn a_throttled_future_is_delayed_instead_of_failing() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let has_started = Cell::new(false);
    let mut waiter = Waiter::stand(world.gate.throttle(tokens(1), async {
        has_started.set(true);
        "work"
    }));
    world.advance(Span::from_millis(4_999)).await;
    assert!(waiter.answer().is_none() && !has_started.get());
    world.advance(Span::from_millis(1)).await;
    assert_eq!(waiter.answer().unwrap().unwrap(), "work");
}

#[tokio::test]
async fn a_future_that_can_never_pass_does_not_run_at_all() {
    let world = ten_in_five_seconds().await;
    let has_started = Cell::new(false);
    let outcome = world.gate.throttle(tokens(11), async { has_started.set(true) }).await;
    assert!(outcome.is_err() && !has_started.get());
}

/// `makeSleep`: it tells the whole result.
#[tokio::test]
async fn sleeping_until_allowed_returns_at_once_while_the_limit_allows() {
    let world = ten_in_five_seconds().await;
    let pass = world.gate.acquire(tokens(1)).await.unwrap();
    assert_eq!((pass.limit(), pass.remaining()), (10, 9));
    assert_eq!((pass.delay(), pass.reset_after()), (Span::ZERO, seconds(5)));
}

#[tokio::test]
async fn sleeping_until_allowed_ends_at_the_instant_it_is() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let mut sleeper = world.stand(tokens(1));
    world.advance(Span::from_nanos(4_999_999_999)).await;
    assert!(sleeper.answer().is_none());
    world.advance(Span::from_nanos(1)).await;
    let pass = sleeper.answer().unwrap().unwrap();
    assert_eq!((pass.delay(), pass.remaining()), (Span::ZERO, 9));
}

/// `onExceeded: "delay"` computes; the caller sleeps. Nobody waits inside.
#[tokio::test]
async fn a_delay_is_told_at_once_and_left_to_the_caller() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let asked = world.gate.consume_delayed(tokens(1), seconds(60));
    let pass = tokio::time::timeout(PATIENCE, asked).await.unwrap().unwrap();
    assert_eq!((pass.delay(), pass.remaining()), (seconds(5), -1));
}

/// Theirs lets debt grow without end.
#[tokio::test]
async fn a_delay_is_refused_if_it_would_be_over_what_the_caller_allows() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let refusal = refused(world.gate.consume_delayed(tokens(1), Span::from_millis(4_999)).await);
    assert_eq!(refusal.retry_after, Some(seconds(5)));
    let pass = world.gate.consume_delayed(tokens(1), seconds(5)).await.unwrap();
    assert_eq!((pass.delay(), pass.remaining()), (seconds(5), -1));
}

/// Theirs keeps the debt of a sleeper that was interrupted: ten of them leave -10.
#[tokio::test]
async fn a_sleeper_that_is_interrupted_owes_nothing() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let sleepers = (0..10).map(|_| world.stand(tokens(1)));
    drop(sleepers.collect::<Vec<_>>());
    world.advance(seconds(5)).await;
    assert_eq!(world.pay(tokens(10)).await, 0);
}

#[tokio::test]
async fn a_reservation_that_is_not_used_can_be_handed_back() {
    let world = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    let reserved = world.gate.consume_delayed(tokens(10), seconds(60)).await.unwrap();
    assert_eq!(reserved.remaining(), -10);
    reserved.cancel().await;
    world.advance(seconds(5)).await;
    assert_eq!(world.pay(tokens(10)).await, 0);
}

#[tokio::test]
async fn keys_have_budgets_of_their_own_and_are_any_text() {
    let world = ten_in_five_seconds().await;
    for key in ["user-42", "tenant:acme/eu", "a@b.example", "☃", " "] {
        assert_eq!(world.pay(toll("api", key).weight(10)).await, 0, "{key}");
        world.refusal(toll("api", key)).await;
    }
}

#[tokio::test]
async fn one_token_is_taken_unless_more_are_asked_for() {
    let world = ten_in_five_seconds().await;
    assert_eq!(world.pay(toll("api", "user-42")).await, 9);
    assert_eq!(world.pay(tokens(4)).await, 5);
}

/// The policy travels with the call; a lowered limit holds at once, which it does not there.
#[tokio::test]
async fn a_limit_may_come_with_the_call_and_the_newest_holds() {
    let world = World::with(Tollgate::builder()).await;
    let [ten, four] = [10, 4].map(|limit| Limit::fixed_window(limit, seconds(5)));
    let pass = world.gate.consume(tokens(3).limited_to(&ten)).await.unwrap();
    assert_eq!((pass.limit(), pass.remaining()), (10, 7));
    let pass = world.gate.consume(tokens(1).limited_to(&four)).await.unwrap();
    assert_eq!((pass.limit(), pass.remaining()), (4, 0));
    world.refusal(tokens(1)).await;
}

#[tokio::test]
async fn clones_share_their_limits_and_two_gates_do_not() {
    let world = ten_in_five_seconds().await;
    let other = ten_in_five_seconds().await;
    world.pay(tokens(10)).await;
    refused(world.gate.clone().consume(tokens(1)).await);
    assert_eq!(other.pay(tokens(1)).await, 9);
}
