//! Closing a meter and opening it again, with calls that wait there.

use crate::world::{World, refused, seconds};
use tollgate::{Cause, Limit, Span, global, toll};

async fn one_a_second() -> World {
    World::of("api", Limit::per_second(1)).await
}

#[tokio::test]
async fn a_closed_meter_lets_nothing_pass_and_says_until_when_and_why() {
    let world = one_a_second().await;
    world.gate.close("api", None, seconds(30), "the upstream said 429").await.unwrap();
    let refusal = world.refusal(global("api")).await;
    assert_eq!((refusal.cause, refusal.retry_after), (Cause::Closed, Some(seconds(30))));
    let meter = world.gate.meter("api", None).await.unwrap();
    assert_eq!(meter.closed, Some((seconds(30), "the upstream said 429".to_owned())));
    assert_eq!(meter.next_admission_after, Some(seconds(30)));
    assert_eq!(world.pay(toll("api", "another")).await, 0);
}

#[tokio::test]
async fn those_who_wait_keep_their_places_through_a_closure() {
    let world = one_a_second().await;
    world.pay(global("api")).await;
    let mut waiters = [(); 2].map(|()| world.stand(global("api")));
    world.gate.close("api", None, seconds(10), "maintenance").await.unwrap();
    world.advance(seconds(9)).await;
    assert!(waiters.iter_mut().all(|waiter| waiter.answer().is_none()));
    world.advance(seconds(1)).await;
    let _ = waiters[0].answer().unwrap().unwrap();
    assert!(waiters[1].answer().is_none());
    world.advance(seconds(1)).await;
    let _ = waiters[1].answer().unwrap().unwrap();
}

#[tokio::test]
async fn reopening_lets_those_who_wait_go_at_once() {
    let world = one_a_second().await;
    world.gate.close("api", None, Span::from_hours(1), "maintenance").await.unwrap();
    let waiter = world.stand(global("api"));
    world.gate.reopen("api", None).await.unwrap();
    waiter.answered().await.unwrap().cancel().await;
    assert_eq!(world.left("api").await, 1);
}

#[tokio::test]
async fn what_was_paid_before_a_closure_stays_spent() {
    let world = World::of("api", Limit::per_hour(5)).await;
    world.pay(global("api").weight(5)).await;
    world.gate.close("api", None, seconds(1), "the upstream said 429").await.unwrap();
    world.advance(seconds(1)).await;
    assert_eq!(world.refusal(global("api")).await.cause, Cause::Spent);
}

#[tokio::test]
async fn a_reservation_starts_after_a_closure() {
    let world = one_a_second().await;
    world.gate.close("api", None, seconds(10), "maintenance").await.unwrap();
    let pass = world.gate.consume_delayed(global("api"), seconds(60)).await.unwrap();
    assert_eq!(pass.delay(), seconds(10));
    let refusal = refused(world.gate.consume_delayed(global("api"), seconds(10)).await);
    assert_eq!(refusal.retry_after, Some(seconds(11)));
}

#[tokio::test]
async fn a_reset_forgets_what_was_spent_and_lets_those_who_wait_go() {
    let world = World::of("api", Limit::per_hour(2)).await;
    world.pay(global("api").weight(2)).await;
    let waiter = world.stand(global("api"));
    world.gate.reset("api", None).await.unwrap();
    assert_eq!(waiter.answered().await.unwrap().remaining(), 1);
}

/// An idle meter that is closed is not as good as new.
#[tokio::test]
async fn a_closed_meter_is_not_forgotten() {
    let world = one_a_second().await;
    world.gate.close("api", Some("acme"), Span::from_hours(1), "banned").await.unwrap();
    world.advance(seconds(60)).await;
    for number in 0..5_000 {
        world.pay(toll("api", &format!("tenant {number}"))).await;
    }
    assert_eq!(world.refusal(toll("api", "acme")).await.cause, Cause::Closed);
}
