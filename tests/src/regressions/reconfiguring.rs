//! A limit that is changed while calls wait for it.

use crate::world::{World, seconds};
use tollgate::{Limit, global, toll};

/// One an hour, and none left.
async fn spent() -> World {
    let world = World::of("api", Limit::per_hour(1)).await;
    world.pay(global("api")).await;
    world
}

#[tokio::test]
async fn a_raised_limit_lets_those_who_wait_go_at_once() {
    let world = spent().await;
    let waiters = [(); 3].map(|()| world.stand(global("api")));
    world.gate.limit("api", Limit::per_hour(4)).await.unwrap();
    for (waiter, left) in waiters.into_iter().zip([2, 1, 0]) {
        assert_eq!(waiter.answered().await.unwrap().remaining(), left);
    }
}

#[tokio::test]
async fn a_lowered_limit_holds_for_those_who_wait() {
    let world = World::of("api", Limit::per_second(2)).await;
    world.pay(global("api").weight(2)).await;
    let mut waiter = world.stand(global("api"));
    world.gate.limit("api", Limit::per_minute(1)).await.unwrap();
    world.advance(seconds(119)).await;
    assert!(waiter.answer().is_none());
    world.advance(seconds(1)).await;
    let _ = waiter.answer().unwrap().unwrap();
}

#[tokio::test]
async fn an_override_lets_those_who_wait_at_its_partition_go_at_once() {
    let world = World::of("api", Limit::per_hour(1)).await;
    for key in ["big", "small"] {
        world.pay(toll("api", key)).await;
    }
    let big = world.stand(toll("api", "big"));
    let mut small = world.stand(toll("api", "small"));
    world.gate.override_partition("api", "big", Some(Limit::per_hour(9))).await.unwrap();
    assert_eq!(big.answered().await.unwrap().remaining(), 7);
    assert!(small.answer().is_none());
}

#[tokio::test]
async fn a_pin_reaches_those_who_wait() {
    let world = spent().await;
    let waiter = world.stand(global("api"));
    world.gate.pin("operator", "api", Some(Limit::per_hour(2))).await.unwrap();
    assert_eq!(waiter.answered().await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn calls_that_wait_for_a_removed_limit_go_on_when_it_is_back() {
    let world = spent().await;
    let mut waiter = world.stand(global("api"));
    world.gate.remove("operator", "api").await.unwrap();
    world.advance(seconds(7_200)).await;
    assert!(waiter.answer().is_none());
    world.gate.limit("api", Limit::per_hour(1)).await.unwrap();
    assert_eq!(waiter.answered().await.unwrap().remaining(), 0);
}

#[tokio::test]
async fn calls_that_wait_for_a_removed_limit_hold_no_other_meter() {
    let world = spent().await.limit("other", Limit::per_second(1)).await;
    let _waiter = world.stand(global("api").and(global("other")));
    world.gate.remove("operator", "api").await.unwrap();
    for _ in 0..5 {
        world.pay(global("other")).await;
        world.advance(seconds(1)).await;
    }
}

/// Made impossible: it parks, those behind go on, and it goes on when it can pass again.
#[tokio::test]
async fn a_call_that_a_change_makes_impossible_holds_nobodys_turn() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let mut heavy = world.stand(global("api").weight(8));
    let mut light = world.stand(global("api"));
    world.gate.limit("api", Limit::per_second(10).burst(5)).await.unwrap();
    world.advance(seconds(1)).await;
    let _ = light.answer().unwrap().unwrap();
    assert!(heavy.answer().is_none());
    assert_eq!(world.pay(global("api").weight(2)).await, 2);
    world.gate.limit("api", Limit::per_second(10)).await.unwrap();
    world.advance(seconds(1)).await;
    let _ = heavy.answer().unwrap().unwrap();
}

#[tokio::test]
async fn a_call_that_is_impossible_can_still_leave() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let heavy = world.stand(global("api").weight(8));
    world.gate.limit("api", Limit::per_second(10).burst(5)).await.unwrap();
    drop(heavy);
    world.gate.limit("api", Limit::per_second(10)).await.unwrap();
    world.advance(seconds(1)).await;
    assert_eq!(world.pay(global("api").weight(10)).await, 0);
}

/// What waits is counted once, also when its limit went and came back.
#[tokio::test]
async fn meters_are_counted_right_when_a_limit_comes_back_for_those_who_wait() {
    let world = World::of("api", Limit::per_hour(1)).await;
    let before = world.gate.limiter().unwrap().meters_kept();
    world.pay(toll("api", "acme")).await;
    let waiter = world.stand(toll("api", "acme"));
    world.gate.remove("operator", "api").await.unwrap();
    world.gate.limit("api", Limit::per_hour(1)).await.unwrap();
    waiter.answered().await.unwrap().cancel().await;
    assert_eq!(world.gate.limiter().unwrap().meters_kept(), before + 1);
    world.gate.remove("operator", "api").await.unwrap();
    assert_eq!(world.gate.limiter().unwrap().meters_kept(), before);
}
