//! What an operator does to single meters: closing, reopening, resetting.

use super::overridden::{big, meter};
use super::*;
use crate::contract::{ConfigureError, MeterError, REASON_CHARS_MAX};

pub async fn a_meter_is_closed_for_a_day_at_most_and_never_for_less_than_it_was(
    stage: impl MetersStage,
) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(10)).await;
    for span in [Span::from_days(9), Span::from_secs(1)] {
        world.store().close(meter(None), span, "why".to_owned()).await.unwrap().unwrap();
    }
    assert_eq!(world.inspect("l").await.closed, Some((world.after(86_400), "why".to_owned())));
    world.reopen("l").await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
}

pub async fn a_limit_that_is_unknown_cannot_be_operated(stage: impl MetersStage) {
    let world = World::of_limits(stage);
    let unknown = Err(MeterError::UnknownLimit { limit: limit_name("l") });
    let store = world.store();
    let definition = Some(Definition::new(Limit::per_second(1)).unwrap());
    let overridden =
        store.configure(Configure::partition(limit_name("l"), big(), definition)).await;
    assert_eq!(overridden.unwrap(), unknown.clone().map_err(ConfigureError::Meter));
    let closed = store.close(meter(None), Span::from_secs(1), String::new()).await;
    assert_eq!(closed.unwrap(), unknown);
    assert_eq!(store.reset(meter(None)).await.unwrap(), unknown);
}

pub async fn asks_are_refused_at_a_closed_meter_until_its_time(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(10)).await;
    let reason = "x".repeat(REASON_CHARS_MAX + 1);
    let closed = world.store().close(meter(None), Span::from_secs(60), reason).await;
    closed.unwrap().unwrap();
    let refusal = world.refused(asking([("l", 1)])).await;
    assert_eq!((refusal.cause, refusal.opening), (Cause::Closed, Opening::At(world.after(60))));
    assert!(world.pay_big(1).await.is_ok(), "other meters stay open");
    let (until, reason) = world.inspect("l").await.closed.unwrap();
    assert_eq!((until, reason.len()), (world.after(60), REASON_CHARS_MAX));
    world.wait(59);
    world.refused(asking([("l", 1)])).await;
    world.wait(1);
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.inspect("l").await.closed, None);
}

pub async fn a_closed_meter_stays_closed_when_its_limit_changes(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(10)).await;
    let span = Span::from_secs(60);
    world.store().close(meter(None), span, "why".to_owned()).await.unwrap().unwrap();
    world.limit("l", Limit::per_second(20)).await;
    assert_eq!(world.refused(asking([("l", 1)])).await.cause, Cause::Closed);
    assert_eq!(world.inspect("l").await.closed, Some((world.after(60), "why".to_owned())));
}

pub async fn a_promise_is_made_for_after_a_closure(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(10)).await;
    let span = Span::from_secs(60);
    world.store().close(meter(None), span, String::new()).await.unwrap().unwrap();
    let later = |seconds| Ask { delay_max: Some(Span::from_secs(seconds)), ..asking([("l", 1)]) };
    assert_eq!(world.refused(later(59)).await.cause, Cause::Closed);
    assert_eq!(world.consume(later(60)).await.unwrap().starts, world.after(60));
}

pub async fn a_meter_that_is_reset_lets_asks_pass_and_holds_its_slots(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(2).and(Limit::concurrency(3))).await;
    let paid = world.consume(asking([("l", 2)])).await.unwrap();
    world.refused(asking([("l", 1)])).await;
    world.store().reset(meter(None)).await.unwrap().unwrap();
    assert_eq!(world.inspect("l").await.in_flight, 2);
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.refused(asking([("l", 1)])).await.cause, Cause::Slots);
    assert!(world.settle_receipt(&paid.receipt, Cost::Nothing).await.is_ok());
    let state = world.inspect("l").await;
    assert_eq!((state.in_flight, state.standing.remaining), (1, 1), "nothing is given back twice");
}

pub async fn a_meter_that_was_never_used_stands_full(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(3)).await;
    let names = vec![meter(None), meter(Some(big())), (limit_name("none"), None)];
    let states = world.store().inspect(names).await.unwrap();
    let remaining: Vec<_> =
        states.iter().map(|state| state.as_ref().map(|it| it.standing.remaining)).collect();
    assert_eq!(remaining, [Some(3), Some(3), None]);
}
