//! A store that is out of reach for a while.

use super::*;
use crate::StoreError;
use tokio::sync::Semaphore;
use tollgate_core::contract;

fn is_unreachable(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::Kept(contract::StoreError::Unreachable { .. })))
}

#[tokio::test]
async fn who_does_not_wait_is_told_at_once_that_the_store_is_out_of_reach() {
    let world = World::limited(Limit::per_second(1)).await;
    world.store.goes_out_of_reach(true);
    assert!(is_unreachable(&world.engine.consume(global("l")).await.unwrap_err()));
    assert!(is_unreachable(&world.engine.peek(global("l")).await.unwrap_err()));
}

#[tokio::test]
async fn who_waits_goes_on_when_the_store_is_in_reach_again() {
    let world = World::limited(Limit::per_second(1)).await;
    world.store.goes_out_of_reach(true);
    let (mut first, mut second) = (world.comes(), world.comes());
    assert_eq!(world.store.asks(), 1, "the second stands behind the first");
    for _ in 0..20 {
        let before = world.store.asks();
        world.wait(5_000);
        assert!(is_waiting(&mut first) && is_waiting(&mut second));
        assert_eq!(world.store.asks(), before + 1, "once in five seconds at least");
    }
    world.store.goes_out_of_reach(false);
    world.wait(5_000);
    assert!(is_granted(&mut first));
    world.wait(1_000);
    assert!(is_granted(&mut second));
}

#[tokio::test]
async fn who_waits_at_a_limit_that_is_not_known_here_yet_goes_on_waiting_too() {
    let world = World::limited(Limit::per_second(1)).await;
    world.store.goes_out_of_reach(true);
    let limit = Limit::per_second(1);
    let mut known_elsewhere = begun(world.other.acquire(global("l")));
    let mut comes_along = world.engine.acquire(global("new").limited_to(&limit)).into_future();
    assert!(is_waiting(&mut comes_along));
    world.engine.quiet().await;
    assert!(is_waiting(&mut comes_along));
    let mut short = begun(world.other.acquire(global("l")).max_wait(Span::from_secs(1)));
    world.wait(1_000);
    let Poll::Ready(Err(error)) = polled(&mut short) else { panic!("it waits for too long") };
    assert!(is_unreachable(&error));
    world.store.goes_out_of_reach(false);
    world.wait(5_000);
    assert!(is_granted(&mut known_elsewhere));
    assert!(comes_along.await.is_ok());
}

#[tokio::test]
async fn a_store_that_is_out_of_reach_is_left_alone_for_longer_each_time() {
    let world = World::limited(Limit::per_second(1)).await;
    world.store.goes_out_of_reach(true);
    let mut waiting = world.comes();
    for _ in 0..100 {
        world.wait(10);
        assert!(is_waiting(&mut waiting));
    }
    let asks = world.store.asks();
    assert!((4..10).contains(&asks), "{asks} in the first second");
    for _ in 0..900 {
        world.wait(10);
        assert!(is_waiting(&mut waiting));
    }
    let later = world.store.asks() - asks;
    assert!((2..10).contains(&later), "{later} in the nine seconds after");
}

#[tokio::test]
async fn who_waits_for_so_long_gives_up_with_what_the_store_said() {
    let world = World::limited(Limit::per_second(1)).await;
    world.store.goes_out_of_reach(true);
    let mut waiting = begun(world.engine.acquire(global("l")).max_wait(Span::from_secs(9)));
    world.wait(8_999);
    assert!(is_waiting(&mut waiting));
    world.wait(1);
    let Poll::Ready(Err(error)) = polled(&mut waiting) else { panic!("it waits for too long") };
    assert!(is_unreachable(&error));
}

#[tokio::test]
async fn who_hears_too_late_that_the_store_is_out_of_reach_does_not_ask_again() {
    let world = World::limited(Limit::per_second(1)).await;
    let permits = world.store.shared.answers.forget_permits(Semaphore::MAX_PERMITS);
    let mut waiting = begun(world.engine.acquire(global("l")).max_wait(Span::from_secs(9)));
    world.wait(9_001);
    assert!(is_waiting(&mut waiting), "it waits for the store's answer");
    world.store.goes_out_of_reach(true);
    world.store.shared.answers.add_permits(permits);
    let Poll::Ready(Err(error)) = polled(&mut waiting) else { panic!("it waits for too long") };
    assert!(is_unreachable(&error));
    assert_eq!(world.store.asks(), 1);
}
