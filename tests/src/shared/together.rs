//! Requests of one process that come while the store is busy go to it as one change.

use super::memory::{MemoryCells, Time};
use super::world::{asking, define, stage};
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tollgate::lanes::{
    Answer, Ask, Configure, Cost, Definition, LimitName, Meters, Partition, StoreError,
};
use tollgate::shared::Shared;
use tollgate::shared::cells::{Cells, Doing, Kind};
use tollgate::{Limit, Span};
use tollgate_core::contract::ReceiptError;
use tollgate_stores::shared::later::{LaterCells, Nature};

#[tokio::test]
async fn two_hundred_and_fifty_six_tasks_on_one_key_are_a_handful_of_changes() {
    let (cells, store) = stage();
    define(&store, "l", Limit::per_hour(200)).await;
    let before = cells.changes();
    let held = cells.hold();
    let ask = |store: Shared| tokio::spawn(async move { store.consume(vec![asking("l")]).await });
    let first = ask(store.clone());
    held.until_asked().await;
    let others: Vec<_> = (0..255).map(|_| ask(store.clone())).collect();
    // Each has handed in its request once it has run up to its first wait.
    tokio::task::yield_now().await;
    drop(held);
    let mut granted = usize::from(first.await.unwrap().unwrap()[0].is_ok());
    for other in others {
        granted += usize::from(other.await.unwrap().unwrap()[0].is_ok());
    }
    assert_eq!(granted, 200);
    assert_eq!(cells.changes() - before, 2, "the first alone, and all others together");
}

#[tokio::test]
async fn a_request_that_comes_alone_waits_for_nobody() {
    let (cells, store) = stage();
    define(&store, "l", Limit::per_hour(200)).await;
    let before = cells.changes();
    assert!(store.consume(vec![asking("l")]).await.unwrap()[0].is_ok());
    assert_eq!(cells.changes() - before, 1);
}

#[tokio::test]
async fn who_comes_alone_carries_its_request_itself() {
    let (_, store) = stage();
    define(&store, "l", Limit::per_hour(200)).await;
    let mut asking = pin!(store.consume(vec![asking("l")]));
    // Looked at once, and no other task has run.
    let looked = asking.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(looked, Poll::Ready(Ok(paid)) if paid[0].is_ok()));
}

#[test]
fn who_asks_after_the_runtime_of_the_store_has_ended_is_told() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let (_, store) = first.block_on(async {
        let (cells, store) = stage();
        define(&store, "l", Limit::per_hour(200)).await;
        (cells, store)
    });
    assert!(
        second.block_on(store.consume(vec![asking("l")])).unwrap()[0].is_ok(),
        "from elsewhere"
    );
    drop(first);
    let answer = second.block_on(store.consume(vec![asking("l")]));
    assert!(matches!(answer, Err(StoreError::Failed { .. })), "{answer:?}");
}

#[tokio::test]
async fn who_does_not_wait_any_more_has_paid_and_hurts_nobody() {
    let (cells, store) = stage();
    define(&store, "l", Limit::per_hour(3)).await;
    let held = cells.hold();
    let task = |store: Shared| tokio::spawn(async move { store.consume(vec![asking("l")]).await });
    let given_up = task(store.clone());
    held.until_asked().await;
    given_up.abort();
    let other = task(store.clone());
    drop(held);
    assert!(other.await.unwrap().unwrap()[0].is_ok());
    let meter = store.inspect(vec![asking("l").owed().remove(0).0]).await.unwrap().remove(0);
    assert_eq!(meter.unwrap().standing.remaining, 1);
}

