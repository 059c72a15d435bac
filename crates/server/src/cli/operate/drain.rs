//! `tollgate drain`: waits until a queue is empty.

use super::To;
use crate::cli::{Environment, Exit, output, shown};
use clap::Args;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Span;
use tollgate_client::path::path;

/// How often it is looked.
const EVERY: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(in crate::cli) struct DrainArguments {
    /// The queue.
    queue: String,
    /// Gives up after so long.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(
    arguments: &DrainArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let DrainArguments { queue, timeout, to } = arguments;
    let client = to.client(environment)?;
    let begun = shown::now();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut most = 0;
    loop {
        ticks.tick().await;
        let answer = client.request("GET", &path(&["queues", queue]), None).await;
        let state = match answer {
            Ok(state) => state,
            Err(error) => {
                output::redraw_done();
                return to.refused(error);
            }
        };
        let left = left(&state);
        most = most.max(left);
        let took = shown::now().since(begun);
        if left == 0 {
            output::redraw_done();
            let line = format!("{queue} is empty: {most} calls went in {}", shown::span(took));
            return to.say(Ok(state), |_| vec![line]);
        }
        output::redraw(&format!("{queue}: {left} left, {} of {most} went", most - left));
        if timeout.is_some_and(|timeout| took >= timeout) {
            output::redraw_done();
            output::outcome(
                to.json.then_some(&state),
                &[format!("{queue} has {left} calls left after {}", shown::span(took))],
            );
            return Ok(Exit::Refused);
        }
    }
}

/// Calls that wait or are in flight.
fn left(state: &Value) -> u64 {
    ["waiting", "in_flight"].iter().filter_map(|field| state[field].as_u64()).sum()
}
