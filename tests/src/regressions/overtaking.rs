//! Nobody overtakes those who wait: not by asking again, not by failing fast, not by reserving.

use crate::world::{Waiter, World, refused, seconds};
use std::collections::VecDeque;
use tollgate::{Ask, Cause, Limit, Priority, Span, Toll, global};

fn urgent(toll: Toll<'_>) -> Ask<'_> {
    Ask::from(toll).priority(Priority::MAX)
}

/// Barging re-acquirer: elsewhere one such task took 164 grants while 200 queued tasks got none.
#[tokio::test]
async fn a_task_that_asks_again_in_a_loop_does_not_overtake_those_who_queue() {
    let world = World::of("api", Limit::per_second(10).burst(1)).await;
    world.pay(global("api")).await;
    let mut greedy = world.stand(global("api"));
    let mut queue: VecDeque<Waiter<'_>> = (0..200).map(|_| world.stand(global("api"))).collect();
    let mut wins = 0;
    for _ in 0..201 {
        world.advance(Span::from_millis(100)).await;
        if greedy.answer().is_some() {
            wins += 1;
            greedy = world.stand(global("api"));
        } else {
            let mut first = queue.pop_front().unwrap();
            let _ = first.answer().expect("the first in the queue starts").unwrap();
        }
        assert_eq!(world.refusal(global("api")).await.cause, Cause::Turn);
    }
    assert_eq!(wins, 1);
    assert!(queue.is_empty());
}

/// One unit is there, and the call that waits needs two.
async fn with_a_call_that_waits() -> (World, Waiter<'static>) {
    let world = World::of("api", Limit::per_second(2)).await;
    world.pay(global("api").weight(2)).await;
    let waiter = world.stand(global("api").weight(2));
    world.advance(Span::from_millis(500)).await;
    (world, waiter)
}

#[tokio::test]
async fn failing_fast_does_not_overtake_a_call_that_waits() {
    let (world, _waiter) = with_a_call_that_waits().await;
    let refusal = world.refusal(global("api")).await;
    assert_eq!(refusal.cause, Cause::Turn);
    // The one who waits starts in half a second, and the unit after it takes another half.
    assert_eq!(refusal.retry_after, Some(seconds(1)));
    assert!(world.gate.peek(global("api")).await.is_err());
}

#[tokio::test]
async fn a_retry_at_the_instant_that_was_told_passes() {
    let (world, mut waiter) = with_a_call_that_waits().await;
    let told = world.refusal(global("api")).await.retry_after.unwrap();
    for _ in 0..2 {
        world.refusal(global("api")).await;
        world.advance(Span::from_nanos(told.as_nanos() / 2)).await;
    }
    let _ = waiter.answer().unwrap().unwrap();
    assert_eq!(world.pay(global("api")).await, 0);
}

#[tokio::test]
async fn reserving_does_not_overtake_a_call_that_waits() {
    let (world, mut waiter) = with_a_call_that_waits().await;
    let refusal = refused(world.gate.consume_delayed(global("api"), seconds(60)).await);
    assert_eq!(refusal.cause, Cause::Turn);
    world.advance(Span::from_millis(500)).await;
    let _ = waiter.answer().unwrap().unwrap();
}

/// Also when another of its meters is the one that opens last.
#[tokio::test]
async fn reserving_at_two_meters_does_not_overtake_at_either() {
    let (world, _waiter) = with_a_call_that_waits().await;
    let world = world.limit("slow", Limit::per_minute(1)).await;
    world.pay(global("slow")).await;
    let both = global("api").and(global("slow"));
    let outcome = world.gate.consume_delayed(both, seconds(600)).await;
    assert_eq!(refused(outcome).cause, Cause::Turn);
}

#[tokio::test]
async fn a_higher_priority_overtakes_in_every_way() {
    let (world, mut waiter) = with_a_call_that_waits().await;
    assert_eq!(world.pay(urgent(global("api"))).await, 0);
    let reserved = world.gate.consume_delayed(urgent(global("api")), seconds(9)).await.unwrap();
    assert_eq!(reserved.delay(), Span::from_millis(500));
    world.advance(Span::from_millis(1_499)).await;
    assert!(waiter.answer().is_none());
    world.advance(Span::from_millis(1)).await;
    let _ = waiter.answer().unwrap().unwrap();
}

#[tokio::test]
async fn many_at_once_do_not_overtake_a_call_that_waits() {
    let (world, _waiter) = with_a_call_that_waits().await;
    let answers = world.gate.consume_many(&[global("api"); 3]).await;
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
}

#[tokio::test]
async fn a_call_that_came_later_waits_behind_one_that_waits() {
    let (world, mut first) = with_a_call_that_waits().await;
    let mut second = world.stand(global("api"));
    world.advance(Span::from_millis(500)).await;
    let _ = first.answer().unwrap().unwrap();
    assert!(second.answer().is_none());
    world.advance(Span::from_millis(500)).await;
    let _ = second.answer().unwrap().unwrap();
}
