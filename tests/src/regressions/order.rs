//! Who starts when many wait at one meter: first come, first served, and never more than the rule
//! allows.

use crate::world::{Waiter, World, seconds};
use tollgate::{Ask, Limit, Priority, Span, global};

/// Which of those who wait have started, by their place in the list; they leave it.
fn started(waiters: &mut Vec<(usize, Waiter<'_>)>) -> Vec<usize> {
    let each = waiters.extract_if(.., |(_, waiter)| waiter.answer().is_some());
    each.map(|(place, _)| place).collect()
}

async fn crowd(world: &World, count: usize) -> Vec<(usize, Waiter<'static>)> {
    (0..count).map(|place| (place, world.stand(global("api")))).collect()
}

/// Herd on one deadline.
#[tokio::test]
async fn a_thousand_who_wait_for_one_deadline_start_no_faster_than_the_rule() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let mut waiters = crowd(&world, 1_000).await;
    world.advance(Span::from_millis(100)).await;
    assert_eq!(started(&mut waiters), [0]);
    world.advance(seconds(1)).await;
    assert_eq!(started(&mut waiters), (1..11).collect::<Vec<_>>());
    // However long the clock stood: a burst, not what would have come in all that time.
    world.advance(seconds(60)).await;
    assert_eq!(started(&mut waiters), (11..21).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_new_window_lets_in_its_limit_of_those_who_wait_and_no_more() {
    let world = World::of("api", Limit::fixed_window(7, seconds(1))).await;
    world.pay(global("api").weight(7)).await;
    let mut waiters = crowd(&world, 1_000).await;
    for window in 0..3 {
        world.advance(seconds(1)).await;
        let expected: Vec<_> = (window * 7..window * 7 + 7).collect();
        assert_eq!(started(&mut waiters), expected);
    }
}

#[tokio::test]
async fn two_hundred_who_wait_are_served_in_the_order_in_which_they_came() {
    let world = World::of("api", Limit::per_second(100).burst(1)).await;
    world.pay(global("api")).await;
    let mut waiters = crowd(&world, 200).await;
    let mut order = Vec::new();
    while order.len() < 200 {
        world.advance(Span::from_millis(10)).await;
        order.extend(started(&mut waiters));
    }
    assert_eq!(order, (0..200).collect::<Vec<_>>());
}

/// The first waits for its whole weight; lighter ones behind it wait, too.
#[tokio::test]
async fn a_light_call_does_not_slip_past_a_heavy_one() {
    let world = World::of("api", Limit::per_second(10)).await;
    world.pay(global("api").weight(10)).await;
    let weights = [7, 1, 10, 2];
    let stand = |(place, weight): (usize, u64)| (place, world.stand(global("api").weight(weight)));
    let mut waiters: Vec<_> = weights.into_iter().enumerate().map(stand).collect();
    world.advance(Span::from_millis(699)).await;
    assert!(started(&mut waiters).is_empty());
    world.advance(Span::from_millis(1)).await;
    assert_eq!(started(&mut waiters), [0]);
    world.advance(Span::from_millis(100)).await;
    assert_eq!(started(&mut waiters), [1]);
    world.advance(Span::from_millis(999)).await;
    assert!(started(&mut waiters).is_empty());
    world.advance(Span::from_millis(1)).await;
    assert_eq!(started(&mut waiters), [2]);
}

#[tokio::test]
async fn higher_priority_goes_first_and_equals_in_the_order_in_which_they_came() {
    let world = World::of("api", Limit::per_second(1)).await;
    world.pay(global("api")).await;
    let levels = [0, 5, 0, 9, 5];
    let stand = |(place, level): (usize, u64)| {
        let ask = Ask::from(global("api")).priority(Priority::new(level).unwrap());
        (place, world.stand(ask))
    };
    let mut waiters: Vec<_> = levels.into_iter().enumerate().map(stand).collect();
    let mut order = Vec::new();
    for _ in 0..levels.len() {
        world.advance(seconds(1)).await;
        order.extend(started(&mut waiters));
    }
    assert_eq!(order, [3, 1, 4, 0, 2]);
}

#[tokio::test]
async fn a_partition_that_waits_does_not_hold_up_another() {
    let world = World::of("api", Limit::per_second(1)).await;
    world.pay(tollgate::toll("api", "busy")).await;
    let _waiters: Vec<_> = (0..50).map(|_| world.stand(tollgate::toll("api", "busy"))).collect();
    assert_eq!(world.pay(tollgate::toll("api", "quiet")).await, 0);
}
