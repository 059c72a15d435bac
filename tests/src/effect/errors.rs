//! What a failed `consume` says: exceeded, or the store failed, or, here, never as it is asked.

use super::{delay, fail, stands, tokens};
use crate::world::{World, remaining, seconds};
use tollgate::{AskError, Cause, Error, Limit, StoreError, Tollgate, toll};

async fn one_a_minute() -> World {
    World::of("api", Limit::fixed_window(1, seconds(60))).await
}

/// `RateLimitExceeded`: key, retryAfter, limit, remaining.
#[tokio::test]
async fn exceeded_names_the_key_the_limit_and_the_wait() {
    let world = one_a_minute().await;
    world.pay(tokens(1)).await;
    let refusal = world.refusal(tokens(1)).await;
    assert_eq!(&*refusal.limit, "api");
    assert_eq!(refusal.partition.as_deref(), Some("user-42"));
    assert_eq!(refusal.retry_after, Some(seconds(60)));
    assert_eq!((refusal.standing.limit, remaining(&refusal)), (1, 0));
    assert_eq!(refusal.cause, Cause::Spent);
}

/// Theirs says "Rate limit exceeded" for every key and every wait.
#[tokio::test]
async fn the_message_of_a_refusal_says_where_why_and_until_when() {
    let world = one_a_minute().await;
    world.pay(tokens(1)).await;
    let error = world.gate.consume(tokens(1)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit api refuses for user-42: its rate is used up; retry after 60000ms"
    );
}

/// `RateLimitStoreError`: memory fails in one way, when it is full.
#[tokio::test]
async fn a_store_that_fails_is_another_error_than_a_limit_that_refuses() {
    let world = World::with(Tollgate::builder().meters_max(1)).await;
    let world = world.limit("api", Limit::fixed_window(1, seconds(60))).await;
    world.pay(tokens(1)).await;
    let exceeded = world.gate.consume(tokens(1)).await.unwrap_err();
    assert!(matches!(exceeded, Error::Refused(_)), "{exceeded:?}");
    let failed = world.gate.consume(toll("api", "user-43")).await.unwrap_err();
    assert_eq!(failed, Error::Store(StoreError::MetersFull { meters: 1 }));
}

/// Theirs tells a wait of one window, after which it fails again, for ever.
#[tokio::test]
async fn more_tokens_than_the_limit_are_refused_at_the_door_in_every_way() {
    let world = World::of("api", Limit::fixed_window(5, seconds(60))).await;
    let never = Error::Invalid(AskError::WeightOverCapacity {
        name: "api".to_owned(),
        weight: 6,
        capacity: 5,
    });
    assert_eq!(world.gate.consume(tokens(6)).await.unwrap_err(), never);
    assert_eq!(world.gate.consume_delayed(tokens(6), seconds(600)).await.unwrap_err(), never);
    assert_eq!(world.gate.acquire(tokens(6)).await.unwrap_err(), never);
    assert!(never.to_string().contains("split the call, or raise the limit's burst"), "{never}");
    assert_eq!(stands(&world).await.remaining, 5);
}

/// Theirs gives credit for negative tokens and lets everything through a limit of 0.
#[tokio::test]
async fn no_tokens_and_no_limit_are_refused_at_the_door() {
    let world = one_a_minute().await;
    let nothing = world.gate.consume(tokens(0)).await.unwrap_err();
    assert_eq!(nothing, Error::Invalid(AskError::WeightZero { name: "api".to_owned() }));
    let closed = world.gate.limit("api", Limit::fixed_window(0, seconds(60))).await.unwrap_err();
    assert!(closed.to_string().contains("give at least 1"), "{closed}");
}

/// Fail fast and delay are two ways to ask one budget.
#[tokio::test]
async fn failing_and_delaying_callers_share_one_budget() {
    let world = World::of("api", Limit::fixed_window(5, seconds(60))).await;
    for _ in 0..5 {
        delay(&world, 1).await;
    }
    assert_eq!(fail(&world, 1).await.retry_after, 60_000);
    assert_eq!(delay(&world, 1).await.delay, 60_000);
    // The sixth is promised the first place of the next window: the seventh comes behind it.
    assert_eq!(fail(&world, 5).await.retry_after, 120_000);
}
