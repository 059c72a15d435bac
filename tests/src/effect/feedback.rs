//! An upstream's `429` with `Retry-After`: Effect's adaptive cases, as far as we learn from it. It
//! closes the meter; what the upstream allows is not guessed.

use super::{fail, tokens};
use crate::world::{Waiter, World, seconds};
use tollgate::{Cause, Limit, Span, toll};

async fn five_a_minute() -> World {
    World::of("api", Limit::fixed_window(5, seconds(60))).await
}

async fn told_429(world: &World, retry_after: Span) {
    world.gate.close("api", Some("user-42"), retry_after, "the upstream said 429").await.unwrap();
}

#[tokio::test]
async fn a_429_closes_its_key_for_as_long_as_it_says_and_no_other() {
    let world = five_a_minute().await;
    told_429(&world, seconds(10)).await;
    assert_eq!(world.refusal(tokens(1)).await.cause, Cause::Closed);
    assert_eq!(fail(&world, 1).await.retry_after, 10_000);
    world.pay(toll("api", "user-43")).await;
    world.advance(seconds(4)).await;
    assert_eq!(fail(&world, 1).await.retry_after, 6_000);
    world.advance(seconds(6)).await;
    world.pay(tokens(1)).await;
}

#[tokio::test]
async fn a_second_429_prolongs_and_never_shortens() {
    let world = five_a_minute().await;
    told_429(&world, seconds(5)).await;
    told_429(&world, seconds(10)).await;
    assert_eq!(fail(&world, 1).await.retry_after, 10_000);
    told_429(&world, seconds(1)).await;
    assert_eq!(fail(&world, 1).await.retry_after, 10_000);
}

/// Theirs believes at most an hour.
#[tokio::test]
async fn a_429_is_believed_for_up_to_a_day() {
    let world = five_a_minute().await;
    told_429(&world, Span::from_hours(2)).await;
    assert_eq!(fail(&world, 1).await.retry_after, 7_200_000);
    told_429(&world, Span::from_days(30)).await;
    assert_eq!(fail(&world, 1).await.retry_after, 86_400_000);
}

/// Queued requests that ignored a later `Retry-After` were a bug of theirs.
#[tokio::test]
async fn a_429_reaches_those_who_wait_already() {
    let world = World::of("api", Limit::fixed_window(1, seconds(60))).await;
    world.pay(tokens(1)).await;
    let mut waiter = Waiter::stand(world.gate.acquire(tokens(1)));
    told_429(&world, seconds(90)).await;
    world.advance(seconds(60)).await;
    assert!(waiter.answer().is_none());
    world.advance(seconds(30)).await;
    let _ = waiter.answer().unwrap().unwrap();
}
