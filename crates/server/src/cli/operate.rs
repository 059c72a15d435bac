//! Commands that ask a server: what they take, and how its answers are shown.

mod answer;
mod apply;
mod call;
mod dead;
mod drain;
mod enqueue;
mod history;
mod limit;
mod meter;
mod queue;
mod rule;
mod run;
mod schedule;
mod simulate;
mod top;
mod workflow;

use super::{Environment, Exit, output};
use anyhow::Context;
use clap::{Args, Subcommand};
use std::ffi::OsStr;
use std::path::PathBuf;
use tollgate_client::{Builder, Client, ClientError, Problem};

/// Where the server is unless someone says otherwise.
const URL: &str = "http://127.0.0.1:8655";

#[derive(Debug, Subcommand)]
pub(super) enum OperateCommand {
    /// Limits: how much may pass.
    #[command(subcommand)]
    Limit(limit::LimitCommand),
    /// Meters: how limits stand, for all or for one partition.
    #[command(subcommand)]
    Meter(meter::MeterCommand),
    /// Queues and their lanes.
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// Calls.
    #[command(subcommand)]
    Call(call::CallCommand),
    /// Dead letters: calls that are not tried again by themselves.
    #[command(subcommand)]
    Dead(dead::DeadCommand),
    /// Schedules: calls that are handed in again and again.
    #[command(subcommand)]
    Schedule(schedule::ScheduleCommand),
    /// Workflows: tasks that depend on each other.
    #[command(subcommand)]
    Workflow(workflow::WorkflowCommand),
    /// Runs of workflows and step machines.
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Says why a call waits, and until when.
    #[command(after_help = "Example:\n  tollgate explain 42")]
    Explain(call::ExplainArguments),
    /// Hands in a call, or all calls of a file.
    #[command(after_help = enqueue::EXAMPLES)]
    Enqueue(enqueue::EnqueueArguments),
    /// Waits until a queue is empty, and shows how far it is.
    ///
    /// Ends with 0 when no call of it waits or is in flight, and with 1 if that takes too long.
    #[command(after_help = "Example:\n  tollgate drain charges --timeout 10m")]
    Drain(drain::DrainArguments),
    /// Shows the busiest lanes, what blocks them, and how fast queues go.
    ///
    /// On a terminal it is drawn anew every second until it is stopped; otherwise once.
    #[command(after_help = "Examples:\n  tollgate top\n  tollgate top --once --json")]
    Top(top::TopArguments),
    /// Says what becomes of all that waits, as a limit is and as it might be.
    ///
    /// The scheduler itself goes through what is to come, on time that is thought of: nothing changes.
    #[command(
        after_help = "Examples:\n  tollgate simulate\n  tollgate simulate stripe --rate 200/1m --takes 250ms --hands 50"
    )]
    Simulate(simulate::SimulateArguments),
    /// Tells what happens to calls, as it happens.
    #[command(after_help = "Example:\n  tollgate events --queue charges --lane acme")]
    Events(history::EventsArguments),
    /// Tells what came of calls, newest first.
    #[command(after_help = "Example:\n  tollgate history --queue charges --end dead --limit 20")]
    History(history::HistoryArguments),
    /// Makes limits and queues what a file says, and shows what that changes.
    ///
    /// What the file does not name is left as it is. Ends with 0 if all is as the file says, and with
    /// --check with 1 if it is not.
    #[command(
        after_help = "Examples:\n  tollgate apply tollgate.toml --check\n  tollgate apply tollgate.toml"
    )]
    Apply(apply::ApplyArguments),
    /// Tells who changed which limit or queue, newest first.
    #[command(
        after_help = "Examples:\n  tollgate audit --limit 20\n  tollgate audit --name stripe --kind limit,pin"
    )]
    Audit(history::AuditArguments),
}

/// Which server is asked, and how its answer is shown.
#[derive(Debug, Clone, Args)]
pub(super) struct To {
    /// The server; TOLLGATE_URL says which by default, and TOLLGATE_TOKEN holds the token.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Trusts a server whose certificate was signed by an authority in this PEM file.
    #[arg(long, value_name = "FILE")]
    authorities: Option<PathBuf>,
    /// Prints the server's answer in JSON.
    #[arg(long)]
    json: bool,
}

