//! Stores that fail as real ones do: told within the deadline, never more granted than there is, and all
//! right again by itself.

mod nats;
mod postgres;
mod redis;
mod rough;

use crate::servers::proxy::moment;
use std::time::Duration;
use tollgate::{Error, Limit, OutOfReach, Span, StoreError, Tollgate, global};
use tollgate_core::contract::StoreError as Kept;

/// How long a store may take: a call hears of its failure within it.
const DEADLINE: Span = Span::from_millis(300);
/// Machines are busy: this is a hang.
const HANG: Duration = Duration::from_secs(10);

/// A gate at the store of a url.
async fn gate(url: &str) -> Tollgate {
    gate_with(url, OutOfReach::Fail).await
}

async fn gate_with(url: &str, choice: OutOfReach) -> Tollgate {
    let builder = Tollgate::builder().prefix("faults").deadline(DEADLINE);
    builder.when_out_of_reach(choice).connect_limits(url).await.unwrap()
}

/// A limit that nothing flows into within a test.
fn a_day(units: u64) -> Limit {
    Limit::fixed_window(units, Span::from_days(1))
}

/// Asks for one unit at `l`: granted, refused, or why the store could not say.
async fn ask(gate: &Tollgate) -> Result<bool, Kept> {
    let asked = tokio::time::timeout(HANG, gate.consume(global("l"))).await;
    match asked.expect("it is told within the deadline") {
        Ok(_) => Ok(true),
        Err(Error::Refused(_)) => Ok(false),
        Err(Error::Store(StoreError::Kept(error))) => Err(error),
        Err(other) => panic!("{other:?}"),
    }
}

/// Asks until the store answers.
async fn ask_until_answered(gate: &Tollgate) -> bool {
    let mut last = None;
    for _ in 0..500 {
        match ask(gate).await {
            Ok(granted) => return granted,
            Err(Kept::Failed { reason }) => panic!("{reason}"),
            Err(error) => last = Some(error),
        }
        moment(20).await;
    }
    panic!("it does not recover: {last:?}");
}

/// Asks until the store refuses; how many were granted.
async fn drain(gate: &Tollgate) -> usize {
    let mut granted = 0;
    while ask_until_answered(gate).await {
        granted += 1;
    }
    granted
}

/// Defines a limit as soon as the store is there.
async fn define(gate: &Tollgate, limit: Limit) {
    for _ in 0..500 {
        match gate.limit("l", limit.clone()).await {
            Ok(_) => return,
            Err(Error::Store(_)) => moment(20).await,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("it does not recover");
}

fn is_unreachable(told: &Result<bool, Kept>) -> bool {
    matches!(told, Err(Kept::Unreachable { .. }))
}
