//! Receipts: settled once, and holding slots as long as they live.

use super::*;

fn told(cost: u64) -> Cost {
    Cost::Told(vec![(limit_name("l"), cost)])
}

pub async fn a_receipt_settles_once(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
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

pub async fn what_cost_more_is_a_debt(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(world.settle_receipt(&receipt, told(15)).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, -5);
    world.refused(asking([("l", 1)])).await;
}

pub async fn what_never_started_costs_nothing(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    let receipt = world.consume(asking([("l", 10)])).await.unwrap().receipt;
    assert_eq!(world.settle_receipt(&receipt, Cost::Nothing).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, 10);
}

pub async fn a_receipt_without_slots_has_nothing_to_renew(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(1)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(world.renew_receipt(&receipt).await, Err(ReceiptError::NothingHeld));
}

pub async fn a_receipt_from_before_a_change_gives_back_nothing_after_it(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(2)).await;
    let before = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    world.limit("l", Limit::per_hour(4)).await;
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.settle_receipt(&before, Cost::Nothing).await, Ok(()));
    assert_eq!(world.inspect("l").await.standing.remaining, 3);
}

pub async fn a_slot_is_held_until_its_receipt_is_settled(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(2)).await;
    let first = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    let second = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(world.refused(asking([("l", 1)])).await.cause, Cause::Slots);
    assert_eq!(world.settle_receipt(&first, Cost::Told(vec![])).await, Ok(()));
    assert_eq!(world.inspect("l").await.in_flight, 1);
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.settle_receipt(&second, Cost::Nothing).await, Ok(()));
    assert_eq!(world.inspect("l").await.in_flight, 1);
}

pub async fn a_slot_is_free_for_asks_once_its_receipt_expires(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(1)).await;
    let receipt = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    assert_eq!(receipt.expires, world.after(30));
    world.wait(29);
    world.refused(asking([("l", 1)])).await;
    world.wait(1);
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
    assert_eq!(world.renew_receipt(&receipt).await, Err(ReceiptError::Spent));
    assert_eq!(world.settle_receipt(&receipt, Cost::Nothing).await, Err(ReceiptError::Spent));
    assert_eq!(world.inspect("l").await.in_flight, 1, "the other one holds its own");
}

pub async fn a_renewed_receipt_holds_its_slot_longer_and_settles_once(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(1).and(Limit::per_hour(10))).await;
    let first = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    let mut receipt = first.clone();
    for _ in 0..3 {
        world.wait(20);
        receipt = world.renew_receipt(&receipt).await.unwrap();
        assert_eq!((receipt.id, receipt.expires), (first.id, world.after(30)));
    }
    assert_eq!(world.refused(asking([("l", 1)])).await.cause, Cause::Slots);
    assert_eq!(world.settle_receipt(&receipt, told(5)).await, Ok(()));
    for spent in [&receipt, &first] {
        assert_eq!(world.settle_receipt(spent, told(0)).await, Err(ReceiptError::Spent));
        assert_eq!(world.renew_receipt(spent).await, Err(ReceiptError::Spent));
    }
    let state = world.inspect("l").await;
    assert_eq!((state.in_flight, state.rules[1].used), (0, 5));
    assert!(world.consume(asking([("l", 1)])).await.is_ok());
}

pub async fn a_receipt_that_was_renewed_is_spent_under_its_old_name_too(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::concurrency(1).and(Limit::per_hour(10))).await;
    let first = world.consume(asking([("l", 1)])).await.unwrap().receipt;
    world.wait(10);
    let renewed = world.renew_receipt(&first).await.unwrap();
    assert_eq!(world.settle_receipt(&first, told(3)).await, Ok(()));
    assert_eq!(world.settle_receipt(&renewed, told(3)).await, Err(ReceiptError::Spent));
    assert_eq!(world.inspect("l").await.in_flight, 0);
}

pub async fn a_receipt_without_slots_can_be_settled_until_it_expires(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    let [kept, late] =
        [world.consume(asking([("l", 2)])).await, world.consume(asking([("l", 2)])).await];
    world.wait(29);
    assert_eq!(world.settle_receipt(&kept.unwrap().receipt, Cost::Nothing).await, Ok(()));
    world.wait(1);
    let refused = world.settle_receipt(&late.unwrap().receipt, Cost::Nothing).await;
    assert_eq!(refused, Err(ReceiptError::Spent));
}

pub async fn receipts_of_one_batch_are_settled_each_by_itself(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_hour(10)).await;
    let first = world.consume(asking([("l", 4)])).await.unwrap().receipt;
    let second = world.consume(asking([("l", 4)])).await.unwrap().receipt;
    let receipts = vec![(first.clone(), told(1)), (first, told(0)), (second, told(2))];
    let answers = world.store().settle(receipts).await.unwrap();
    assert_eq!(answers, [Ok(()), Err(ReceiptError::Spent), Ok(())]);
    assert_eq!(world.inspect("l").await.standing.remaining, 7);
}

pub async fn what_was_promised_is_handed_back(stage: impl MetersStage) {
    let mut world = World::of_limits(stage);
    world.limit("l", Limit::per_second(1)).await;
    let later = Ask { delay_max: Some(Span::from_secs(5)), ..asking([("l", 1)]) };
    let _ = world.consume(later.clone()).await.unwrap();
    let promised = world.consume(later.clone()).await.unwrap();
    assert_eq!(promised.starts, world.after(1));
    assert_eq!(world.settle_receipt(&promised.receipt, Cost::Nothing).await, Ok(()));
    assert_eq!(world.consume(later).await.unwrap().starts, world.after(1));
}
