//! The true cost: given back at once, owed at once, and never more than once. Refusals are free.

use crate::world::{World, remaining, seconds};
use tollgate::{AskError, Error, Limit, Span, global};

/// Ten a second.
async fn ten() -> World {
    World::of("api", Limit::per_second(10)).await
}

/// Charge on denial.
#[tokio::test]
async fn a_refusal_costs_nothing() {
    let rules = [
        Limit::per_second(10),
        Limit::fixed_window(10, seconds(1)),
        Limit::sliding_window(10, seconds(1)),
    ];
    for limit in rules {
        let world = World::of("api", limit.clone()).await;
        world.pay(global("api").weight(8)).await;
        for _ in 0..100 {
            assert_eq!(remaining(&world.refusal(global("api").weight(3)).await), 2, "{limit:?}");
        }
        assert_eq!(world.pay(global("api").weight(2)).await, 0, "{limit:?}");
    }
}

/// Refund hidden by a deny cache: what was refused a moment ago passes as soon as it can.
#[tokio::test]
async fn what_is_given_back_is_there_for_one_who_was_just_refused() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(10)).await.unwrap();
    world.refusal(global("api").weight(6)).await;
    pass.settle("api", 4).await.unwrap();
    assert_eq!(world.pay(global("api").weight(6)).await, 0);
}

#[tokio::test]
async fn what_is_given_back_lets_one_who_waits_start_at_once() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(10)).await.unwrap();
    let waiter = world.stand(global("api").weight(6));
    pass.settle("api", 4).await.unwrap();
    assert_eq!(waiter.answered().await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn settling_up_is_owed_before_anyone_else_passes() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(2)).await.unwrap();
    pass.settle("api", 25).await.unwrap();
    assert_eq!(world.left("api").await, -15);
    let refusal = world.refusal(global("api")).await;
    assert_eq!((remaining(&refusal), refusal.retry_after), (-15, Some(Span::from_millis(1_600))));
    world.advance(Span::from_millis(1_600)).await;
    assert_eq!(world.pay(global("api")).await, 0);
}

#[tokio::test]
async fn settling_up_reaches_one_who_waits() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(10)).await.unwrap();
    let mut waiter = world.stand(global("api"));
    pass.settle("api", 20).await.unwrap();
    world.advance(Span::from_millis(1_099)).await;
    assert!(waiter.answer().is_none());
    world.advance(Span::from_millis(1)).await;
    let _ = waiter.answer().unwrap().unwrap();
}

/// Had the call paid its true cost from the start, the rest would have overflowed.
#[tokio::test]
async fn what_would_have_overflowed_meanwhile_stays_lost() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(10)).await.unwrap();
    world.advance(seconds(1)).await;
    assert_eq!(world.pay(global("api").weight(4)).await, 6);
    pass.settle("api", 0).await.unwrap();
    assert_eq!(world.left("api").await, 6);
}

#[tokio::test]
async fn a_payment_settles_once() {
    let world = ten().await;
    let mut pass = world.gate.consume(global("api").estimate(10)).await.unwrap();
    pass.settle("api", 8).await.unwrap();
    let again = pass.settle("api", 0).await.unwrap_err();
    assert_eq!(again, Error::Invalid(AskError::ReceiptSpent));
    drop(pass);
    assert_eq!(world.left("api").await, 2);
}

#[tokio::test]
async fn an_estimate_that_is_never_settled_stays_paid() {
    let world = ten().await;
    drop(world.gate.consume(global("api").estimate(7)).await.unwrap());
    assert_eq!(world.left("api").await, 3);
}

#[tokio::test]
async fn each_limit_of_a_call_is_settled_on_its_own() {
    let world = ten().await.limit("tokens", Limit::per_minute(1_000)).await;
    let ask = global("api").and(global("tokens").estimate(600));
    let mut pass = world.gate.acquire(ask).await.unwrap();
    pass.settle("tokens", 100).await.unwrap();
    assert_eq!((world.left("api").await, world.left("tokens").await), (9, 900));
    let unknown = pass.settle("other", 1).await.unwrap_err();
    assert_eq!(unknown, Error::Invalid(AskError::NotPaid { name: "other".to_owned() }));
}

#[tokio::test]
async fn a_call_that_is_cancelled_gives_back_all_that_it_paid() {
    let world = ten().await.limit("day", Limit::fixed_window(100, Span::from_days(1))).await;
    let ask = global("api").weight(10).and(global("day").weight(10));
    let pass = world.gate.acquire(ask).await.unwrap();
    assert_eq!((world.left("api").await, world.left("day").await), (0, 90));
    pass.cancel().await;
    assert_eq!((world.left("api").await, world.left("day").await), (10, 100));
}

/// A reservation that is handed back frees its place for the next.
#[tokio::test]
async fn a_reservation_that_is_cancelled_brings_the_next_one_forward() {
    let world = ten().await;
    world.pay(global("api").weight(10)).await;
    let reserved = world.gate.consume_delayed(global("api").weight(10), seconds(60)).await;
    let refusal = world.refusal(global("api")).await;
    assert_eq!((remaining(&refusal), refusal.retry_after), (-10, Some(Span::from_millis(1_100))));
    reserved.unwrap().cancel().await;
    assert_eq!(world.refusal(global("api")).await.retry_after, Some(Span::from_millis(100)));
}
