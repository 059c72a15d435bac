//! Concurrency slots: held while a call runs, freed however it ends.

use crate::world::{PATIENCE, Waiter, World, seconds};
use tollgate::{AskError, Cause, Error, Limit, Tollgate, global};

async fn two_at_a_time() -> World {
    World::of("api", Limit::concurrency(2)).await
}

async fn in_flight(gate: &Tollgate) -> u64 {
    gate.meter("api", None).await.unwrap().in_flight
}

#[tokio::test]
async fn a_pass_holds_its_slot_until_it_is_dropped() {
    let world = two_at_a_time().await;
    let first = world.gate.consume(global("api")).await.unwrap();
    let second = world.gate.consume(global("api")).await.unwrap();
    let refusal = world.refusal(global("api")).await;
    assert_eq!((refusal.cause, refusal.retry_after), (Cause::Slots, None));
    drop(first);
    assert_eq!(world.pay(global("api")).await, 0);
    drop(second);
    assert_eq!(in_flight(&world.gate).await, 0);
}

#[tokio::test]
async fn a_slot_that_is_freed_goes_to_the_first_who_waits() {
    let world = two_at_a_time().await;
    let held = world.gate.consume(global("api").weight(2)).await.unwrap();
    let first = world.stand(global("api").weight(2));
    let mut second = world.stand(global("api"));
    drop(held);
    let pass = first.answered().await.unwrap();
    assert!(second.answer().is_none());
    drop(pass);
    second.answered().await.unwrap().cancel().await;
}

/// Concurrency slots leaked by a crash: of the task.
#[tokio::test]
async fn a_task_that_panics_frees_its_slot() {
    let world = two_at_a_time().await;
    for _ in 0..10 {
        let gate = world.gate.clone();
        let task = tokio::spawn(async move {
            let crash = async { std::panic::panic_any("the call crashed") };
            let _ = gate.throttle(global("api"), crash).await;
        });
        assert!(tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap_err().is_panic());
    }
    assert_eq!(in_flight(&world.gate).await, 0);
}

/// Concurrency slots leaked by a crash: of the caller, half way.
#[tokio::test]
async fn a_throttled_future_that_is_dropped_half_way_frees_its_slot() {
    let world = two_at_a_time().await;
    for _ in 0..10 {
        let hangs = Waiter::stand(world.gate.throttle(global("api"), std::future::pending::<()>()));
        assert_eq!(in_flight(&world.gate).await, 1);
        drop(hangs);
    }
    assert_eq!(in_flight(&world.gate).await, 0);
}

#[tokio::test]
async fn an_acquire_dropped_after_its_grant_frees_its_slot_for_the_next() {
    let world = two_at_a_time().await;
    let held = world.gate.consume(global("api").weight(2)).await.unwrap();
    let unseen = world.stand(global("api").weight(2));
    let next = world.stand(global("api"));
    drop(held);
    drop(unseen);
    let pass = next.answered().await.unwrap();
    assert_eq!(in_flight(&world.gate).await, 1);
    drop(pass);
}

/// Concurrency slots leaked by a crash: of the process that had the receipt.
#[tokio::test]
async fn a_receipt_that_expires_frees_its_slot_also_for_one_who_waits() {
    let world = two_at_a_time().await;
    let pass = world.gate.consume(global("api").weight(2)).await.unwrap();
    let receipt = pass.into_receipt(seconds(30)).await.unwrap();
    let mut waiter = world.stand(global("api"));
    assert_eq!(world.refusal(global("api")).await.retry_after, Some(seconds(30)));
    world.advance(seconds(29)).await;
    assert!(waiter.answer().is_none());
    world.advance(seconds(1)).await;
    let pass = waiter.answer().unwrap().unwrap();
    let late = world.gate.settle_receipt(&receipt, &[]).await.unwrap_err();
    assert_eq!(late, Error::Invalid(AskError::ReceiptSpent));
    assert_eq!(in_flight(&world.gate).await, 1);
    drop(pass);
}

#[tokio::test]
async fn a_receipt_that_is_renewed_holds_on() {
    let world = two_at_a_time().await;
    let pass = world.gate.consume(global("api").weight(2)).await.unwrap();
    let mut receipt = pass.into_receipt(seconds(30)).await.unwrap();
    for _ in 0..5 {
        world.advance(seconds(20)).await;
        receipt = world.gate.renew_receipt(&receipt, seconds(30)).await.unwrap();
        assert_eq!(in_flight(&world.gate).await, 2);
    }
    world.gate.settle_receipt(&receipt, &[]).await.unwrap();
    assert_eq!(in_flight(&world.gate).await, 0);
    let renewed = world.gate.renew_receipt(&receipt, seconds(30)).await.unwrap_err();
    assert_eq!(renewed, Error::Invalid(AskError::ReceiptSpent));
}

#[tokio::test]
async fn a_slot_cannot_be_promised_for_later() {
    let world = two_at_a_time().await;
    let outcome = world.gate.consume_delayed(global("api"), seconds(9)).await;
    let error = outcome.unwrap_err();
    assert_eq!(error, Error::Invalid(AskError::DelayWithSlots { name: "api".to_owned() }));
    assert!(error.to_string().contains("use wait instead of delay"), "{error}");
}
