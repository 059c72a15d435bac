//! `tollgate simulate`: what becomes of all that waits, as a limit is and as it might be.

use super::To;
use super::answer::{list, text};
use super::rule::RuleArguments;
use crate::cli::{Environment, Exit, shown};
use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};
use tollgate::Span;
use tollgate_client::path::path;

/// How many lanes are shown.
const LANES_SHOWN: usize = 10;

#[derive(Debug, Args)]
pub(in crate::cli) struct SimulateArguments {
    /// The limit that would be another; none, and all stay as they are.
    limit: Option<String>,
    #[command(flatten)]
    rule: RuleArguments,
    /// How long a call takes from its start to its end.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    takes: Span,
    /// How many calls of one queue are in flight at most.
    #[arg(long, value_name = "N")]
    hands: Option<u64>,
    /// How far is looked ahead.
    #[arg(long, value_name = "DURATION", default_value = "1d")]
    within: Span,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(
    arguments: &SimulateArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let SimulateArguments { limit, rule, takes, hands, within, to } = arguments;
    let mut asked = json!({ "takes": takes.to_string(), "within": within.to_string() });
    if let Some(hands) = hands {
        asked["hands"] = (*hands).into();
    }
    match limit {
        Some(limit) => asked["limits"] = json!({ limit: rule.definition()? }),
        None if rule.is_given() => {
            bail!("name the limit that would be so: tollgate simulate LIMIT …")
        }
        None => {}
    }
    let client = to.client(environment)?;
    let answer = client.request("POST", &path(&["forecast"]), Some(asked)).await;
    to.say(answer, lines)
}

fn lines(outlook: &Value) -> Vec<String> {
    let mut lines = described("as limits are", &outlook["now"]);
    if !outlook["then"].is_null() {
        lines.push(String::new());
        lines.extend(described("as they would be", &outlook["then"]));
    }
    lines
}

fn described(when: &str, forecast: &Value) -> Vec<String> {
    let number = |field: &str| forecast[field].as_u64().unwrap_or_default();
    let (waiting, started) = (number("waiting"), number("started"));
    let cut = if forecast["cut"] == true { ", and that is as far as it was looked" } else { "" };
    let what = match (waiting, started == waiting) {
        (0, _) => "nothing waits".to_owned(),
        (1, true) => format!("1 call starts within {}", span(forecast, "last_ms")),
        (_, true) => format!("{waiting} calls start within {}", span(forecast, "last_ms")),
        (_, false) => format!("{started} of {waiting} calls start{cut}"),
    };
    let mut lines = vec![format!("{when}: {what}")];
    let lanes = list(forecast, "lanes");
    for lane in lanes.iter().take(LANES_SHOWN) {
        let count = |field: &str| lane[field].as_u64().unwrap_or_default();
        let calls = if count("waiting") == 1 { "call" } else { "calls" };
        let until = match count("waiting").saturating_sub(count("started")) {
            0 => format!("done after {}", span(lane, "last_ms")),
            left => format!("{left} of them not started by then"),
        };
        let place = format!("{} {}", text(lane, "queue"), text(lane, "lane"));
        lines.push(format!("  {place}: {} {calls}, {until}", count("waiting")));
    }
    let more = number("lanes_count").saturating_sub(lanes.len().min(LANES_SHOWN) as u64);
    if more > 0 {
        lines.push(format!("  and {more} lanes that wait less"));
    }
    lines
}

fn span(value: &Value, field: &str) -> String {
    shown::span(Span::from_millis(value[field].as_u64().unwrap_or_default()))
}
