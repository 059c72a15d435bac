//! Fixed window: 5 a minute, by Effect's own test cases. Their window is a counter that refills a
//! token at a time; ours opens at the first call, lasts a minute and ends as a whole.

use super::{Exceeded, Told, delay, fail, pass, stands};
use crate::world::{World, seconds};
use tollgate::Limit;

async fn five_a_minute() -> World {
    World::of("api", Limit::fixed_window(5, seconds(60))).await
}

#[tokio::test]
async fn a_whole_window_can_be_taken_at_once() {
    let world = five_a_minute().await;
    let told = delay(&world, 5).await;
    assert_eq!(told, Told { delay: 0, remaining: 0, reset_after: 60_000 });
}

/// Theirs resets after 12 s: a token of five frees a fifth of the window.
#[tokio::test]
async fn a_window_lasts_its_whole_length_however_little_was_taken() {
    let world = five_a_minute().await;
    let told = delay(&world, 1).await;
    assert_eq!(told, Told { delay: 0, remaining: 4, reset_after: 60_000 });
    world.advance(seconds(59)).await;
    assert_eq!(stands(&world).await, Told { delay: 0, remaining: 4, reset_after: 1_000 });
    world.advance(seconds(1)).await;
    assert_eq!(stands(&world).await, Told { delay: 0, remaining: 5, reset_after: 0 });
}

#[tokio::test]
async fn time_that_passed_in_the_window_counts() {
    let world = five_a_minute().await;
    delay(&world, 4).await;
    world.advance(seconds(10)).await;
    let told = delay(&world, 1).await;
    assert_eq!(told, Told { delay: 0, remaining: 0, reset_after: 50_000 });
}

/// Theirs resets after 72 s: the sixth token prolongs the counter by its own fifth.
#[tokio::test]
async fn what_overflows_is_delayed_to_the_next_window() {
    let world = five_a_minute().await;
    for _ in 0..5 {
        assert_eq!(delay(&world, 1).await.delay, 0);
    }
    let told = delay(&world, 1).await;
    assert_eq!(told, Told { delay: 60_000, remaining: -1, reset_after: 120_000 });
}

#[tokio::test]
async fn delays_accumulate_window_by_window() {
    let world = five_a_minute().await;
    let mut delays = Vec::new();
    for _ in 0..11 {
        delays.push(delay(&world, 1).await.delay);
    }
    assert_eq!(delays[..5], [0; 5]);
    assert_eq!(delays[5..], [60_000, 60_000, 60_000, 60_000, 60_000, 120_000]);
    world.advance(seconds(30)).await;
    assert_eq!(delay(&world, 1).await.delay, 90_000);
    world.advance(seconds(45)).await;
    assert_eq!(delay(&world, 1).await.delay, 45_000);
}

#[tokio::test]
async fn the_sixth_fails_until_the_window_ends() {
    let world = five_a_minute().await;
    for left in (0..5).rev() {
        assert_eq!(pass(&world, 1).await.remaining, left);
    }
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 60_000, remaining: 0 });
    world.advance(seconds(30)).await;
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 30_000, remaining: 0 });
    world.advance(seconds(30)).await;
    assert_eq!(pass(&world, 1).await.remaining, 4);
}

/// The store's contract: over the limit, neither count nor time to live changes.
#[tokio::test]
async fn a_failed_consume_neither_counts_nor_prolongs_the_window() {
    let world = five_a_minute().await;
    pass(&world, 4).await;
    world.advance(seconds(20)).await;
    for _ in 0..10 {
        assert_eq!(fail(&world, 2).await, Exceeded { retry_after: 40_000, remaining: 1 });
    }
    assert_eq!(pass(&world, 1).await, Told { delay: 0, remaining: 0, reset_after: 40_000 });
}

/// Theirs lets 6 of 5 into one window when weights are delayed.
#[tokio::test]
async fn delayed_weights_never_share_a_window_that_is_too_small() {
    let world = five_a_minute().await;
    let mut delays = Vec::new();
    for _ in 0..4 {
        delays.push(delay(&world, 3).await.delay);
    }
    assert_eq!(delays, [0, 60_000, 120_000, 180_000]);
}

/// Theirs over Redis admits at most 1,000 a second, whatever the limit.
#[tokio::test]
async fn a_window_finer_than_a_millisecond_loses_nothing() {
    let world = World::of("api", Limit::fixed_window(4_000, seconds(1))).await;
    for _ in 0..4_000 {
        pass(&world, 1).await;
    }
    assert_eq!(fail(&world, 1).await, Exceeded { retry_after: 1_000, remaining: 0 });
}
