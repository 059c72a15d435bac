//! Processes whose clocks differ and step back: the store's clock alone decides.

use super::memory::{MemoryCells, Time};
use super::world::{define, passes};
use super::{postgres, redis};
use crate::servers;
use std::sync::Arc;
use std::time::Duration;
use tollgate::shared::{Cells, Shared};
use tollgate::{Cause, Clock, Error, Limit, ManualClock, Now, Span, Timestamp, Tollgate, global};

/// A prefix that no other test has, of this run or of another.
fn prefix(of: &str) -> String {
    format!("skew_{of}_{}", std::process::id())
}

/// Gates whose clocks are a minute behind, right, and a minute ahead.
async fn gates(url: &str, prefix: &str) -> Vec<(ManualClock, Tollgate)> {
    let mut gates = Vec::new();
    for seconds in [0, 60, 120] {
        let clock = ManualClock::new();
        clock.advance(Span::from_secs(seconds));
        let builder = Tollgate::builder().prefix(prefix).deadline(Duration::from_secs(20));
        let gate = builder.clock(clock.clone()).connect_limits(url).await.unwrap();
        gates.push((clock, gate));
    }
    gates
}

/// Ten an hour are ten, whoever asks; and who is refused is told to come in an hour less what passed.
async fn one_clock_decides(url: &str, prefix: &str) {
    let gates = gates(url, prefix).await;
    let hour = Span::from_secs(3_600);
    for (limit, wait) in [
        (Limit::per(10, hour).burst(10), Span::from_secs(360)),
        (Limit::fixed_window(10, hour), hour),
        (Limit::sliding_window(10, hour), hour),
    ] {
        let name = limit.rules()[0].kind();
        gates[0].1.limit(name, limit).await.unwrap();
        let mut granted = 0;
        for turn in 0..30 {
            let (clock, gate) = &gates[turn % 3];
            // A clock that steps, and a wall clock that steps back.
            clock.advance(Span::from_secs(7));
            let minute = Span::from_secs(60).as_nanos();
            clock.set_wall(Timestamp::from_nanos(clock.wall().as_nanos() - minute));
            match gate.consume(global(name)).await {
                Ok(_) => granted += 1,
                Err(Error::Refused(refusal)) => {
                    assert_eq!(refusal.cause, Cause::Spent);
                    let told = refusal.retry_after.unwrap();
                    assert!(told <= wait, "{name}: {told:?}");
                    assert!(told.plus(Span::from_secs(60)) > wait, "{name}: {told:?}");
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(granted, 10, "{name}");
    }
}

/// Two processes at a store whose clock is set back by an hour, twice: what was spent stays spent, who was
/// refused passes when it was told, and slots are free when they were to be.
async fn a_step_back_mints_nothing_and_holds_nobody(cells: [Arc<dyn Cells>; 2], clock: &Time) {
    let stores = cells.map(Shared::new);
    let ten = Span::from_secs(10);
    let limits = [
        ("bucket", Limit::per(10, ten).burst(10), Span::from_secs(1)),
        ("fixed", Limit::fixed_window(10, ten), ten),
        ("sliding", Limit::sliding_window(10, ten), ten),
        ("slots", Limit::concurrency(10), Span::from_secs(30)),
    ];
    for (name, limit, _) in &limits {
        define(&stores[0], name, limit.clone()).await;
    }
    for _ in 0..2 {
        for (name, ..) in &limits {
            for turn in 0..12 {
                assert_eq!(passes(&stores[turn % 2], name).await, turn < 10, "{name}: {turn}");
            }
        }
        let then = clock.lock().at.minus(Span::from_hours(1));
        let set = |at| *clock.lock() = Now::both(at);
        set(then);
        for (name, _, opens) in &limits {
            assert!(!passes(&stores[0], name).await, "{name}: it was spent an hour later");
            set(then.plus(*opens).minus(Span::from_nanos(1)));
            assert!(!passes(&stores[1], name).await, "{name}: it opens a little later");
            set(then.plus(*opens));
            assert!(passes(&stores[0], name).await, "{name}: it waits for the clock");
            set(then);
        }
        set(then.plus(Span::from_minutes(5)));
    }
}

fn stopped_clock() -> Time {
    Time::new(parking_lot::Mutex::new(Now::both(
        Timestamp::default().plus(Span::from_days(20_000)),
    )))
}

#[tokio::test]
async fn a_clock_that_is_set_back_mints_nothing_and_holds_nobody_in_memory() {
    let clock = stopped_clock();
    let cells: Arc<dyn Cells> = Arc::new(MemoryCells::new(clock.clone()));
    a_step_back_mints_nothing_and_holds_nobody([cells.clone(), cells], &clock).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_mints_nothing_and_holds_nobody_in_redis() {
    let clock = stopped_clock();
    let cells = redis::under(clock.clone()).await;
    a_step_back_mints_nothing_and_holds_nobody([cells.clone(), cells], &clock).await;
}

#[tokio::test]
async fn a_clock_that_is_set_back_mints_nothing_and_holds_nobody_in_postgres() {
    let clock = stopped_clock();
    let cells = postgres::under(clock.clone()).await;
    a_step_back_mints_nothing_and_holds_nobody([cells.clone(), cells], &clock).await;
}

#[tokio::test]
async fn clocks_of_processes_change_nothing_in_redis() {
    one_clock_decides(servers::redis::shared(), &prefix("redis")).await;
}

#[tokio::test]
async fn clocks_of_processes_change_nothing_in_postgres() {
    one_clock_decides(servers::postgres::shared(), &prefix("postgres")).await;
}
