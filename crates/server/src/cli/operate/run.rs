//! `tollgate run`: executions of workflows and step machines.

use super::To;
use super::answer::{list, page, text, when};
use crate::cli::shown::{self, table};
use crate::cli::{Environment, Exit};
use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate::{Span, Timestamp};
use tollgate_client::path::{path, with_query};

/// How long an answer may take beyond the wait.
const PATIENCE: Span = Span::from_secs(30);

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum RunCommand {
    /// Lists runs in the order in which they began.
    #[command(
        after_help = "Examples:\n  tollgate run list\n  tollgate run list --ended --name summarise"
    )]
    List(ListArguments),
    /// Shows how a run stands, or how it ended.
    #[command(after_help = "Example:\n  tollgate run show 019f6a3c1d2b7c0d9e4f5a6")]
    Show(RunArguments),
    /// Shows each attempt at a run's steps or tasks, and what it waited for.
    #[command(after_help = "Example:\n  tollgate run timeline 019f6a3c1d2b7c0d9e4f5a6")]
    Timeline(RunArguments),
    /// Draws a run and how far it is, in the language of Mermaid.
    #[command(after_help = "Example:\n  tollgate run picture 019f6a3c1d2b7c0d9e4f5a6 > run.mmd")]
    Picture(RunArguments),
    /// Shows what a run gave, and waits for its end if it is told to.
    ///
    /// Ends with 0 if the run is done, and with 1 if it failed, was taken back or has not ended.
    #[command(after_help = "Example:\n  tollgate run result 019f6a3c1d2b7c0d9e4f5a6 --wait 30s")]
    Result(ResultArguments),
    /// Tells a run of a machine something.
    #[command(
        after_help = "Example:\n  tollgate run signal 019f6a3c1d2b7c0d9e4f5a6 approved --payload '{\"by\":\"ana\"}' --dedupe mail-1"
    )]
    Signal(SignalArguments),
    /// Takes a run back: it ends, and nothing more of it starts.
    #[command(after_help = "Example:\n  tollgate run cancel 019f6a3c1d2b7c0d9e4f5a6")]
    Cancel(RunArguments),
    /// Begins a run that ended again, from where it failed or from one of its tasks.
    #[command(
        after_help = "Examples:\n  tollgate run rerun 019f6a3c1d2b7c0d9e4f5a6\n  tollgate run rerun 019f6a3c1d2b7c0d9e4f5a6 --from ask"
    )]
    Rerun(RerunArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Those that ended and are kept, not those that have not.
    #[arg(long)]
    ended: bool,
    /// Of this workflow or machine.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Goes on behind this run.
    #[arg(long, value_name = "RUN")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RunArguments {
    /// The run, as it was named when it began.
    run: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ResultArguments {
    /// The run, as it was named when it began.
    run: String,
    /// Waits so long for its end, up to 10m.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    wait: Span,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SignalArguments {
    /// The run, as it was named when it began.
    run: String,
    /// What the signal is called.
    name: String,
    /// What it says, as JSON; null if it is left out.
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// A second one of this key is this one.
    #[arg(long, value_name = "KEY")]
    dedupe: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct RerunArguments {
    /// The run, as it was named when it began.
    run: String,
    /// Which task is done again, with all that depends on it; where it failed if it is left out.
    #[arg(long, value_name = "TASK")]
    from: Option<String>,
    #[command(flatten)]
    to: To,
}

const HEAD: [&str; 6] = ["run", "name", "version", "key", "began", "state"];
const TASKS_HEAD: [&str; 2] = ["task", "state"];
const TIMELINE_HEAD: [&str; 7] =
    ["step", "attempt", "started", "took", "outcome", "waited", "call"];

pub(super) async fn run(command: RunCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        RunCommand::List(arguments) => list_runs(&arguments, environment).await,
        RunCommand::Show(RunArguments { run, to }) => {
            let answer = to.client(environment)?.request("GET", &path(&["runs", &run]), None).await;
            to.say(answer, described)
        }
        RunCommand::Timeline(RunArguments { run, to }) => {
            let at = path(&["runs", &run, "timeline"]);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            let now = shown::now();
            to.say(answer, |answer| {
                page(answer, "attempts", &TIMELINE_HEAD, |it| attempt_row(it, now))
            })
        }
        RunCommand::Picture(RunArguments { run, to }) => {
            let picture = to.client(environment)?.run_picture(&run).await;
            to.draw(picture, &format!("there is no run {run}"))
        }
        RunCommand::Result(ResultArguments { run, wait, to }) => {
            ended(&to, environment, &run, wait).await
        }
        RunCommand::Signal(arguments) => signal(&arguments, environment).await,
        RunCommand::Cancel(RunArguments { run, to }) => {
            let at = path(&["runs", &run, "cancel"]);
            let answer = to.client(environment)?.request("POST", &at, None).await;
            to.say(answer, |answer| match answer["cancelled"] == true {
                true => vec![format!("run {run} is taken back")],
                false => vec![format!("run {run} had ended before")],
            })
        }
        RunCommand::Rerun(RerunArguments { run, from, to }) => {
            let (at, body) = (path(&["runs", &run, "rerun"]), rerun_body(from.as_deref()));
            let answer = to.client(environment)?.request("POST", &at, Some(body)).await;
            to.say(answer, described)
        }
    }
}

fn rerun_body(from: Option<&str>) -> Value {
    from.map_or_else(|| json!({}), |from| json!({ "from": from }))
}

async fn list_runs(arguments: &ListArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let ListArguments { ended, name, after, limit, to } = arguments;
    let query = [
        ("ended", ended.then_some("true")),
        ("name", name.as_deref()),
        ("after", after.as_deref()),
        ("limit", Some(&**limit)),
    ];
    let at = with_query(path(&["runs"]), &query);
    let answer = to.client(environment)?.request("GET", &at, None).await;
    let now = shown::now();
    to.say(answer, |answer| page(answer, "runs", &HEAD, |it| row(it, now)))
}

async fn signal(arguments: &SignalArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let SignalArguments { run, name, payload, dedupe, to } = arguments;
    let payload: Value = serde_json::from_str(payload.as_deref().unwrap_or("null"))
        .context("the payload is not JSON")?;
    let mut body = json!({ "name": name, "payload": payload });
    if let Some(key) = dedupe {
        body["dedupe"] = key.as_str().into();
    }
    let at = path(&["runs", run, "signals"]);
    let answer = to.client(environment)?.request("POST", &at, Some(body)).await;
    to.say(answer, |answer| {
        vec![match answer["signalled"].as_str() {
            Some("woken") => format!("run {run} goes on"),
            Some("known") => format!("run {run} was told this before"),
            _ => format!("the signal waits until run {run} asks for it"),
        }]
    })
}

/// Says how a run ended, once it has; or that it has not.
pub(super) async fn ended(
    to: &To,
    environment: &Environment,
    run: &str,
    wait: Span,
) -> anyhow::Result<Exit> {
    let client = to.builder(environment)?.retries(0).timeout(wait.plus(PATIENCE)).build()?;
    let query = [("wait", Some(&*wait.to_string()))];
    let at = with_query(path(&["runs", run, "result"]), &query);
    let answer = client.request("GET", &at, None).await;
    let is_done = answer.as_ref().is_ok_and(|it| it["ending"]["outcome"] == "done");
    let said = to.say(answer, |answer| match answer["ended"] == false {
        true => vec![format!("run {run} has not ended")],
        false => gave(answer),
    })?;
    Ok(if is_done { said } else { said.max(Exit::Refused) })
}

/// What a run that ended gave, or why it gave nothing.
fn gave(run: &Value) -> Vec<String> {
    match run["ending"]["outcome"].as_str() {
        Some("done") => vec![run["ending"]["value"].to_string()],
        _ => vec![format!("run {} {}", text(run, "run"), state(run))],
    }
}

fn described(run: &Value) -> Vec<String> {
    let mut lines = table(&HEAD, &[row(run, shown::now())]);
    let tasks: Vec<_> = list(run, "tasks").iter().map(task_row).collect();
    if !tasks.is_empty() {
        lines.extend(table(&TASKS_HEAD, &tasks).into_iter().map(|line| format!("  {line}")));
    }
    if let Some(call) = run["call"].as_str() {
        lines.push(format!("  call {call}: `tollgate explain {call}` says why it waits"));
    }
    for (field, word) in [("value", "gave"), ("given", "was given")] {
        if let Some(value) = run["ending"].get(field) {
            lines.push(format!("  {word}: {value}"));
        }
    }
    lines
}

fn task_row(task: &Value) -> Vec<String> {
    vec![text(task, "task"), text(task, "state")]
}

fn row(run: &Value, now: Timestamp) -> Vec<String> {
    vec![
        text(run, "run"),
        text(run, "name"),
        text(run, "version"),
        text(run, "correlation"),
        when(run, "began_at", now),
        state(run),
    ]
}

/// Where a run is, in a few words.
fn state(run: &Value) -> String {
    let ending = &run["ending"];
    let tasks = list(run, "tasks");
    match run["state"].as_str().unwrap_or_default() {
        "going" => format!("going {}", text(run, "step")).trim_end().to_owned(),
        "awaiting" => {
            let names: Vec<_> = list(run, "names").iter().filter_map(Value::as_str).collect();
            format!("awaits {}", names.join(" or "))
        }
        "joining" => format!("awaits {} runs", text(run, "children")),
        "working" if run["pending"] == true => "waits for other runs".to_owned(),
        "working" => {
            let is_over =
                |task: &&Value| matches!(task["state"].as_str(), Some("done" | "skipped"));
            format!("{} of {} tasks done", tasks.iter().filter(is_over).count(), tasks.len())
        }
        _ => match ending["outcome"].as_str() {
            Some("failed") => {
                format!("failed at {}: {}", text(ending, "step"), text(ending, "reason"))
            }
            _ => text(ending, "outcome"),
        },
    }
}

fn attempt_row(attempt: &Value, now: Timestamp) -> Vec<String> {
    let waits = attempt["waits"].as_object().into_iter().flatten();
    let waits: Vec<_> = waits
        .map(|(limit, span)| format!("{} at {limit}", span.as_str().unwrap_or_default()))
        .collect();
    let outcome = match (attempt["outcome"].as_str(), attempt["then"].as_str()) {
        (Some(outcome), Some(then)) => format!("{outcome} {then}"),
        (Some(outcome), None) => outcome.to_owned(),
        (None, _) => text(attempt, "settlement"),
    };
    vec![
        text(attempt, "step"),
        text(attempt, "attempt"),
        when(attempt, "started_at", now),
        took(attempt),
        outcome,
        waits.join(", "),
        text(attempt, "call"),
    ]
}

/// How long an attempt took.
fn took(attempt: &Value) -> String {
    let instant = |field: &str| attempt[field].as_str()?.parse::<jiff::Timestamp>().ok();
    let (Some(from), Some(to)) = (instant("started_at"), instant("settled_at")) else {
        return String::new();
    };
    let nanos = u64::try_from(to.as_nanosecond() - from.as_nanosecond()).unwrap_or_default();
    shown::span(Span::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_in_a_few_words() {
        let tasks = json!([{"task": "a", "state": "done"}, {"task": "b", "state": "running"}]);
        for (run, said) in [
            (json!({"state": "going", "step": "charge"}), "going charge"),
            (json!({"state": "going"}), "going"),
            (json!({"state": "awaiting", "names": ["a", "b"]}), "awaits a or b"),
            (json!({"state": "joining", "children": 3}), "awaits 3 runs"),
            (json!({"state": "working", "tasks": tasks}), "1 of 2 tasks done"),
            (json!({"state": "working", "pending": true}), "waits for other runs"),
            (json!({"state": "ended", "ending": {"outcome": "cancelled"}}), "cancelled"),
            (
                json!({"state": "ended", "ending": {"outcome": "failed", "step": "a", "reason": "no"}}),
                "failed at a: no",
            ),
        ] {
            assert_eq!(state(&run), said);
        }
    }
}
