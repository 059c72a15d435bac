//! Who goes first.

use super::*;
use crate::toll;
use tollgate_core::{Cause, Priority};

fn priority(level: u64) -> Priority {
    Priority::new(level).unwrap()
}

#[tokio::test]
async fn whoever_comes_first_goes_first() {
    let world = World::limited(Limit::per_second(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let (mut first, mut second) = (world.comes(), world.comes());
    world.wait(999);
    assert!(is_waiting(&mut first) && is_waiting(&mut second));
    world.wait(1);
    assert!(is_waiting(&mut second), "it does not overtake");
    assert!(is_granted(&mut first));
    assert!(is_waiting(&mut second));
    world.wait(1_000);
    assert!(is_granted(&mut second));
}

#[tokio::test]
async fn whoever_has_the_higher_priority_goes_first() {
    let world = World::limited(Limit::per_second(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut low = world.comes();
    let mut high = begun(world.engine.acquire(global("l")).priority(priority(1)));
    world.wait(1_000);
    assert!(is_waiting(&mut low));
    assert!(is_granted(&mut high));
    world.wait(1_000);
    assert!(is_granted(&mut low));
}

#[tokio::test]
async fn who_does_not_wait_overtakes_nobody_who_does() {
    let world = World::limited(Limit::per_second(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut waiting = begun(world.engine.acquire(global("l")).priority(priority(1)));
    world.wait(400);
    let refusal = world.refusal().await;
    assert_eq!((refusal.cause, &*refusal.limit), (Cause::Turn, "l"));
    assert_eq!(refusal.retry_after, Some(Span::from_millis(600)));
    world.wait(600);
    assert_eq!(world.refusal().await.cause, Cause::Turn);
    let later = world.engine.consume_delayed(global("l"), Span::from_secs(9)).await;
    assert_eq!(refused(later).cause, Cause::Turn);
    assert!(world.engine.peek(global("l")).await.is_err());
    assert!(world.engine.consume_many(&[global("l")]).await[0].is_err());
    let same = global("l").and(toll("l", "p")).priority(priority(1));
    assert_eq!(refused(world.engine.consume(same).await).cause, Cause::Turn);
    assert!(world.engine.consume(toll("l", "p")).await.is_ok(), "at another meter");
    let urgent = crate::Ask::from(global("l")).priority(priority(2));
    assert!(world.engine.consume(urgent).await.is_ok());
    world.wait(1_000);
    assert!(is_granted(&mut waiting));
}

#[tokio::test]
async fn only_the_first_in_line_asks_the_store() {
    let world = World::limited(Limit::per_hour(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut waiting: Vec<_> = (0..10).map(|_| world.comes()).collect();
    assert_eq!(world.store.asks(), 2, "one that was granted, and the first who waits");
    for asks in [3, 4, 5] {
        world.wait(500);
        assert!(waiting.iter_mut().all(is_waiting));
        assert_eq!(world.store.asks(), asks);
    }
}

#[tokio::test]
async fn who_gives_up_leaves_no_trace_and_the_next_one_goes_on() {
    let world = World::limited(Limit::per_second(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let (first, mut second, third) = (world.comes(), world.comes(), world.comes());
    world.wait(1_000);
    drop(third);
    drop(first);
    assert!(is_granted(&mut second), "it is the first now");
    world.wait(1_000);
    assert!(world.engine.consume(global("l")).await.is_ok(), "nobody is left");
}

#[tokio::test]
async fn who_waits_no_longer_than_it_said_is_told_why() {
    let world = World::limited(Limit::per_second(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let short = world.engine.acquire(global("l")).max_wait(Span::from_millis(999));
    assert_eq!(refused(short.await).retry_after, Some(Span::from_secs(1)), "at once");
    let mut first = begun(world.engine.acquire(global("l")).max_wait(Span::from_secs(1)));
    let short = world.engine.acquire(global("l")).max_wait(Span::from_millis(500));
    assert_eq!(refused(short.await).cause, Cause::Turn);
    let mut second = begun(world.engine.acquire(global("l")).max_wait(Span::from_millis(1_500)));
    world.wait(1_000);
    assert!(is_granted(&mut first), "at the last instant");
    assert!(is_waiting(&mut second));
    world.wait(500);
    let Poll::Ready(outcome) = polled(&mut second) else { panic!("it waits for too long") };
    let refusal = refused(outcome);
    assert_eq!((refusal.cause, refusal.retry_after), (Cause::Spent, Some(Span::from_millis(500))));
    world.wait(500);
    assert!(world.engine.consume(global("l")).await.is_ok());
}

#[tokio::test]
async fn nobody_is_told_that_slots_take_too_long() {
    let world = World::limited(Limit::concurrency(1)).await;
    let held = world.engine.consume(global("l")).await.unwrap();
    let mut waiting = begun(world.engine.acquire(global("l")).max_wait(Span::from_secs(1)));
    let mut behind = begun(world.engine.acquire(global("l")).max_wait(Span::from_millis(600)));
    assert_eq!(world.refusal().await.retry_after, None);
    world.wait(600);
    let Poll::Ready(Err(Error::Refused(refusal))) = polled(&mut behind) else { panic!() };
    assert_eq!(refusal.cause, Cause::Turn);
    assert!(is_waiting(&mut waiting));
    world.wait(400);
    let Poll::Ready(Err(Error::Refused(refusal))) = polled(&mut waiting) else { panic!() };
    assert_eq!(refusal.cause, Cause::Slots);
    drop(held);
}

#[tokio::test]
async fn one_stands_at_the_meter_that_refuses_and_in_nobodys_way_elsewhere() {
    let world = World::limited(Limit::per_second(1)).await;
    world.engine.define("m", Limit::per(1, Span::from_secs(3))).await.unwrap();
    let both = || global("l").and(global("m"));
    let _ = world.engine.consume(both()).await.unwrap();
    let mut two = begun(world.engine.acquire(both()));
    assert_eq!(refused(world.engine.consume(global("m")).await).cause, Cause::Turn);
    world.wait(1_000);
    assert!(world.engine.consume(global("l")).await.is_ok(), "it stands at m");
    world.wait(1_500);
    assert!(world.engine.consume(global("l")).await.is_ok());
    let mut behind = world.comes();
    world.wait(500);
    assert!(is_waiting(&mut two), "m is open, and l is not");
    assert!(is_waiting(&mut behind), "who came first goes first, wherever it stands");
    assert!(is_waiting(&mut two));
    assert!(world.engine.consume(global("m")).await.is_ok(), "it stands at l now");
    world.wait(500);
    assert!(is_waiting(&mut behind));
}

#[tokio::test]
async fn tolls_of_two_who_wait_at_different_meters_are_paid_in_turn() {
    let world = World::limited(Limit::per_second(1)).await;
    world.engine.define("m", Limit::per_second(1)).await.unwrap();
    let both = || global("l").and(global("m"));
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut first = begun(world.engine.acquire(both()));
    let _ = world.engine.consume(global("m")).await.unwrap();
    let mut second = begun(world.engine.acquire(global("m").and(global("l"))));
    world.wait(1_000);
    assert!(is_waiting(&mut second));
    assert!(is_granted(&mut first));
    assert!(is_waiting(&mut second));
    world.wait(1_000);
    assert!(is_granted(&mut second));
}

#[tokio::test]
async fn no_more_wait_than_may() {
    let world = World::with(1);
    world.engine.define("l", Limit::concurrency(1)).await.unwrap();
    let held = world.engine.acquire(global("l")).await.unwrap();
    let waiting = world.comes();
    let error = world.engine.acquire(global("l")).await.unwrap_err();
    assert_eq!(error, crate::StoreError::WaitingFull { waiting: 1 }.into());
    drop(waiting);
    let _again = world.comes();
    drop(held);
}

#[tokio::test]
async fn a_limit_that_is_raised_elsewhere_is_noticed_within_half_a_second() {
    let world = World::limited(Limit::per_hour(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut waiting = world.comes();
    world.define_elsewhere(Some(Limit::per_hour(2))).await;
    world.wait(499);
    assert!(is_waiting(&mut waiting));
    world.wait(1);
    assert!(is_granted(&mut waiting));
}

#[tokio::test]
async fn a_limit_that_is_raised_here_is_noticed_at_once() {
    let world = World::limited(Limit::per_hour(1)).await;
    let _ = world.engine.consume(global("l")).await.unwrap();
    let mut waiting = world.comes();
    world.engine.define("l", Limit::per_hour(2)).await.unwrap();
    assert!(is_granted(&mut waiting));
    let mut waiting = world.comes();
    world.engine.reset("l", None).await.unwrap();
    assert!(is_granted(&mut waiting));
    world.engine.close("l", None, Span::from_secs(60), "maintenance").await.unwrap();
    let mut waiting = world.comes();
    world.engine.reopen("l", None).await.unwrap();
    assert!(is_granted(&mut waiting));
}

#[tokio::test]
async fn who_waits_is_woken_at_the_instant_it_was_told() {
    let world = World::limited(Limit::per_second(4)).await;
    for _ in 0..4 {
        let _ = world.engine.consume(global("l")).await.unwrap();
    }
    let (told, refused) = tokio::sync::oneshot::channel();
    let waiting = world.engine.acquire(global("l")).into_future();
    let waiting = tokio::spawn(telling(waiting, told));
    refused.await.unwrap();
    world.wait(250);
    assert!(waiting.await.unwrap().is_ok());
}

#[tokio::test]
async fn the_first_in_line_asks_for_those_behind_it_too() {
    let world = World::limited(Limit::per_second(4)).await;
    for _ in 0..4 {
        let _ = world.engine.consume(global("l")).await.unwrap();
    }
    let mut waiting: Vec<_> = (0..6).map(|_| world.comes()).collect();
    let before = world.store.asks();
    world.wait(1_000);
    for (place, one) in waiting.iter_mut().enumerate() {
        assert_eq!(is_granted(one), place < 4, "{place}");
    }
    assert_eq!(world.store.asks() - before, 2, "the first for all, and the fifth in vain");
    world.wait(250);
    assert!(is_waiting(&mut waiting[5]));
    assert!(is_granted(&mut waiting[4]));
}

#[tokio::test]
async fn nobody_behind_is_asked_for_who_asks_for_less() {
    let world = World::limited(Limit::per_second(4)).await;
    for _ in 0..4 {
        let _ = world.engine.consume(global("l")).await.unwrap();
    }
    let mut heavy = begun(world.engine.acquire(global("l").weight(3)));
    let mut light = world.comes();
    world.wait(500);
    assert!(is_waiting(&mut heavy) && is_waiting(&mut light), "it does not overtake");
}

#[tokio::test]
async fn what_was_asked_for_one_who_gave_up_is_handed_back() {
    let world = World::limited(Limit::per_second(4)).await;
    for _ in 0..4 {
        let _ = world.engine.consume(global("l")).await.unwrap();
    }
    let (mut first, second) = (world.comes(), world.comes());
    world.store.shared.answers.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
    world.wait(1_000);
    assert!(is_waiting(&mut first), "the store is asked for both");
    drop(second);
    world.store.shared.answers.add_permits(100);
    assert!(is_granted(&mut first));
    world.engine.quiet().await;
    assert_eq!(world.engine.meter("l", None).await.unwrap().standing.remaining, 3);
}
