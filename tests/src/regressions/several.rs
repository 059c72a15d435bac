//! Several tolls of one call: all or none, in one decision.

use crate::world::{World, refused, remaining, seconds};
use tollgate::{AskError, Cause, Error, Limit, Span, global, toll};

/// Ten a second and three a minute.
async fn two_limits() -> World {
    World::of("fast", Limit::per_second(10)).await.limit("slow", Limit::per_minute(3)).await
}

/// Limit A burned when B refuses.
#[tokio::test]
async fn a_limit_is_not_burned_when_another_refuses() {
    let world = two_limits().await;
    world.pay(global("slow").weight(3)).await;
    for _ in 0..100 {
        world.refusal(global("fast").and(global("slow"))).await;
        world.refusal(global("slow").and(global("fast"))).await;
    }
    assert_eq!(world.left("fast").await, 10);
    assert!(
        world.gate.consume_delayed(global("fast").and(global("slow")), seconds(1)).await.is_err()
    );
    assert_eq!(world.left("fast").await, 10);
}

#[tokio::test]
async fn all_tolls_are_paid_together_and_the_tightest_is_told() {
    let world = two_limits().await;
    let pass = world.gate.consume(global("fast").weight(4).and(global("slow"))).await.unwrap();
    assert_eq!((pass.limit(), pass.remaining()), (3, 2));
    assert_eq!((world.left("fast").await, world.left("slow").await), (6, 2));
}

#[tokio::test]
async fn the_refusal_names_the_limit_that_opens_last() {
    let world = two_limits().await;
    world.pay(global("fast").weight(10)).await;
    world.pay(toll("slow", "acme").weight(3)).await;
    let both = global("fast").weight(5).and(toll("slow", "acme"));
    let refusal = world.refusal(both).await;
    assert_eq!((&*refusal.limit, refusal.partition.as_deref()), ("slow", Some("acme")));
    assert_eq!((refusal.retry_after, remaining(&refusal)), (Some(seconds(20)), 0));
    world.advance(seconds(20)).await;
    world.pay(global("fast").weight(5).and(toll("slow", "acme"))).await;
}

#[tokio::test]
async fn a_limit_of_several_rules_tells_the_wait_of_the_last_to_open() {
    let limit = Limit::per_second(2).and(Limit::fixed_window(3, seconds(60)));
    let world = World::of("api", limit).await;
    world.pay(global("api").weight(2)).await;
    assert_eq!(world.refusal(global("api")).await.retry_after, Some(Span::from_millis(500)));
    world.advance(Span::from_millis(500)).await;
    world.pay(global("api")).await;
    assert_eq!(world.refusal(global("api")).await.retry_after, Some(Span::from_millis(59_500)));
}

#[tokio::test]
async fn two_tolls_at_one_meter_add_up() {
    let world = two_limits().await;
    assert_eq!(world.pay(toll("slow", "acme").and(toll("slow", "acme").weight(2))).await, 0);
    let refusal = world.refusal(toll("slow", "acme")).await;
    assert_eq!(refusal.cause, Cause::Spent);
    // Another partition is another meter.
    assert_eq!(world.pay(toll("slow", "a").and(toll("slow", "b"))).await, 2);
}

#[tokio::test]
async fn two_tolls_at_one_meter_that_can_never_pass_together_are_refused_at_the_door() {
    let world = two_limits().await;
    let outcome = world.gate.consume(global("slow").weight(2).and(global("slow").weight(2))).await;
    let (name, weight, capacity) = ("slow".to_owned(), 4, 3);
    let never = AskError::WeightOverCapacity { name, weight, capacity };
    assert_eq!(outcome.unwrap_err(), Error::Invalid(never));
}

#[tokio::test]
async fn a_reservation_starts_when_the_last_of_its_limits_opens() {
    let world = two_limits().await;
    world.pay(global("slow").weight(3)).await;
    let both = global("fast").weight(10).and(global("slow"));
    let pass = world.gate.consume_delayed(both, seconds(60)).await.unwrap();
    assert_eq!(pass.delay(), seconds(20));
    world.advance(seconds(20)).await;
    assert_eq!(world.refusal(global("fast")).await.retry_after, Some(Span::from_millis(100)));
}

/// A reservation is paid: who passes a faster limit meanwhile leaves it enough, and is not held.
#[tokio::test]
async fn a_reservation_is_kept_at_every_limit_and_holds_nobody_else() {
    let world = two_limits().await;
    world.pay(global("slow").weight(3)).await;
    let both = global("fast").weight(4).and(global("slow"));
    let pass = world.gate.consume_delayed(both, seconds(60)).await.unwrap();
    assert_eq!(pass.delay(), seconds(20));
    for _ in 0..19 {
        assert_eq!(world.pay(global("fast").weight(10)).await, 0);
        world.advance(seconds(1)).await;
    }
    world.advance(Span::from_millis(900)).await;
    assert_eq!(world.left("fast").await, 7);
    let refusal = world.refusal(global("fast").weight(8)).await;
    assert_eq!(refusal.retry_after, Some(Span::from_millis(300)));
    // Three are left, and the next unit waits for four that are promised.
    assert_eq!(world.pay(global("fast").weight(7)).await, -1);
    world.advance(Span::from_millis(100)).await;
    assert_eq!(world.left("fast").await, 0);
}

/// A start that was handed back holds nobody, whatever the rule.
#[tokio::test]
async fn a_reservation_that_is_cancelled_leaves_no_trace() {
    let windows = [
        Limit::sliding_window(5, seconds(60)),
        Limit::fixed_window(5, seconds(60)),
        Limit::per_minute(5),
    ];
    for limit in windows {
        let world = World::of("api", limit).await;
        world.pay(global("api").weight(3)).await;
        let pass = world.gate.consume_delayed(global("api").weight(5), seconds(90)).await.unwrap();
        assert!(pass.delay() > seconds(30));
        world.refusal(global("api").weight(3)).await;
        pass.cancel().await;
        assert_eq!(world.left("api").await, 2);
        assert_eq!(world.pay(global("api").weight(2)).await, 0);
    }
}

/// A window remembers so many starts ahead; one more is told when all of them have started.
#[tokio::test]
async fn a_window_full_of_reservations_refuses_until_they_have_started() {
    let world = World::of("api", Limit::sliding_window(1, seconds(1))).await;
    world.pay(global("api")).await;
    let hour = seconds(3_600);
    for second in 1..=1_024 {
        let pass = world.gate.consume_delayed(global("api"), hour).await.unwrap();
        assert_eq!(pass.delay(), seconds(second));
    }
    let refusal = refused(world.gate.consume_delayed(global("api"), hour).await);
    assert_eq!(refusal.retry_after, Some(seconds(1_025)));
    world.advance(seconds(1)).await;
    let pass = world.gate.consume_delayed(global("api"), hour).await.unwrap();
    assert_eq!(pass.delay(), seconds(1_024));
}

#[tokio::test]
async fn a_call_that_waits_for_one_limit_pays_nothing_at_the_others_meanwhile() {
    let world = two_limits().await;
    world.pay(global("slow").weight(3)).await;
    let mut waiter = world.stand(global("fast").weight(10).and(global("slow")));
    assert_eq!(world.pay(global("fast").weight(10)).await, 0);
    world.advance(seconds(20)).await;
    let _ = waiter.answer().unwrap().unwrap();
    let refusal = refused(world.gate.consume(global("fast")).await);
    assert_eq!(refusal.retry_after, Some(Span::from_millis(100)));
}
