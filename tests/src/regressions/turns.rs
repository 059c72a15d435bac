//! Waiting at several meters: nothing starves, and nobody blocks a stranger.

use crate::world::{Waiter, World, seconds};
use tollgate::{Limit, Span, Toll, global};

/// Two limits of ten a second, each with strangers who always want more.
struct Street {
    world: World,
    strangers: Vec<(Toll<'static>, Waiter<'static>)>,
}

impl Street {
    async fn new() -> Self {
        let world = World::of("a", Limit::per_second(10)).await;
        let world = world.limit("b", Limit::per_second(10)).await;
        let mut strangers = Vec::new();
        for name in ["a", "b"] {
            world.pay(global(name).weight(10)).await;
            for weight in [1, 2, 3] {
                let toll = global(name).weight(weight);
                strangers.push((toll, world.stand(toll)));
            }
        }
        Self { world, strangers }
    }

    /// Lets a tenth of a second pass; whoever starts asks again. Says how many did.
    async fn pass_time(&mut self) -> usize {
        self.world.advance(Span::from_millis(100)).await;
        let mut started = 0;
        for (toll, waiter) in &mut self.strangers {
            while waiter.answer().is_some() {
                *waiter = Waiter::new(self.world.gate.acquire(*toll));
                started += 1;
            }
        }
        started
    }
}

#[tokio::test]
async fn a_call_that_needs_two_busy_meters_starts_in_the_end() {
    let mut street = Street::new().await;
    let mut both = street.world.stand(global("a").weight(9).and(global("b").weight(9)));
    let mut steps = 0;
    while both.answer().is_none() {
        street.pass_time().await;
        steps += 1;
        // Three times the 0.9 s it needs at each meter, and what was before it.
        assert!(steps < 50, "it starves");
    }
}

#[tokio::test]
async fn several_such_calls_all_start_in_the_end() {
    let mut street = Street::new().await;
    let weights = [(9, 2), (2, 9), (10, 10), (1, 10)];
    let stand = |(a, b)| street.world.stand(global("a").weight(a).and(global("b").weight(b)));
    let mut waiters: Vec<_> = weights.into_iter().map(stand).collect();
    let mut steps = 0;
    while !waiters.is_empty() {
        street.pass_time().await;
        waiters.retain_mut(|waiter| waiter.answer().is_none());
        steps += 1;
        assert!(steps < 200, "{} of them starve", waiters.len());
    }
}

#[tokio::test]
async fn the_strangers_do_not_starve_either() {
    let mut street = Street::new().await;
    let mut started = 0;
    let mut both = Vec::new();
    for _ in 0..100 {
        both.push(street.world.stand(global("a").weight(5).and(global("b").weight(5))));
        both.retain_mut(|waiter| waiter.answer().is_none());
        both.truncate(2);
        started += street.pass_time().await;
    }
    assert!(started > 50, "only {started} strangers started in ten seconds");
}

/// Refused twice where it did not stand, a call holds its turn at both; who comes then waits for it,
/// although there are units to be had.
#[tokio::test]
async fn one_who_lets_a_senior_call_go_first_waits_for_it_and_not_for_a_time() {
    let world = World::of("a", Limit::per_second(10)).await;
    let world = world.limit("b", Limit::per_second(10)).await;
    world.pay(global("a").weight(10).and(global("b").weight(10))).await;
    let mut senior = world.stand(global("a").weight(10).and(global("b").weight(10)));
    for (elapsed_ms, taken_from) in [(950, "b"), (50, "a")] {
        world.advance(Span::from_millis(elapsed_ms)).await;
        world.pay(global(taken_from)).await;
        world.advance(Span::from_millis(50)).await;
        assert!(senior.answer().is_none());
    }
    let mut stranger = world.stand(global("b"));
    world.advance(Span::from_millis(49)).await;
    assert!(senior.answer().is_none() && stranger.answer().is_none());
    world.advance(Span::from_millis(1)).await;
    assert!(senior.answer().is_some() && stranger.answer().is_none());
    world.advance(Span::from_millis(100)).await;
    assert!(stranger.answer().is_some());
}

/// It stands where it opens last; what it needs elsewhere is free for others until it can start.
#[tokio::test]
async fn a_call_that_waits_elsewhere_does_not_block_a_stranger() {
    let world = World::of("a", Limit::per_second(1)).await;
    let world = world.limit("b", Limit::per_hour(1)).await;
    world.pay(global("b")).await;
    let mut both = world.stand(global("a").and(global("b")));
    for _ in 0..60 {
        world.pay(global("a")).await;
        world.advance(seconds(1)).await;
    }
    assert!(both.answer().is_none());
    world.advance(seconds(3_540)).await;
    let _ = both.answer().unwrap().unwrap();
}

/// A closed limit has no computed end that counts: who waits for it never holds other meters.
#[tokio::test]
async fn a_call_that_waits_for_a_slot_or_a_closed_limit_holds_no_other_meter() {
    let world = World::of("a", Limit::per_second(1)).await;
    let world = world.limit("slots", Limit::concurrency(1)).await;
    let world = world.limit("closed", Limit::per_second(1)).await;
    let _held = world.gate.consume(global("slots")).await.unwrap();
    world.gate.close("closed", None, seconds(3_600), "maintenance").await.unwrap();
    let _waiters = [
        world.stand(global("a").and(global("slots"))),
        world.stand(global("a").and(global("closed"))),
    ];
    for _ in 0..20 {
        world.pay(global("a")).await;
        world.advance(seconds(1)).await;
    }
}
