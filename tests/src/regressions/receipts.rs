//! Receipts: settled once, from anywhere, until they expire.

use crate::world::{World, seconds};
use tollgate::{AskError, Error, Limit, Receipt, global, toll};

const SPENT: Error = Error::Invalid(AskError::ReceiptSpent);

/// A thousand a minute, 600 of them paid by a receipt for one tenant.
async fn with_receipt() -> (World, Receipt) {
    let world = World::of("tokens", Limit::fixed_window(1_000, seconds(60))).await;
    let pass = world.gate.acquire(toll("tokens", "acme").estimate(600)).await.unwrap();
    let receipt = pass.into_receipt(seconds(30)).await.unwrap();
    (world, receipt)
}

async fn left(world: &World) -> i64 {
    world.stands("tokens", Some("acme")).await.0
}

#[tokio::test]
async fn a_receipt_says_what_was_paid_where() {
    let (_, receipt) = with_receipt().await;
    let [line] = &receipt.lines[..] else { panic!("one line for one toll: {receipt:?}") };
    assert_eq!((&*line.limit, line.partition.as_deref()), ("tokens", Some("acme")));
    assert_eq!(line.payment.weight, 600);
}

#[tokio::test]
async fn a_receipt_settles_once_also_by_its_copies() {
    let (world, receipt) = with_receipt().await;
    let copy = receipt.clone();
    world.gate.settle_receipt(&receipt, &[("tokens", 250)]).await.unwrap();
    assert_eq!(left(&world).await, 750);
    for again in [&receipt, &copy] {
        assert_eq!(world.gate.settle_receipt(again, &[("tokens", 0)]).await.unwrap_err(), SPENT);
        assert_eq!(world.gate.hand_back(again).await.unwrap_err(), SPENT);
    }
    assert_eq!(left(&world).await, 750);
}

#[tokio::test]
async fn a_receipt_that_names_no_cost_settles_at_what_was_paid() {
    let (world, receipt) = with_receipt().await;
    world.gate.settle_receipt(&receipt, &[]).await.unwrap();
    assert_eq!(left(&world).await, 400);
}

#[tokio::test]
async fn a_receipt_handed_back_gives_back_everything() {
    let (world, receipt) = with_receipt().await;
    world.gate.hand_back(&receipt).await.unwrap();
    assert_eq!(left(&world).await, 1_000);
}

#[tokio::test]
async fn a_receipt_that_expired_counts_as_spent() {
    let (world, receipt) = with_receipt().await;
    world.advance(seconds(30)).await;
    assert_eq!(world.gate.settle_receipt(&receipt, &[("tokens", 0)]).await.unwrap_err(), SPENT);
    assert_eq!(left(&world).await, 400);
}

/// A wrong name or a cost beyond counting does not use the receipt up.
#[tokio::test]
async fn a_settlement_that_is_refused_leaves_the_receipt_good() {
    let (world, receipt) = with_receipt().await;
    for wrong in [("other", 1), ("tokens", u64::MAX)] {
        assert!(world.gate.settle_receipt(&receipt, &[wrong]).await.is_err());
    }
    world.gate.settle_receipt(&receipt, &[("tokens", 1)]).await.unwrap();
    assert_eq!(left(&world).await, 999);
}

/// What a pass has settled, its receipt does not settle again.
#[tokio::test]
async fn a_receipt_of_a_settled_pass_gives_nothing_back() {
    let world = World::of("tokens", Limit::fixed_window(1_000, seconds(60))).await;
    let mut pass = world.gate.acquire(toll("tokens", "acme").estimate(600)).await.unwrap();
    assert_eq!(world.pay(toll("tokens", "acme").weight(400)).await, 0);
    pass.settle("tokens", 500).await.unwrap();
    if let Some(receipt) = pass.into_receipt(seconds(30)).await {
        drop(world.gate.settle_receipt(&receipt, &[("tokens", 0)]).await);
        drop(world.gate.hand_back(&receipt).await);
    }
    assert_eq!(left(&world).await, 100);
}

#[tokio::test]
async fn a_plain_pass_has_nothing_to_settle_and_so_no_receipt() {
    let world = World::of("api", Limit::per_second(1)).await;
    let pass = world.gate.consume(global("api")).await.unwrap();
    assert_eq!(pass.into_receipt(seconds(30)).await, None);
}
