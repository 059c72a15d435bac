//! Processes whose clocks differ and step back: the store's clock alone decides.

use crate::servers;
use std::time::Duration;
use tollgate::{Cause, Clock, Error, Limit, ManualClock, Span, Timestamp, Tollgate, global};

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
        let gate = builder.clock(clock.clone()).connect(url).await.unwrap();
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

#[tokio::test]
async fn clocks_of_processes_change_nothing_in_redis() {
    one_clock_decides(servers::redis::shared(), &prefix("redis")).await;
}

#[tokio::test]
async fn clocks_of_processes_change_nothing_in_postgres() {
    one_clock_decides(servers::postgres::shared(), &prefix("postgres")).await;
}
