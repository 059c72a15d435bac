//! Token bucket, by Effect's own test cases. Theirs refills whole tokens at whole intervals, ours
//! flows in all the time: for whole weights every wait is the same to the millisecond.

use super::{Exceeded, Told, delay, fail, pass, stands};
use crate::world::{World, seconds};
use tollgate::{Limit, Span};

/// A token every 12 s.
async fn five_a_minute() -> World {
    World::of("api", Limit::per_minute(5)).await
}

/// A token every minute.
async fn five_in_five_minutes() -> World {
    World::of("api", Limit::per(5, seconds(300))).await
}

#[tokio::test]
async fn a_burst_up_to_the_limit_passes_at_once_and_refills_smoothly() {
    let world = World::of("api", Limit::per_minute(100)).await;
    assert_eq!(pass(&world, 100).await, Told { delay: 0, remaining: 0, reset_after: 60_000 });
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 600, remaining: 0 });
    world.advance(Span::from_millis(600)).await;
    assert_eq!(pass(&world, 1).await.remaining, 0);
}

#[tokio::test]
async fn delays_grow_by_one_token_each() {
    let world = five_a_minute().await;
    let mut delays = Vec::new();
    for _ in 0..7 {
        delays.push(delay(&world, 1).await.delay);
    }
    assert_eq!(delays, [0, 0, 0, 0, 0, 12_000, 24_000]);
    world.advance(seconds(60)).await;
    let told = delay(&world, 1).await;
    assert_eq!((told.delay, told.remaining), (0, 2));
}

#[tokio::test]
async fn the_sixth_fails_until_a_token_is_back() {
    let world = five_a_minute().await;
    for _ in 0..5 {
        pass(&world, 1).await;
    }
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 12_000, remaining: 0 });
    world.advance(seconds(36)).await;
    assert_eq!(pass(&world, 1).await.remaining, 2);
}

/// Empties the bucket, lets `elapsed` pass and asks again in both ways.
async fn after_a_full_burst(elapsed_ms: u64, count: u64) -> (Exceeded, Told) {
    let world = five_in_five_minutes().await;
    pass(&world, 5).await;
    world.advance(Span::from_millis(elapsed_ms)).await;
    (fail(&world, count).await, delay(&world, count).await)
}

#[tokio::test]
async fn a_token_that_is_nearly_back_is_waited_for_that_long_only() {
    let (exceeded, told) = after_a_full_burst(59_000, 1).await;
    assert_eq!(exceeded, Exceeded { retry_after: 1_000, remaining: 0 });
    assert_eq!(told, Told { delay: 1_000, remaining: -1, reset_after: 301_000 });

    let (exceeded, told) = after_a_full_burst(59_500, 1).await;
    assert_eq!(exceeded, Exceeded { retry_after: 500, remaining: 0 });
    assert_eq!(told, Told { delay: 500, remaining: -1, reset_after: 300_500 });
}

#[tokio::test]
async fn several_tokens_are_waited_for_together() {
    let (exceeded, told) = after_a_full_burst(59_000, 2).await;
    assert_eq!(exceeded, Exceeded { retry_after: 61_000, remaining: 0 });
    assert_eq!(told, Told { delay: 61_000, remaining: -2, reset_after: 361_000 });

    let (exceeded, told) = after_a_full_burst(119_000, 2).await;
    assert_eq!(exceeded, Exceeded { retry_after: 1_000, remaining: 1 });
    assert_eq!(told, Told { delay: 1_000, remaining: -1, reset_after: 301_000 });
}

#[tokio::test]
async fn it_is_reset_when_the_last_token_is_back() {
    let world = five_in_five_minutes().await;
    assert_eq!(pass(&world, 4).await.reset_after, 240_000);
    world.advance(seconds(59)).await;
    assert_eq!(pass(&world, 1).await, Told { delay: 0, remaining: 0, reset_after: 241_000 });
    world.advance(seconds(241)).await;
    assert_eq!(stands(&world).await, Told { delay: 0, remaining: 5, reset_after: 0 });
}

