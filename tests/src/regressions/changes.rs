//! A limit that is changed: at once, and keeping what was spent.

use crate::world::{World, refused, seconds};
use tollgate::{Limit, Span, global, toll};

fn a_day() -> Span {
    Span::from_days(1)
}

/// Rule change that forgets or multiplies what was spent.
#[tokio::test]
async fn a_change_keeps_what_was_spent_in_units() {
    let world = World::of("api", Limit::fixed_window(100, a_day())).await;
    world.pay(global("api").weight(60)).await;
    for (limit, left) in [
        (Limit::fixed_window(200, a_day()), 140),
        (Limit::fixed_window(100, seconds(3_600)), 40),
        (Limit::per_day(100), 40),
        (Limit::per_day(100).burst(70), 10),
        (Limit::sliding_window(100, a_day()), 40),
        (Limit::fixed_window(50, a_day()), -10),
        (Limit::fixed_window(100, a_day()), 40),
    ] {
        world.gate.limit("api", limit.clone()).await.unwrap();
        assert_eq!(world.left("api").await, left, "{limit:?}");
    }
}

#[tokio::test]
async fn changing_back_and_forth_mints_nothing() {
    let world = World::of("api", Limit::per_day(10)).await;
    world.pay(global("api").weight(10)).await;
    for limit in [1_000, 1, 10, 1_000, 10].map(Limit::per_day) {
        world.gate.limit("api", limit).await.unwrap();
    }
    assert_eq!(world.left("api").await, 0);
    world.refusal(global("api")).await;
}

#[tokio::test]
async fn the_same_definition_again_changes_nothing() {
    let world = World::of("api", Limit::per_second(3)).await;
    world.pay(global("api").weight(3)).await;
    world.advance(Span::from_millis(100)).await;
    world.gate.limit("api", Limit::per_second(3)).await.unwrap();
    let wait = world.refusal(global("api")).await.retry_after;
    assert_eq!(wait, Some(Span::from_nanos(233_333_334)));
    let state = world.gate.limit_state("api").await.unwrap().unwrap();
    assert_eq!(state.history.len(), 1);
}

#[tokio::test]
async fn slots_stay_held_through_a_change() {
    let world = World::of("api", Limit::concurrency(3)).await;
    let held = world.gate.consume(global("api").weight(3)).await.unwrap();
    world.gate.limit("api", Limit::concurrency(4).and(Limit::per_day(100))).await.unwrap();
    assert_eq!(world.left("api").await, 1);
    drop(held);
    assert_eq!(world.left("api").await, 4);
}

#[tokio::test]
async fn a_partition_with_an_override_has_its_own_limit_and_keeps_what_it_spent() {
    let world = World::of("api", Limit::per_day(10)).await;
    world.pay(toll("api", "big").weight(8)).await;
    world.pay(toll("api", "small").weight(8)).await;
    let plan = Some(Limit::per_day(1_000));
    world.gate.override_partition("api", "big", plan).await.unwrap();
    assert_eq!(world.stands("api", Some("big")).await.0, 992);
    assert_eq!(world.stands("api", Some("small")).await.0, 2);
    // What callers define reaches the others only.
    world.gate.limit("api", Limit::per_day(20)).await.unwrap();
    assert_eq!(world.stands("api", Some("big")).await.0, 992);
    assert_eq!(world.stands("api", Some("small")).await.0, 12);
    world.gate.override_partition("api", "big", None).await.unwrap();
    assert_eq!(world.stands("api", Some("big")).await.0, 12);
}

#[tokio::test]
async fn a_pinned_value_stays_whatever_callers_send() {
    let world = World::of("api", Limit::per_day(100)).await;
    world.pay(global("api").weight(10)).await;
    world.gate.pin("operator", "api", Some(Limit::per_day(20))).await.unwrap();
    assert_eq!(world.left("api").await, 10);
    world.gate.limit("api", Limit::per_day(500)).await.unwrap();
    let inline = Limit::per_day(600);
    assert_eq!(world.pay(global("api").limited_to(&inline)).await, 9);
    world.gate.pin("operator", "api", None).await.unwrap();
    assert_eq!(world.left("api").await, 589);
}

#[tokio::test]
async fn the_history_names_who_when_before_and_after() {
    let world = World::of("api", Limit::per_day(1)).await;
    world.advance(seconds(5)).await;
    world.gate.limit_as("deploy 17", "api", Limit::per_day(2)).await.unwrap();
    world.gate.pin("operator", "api", Some(Limit::per_day(3))).await.unwrap();
    let state = world.gate.limit_state("api").await.unwrap().unwrap();
    let day = |limit| Some(Limit::per_day(limit));
    let changes = state.history.iter().map(|c| (&*c.who, c.before.clone(), c.after.clone()));
    let expected =
        [("library", None, day(1)), ("deploy 17", day(1), day(2)), ("operator", day(2), day(3))];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    assert_eq!(state.history[1].at.since(state.history[0].at), seconds(5));
    assert_eq!((state.defined, state.pinned), (Limit::per_day(2), day(3)));
}

#[tokio::test]
async fn a_removed_limit_is_unknown_and_starts_anew_when_it_is_back() {
    let world = World::of("api", Limit::per_day(5)).await;
    world.pay(global("api").weight(5)).await;
    world.gate.remove("operator", "api").await.unwrap();
    let unknown = world.gate.consume(global("api")).await.unwrap_err();
    assert!(unknown.to_string().contains("define it first"), "{unknown}");
    assert_eq!(world.gate.limit_state("api").await.unwrap(), None);
    world.gate.limit("api", Limit::per_day(5)).await.unwrap();
    assert_eq!(world.left("api").await, 5);
}

/// A reservation is a promise already paid.
#[tokio::test]
async fn a_reservation_is_not_reached_by_a_later_change() {
    let world = World::of("api", Limit::per_second(1)).await;
    world.pay(global("api")).await;
    let pass = world.gate.consume_delayed(global("api"), seconds(9)).await.unwrap();
    world.gate.limit("api", Limit::per_hour(1)).await.unwrap();
    assert_eq!(pass.delay(), seconds(1));
    let refusal = refused(world.gate.consume(global("api")).await);
    assert!(refusal.retry_after.unwrap() > seconds(3_600));
}