/// Asks the server that the arguments or the environment name.
pub(super) fn operate(command: OperateCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            OperateCommand::Limit(command) => limit::run(command, environment).await,
            OperateCommand::Meter(command) => meter::run(command, environment).await,
            OperateCommand::Queue(command) => queue::run(command, environment).await,
            OperateCommand::Call(command) => call::run(command, environment).await,
            OperateCommand::Dead(command) => dead::run(command, environment).await,
            OperateCommand::Schedule(command) => schedule::run(command, environment).await,
            OperateCommand::Workflow(command) => workflow::run(command, environment).await,
            OperateCommand::Run(command) => run::run(command, environment).await,
            OperateCommand::Explain(arguments) => call::explain(&arguments, environment).await,
            OperateCommand::Enqueue(arguments) => enqueue::run(&arguments, environment).await,
            OperateCommand::Drain(arguments) => drain::run(&arguments, environment).await,
            OperateCommand::Top(arguments) => top::run(&arguments, environment).await,
            OperateCommand::Simulate(arguments) => simulate::run(&arguments, environment).await,
            OperateCommand::Events(arguments) => history::events(&arguments, environment).await,
            OperateCommand::History(arguments) => history::history(&arguments, environment).await,
            OperateCommand::Apply(arguments) => apply::run(&arguments, environment).await,
            OperateCommand::Audit(arguments) => history::audit(&arguments, environment).await,
        }
    })
}

impl To {
    /// A client of the server. It does not try again: a person is told at once.
    fn client(&self, environment: &Environment) -> anyhow::Result<Client> {
        Ok(self.builder(environment)?.retries(0).build()?)
    }

    /// A client that tries again what may be: to be told that it is not known what was done is worse than
    /// to wait for a second.
    fn persistent_client(&self, environment: &Environment) -> anyhow::Result<Client> {
        Ok(self.builder(environment)?.build()?)
    }

    fn builder(&self, environment: &Environment) -> anyhow::Result<Builder> {
        let text = |value: &OsStr, name: &str| {
            let text = value.to_str().map(str::to_owned);
            text.with_context(|| format!("{name} is not UTF-8"))
        };
        let set = |name: &str| environment.get(name).filter(|value| !value.is_empty());
        let url = match (&self.server, set("URL")) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => text(url, "TOLLGATE_URL")?,
            (None, None) => URL.to_owned(),
        };
        let mut builder = Client::builder(without_version(&url));
        if let Some(token) = set("TOKEN") {
            builder = builder.token(text(token, "TOLLGATE_TOKEN")?);
        }
        if let Some(file) = &self.authorities {
            builder = builder.authorities(file);
        }
        Ok(builder)
    }

    /// Says what came of a request: the answer in JSON, or lines that are made of it.
    fn say(
        &self,
        answer: Result<serde_json::Value, ClientError>,
        lines: impl FnOnce(&serde_json::Value) -> Vec<String>,
    ) -> anyhow::Result<Exit> {
        match answer {
            Ok(value) => {
                let text = if self.json { Vec::new() } else { lines(&value) };
                output::outcome(self.json.then_some(&value), &text);
                Ok(Exit::Done)
            }
            Err(error) => self.refused(error),
        }
    }

    /// Says that the server said no; what failed otherwise is the caller's to tell.
    fn refused(&self, error: ClientError) -> anyhow::Result<Exit> {
        let ClientError::Problem(problem) = &error else { return Err(error.into()) };
        if self.json {
            output::outcome(Some(&serde_json::to_value(problem)?), &[]);
        } else {
            output::refusal(&told(problem));
        }
        Ok(of_problem(problem))
    }
}

/// What a server said, with the cure in the words of the shell if there is one.
fn told(problem: &Problem) -> String {
    // Who hands in one call has not numbered it.
    let detail = problem.detail.strip_prefix("call 0: ").unwrap_or(&problem.detail);
    let cure = match &*problem.code {
        "unauthorized" => "set TOLLGATE_TOKEN to a token that the server knows",
        "forbidden" => {
            "set TOLLGATE_TOKEN to a token of that role: `tollgate token new --role` makes one"
        }
        "unknown_queue" => {
            "`tollgate queue list` shows those there are, `tollgate queue set` defines one"
        }
        "unknown_limit" => {
            "`tollgate limit list` shows those there are, `tollgate limit set` defines one"
        }
        "unknown_workflow" => {
            "`tollgate workflow list` shows those there are, `tollgate workflow set` defines one"
        }
        "unknown_run" => "`tollgate run list` shows those there are, with --ended those that ended",
        "queue_not_empty" => "`tollgate drain` waits until it is empty",
        _ => return detail.to_owned(),
    };
    format!("{detail}; {cure}")
}

/// A server that could not do it has not refused it, and what cannot be read is a mistake in the arguments.
fn of_problem(problem: &Problem) -> Exit {
    match problem.status {
        400 | 500.. => Exit::Failed,
        _ => Exit::Refused,
    }
}

/// The server of a URL, whose routes may have been copied along.
fn without_version(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix("/v1").unwrap_or(url)
}
