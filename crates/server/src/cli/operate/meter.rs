//! `tollgate meter`: how limits stand, and closing them for a while.

use super::To;
use super::answer::{list, ms, rules, text};
use crate::cli::shown::table;
use crate::cli::{Environment, Exit};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate::Span;
use tollgate_client::path::{path, with_query};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum MeterCommand {
    /// Shows how one meter stands.
    #[command(
        after_help = "Examples:\n  tollgate meter show stripe\n  tollgate meter show stripe acme"
    )]
    Show(MeterArguments),
    /// Lists the meters of a limit: the global one, and those of partitions that are in use.
    #[command(after_help = "Example:\n  tollgate meter list stripe")]
    List(ListArguments),
    /// Lets nothing pass for a while, up to a day. Waiting calls keep their places.
    #[command(
        after_help = "Example:\n  tollgate meter close stripe acme --for 30s --reason '429 from upstream'"
    )]
    Close(CloseArguments),
    /// Ends a closure before its time.
    #[command(after_help = "Example:\n  tollgate meter reopen stripe acme")]
    Reopen(MeterArguments),
    /// Forgets what was spent. Slots stay held.
    #[command(after_help = "Example:\n  tollgate meter reset stripe acme")]
    Reset(MeterArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MeterArguments {
    /// The limit.
    limit: String,
    /// The partition; the global meter if left out.
    partition: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// The limit.
    name: String,
    /// Goes on behind this partition.
    #[arg(long, value_name = "PARTITION")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct CloseArguments {
    #[command(flatten)]
    meter: MeterArguments,
    /// For how long, as in 30s.
    #[arg(long = "for", value_name = "DURATION")]
    span: Span,
    /// Why: shown to those who are refused.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(command: MeterCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        MeterCommand::Show(arguments) => show(&arguments, environment).await,
        MeterCommand::List(arguments) => list_all(&arguments, environment).await,
        MeterCommand::Close(arguments) => {
            let CloseArguments { meter, span, reason } = &arguments;
            let mut body = json!({"for": span.to_string()});
            if let Some(reason) = reason {
                body["reason"] = reason.as_str().into();
            }
            act(meter, "close", Some(body), environment).await
        }
        MeterCommand::Reopen(arguments) => act(&arguments, "reopen", None, environment).await,
        MeterCommand::Reset(arguments) => act(&arguments, "reset", None, environment).await,
    }
}

async fn show(arguments: &MeterArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let MeterArguments { limit, partition, to } = arguments;
    let client = to.client(environment)?;
    let answer = match partition {
        Some(partition) => client.request("GET", &path(&["meters", limit, partition]), None).await,
        None => {
            let at = with_query(path(&["meters", limit]), &[("limit", Some("1"))]);
            let page = client.request("GET", &at, None).await;
            page.map(|mut page| page["global"].take())
        }
    };
    to.say(answer, |meter| meters(&[meter]))
}

async fn list_all(arguments: &ListArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let ListArguments { name, after, limit, to } = arguments;
    let query = [("after", after.as_deref()), ("limit", Some(&**limit))];
    let at = with_query(path(&["meters", name]), &query);
    let answer = to.client(environment)?.request("GET", &at, None).await;
    to.say(answer, |answer| {
        let all: Vec<_> =
            [&answer["global"]].into_iter().chain(list(answer, "partitions")).collect();
        let mut lines = meters(&all);
        if let Some(next) = answer["next"].as_str() {
            lines.push(format!("there is more: --after {next}"));
        }
        lines
    })
}

async fn act(
    arguments: &MeterArguments,
    action: &str,
    body: Option<Value>,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let MeterArguments { limit, partition, to } = arguments;
    let at = match partition {
        Some(partition) => path(&["meters", limit, partition, action]),
        None => path(&["meters", limit, action]),
    };
    let answer = to.client(environment)?.request("POST", &at, body).await;
    to.say(answer, |meter| meters(&[meter]))
}

fn meters(all: &[&Value]) -> Vec<String> {
    let head =
        ["partition", "available", "in flight", "waiting", "next", "full in", "closed", "rules"];
    let row = |meter: &&Value| {
        let partition = meter["partition"].as_str().unwrap_or("(global)");
        let closed = match ms(meter, "closed_for_ms") {
            span if span.is_empty() => span,
            span => format!("for {span}: {}", text(meter, "closed_reason")),
        };
        vec![
            partition.to_owned(),
            text(meter, "available"),
            text(meter, "in_flight"),
            text(meter, "waiting"),
            ms(meter, "next_admission_ms"),
            ms(meter, "reset_after_ms"),
            closed,
            rules(&meter["definition"]),
        ]
    };
    table(&head, &all.iter().map(row).collect::<Vec<_>>())
}
