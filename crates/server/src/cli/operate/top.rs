//! `tollgate top`: the busiest lanes, what blocks them, and how fast queues go.

use super::To;
use super::answer::{list, reason, text};
use crate::cli::shown::{self, table};
use crate::cli::{Environment, Exit, output};
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use tollgate::Timestamp;
use tollgate::lanes::PAGE_MAX;
use tollgate_client::path::{path, with_query};
use tollgate_client::{Client, ClientError, Events, EventsQuery, Told};

/// How often it is drawn.
const EVERY: Duration = Duration::from_secs(1);
/// How many queues are looked into, the fullest of them.
const QUEUES_MAX: usize = 20;
/// How many lanes are shown unless it is said.
const LANES: usize = 15;

#[derive(Debug, Args)]
pub(in crate::cli) struct TopArguments {
    /// Shows it once and ends, as it does if the output is no terminal.
    #[arg(long)]
    once: bool,
    /// So many lanes.
    #[arg(long, value_name = "N", default_value_t = LANES)]
    lanes: usize,
    #[command(flatten)]
    to: To,
}

/// How many calls started and ended, by queue.
type Counts = HashMap<String, (u64, u64)>;

pub(super) async fn run(
    arguments: &TopArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let TopArguments { once, lanes, to } = arguments;
    let client = to.client(environment)?;
    if *once || to.json || !output::is_terminal() {
        let answer = look(&client, *lanes).await;
        return to.say(answer, |seen| drawn(seen, None, shown::now()));
    }
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut events = client.events(EventsQuery::default());
    let mut has_seen = false;
    loop {
        let counts = match count_until(&mut events, &mut ticks).await {
            Ok(counts) => counts,
            Err(error) => return to.refused(error),
        };
        match look(&client, *lanes).await {
            Ok(seen) => {
                has_seen = true;
                output::screen(&drawn(&seen, Some(&counts), shown::now()));
            }
            // One that was there may come back; one that never was may be another.
            Err(error @ ClientError::Unreachable { .. }) if has_seen => {
                output::screen(&[error.to_string()]);
            }
            Err(error) => return to.refused(error),
        }
    }
}

/// Counts what happens until the next tick.
async fn count_until(
    events: &mut Events,
    ticks: &mut tokio::time::Interval,
) -> Result<Counts, ClientError> {
    let mut counts = Counts::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => return Ok(counts),
            told = events.next() => match told {
                Ok(Told::Event(event)) => {
                    let count = counts.entry(event.queue.clone()).or_default();
                    match &*event.event {
                        "started" => count.0 += 1,
                        "ended" => count.1 += 1,
                        _ => {}
                    }
                }
                // What cannot be counted is looked at all the same.
                Ok(_) | Err(ClientError::Unreachable { .. }) => {
                    ticks.tick().await;
                    return Ok(counts);
                }
                Err(error) => return Err(error),
            },
        }
    }
}

/// The queues, and the busiest lanes with why their heads wait.
async fn look(client: &Client, most: usize) -> Result<Value, ClientError> {
    let page = [("limit", Some("1000"))];
    let queues = client.request("GET", &with_query(path(&["queues"]), &page), None).await?;
    let mut queues = list(&queues, "queues").to_vec();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue["waiting"].as_u64()));
    let shown = most.clamp(1, PAGE_MAX).to_string();
    let longest = [("order", Some("waiting")), ("limit", Some(&*shown))];
    let mut lanes = Vec::new();
    for queue in queues.iter().take(QUEUES_MAX).filter(|it| it["waiting"] != 0) {
        let name = text(queue, "name");
        let at = with_query(path(&["queues", &name, "lanes"]), &longest);
        // A queue may be gone meanwhile.
        let Ok(found) = client.request("GET", &at, None).await else { continue };
        lanes.extend(list(&found, "lanes").iter().cloned().map(|mut lane| {
            lane["queue"] = name.as_str().into();
            lane["asking"] = queue["asking"].clone();
            lane
        }));
    }
    lanes.sort_by_key(|lane| std::cmp::Reverse(lane["waiting"].as_u64()));
    lanes.truncate(most);
    for lane in &mut lanes {
        if let Some(head) = lane["head"].as_str()
            && let Ok(mut call) = client.request("GET", &path(&["calls", head]), None).await
        {
            lane["reasons"] = call["waiting"]["reasons"].take();
        }
    }
    Ok(json!({"queues": queues, "lanes": lanes}))
}

/// All of it as lines; with rates if they were counted.
fn drawn(seen: &Value, counts: Option<&Counts>, now: Timestamp) -> Vec<String> {
    let rate = |queue: &Value, which: fn(&(u64, u64)) -> u64| match counts {
        Some(counts) => counts.get(&text(queue, "name")).map_or(0, which).to_string(),
        None => "-".to_owned(),
    };
    let queues: Vec<_> = list(seen, "queues")
        .iter()
        .map(|queue| {
            let state = if queue["paused"] == true { "paused" } else { "" };
            let fields = ["name", "waiting", "in_flight", "dead", "asking"];
            let cells = fields.map(|field| text(queue, field)).into_iter();
            let rates = [rate(queue, |count| count.0), rate(queue, |count| count.1)];
            cells.chain(rates).chain([state.to_owned()]).collect()
        })
        .collect();
    let head = ["queue", "waiting", "in flight", "dead", "asking", "starts/s", "ends/s", "state"];
    let mut lines = table(&head, &queues);
    let lanes: Vec<_> = list(seen, "lanes").iter().map(|lane| row(lane, now)).collect();
    if !lanes.is_empty() {
        lines.push(String::new());
        lines.extend(table(&["lane", "waiting", "in flight", "dead", "blocked by"], &lanes));
    }
    lines
}

fn row(lane: &Value, now: Timestamp) -> Vec<String> {
    let reasons: Vec<_> = list(lane, "reasons").iter().map(|it| reason(it, now)).collect();
    let blocked = match (lane["paused"] == true, lane["held"] == true, reasons.is_empty()) {
        (true, _, _) => "it is paused".to_owned(),
        (_, true, _) => "a dead call holds it".to_owned(),
        (_, _, true) if lane["asking"] == 0 => "no worker asks".to_owned(),
        (_, _, true) => "nothing".to_owned(),
        _ => reasons.join("; "),
    };
    let name = format!("{}/{}", text(lane, "queue"), text(lane, "name"));
    vec![name, text(lane, "waiting"), text(lane, "in_flight"), text(lane, "dead"), blocked]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_lanes_are_shown_with_what_blocks_them() {
        let queue = json!({"name": "q", "waiting": 7, "in_flight": 1, "dead": 0, "paused": false});
        let meter = json!({"reason": "meter", "limit": "api", "cause": "spent"});
        let lane = json!({"queue": "q", "name": "a", "waiting": 7, "in_flight": 1, "dead": 0,
            "paused": false, "held": false, "reasons": [meter]});
        let seen = json!({"queues": [queue], "lanes": [lane]});
        let counts = Counts::from([("q".to_owned(), (12, 9))]);
        let lines = drawn(&seen, Some(&counts), Timestamp::default());
        assert!(lines[1].contains("12") && lines[1].contains('9'), "{lines:?}");
        assert!(lines[4].starts_with("q/a") && lines[4].ends_with("limit api: spent"), "{lines:?}");
        assert!(drawn(&seen, None, Timestamp::default())[1].contains('-'));
    }
}