#[tokio::test]
async fn a_full_bucket_does_not_save_up() {
    let world = five_in_five_minutes().await;
    pass(&world, 1).await;
    world.advance(seconds(61)).await;
    assert_eq!(pass(&world, 1).await, Told { delay: 0, remaining: 4, reset_after: 60_000 });
    assert_eq!(fail(&world, 5).await, Exceeded { retry_after: 60_000, remaining: 4 });
    let told = delay(&world, 5).await;
    assert_eq!(told, Told { delay: 60_000, remaining: -1, reset_after: 360_000 });
}

#[tokio::test]
async fn a_bucket_left_alone_for_long_is_full_once() {
    let world = five_in_five_minutes().await;
    pass(&world, 5).await;
    world.advance(seconds(359)).await;
    assert_eq!(pass(&world, 5).await, Told { delay: 0, remaining: 0, reset_after: 300_000 });
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 60_000, remaining: 0 });
    let told = delay(&world, 1).await;
    assert_eq!(told, Told { delay: 60_000, remaining: -1, reset_after: 360_000 });
}

#[tokio::test]
async fn looking_at_a_bucket_does_not_move_its_refill() {
    let world = five_in_five_minutes().await;
    assert_eq!(stands(&world).await.remaining, 5);
    world.advance(seconds(30)).await;
    assert_eq!(pass(&world, 1).await, Told { delay: 0, remaining: 4, reset_after: 60_000 });
}

#[tokio::test]
async fn failures_do_not_move_the_refill() {
    let world = five_in_five_minutes().await;
    pass(&world, 5).await;
    fail(&world, 1).await;
    world.advance(seconds(59)).await;
    for _ in 0..2 {
        assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 1_000, remaining: 0 });
    }
    world.advance(seconds(1)).await;
    assert_eq!(pass(&world, 1).await, Told { delay: 0, remaining: 0, reset_after: 300_000 });
}

/// The store's contract: below zero with delay, never by a refusal.
#[tokio::test]
async fn only_delay_goes_below_zero() {
    let world = five_in_five_minutes().await;
    pass(&world, 5).await;
    world.advance(seconds(59)).await;
    assert_eq!(fail(&world, 5).await.remaining, 0);
    assert_eq!(stands(&world).await.remaining, 0);
    assert_eq!(delay(&world, 1).await.remaining, -1);
    let told = delay(&world, 1).await;
    assert_eq!(told, Told { delay: 61_000, remaining: -2, reset_after: 361_000 });
}

/// Theirs computes with 333.33 ms; ours is exact to the nanosecond and rounds up when it tells.
#[tokio::test]
async fn three_per_second_waits_exactly_its_thirds() {
    let world = World::of("api", Limit::per_second(3)).await;
    pass(&world, 3).await;
    world.advance(Span::from_millis(500)).await;
    assert_eq!(pass(&world, 1).await.remaining, 0);
    let ask = super::tokens(1);
    let pass = world.gate.consume_delayed(ask, seconds(10)).await.unwrap();
    assert_eq!(pass.delay(), Span::from_nanos(166_666_667));
    assert_eq!(pass.remaining(), -1);
    assert_eq!(pass.reset_after(), Span::from_nanos(1_166_666_667));
}

/// Theirs takes 4.5 tokens of 5 and waits for the next whole one; a limit in halves does so here,
/// and what has flowed in of a unit is not lost.
#[tokio::test]
async fn halves_are_counted_by_a_limit_in_halves() {
    let world = World::of("api", Limit::per(10, seconds(300))).await;
    assert_eq!(pass(&world, 9).await.remaining, 1);
    assert_eq!(fail(&world, 2).await, Exceeded { retry_after: 30_000, remaining: 1 });
    world.advance(seconds(45)).await;
    let told = delay(&world, 3).await;
    assert_eq!(told, Told { delay: 15_000, remaining: -1, reset_after: 315_000 });
}
