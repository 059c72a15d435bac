//! What is chosen for the time while a store is out of reach.

use super::*;
use crate::{StoreError, toll};
use tollgate_core::{Standing, contract};

const SHARE: OutOfReach = OutOfReach::Share { parts: 4 };
const LONG: u64 = 5_000;

fn full() -> contract::StoreError {
    contract::StoreError::Full { reason: "no memory is left".to_owned() }
}

fn failed() -> contract::StoreError {
    contract::StoreError::Failed { reason: "its keys are of another kind".to_owned() }
}

async fn out(choice: OutOfReach, limit: Limit) -> World {
    let world = World::doing(choice, limit).await;
    world.store.goes_out_of_reach(true);
    world
}

/// How many of so many asks are granted; the passes are let go.
async fn granted(world: &World, asks: usize) -> usize {
    let mut granted = 0;
    for _ in 0..asks {
        granted += usize::from(world.engine.consume(global("l")).await.is_ok());
    }
    granted
}

#[tokio::test]
async fn a_store_that_failed_for_good_is_told_whatever_was_chosen() {
    for choice in [OutOfReach::Fail, OutOfReach::Wait, OutOfReach::Admit, SHARE] {
        let world = World::doing(choice, Limit::per_hour(10)).await;
        world.store.fails(Some(failed()));
        let error = world.engine.consume(global("l")).await.unwrap_err();
        assert_eq!(error, Error::Store(StoreError::Kept(failed())), "{choice:?}");
        let error = world.engine.acquire(global("l")).await.unwrap_err();
        assert_eq!(error, Error::Store(StoreError::Kept(failed())), "{choice:?}");
    }
}

