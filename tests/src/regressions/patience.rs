//! Waiting for so long only, and no longer waiting.

use crate::world::{Waiter, World, refused, seconds};
use tollgate::{Cause, Error, Limit, Span, StoreError, Tollgate, global};

/// One a second, and none left.
async fn spent() -> World {
    let world = World::of("api", Limit::per_second(1)).await;
    world.pay(global("api")).await;
    world
}

#[tokio::test]
async fn a_wait_that_is_known_to_take_too_long_is_refused_at_once() {
    let world = spent().await;
    let refusal = refused(world.gate.acquire(global("api")).max_wait(Span::from_millis(999)).await);
    assert_eq!((refusal.cause, refusal.retry_after), (Cause::Spent, Some(seconds(1))));
    let mut waiter = Waiter::stand(world.gate.acquire(global("api")).max_wait(seconds(1)));
    world.advance(seconds(1)).await;
    let _ = waiter.answer().unwrap().unwrap();
}

#[tokio::test]
async fn a_wait_that_no_one_can_compute_ends_at_its_deadline() {
    let world = World::of("api", Limit::concurrency(1)).await;
    let held = world.gate.consume(global("api")).await.unwrap();
    let mut waiter = Waiter::stand(world.gate.acquire(global("api")).max_wait(seconds(5)));
    world.advance(Span::from_nanos(4_999_999_999)).await;
    assert!(waiter.answer().is_none());
    world.advance(Span::from_nanos(1)).await;
    let refusal = refused(waiter.answer().unwrap());
    assert_eq!((refusal.cause, refusal.retry_after), (Cause::Slots, None));
    drop(held);
}

/// Also on a clock that stands still, however busy the timer is.
#[tokio::test]
async fn a_wait_of_no_time_at_all_ends_at_once() {
    let world = World::of("api", Limit::concurrency(1)).await;
    let held = world.gate.consume(global("api")).await.unwrap();
    for _ in 0..2_000 {
        let impatient = Waiter::new(world.gate.acquire(global("api")).max_wait(Span::ZERO));
        assert_eq!(refused(impatient.answered().await).cause, Cause::Slots);
    }
    drop(held);
}

#[tokio::test]
async fn a_wait_behind_others_ends_at_its_deadline() {
    let world = spent().await;
    let mut others: Vec<_> = (0..5).map(|_| world.stand(global("api"))).collect();
    let mut late = Waiter::stand(world.gate.acquire(global("api")).max_wait(seconds(3)));
    world.advance(seconds(3)).await;
    let refusal = refused(late.answer().unwrap());
    assert_eq!(refusal.cause, Cause::Turn);
    // The burst of one let one start in these three seconds; four are still before the late one.
    assert_eq!(others.iter_mut().filter_map(Waiter::answer).count(), 1);
    assert_eq!(world.gate.meter("api", None).await.unwrap().waiting, 4);
}

#[tokio::test]
async fn a_dropped_acquire_gives_up_its_place() {
    let world = spent().await;
    let first = world.stand(global("api"));
    let mut second = world.stand(global("api"));
    drop(first);
    world.advance(seconds(1)).await;
    let _ = second.answer().unwrap().unwrap();
    assert_eq!(world.gate.meter("api", None).await.unwrap().waiting, 0);
}

#[tokio::test]
async fn a_heavy_call_that_leaves_lets_a_light_one_start_at_once() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let heavy = world.stand(global("api").weight(10));
    let light = world.stand(global("api"));
    world.advance(Span::from_millis(500)).await;
    drop(heavy);
    light.answered().await.unwrap().cancel().await;
    assert_eq!(world.left("api").await, 5);
}

/// Granted behind the caller's back, never looked at, dropped: nothing was started.
#[tokio::test]
async fn an_acquire_dropped_after_its_grant_gives_back_what_it_paid() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let unseen = world.stand(global("api").weight(4));
    world.advance(Span::from_millis(400)).await;
    assert_eq!(world.left("api").await, 0);
    drop(unseen);
    assert_eq!(world.left("api").await, 4);
}

#[tokio::test]
async fn an_acquire_that_is_never_awaited_asks_nothing() {
    let world = World::of("api", Limit::per_second(1)).await;
    drop(world.gate.acquire(global("api")));
    assert_eq!(world.left("api").await, 1);
}

#[tokio::test]
async fn one_more_than_may_wait_is_refused_as_a_full_store() {
    let world = World::with(Tollgate::builder().waiting_max(2)).await;
    let world = world.limit("api", Limit::per_second(1)).await;
    world.pay(global("api")).await;
    let waiters = [world.stand(global("api")), world.stand(global("api"))];
    let error = world.gate.acquire(global("api")).await.unwrap_err();
    assert_eq!(error, Error::Store(StoreError::WaitingFull { waiting: 2 }));
    drop(waiters);
    let _third = world.stand(global("api"));
}
