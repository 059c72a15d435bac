//! Asks without a lane: they pay at the same meters, and overtake nobody who waits.

use super::*;

fn told(cost: u64) -> Cost {
    Cost::Told(vec![(limit_name("l"), cost)])
}

pub async fn an_ask_pays_all_its_tolls_or_none(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(5)).await;
    world.limit("m", Limit::per_hour(1)).await;
    assert!(world.consume(asking([("l", 2), ("m", 1)])).await.is_ok());
    let refusal = world.refused(asking([("l", 2), ("m", 1)])).await;
    assert_eq!((refusal.limit, refusal.cause), (limit_name("m"), Cause::Spent));
    assert_eq!(world.inspect("l").await.standing.remaining, 3);
}

pub async fn to_peek_is_to_be_told_what_an_ask_would_and_to_pay_nothing(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(2, Span::from_secs(2))).await;
    for _ in 0..2 {
        let peeked = world.store().peek(vec![asking([("l", 1)])]).await.unwrap();
        assert_eq!(peeked[0].as_ref().unwrap().remaining, 2);
    }
    let _ = world.consume(asking([("l", 2)])).await.unwrap();
    let refused = world.consume(asking([("l", 1)])).await.unwrap_err();
    let peeked = world.store().peek(vec![asking([("l", 1)])]).await.unwrap();
    assert_eq!(peeked, [Err(refused)]);
}

pub async fn asks_and_calls_pay_at_the_same_meter(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(2)).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    assert_eq!(world.inspect("l").await.standing.remaining, 0);
}

pub async fn a_refused_ask_is_told_exactly_when_to_come_back(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(3, Span::from_secs(1))).await;
    assert!(world.consume(asking([("l", 3)])).await.is_ok());
    let Opening::At(opens) = world.refused(asking([("l", 2)])).await.opening else { panic!() };
    world.wait_for(Span::from_nanos(opens.since(world.now.at).as_nanos() - 1));
    world.refused(asking([("l", 2)])).await;
    world.wait_for(Span::from_nanos(1));
    assert!(world.consume(asking([("l", 2)])).await.is_ok());
}

pub async fn what_can_never_be_paid_is_refused_for_good(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(5)).await;
    assert_eq!(world.consume(asking([])).await, Err(AskError::NoToll));
    let unknown = TollError::UnknownLimit { limit: limit_name("none") };
    assert_eq!(world.consume(asking([("none", 1)])).await, Err(unknown.into()));
    let (limit, weight, capacity) = (limit_name("l"), 6, 5);
    let over = TollError::WeightOverCapacity { limit, weight, capacity };
    assert_eq!(world.consume(asking([("l", 3), ("l", 3)])).await, Err(over.into()));
}

pub async fn an_ask_overtakes_nobody_who_waits(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per(10, Span::from_secs(10))).await;
    let _ = world.consume(asking([("l", 10)])).await.unwrap();
    let fat = world.enqueue(paying("strict", "a", [("l", 10)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(5);
    let refusal = world.refused(asking([("l", 1)])).await;
    assert_eq!(refusal.cause, Cause::Turn);
    assert_eq!(refusal.opening, Opening::At(world.after(6)), "behind ten units and its own");
    let urgent = Ask { priority: priority(1), ..asking([("l", 1)]) };
    assert!(world.consume(urgent).await.is_ok());
    world.wait(6);
    assert_eq!(world.claim("strict", 1).await, [fat]);
}

pub async fn an_ask_passes_calls_that_no_worker_asks_for(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
}

pub async fn an_ask_with_a_delay_pays_now_and_starts_when_it_may(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    let delay_max = Some(Span::from_secs(2));
    let later = Ask { delay_max, ..asking([("l", 1)]) };
    for seconds in [0, 1, 2] {
        let paid = world.consume(later.clone()).await.unwrap();
        assert_eq!(paid.starts, world.after(seconds));
    }
    let refusal = world.refused(later).await;
    assert_eq!(refusal.opening, Opening::At(world.after(3)));
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.wait(2);
    assert_eq!(world.claim("strict", 1).await, [], "what is promised is kept");
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn slots_cannot_be_promised_for_later(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let later = Ask { delay_max: Some(Span::from_secs(1)), ..asking([("l", 1)]) };
    let refused = AskError::DelayWithSlots { limit: limit_name("l") };
    assert_eq!(world.consume(later).await, Err(refused));
}

pub async fn a_receipt_settles_once(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(10)).await;
    let receipt = world.consume(asking([("l", 10)])).await.unwrap().receipt;
    let unpaid = Cost::Told(vec![(limit_name("m"), 1)]);
    let refused = ReceiptError::NotPaid { limit: limit_name("m") };
    assert_eq!(world.settle_receipt(&receipt, unpaid).await, Err(refused));
    assert_eq!(world.settle_receipt(&receipt, told(4)).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, 6);
    assert_eq!(world.settle_receipt(&receipt, told(0)).await, Err(ReceiptError::Spent));
    assert_eq!(world.inspect("l").await.standing.remaining, 6);
}

pub async fn what_cost_more_is_a_debt(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(10)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(world.settle_receipt(&receipt, told(15)).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, -5);
    world.refused(asking([("l", 1)])).await;
}

pub async fn what_never_started_costs_nothing(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(10)).await;
    let receipt = world.consume(asking([("l", 10)])).await.unwrap().receipt;
    assert_eq!(world.settle_receipt(&receipt, Cost::Nothing).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, 10);
}

pub async fn a_receipt_holds_its_slot_until_it_is_settled(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 1).await, []);
    assert_eq!(world.settle_receipt(&receipt, Cost::Told(vec![])).await, Ok(()));
    assert_eq!(world.claim("strict", 1).await, [id]);
}

pub async fn a_slot_comes_back_when_its_receipt_expires(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(1)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    world.wait(20);
    let receipt = world.renew_receipt(&receipt).await.unwrap();
    assert_eq!(receipt.expires, world.after(30));
    let id = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.wait(29);
    assert_eq!(world.claim("strict", 1).await, []);
    world.wait(1);
    assert_eq!(world.claim("strict", 1).await, [id]);
    assert_eq!(world.renew_receipt(&receipt).await, Err(ReceiptError::Spent));
    assert_eq!(world.settle_receipt(&receipt, Cost::Nothing).await, Err(ReceiptError::Spent));
}

pub async fn a_receipt_without_slots_has_nothing_to_renew(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_second(1)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(world.renew_receipt(&receipt).await, Err(ReceiptError::NothingHeld));
}

pub async fn a_receipt_from_before_a_change_gives_back_nothing_after_it(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::concurrency(2)).await;
    let before = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    world.limit("l", Limit::per_hour(4)).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.settle_receipt(&before, Cost::Nothing).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, 3);
}

pub async fn a_change_after_the_clock_was_set_back_does_not_multiply_what_was_spent(
    stage: impl Stage,
) {
    let mut world = World::new(stage).await;
    let daily = |limit| Limit::fixed_window(limit, Span::from_days(1)).on_calendar("UTC");
    world.limit("l", Limit::fixed_window(3, Span::from_secs(1)).on_calendar("UTC")).await;
    world.set_wall(world.now.wall.plus(Span::from_days(2)));
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    world.set_wall(world.now.wall.minus(Span::from_days(2)));
    world.limit("l", daily(3)).await;
    assert_eq!(world.inspect("l").await.standing.remaining, 2);
}
