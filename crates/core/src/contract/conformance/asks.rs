//! Asks without a lane: they pay at the same meters, and overtake nobody who waits.

use super::*;

pub async fn asks_and_calls_pay_at_the_same_meter(stage: impl Stage) {
    let mut world = World::new(stage).await;
    world.limit("l", Limit::per_hour(2)).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    let first = world.enqueue(paying("strict", "a", [("l", 1)])).await;
    world.enqueue(paying("strict", "b", [("l", 1)])).await;
    assert_eq!(world.claim("strict", 10).await, [first]);
    assert_eq!(world.inspect("l").await.standing.remaining, 0);
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
