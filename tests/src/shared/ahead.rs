//! Units that a process takes ahead: it decides by itself, never lets more pass, and gives back the rest.

use super::memory::MemoryCells;
use super::world::{asking, define, stage};
use std::sync::Arc;
use tokio::time::{Duration, advance};
use tollgate::lanes::{Ask, Meters};
use tollgate::shared::Shared;
use tollgate::{Limit, Span};

const AHEAD: Duration = Duration::from_millis(100);

/// Ten thousand an hour, of which little flows in while a test runs, lent for a tenth of a second.
fn lent() -> Limit {
    Limit::per_hour(10_000).ahead(Span::from(AHEAD))
}

/// Asks for something that nobody settles.
async fn passes(store: &Shared) -> bool {
    let ask = Ask { life: Span::ZERO, ..asking("l") };
    store.consume(vec![ask]).await.unwrap().remove(0).is_ok()
}

async fn remaining(store: &Shared) -> i64 {
    let meter = asking("l").owed().remove(0).0;
    store.inspect(vec![meter]).await.unwrap().remove(0).unwrap().standing.remaining
}

async fn lending() -> (Arc<MemoryCells>, Shared) {
    let (cells, store) = stage();
    define(&store, "l", lent()).await;
    // From here on it knows the rules.
    assert_eq!(remaining(&store).await, 9_999, "the burst is smaller by what flows in meanwhile");
    (cells, store)
}

/// Lets time pass, and tasks run that waited for that.
async fn pass_time(span: Duration) {
    advance(span).await;
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_decides_by_itself_over_what_it_took() {
    let (cells, store) = lending().await;
    let before = cells.changes();
    for _ in 0..5_000 {
        assert!(passes(&store).await);
    }
    let changes = cells.changes() - before;
    assert!(changes < 30, "{changes} changes for 5,000 asks");
}

#[tokio::test(start_paused = true)]
async fn four_processes_that_take_ahead_let_no_more_pass_and_waste_nothing() {
    let (cells, first) = lending().await;
    let mut stores = vec![first];
    for _ in 0..3 {
        let store = Shared::new(cells.clone());
        remaining(&store).await;
        stores.push(store);
    }
    let mut granted = 0;
    for round in 0..4_000 {
        for (number, store) in stores.iter().enumerate() {
            // They ask by turns, and some more often than others.
            if round % (number + 1) == 0 {
                granted += u32::from(passes(store).await);
            }
        }
    }
    assert!(granted <= 9_999, "{granted} of 9,999");
    // What one holds and does not use comes back to the others.
    for _ in 0..40 {
        pass_time(AHEAD).await;
        for _ in 0..100 {
            granted += u32::from(passes(&stores[3]).await);
        }
    }
    assert_eq!(granted, 9_999);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_used_in_time_is_given_back() {
    let (_, store) = lending().await;
    for _ in 0..100 {
        assert!(passes(&store).await);
    }
    assert!(remaining(&store).await < 9_899, "a slice is taken before it is used");
    pass_time(AHEAD).await;
    assert_eq!(remaining(&store).await, 9_899);
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_is_not_used_after_its_time() {
    let (cells, store) = lending().await;
    for _ in 0..100 {
        assert!(passes(&store).await);
    }
    pass_time(AHEAD).await;
    let before = cells.changes();
    assert!(passes(&store).await);
    assert_eq!(cells.changes() - before, 1, "the store is asked again");
}

#[tokio::test(start_paused = true)]
async fn an_ask_that_is_settled_later_is_paid_by_itself() {
    let (_, store) = lending().await;
    let paid = store.consume(vec![asking("l")]).await.unwrap().remove(0).unwrap();
    assert_eq!(remaining(&store).await, 9_998);
    let cost = tollgate::lanes::Cost::Nothing;
    assert_eq!(store.settle(vec![(paid.receipt, cost)]).await.unwrap(), [Ok(())]);
    assert_eq!(remaining(&store).await, 9_999);
}

#[tokio::test(start_paused = true)]
async fn a_slice_is_held_no_longer_than_the_rules_lend_under_which_it_was_paid() {
    let (cells, store) = lending().await;
    for _ in 0..100 {
        assert!(passes(&store).await);
    }
    pass_time(AHEAD).await;
    let shorter = Limit::per_hour(10_000).ahead(Span::from_millis(10));
    define(&Shared::new(cells.clone()), "l", shorter).await;
    assert!(passes(&store).await, "it takes a slice, and does not know of the change yet");
    pass_time(Duration::from_millis(10)).await;
    let before = cells.changes();
    assert!(passes(&store).await);
    assert_eq!(cells.changes() - before, 1, "the store is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_got_slots_elsewhere_lets_nobody_pass_without_one() {
    let (cells, store) = lending().await;
    let slots = Limit::per_hour(10_000).and(Limit::concurrency(1));
    define(&Shared::new(cells.clone()), "l", slots).await;
    let ask = Ask { life: Span::ZERO, ..asking("l") };
    let paid = store.consume(vec![ask]).await.unwrap().remove(0).unwrap();
    assert!(paid.receipt.holds().next().is_some());
}

#[tokio::test(start_paused = true)]
async fn who_closes_or_changes_a_meter_finds_that_it_is_so_at_once() {
    let meter = || asking("l").owed().remove(0).0;
    let (_, store) = lending().await;
    for _ in 0..100 {
        assert!(passes(&store).await);
    }
    store.reset(meter()).await.unwrap().unwrap();
    assert_eq!(remaining(&store).await, 9_999);
    for _ in 0..100 {
        assert!(passes(&store).await);
    }
    assert!(remaining(&store).await < 9_899, "a slice is taken before it is used");
    store.close(meter(), Span::from_secs(9), "maintenance".to_owned()).await.unwrap().unwrap();
    assert!(!passes(&store).await);
    assert_eq!(remaining(&store).await, 9_899, "what was taken is given back");
    store.reopen(meter()).await.unwrap();
    for _ in 0..20 {
        assert!(passes(&store).await);
    }
    define(&store, "l", Limit::per_hour(50)).await;
    assert!(!passes(&store).await);
}