#[tokio::test]
async fn two_processes_pay_at_the_same_meters_under_the_same_rules() {
    let now = Time::default();
    let cells: Arc<MemoryCells> = Arc::new(MemoryCells::new(now));
    let (one, other) = (Shared::new(cells.clone()), Shared::new(cells));
    define(&one, "l", Limit::per_hour(3)).await;
    for store in [&one, &other, &one] {
        assert!(store.consume(vec![asking("l")]).await.unwrap()[0].is_ok());
    }
    assert!(other.consume(vec![asking("l")]).await.unwrap()[0].is_err());
    define(&other, "l", Limit::per(5, Span::from_hours(1))).await;
    for store in [&one, &other] {
        assert!(store.consume(vec![asking("l")]).await.unwrap()[0].is_ok(), "seen at once");
    }
    assert!(one.consume(vec![asking("l")]).await.unwrap()[0].is_err());
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_for_a_store_that_is_gone_are_told_with_the_first() {
    let (cells, store) = stage();
    define(&store, "l", Limit::per_hour(200)).await;
    let held = cells.hold();
    let ask = |store: Shared| tokio::spawn(async move { store.consume(vec![asking("l")]).await });
    let first = ask(store.clone());
    held.until_asked().await;
    let others: Vec<_> = (0..2_000).map(|_| ask(store.clone())).collect();
    tokio::task::yield_now().await;
    let before = cells.changes();
    cells.fail(true);
    drop(held);
    assert!(first.await.unwrap().is_err());
    for other in others {
        assert!(other.await.unwrap().is_err());
    }
    assert_eq!(cells.changes(), before, "nobody waited for the store again");
    cells.fail(false);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(store.consume(vec![asking("l")]).await.unwrap()[0].is_ok());
}

/// Asks at the limits `l0` to `l99`, all defined.
async fn a_hundred(store: &Shared) -> Vec<Ask> {
    let mut asks = Vec::new();
    for number in 0..100 {
        let name = format!("l{number}");
        define(store, &name, Limit::concurrency(9)).await;
        asks.push(asking(&name));
    }
    asks
}

#[tokio::test]
async fn where_cells_are_written_one_by_one_no_meter_waits_for_another() {
    let cells = Arc::new(MemoryCells::apart(Time::default()));
    let store = Shared::new(cells.clone());
    let mut asks = a_hundred(&store).await;
    asks.extend(asks.clone());
    let paid = store.consume(asks.clone()).await.unwrap();
    let receipts = paid.into_iter().map(|paid| paid.unwrap().receipt).collect::<Vec<_>>();
    let limit = |name: &LimitName| name.as_str().to_owned();
    let asked = asks.iter().map(|ask| limit(&ask.tolls[0].limit));
    assert!(receipts.iter().map(|receipt| limit(&receipt.lines[0].limit)).eq(asked), "in order");
    let renewed = store.renew(receipts.clone(), Span::from_secs(60)).await.unwrap();
    for (renewed, receipt) in renewed.into_iter().zip(receipts) {
        assert_eq!(renewed.unwrap().id, receipt.id);
    }
    assert_eq!(cells.widest(), 1, "no change has more cells than one");
}

/// An ask at one partition of `l`.
fn at_partition(name: &str) -> Ask {
    let mut ask = asking("l");
    ask.tolls[0].partition = Some(Partition::new(name).unwrap());
    ask
}

#[tokio::test]
async fn changes_that_were_under_way_heed_rules_that_a_partition_got_elsewhere() {
    let cells = Arc::new(MemoryCells::two_at_once(Time::default()));
    let (store, other) = (Shared::new(cells.clone()), Shared::new(cells.clone()));
    define(&store, "l", Limit::per_hour(5)).await;
    assert!(store.consume(vec![at_partition("p")]).await.unwrap()[0].is_ok());
    let own = Some(Definition::new(Limit::per_hour(1)).unwrap());
    let (limit, partition) = (LimitName::new("l").unwrap(), Partition::new("p").unwrap());
    let overrides = vec![(limit, partition, own)];
    other.configure(Configure { overrides, ..Configure::default() }).await.unwrap().unwrap();
    let held = cells.hold();
    let ask = || {
        tokio::spawn({
            let store = store.clone();
            async move { store.consume(vec![at_partition("p")]).await }
        })
    };
    let first = ask();
    held.until_asked().await;
    let second = ask();
    held.until_asked().await;
    drop(held);
    for asked in [first, second] {
        assert!(asked.await.unwrap().unwrap()[0].is_err(), "its one unit was spent before");
    }
}

#[tokio::test]
async fn where_cells_are_written_one_by_one_slots_are_let_go_though_a_settlement_was_cut_short() {
    let cells = Arc::new(MemoryCells::apart(Time::default()));
    let store = Shared::new(cells.clone());
    define(&store, "l", Limit::per_hour(9).and(Limit::concurrency(9))).await;
    let paid = store.consume(vec![asking("l")]).await.unwrap().remove(0).unwrap();
    let settle = || store.settle(vec![(paid.receipt.clone(), Cost::Nothing)]);
    cells.go_after(Kind::Settled);
    assert!(settle().await.is_err(), "the store is gone in the middle");
    cells.fail(false);
    assert_eq!(settle().await.unwrap(), [Err(ReceiptError::Spent)]);
    let meter = store.inspect(vec![asking("l").owed().remove(0).0]).await.unwrap().remove(0);
    let meter = meter.unwrap();
    assert_eq!((meter.in_flight, meter.standing.remaining), (0, 8), "what it paid stays spent");
}

#[tokio::test(start_paused = true)]
async fn whatever_waits_for_a_store_that_hangs_is_told_at_one_deadline() {
    let cells = Arc::new(MemoryCells::apart(Time::default()));
    let store = Shared::new(cells.clone());
    define(&store, "l", Limit::per_hour(200)).await;
    let deadline = Duration::from_millis(500);
    cells.hang(deadline);
    let mut asking = JoinSet::new();
    let begun = Instant::now();
    for number in 0..512 {
        let (store, ask) = (store.clone(), at_partition(&number.to_string()));
        asking.spawn(async move { store.consume(vec![ask]).await.map(drop) });
    }
    while let Some(told) = asking.join_next().await {
        assert!(told.unwrap().is_err());
        assert_eq!(begun.elapsed(), deadline);
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_somebody_else_to_connect_is_told_what_came_of_that() {
    let deadline = Duration::from_millis(500);
    let connect = move || -> Doing<'static, Answer<Arc<dyn Cells>>> {
        Box::pin(async move {
            let _ = timeout(deadline, pending::<()>()).await;
            Err(StoreError::Unreachable { reason: "nobody is there".to_owned() })
        })
    };
    let nature = Nature {
        writes_together: false,
        spreads: false,
        changes_max: 32,
        shares: 1,
        decides_itself: false,
    };
    let cells = Arc::new(LaterCells::new(nature, Box::new(connect)));
    let mut connecting = JoinSet::new();
    let begun = Instant::now();
    for _ in 0..32 {
        let cells = cells.clone();
        connecting.spawn(async move { cells.connected().await.map(drop) });
    }
    while let Some(told) = connecting.join_next().await {
        assert!(told.unwrap().is_err());
        assert_eq!(begun.elapsed(), deadline);
    }
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(cells.connected().await.is_err());
    assert_eq!(begun.elapsed(), 2 * deadline + Duration::from_millis(1), "it tries again");
}
