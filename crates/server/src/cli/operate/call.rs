//! `tollgate call` and `tollgate explain`: calls, and why they wait.

use super::answer::{list, page, reason, text, when};
use super::history::event;
use super::{To, of_problem};
use crate::cli::{Environment, Exit, output, shown};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate::Timestamp;
use tollgate_client::ClientError;
use tollgate_client::path::{path, with_query};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum CallCommand {
    /// Shows a call: where it is, why it waits, and what happened to it.
    #[command(after_help = "Example:\n  tollgate call show 42")]
    Show(ExplainArguments),
    /// Lists calls of a queue in the order in which they were accepted.
    #[command(after_help = "Example:\n  tollgate call list charges --lane acme --state waiting")]
    List(ListArguments),
    /// Takes calls back: those that wait end, those in flight are not tried again.
    #[command(after_help = "Example:\n  tollgate call cancel 42 43")]
    Cancel(CancelArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArguments {
    /// The call's id.
    id: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// The queue.
    queue: String,
    /// Of this lane alone.
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// In this state alone.
    #[arg(long, value_name = "STATE", value_parser = ["waiting", "not_due", "resting", "in_flight", "dead"])]
    state: Option<String>,
    /// Goes on behind this call.
    #[arg(long, value_name = "ID")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CancelArguments {
    /// Their ids.
    #[arg(required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(command: CallCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        CallCommand::Show(ExplainArguments { id, to }) => {
            let answer = to.client(environment)?.request("GET", &path(&["calls", &id]), None).await;
            to.say(answer, described)
        }
        CallCommand::List(ListArguments { queue, lane, state, after, limit, to }) => {
            let query = [
                ("lane", lane.as_deref()),
                ("state", state.as_deref()),
                ("after", after.as_deref()),
                ("limit", Some(&*limit)),
            ];
            let at = with_query(path(&["queues", &queue, "calls"]), &query);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, calls)
        }
        CallCommand::Cancel(arguments) => cancel(&arguments, environment).await,
    }
}

/// A page of calls, as a table.
pub(super) fn calls(answer: &Value) -> Vec<String> {
    let now = shown::now();
    let head = ["id", "lane", "state", "priority", "tried", "when", "pays"];
    page(answer, "calls", &head, |call| row(call, now))
}

fn row(call: &Value, now: Timestamp) -> Vec<String> {
    let attempts = ["failures", "crashes", "limited"];
    let tried: u64 = attempts.iter().filter_map(|it| call["attempts"][it].as_u64()).sum();
    let times = [
        ("not_before", "due"),
        ("rests_until", "again"),
        ("lease_expires_at", "lease ends"),
        ("died_at", "died"),
    ];
    let times = times.iter().filter(|(field, _)| !call[field].is_null());
    let times: Vec<_> =
        times.map(|(field, it)| format!("{it} {}", when(call, field, now))).collect();
    let tolls = list(call, "tolls").iter().map(|toll| {
        let partition = toll["partition"].as_str().map_or_else(String::new, |it| format!("/{it}"));
        format!("{}{partition}={}", text(toll, "limit"), text(toll, "weight"))
    });
    vec![
        text(call, "id"),
        text(call, "lane"),
        text(call, "state"),
        text(call, "priority"),
        tried.to_string(),
        times.join(", "),
        tolls.collect::<Vec<_>>().join(" "),
    ]
}

async fn cancel(arguments: &CancelArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let CancelArguments { ids, to } = arguments;
    let client = to.client(environment)?;
    let (mut cancelled, mut problems, mut exit) = (Vec::new(), Vec::new(), Exit::Done);
    for id in ids {
        match client.request("DELETE", &path(&["calls", id]), None).await {
            Ok(_) => cancelled.push(id),
            Err(ClientError::Problem(problem)) if to.json => {
                exit = exit.max(of_problem(&problem));
                problems.push(json!({"id": id, "problem": problem}));
            }
            Err(error) => exit = exit.max(to.refused(error)?),
        }
    }
    let lines: Vec<_> = cancelled.iter().map(|id| format!("{id} is cancelled")).collect();
    let mut value = json!({"cancelled": cancelled});
    if !problems.is_empty() {
        value["problems"] = problems.into();
    }
    output::outcome(to.json.then_some(&value), &lines);
    Ok(exit)
}

pub(super) async fn explain(
    arguments: &ExplainArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let ExplainArguments { id, to } = arguments;
    let answer = to.client(environment)?.request("GET", &path(&["calls", id]), None).await;
    to.say(answer, |call| explained(call, shown::now()))
}

fn described(call: &Value) -> Vec<String> {
    let now = shown::now();
    let mut lines = explained(call, now);
    if let Some(body) = call["body_base64"].as_str() {
        lines.push(format!("body, in base64: {body}"));
    } else if !call["body"].is_null() {
        lines.push(format!("body: {}", call["body"]));
    }
    if call["destination"].is_object() {
        lines.push(format!("destination: {}", call["destination"]));
    }
    lines.extend(list(call, "history").iter().map(|it| format!("  {}", event(it, now))));
    lines
}

fn explained(call: &Value, now: Timestamp) -> Vec<String> {
    let (id, state) = (text(call, "id"), text(call, "state"));
    let (lane, queue) = (text(call, "lane"), text(call, "queue"));
    let died = match call["died_of"].as_str() {
        Some(cause) => format!(" ({cause}, {})", when(call, "died_at", now)),
        None => String::new(),
    };
    let mut lines = vec![format!("call {id} of lane {lane} in queue {queue} is {state}{died}")];
    let waiting = &call["waiting"];
    lines.extend(list(waiting, "reasons").iter().map(|it| format!("  {}", reason(it, now))));
    if waiting.is_object() && list(waiting, "reasons").is_empty() {
        lines.push("  nothing is in its way: it starts when a worker asks".to_owned());
    }
    for (field, said) in [("not_before", "it does not start before"), ("expected", "expected")] {
        let at = when(waiting, field, now);
        // What could start already is not told when.
        if at.starts_with("in ") {
            lines.push(format!("  {said}: {at}"));
        }
    }
    lines
}
