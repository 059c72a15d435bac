//! What can never pass is refused at the door, and the message says what to do.

use crate::world::{World, seconds};
use tollgate::{Ask, Error, Limit, Span, Tollgate, UNITS_MAX, global, toll};

async fn world() -> World {
    World::of("api", Limit::per_second(10)).await
}

/// The message of an ask that is wrong, whichever way it is asked.
async fn message(gate: &Tollgate, ask: Ask<'_>) -> String {
    let errors = [
        gate.consume(ask.clone()).await.unwrap_err(),
        gate.consume_delayed(ask.clone(), seconds(9)).await.unwrap_err(),
        gate.acquire(ask.clone()).await.unwrap_err(),
        gate.peek(ask).await.unwrap_err(),
    ];
    for error in &errors {
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert_eq!(error, &errors[0]);
    }
    errors[0].to_string()
}

#[tokio::test]
async fn every_wrong_ask_says_what_to_do_about_it() {
    let gate = world().await.gate;
    let long = "x".repeat(513);
    for (ask, cure) in [
        (Ask::from(global("nobody")), "define it first, or send its definition with the toll"),
        (global("api").weight(0).into(), "give at least 1, or leave the toll out"),
        (global("api").weight(11).into(), "split the call, or raise the limit's burst"),
        (global("api").weight(u64::MAX).into(), "split the call, or raise the limit's burst"),
        (toll("api", "").into(), "needs 1 to 512 bytes"),
        (toll("api", &long).into(), "shorten it, or use a hash of it"),
        (Ask::from_iter([]), "needs at least one toll"),
        (Ask::from_iter([global("api"); 9]), "takes up to 8 tolls, and this one has 9"),
    ] {
        let message = message(&gate, ask).await;
        assert!(message.contains(cure), "{message}");
    }
    assert_eq!(gate.limiter().unwrap().meters_kept(), 0);
}

#[tokio::test]
async fn every_wrong_limit_says_what_to_do_about_it() {
    let gate = world().await.gate;
    let week = Span::from_days(7);
    let quarter = Limit::fixed_window(1, Span::from_days(90));
    for (limit, cure) in [
        (Limit::per_second(0), "give at least 1, or close the limit to stop it for a while"),
        (Limit::concurrency(0), "give at least 1"),
        (Limit::per_second(9).burst(0), "burst is 0"),
        (Limit::per_second(u64::MAX), "count in a larger unit"),
        (Limit::per_second(UNITS_MAX + 1), "count in a larger unit"),
        (Limit::per(1, Span::ZERO), "for a count at a time use concurrency"),
        (Limit::per(1, Span::from_days(367)), "not between 1ns and 366d"),
        (Limit::per_second(9).guard(seconds(1)), "it covers jitter, tens of milliseconds"),
        (Limit::per(1, week).burst(1_000_000), "lower the burst or raise the limit"),
        (Limit::concurrency(1).and(Limit::concurrency(2)), "keep the smaller one"),
        (Limit::of(Vec::new()), "a limit needs at least one rule"),
        ((2..6).map(Limit::per_second).fold(Limit::per_second(1), Limit::and), "split it into two"),
        (Limit::concurrency(1).burst(2), "concurrency has no burst"),
        (Limit::per_second(1).on_calendar("UTC"), "choose the rule that has"),
        (quarter.on_calendar("UTC"), "use 1d, 1w, or a part of a day such as 1h"),
        (Limit::fixed_window(1, week).on_calendar("Berlin"), "as in Europe/Berlin or UTC"),
    ] {
        let error = gate.limit("wrong", limit).await.unwrap_err();
        assert!(error.to_string().contains(cure), "{error}");
    }
    assert_eq!(gate.limit_state("wrong").await.unwrap(), None);
}

#[tokio::test]
async fn a_limit_needs_a_name_of_1_to_512_bytes() {
    let gate = world().await.gate;
    for name in [String::new(), "x".repeat(513)] {
        let error = gate.limit(&name, Limit::per_second(1)).await.unwrap_err();
        assert!(error.to_string().contains("512 bytes"), "{error}");
    }
    gate.limit(&"☃".repeat(170), Limit::per_second(1)).await.unwrap();
}

/// A wrong definition sent with a call leaves the one that is in force.
#[tokio::test]
async fn a_wrong_inline_limit_changes_nothing() {
    let world = world().await;
    let wrong = Limit::per_second(0);
    let error = world.gate.consume(global("api").limited_to(&wrong)).await.unwrap_err();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert_eq!(world.pay(global("api")).await, 9);
}

#[tokio::test]
async fn the_largest_numbers_are_counted_exactly() {
    let world = World::of("api", Limit::per_second(UNITS_MAX)).await;
    assert_eq!(world.pay(global("api").weight(UNITS_MAX)).await, 0);
    world.refusal(global("api").weight(UNITS_MAX)).await;
    world.advance(seconds(1)).await;
    assert_eq!(world.pay(global("api").weight(UNITS_MAX)).await, 0);
    world.advance(seconds(1)).await;
    let mut pass = world.gate.consume(global("api").estimate(1)).await.unwrap();
    let error = pass.settle("api", UNITS_MAX + 1).await.unwrap_err();
    assert!(error.to_string().contains("over the largest that can be settled"), "{error}");
}
