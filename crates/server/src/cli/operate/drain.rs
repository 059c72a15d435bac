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
/// How long a server that was there may be away, if nobody says how long the whole may take.
const RESTART: Span = Span::from_secs(60);

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
    let (mut most, mut answered) = (0, None);
    loop {
        ticks.tick().await;
        let answer = client.request("GET", &path(&["queues", queue]), None).await;
        let took = shown::now().since(begun);
        let state = match answer {
            Ok(state) => state,
            Err(error) if error.may_pass() && is_waited_for(answered, took, *timeout) => {
                output::redraw(&format!("{queue}: {error}"));
                continue;
            }
            Err(error) => {
                output::redraw_done();
                return to.refused(error);
            }
        };
        answered = Some(took);
        let left = left(&state);
        most = most.max(left);
        if left == 0 {
            output::redraw_done();
            let line = format!("{queue} is empty: {most} calls went in {}", shown::span(took));
            return to.say(Ok(state), |_| vec![line]);
        }
        let paused = if state["paused"] == true { ", and it is paused" } else { "" };
        output::redraw(&format!("{queue}: {left} left, {} of {most} went{paused}", most - left));
        if timeout.is_some_and(|timeout| took >= timeout) {
            output::redraw_done();
            let took = shown::span(took);
            let line = format!("{queue} has {left} calls left after {took}{paused}");
            output::outcome(to.json.then_some(&state), &[line]);
            return Ok(Exit::Refused);
        }
    }
}

/// Whether a server that was there is waited for: until the timeout, or for as long as a restart takes.
fn is_waited_for(answered: Option<Span>, took: Span, timeout: Option<Span>) -> bool {
    let Some(answered) = answered else { return false };
    took < timeout.unwrap_or(answered.plus(RESTART))
}

/// Calls that wait or are in flight.
fn left(state: &Value) -> u64 {
    ["waiting", "in_flight"].iter().filter_map(|field| state[field].as_u64()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_there_is_waited_for() {
        let [minute, hour] = [60, 3_600].map(Span::from_secs);
        assert!(!is_waited_for(None, Span::ZERO, Some(hour)), "it was never there");
        assert!(is_waited_for(Some(minute), minute, None));
        assert!(!is_waited_for(Some(minute), hour, None));
        assert!(is_waited_for(Some(Span::ZERO), minute, Some(hour)));
        assert!(!is_waited_for(Some(minute), hour, Some(hour)));
    }
}