#[tokio::test]
async fn by_choice_all_are_admitted_while_the_store_is_out_of_reach_or_full() {
    let world = World::doing(OutOfReach::Admit, Limit::per_hour(1)).await;
    world.store.fails(Some(full()));
    assert_eq!(granted(&world, 3).await, 3);
    world.store.goes_out_of_reach(true);
    let pass = world.engine.acquire(global("l")).await.unwrap();
    assert_eq!(pass.standing(), Standing::NOTHING, "it stands at no meter");
    let limit = Limit::per_hour(1);
    assert!(world.engine.consume(global("new").limited_to(&limit)).await.is_ok());
    assert!(
        world.engine.consume_many(&[global("l"), toll("l", "a")]).await.iter().all(Result::is_ok)
    );
    assert_eq!(world.engine.peek(global("l")).await.unwrap(), Standing::NOTHING);
    assert!(matches!(world.engine.consume(global("l").weight(0)).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_store_that_is_back_decides_again_by_itself() {
    for choice in [OutOfReach::Admit, SHARE] {
        let world = out(choice, Limit::per_hour(4)).await;
        assert!(world.engine.consume(global("l")).await.is_ok());
        let asks = world.store.asks();
        assert!(world.engine.consume(global("l")).await.is_ok() == (choice == OutOfReach::Admit));
        assert_eq!(world.store.asks(), asks, "it is left alone for a moment");
        world.store.goes_out_of_reach(false);
        world.wait(LONG);
        assert_eq!(granted(&world, 8).await, 4, "nothing was spent there so far");
    }
}

#[tokio::test]
async fn what_was_admitted_settles_nowhere_and_gives_nothing_back_later() {
    let world = out(OutOfReach::Admit, Limit::per_hour(10)).await;
    let mut pass = world.engine.consume(global("l").estimate(5)).await.unwrap();
    assert!(pass.settle("other", 1).await.is_err());
    pass.settle("l", 1).await.unwrap();
    let pass = world.engine.acquire(global("l")).await.unwrap();
    assert!(!pass.holds_slots());
    assert_eq!(pass.into_receipt(Span::from_secs(9)).await, None);
    world.engine.acquire(global("l")).await.unwrap().cancel().await;
    world.store.goes_out_of_reach(false);
    world.wait(LONG);
    assert_eq!(world.engine.peek(global("l")).await.unwrap().remaining, 10);
}

#[tokio::test]
async fn by_choice_this_process_has_a_part_of_each_limit_to_itself() {
    let each = [
        Limit::per_hour(9).burst(8),
        Limit::fixed_window(8, Span::from_secs(3_600)),
        Limit::sliding_window(11, Span::from_secs(3_600)),
    ];
    for limit in each {
        let world = out(SHARE, limit.clone()).await;
        assert_eq!(granted(&world, 8).await, 2, "{limit:?}");
        assert_eq!(world.refusal().await.standing.remaining, 0);
        assert!(world.engine.peek(global("l")).await.is_err());
    }
    let world = out(SHARE, Limit::per_hour(3)).await;
    assert_eq!(granted(&world, 8).await, 1, "at least one");
}

#[tokio::test]
async fn a_store_that_comes_and_goes_gives_no_part_twice() {
    let world = out(SHARE, Limit::per_hour(8)).await;
    assert_eq!(granted(&world, 8).await, 2);
    world.store.goes_out_of_reach(false);
    world.wait(LONG);
    assert_eq!(granted(&world, 1).await, 1);
    world.store.goes_out_of_reach(true);
    assert_eq!(granted(&world, 8).await, 0, "the part is spent already");
    world.wait(3_600_000);
    assert_eq!(granted(&world, 8).await, 2, "after a period it is as new");
}

#[tokio::test]
async fn slots_of_a_part_are_free_when_passes_go_and_nowhere_else() {
    let world = out(SHARE, Limit::concurrency(8)).await;
    let first = world.engine.consume(global("l")).await.unwrap();
    let second = world.engine.acquire(global("l")).await.unwrap();
    assert!(first.holds_slots() && second.holds_slots());
    let third = world.comes();
    drop(first);
    let third = third.await.unwrap();
    assert_eq!(second.into_receipt(Span::from_secs(30)).await, None, "it is unknown to the store");
    let fourth = world.comes();
    world.wait(30_000);
    assert!(fourth.await.is_ok(), "it was held for as long as a receipt would have lived");
    drop(third);
    world.store.goes_out_of_reach(false);
    world.wait(LONG);
    let mut passes = Vec::new();
    for _ in 0..8 {
        passes.push(world.engine.consume(global("l")).await.unwrap());
    }
}

#[tokio::test]
async fn what_is_not_known_here_or_too_heavy_for_a_part_is_as_far_away_as_the_store() {
    let world = out(SHARE, Limit::per_hour(8)).await;
    for ask in [global("unknown"), global("l").weight(3)] {
        let error = world.engine.consume(ask).await.unwrap_err();
        assert!(matches!(error, Error::Store(_)), "{error:?}");
    }
}

#[tokio::test]
async fn a_part_follows_what_is_pinned_comes_along_or_is_a_partitions_own() {
    let world = World::doing(SHARE, Limit::per_hour(400)).await;
    world.engine.pin("operator", "l", Some(Limit::per_hour(8))).await.unwrap();
    world.engine.override_partition("l", "vip", Some(Limit::per_hour(12))).await.unwrap();
    world.store.goes_out_of_reach(true);
    assert_eq!(granted(&world, 9).await, 2);
    let mut own = 0;
    for _ in 0..9 {
        own += usize::from(world.engine.consume(toll("l", "vip")).await.is_ok());
    }
    assert_eq!(own, 3);
    let (limit, mut along) = (Limit::per_hour(4), 0);
    for _ in 0..9 {
        let ask = global("new").limited_to(&limit);
        along += usize::from(world.engine.consume(ask).await.is_ok());
    }
    assert_eq!(along, 1);
}

#[tokio::test]
async fn who_waits_at_a_part_goes_on_at_the_store_once_it_is_back() {
    let world = out(SHARE, Limit::per_hour(4)).await;
    assert_eq!(granted(&world, 1).await, 1);
    let mut waiting = world.comes();
    world.wait(LONG);
    assert!(is_waiting(&mut waiting), "its part is spent, and the store is not back");
    world.store.goes_out_of_reach(false);
    world.wait(LONG);
    assert!(waiting.await.is_ok());
}

#[tokio::test]
async fn by_choice_an_ask_waits_until_the_store_is_back() {
    let world = out(OutOfReach::Wait, Limit::per_hour(1)).await;
    let engine = world.engine.clone();
    let asking = async move { engine.consume(global("l")).await };
    let (told, is_waiting) = tokio::sync::oneshot::channel();
    let asking = tokio::spawn(telling(Box::pin(asking), told));
    is_waiting.await.unwrap();
    world.store.goes_out_of_reach(false);
    world.wait(LONG);
    assert!(asking.await.unwrap().is_ok());
    assert!(world.engine.peek(global("l")).await.is_err(), "it was paid once, at the store");
}

#[tokio::test]
async fn a_pass_that_cannot_be_settled_yet_says_so_as_it_was_chosen_and_is_settled_later() {
    for (choice, is_told) in [(OutOfReach::Fail, true), (OutOfReach::Admit, false)] {
        let world = World::doing(choice, Limit::per_hour(10)).await;
        let mut pass = world.engine.consume(global("l").estimate(5)).await.unwrap();
        world.store.goes_out_of_reach(true);
        assert_eq!(pass.settle("l", 1).await.is_err(), is_told, "{choice:?}");
        world.store.goes_out_of_reach(false);
        world.wait(LONG);
        world.engine.quiet().await;
        assert_eq!(world.engine.peek(global("l")).await.unwrap().remaining, 9, "{choice:?}");
    }
}
