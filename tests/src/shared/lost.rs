//! A store that comes back empty: what was spent is not given again by those who remember.

use super::memory::{MemoryCells, Time};
use super::world::{asking, define, passes, stage, time};
use std::sync::Arc;
use tollgate::lanes::Meters;
use tollgate::shared::Shared;
use tollgate::shared::cells::Kind;
use tollgate::{Limit, Span};

#[tokio::test]
async fn who_remembers_starts_meters_empty_for_a_period_and_tells_the_rules_again() {
    let (cells, store) = stage();
    define(&store, "l", Limit::per(4, Span::from_secs(4))).await;
    assert!(passes(&store, "l").await);
    cells.clear();
    assert!(!passes(&store, "l").await, "nothing is minted, though the store knows of nothing");
    cells.wait(Span::from_secs(1));
    assert!(passes(&store, "l").await, "it fills as a bucket does that was emptied then");
    assert!(!passes(&store, "l").await);
    cells.wait(Span::from_secs(4));
    for _ in 0..4 {
        assert!(passes(&store, "l").await);
    }
}

#[tokio::test]
async fn all_processes_heed_what_one_of_them_remembers() {
    let cells = Arc::new(MemoryCells::new(Time::default()));
    let old = Shared::new(cells.clone());
    define(&old, "l", Limit::per_hour(4)).await;
    assert!(passes(&old, "l").await);
    cells.clear();
    let new = Shared::new(cells.clone());
    assert!(new.now().await.is_ok(), "it knows of nothing that was before, and begins anew");
    assert!(!passes(&old, "l").await);
    assert!(!passes(&new, "l").await);
}

#[tokio::test]
async fn where_nobody_remembers_everything_is_new() {
    let cells = Arc::new(MemoryCells::new(Time::default()));
    let old = Shared::new(cells.clone());
    define(&old, "l", Limit::per_hour(1)).await;
    assert!(passes(&old, "l").await);
    drop(old);
    cells.clear();
    let new = Shared::new(cells.clone());
    assert!(new.consume(vec![asking("l")]).await.unwrap()[0].is_err(), "there is no such limit");
    define(&new, "l", Limit::per_hour(1)).await;
    assert!(passes(&new, "l").await);
}

#[tokio::test]
async fn slots_are_free_again_a_minute_after_they_were_lost() {
    let (cells, store) = stage();
    define(&store, "l", Limit::concurrency(2)).await;
    assert!(passes(&store, "l").await);
    cells.clear();
    assert!(!passes(&store, "l").await);
    cells.wait(Span::from_secs(60));
    assert!(passes(&store, "l").await);
}

#[tokio::test]
async fn of_two_who_come_first_to_a_new_store_neither_takes_it_for_one_that_lost_something() {
    let (cells, store) = stage();
    cells.overtake_epoch(Shared::new(cells.clone()));
    define(&store, "l", Limit::per_hour(1)).await;
    assert!(passes(&store, "l").await, "nothing was spent before");
}

#[tokio::test]
async fn rules_are_told_again_though_the_store_goes_in_the_middle() {
    for cells in [MemoryCells::new(time()), MemoryCells::apart(time())] {
        let cells = Arc::new(cells);
        let store = Shared::new(cells.clone());
        for limit in ["l", "m"] {
            define(&store, limit, Limit::per(1, Span::from_secs(1))).await;
            assert!(passes(&store, limit).await, "from here on it knows the rules");
        }
        cells.wait(Span::from_millis(1));
        cells.clear();
        cells.go_after(Kind::Epoch);
        assert!(store.consume(vec![asking("l")]).await.is_err(), "it is gone");
        cells.fail(false);
        for limit in ["l", "m"] {
            assert!(!passes(&store, limit).await);
        }
        cells.wait(Span::from_secs(1));
        for limit in ["l", "m"] {
            assert!(passes(&store, limit).await, "the limit is there again");
        }
    }
}

#[tokio::test]
async fn of_rules_that_are_told_again_the_newest_hold_whoever_comes_first() {
    let (cells, stale) = stage();
    let newest = Shared::new(cells.clone());
    define(&stale, "l", Limit::per_hour(1_000)).await;
    assert!(passes(&stale, "l").await, "from here on it knows the rules");
    cells.wait(Span::from_secs(1));
    define(&newest, "l", Limit::per_hour(4)).await;
    assert!(passes(&newest, "l").await);
    cells.clear();
    let capacity = |store: Shared| async move {
        let meter = asking("l").owed().remove(0).0;
        store.inspect(vec![meter]).await.unwrap().remove(0).unwrap().definition.capacity()
    };
    assert_eq!(capacity(stale.clone()).await, 1_000, "it knows of no others");
    assert_eq!(capacity(newest.clone()).await, 4);
    assert_eq!(capacity(stale.clone()).await, 4);
    cells.wait(Span::from_secs(1));
    define(&stale, "l", Limit::per_hour(7)).await;
    assert_eq!(capacity(newest).await, 7, "what was defined since is newer than all of them");
}

#[tokio::test]
async fn what_was_defined_since_a_loss_is_not_undone_by_who_remembers() {
    let (cells, old) = stage();
    define(&old, "l", Limit::per_hour(1)).await;
    define(&old, "l", Limit::per_hour(2)).await;
    assert!(passes(&old, "l").await, "from here on it knows the rules");
    cells.clear();
    cells.wait(Span::from_secs(1));
    let new = Shared::new(cells.clone());
    define(&new, "l", Limit::per_hour(3)).await;
    let meter = asking("l").owed().remove(0).0;
    let found = old.inspect(vec![meter]).await.unwrap().remove(0).unwrap();
    assert_eq!(found.definition.capacity(), 3);
}
