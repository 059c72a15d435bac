//! `tollgate limit`: limits, set, shown and held back.

use super::To;
use super::answer::{list, page, rules, text, when};
use super::rule::RuleArguments;
use crate::cli::{Environment, Exit, shown};
use clap::{Args, Subcommand};
use serde_json::Value;
use tollgate_client::path::{path, with_query};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LimitCommand {
    /// Defines a limit, or changes it: at once, for waiting calls too, keeping what was spent.
    #[command(
        after_help = "Examples:\n  tollgate limit set stripe --rate 100/1m --burst 150\n  tollgate limit set openai --window 10000/1d --align Europe/Berlin --concurrency 20\n  tollgate limit set ads --rate 200000/1s --ahead 10ms\n  tollgate limit set sms --define '{\"rule\":\"sliding_window\",\"limit\":10,\"per\":\"1s\"}'"
    )]
    Set(SetArguments),
    /// Lists limits by name.
    #[command(after_help = "Example:\n  tollgate limit list")]
    List(ListArguments),
    /// Shows a limit with its pin, its overrides and its latest changes.
    #[command(after_help = "Example:\n  tollgate limit show stripe")]
    Show(NameArguments),
    /// Removes a limit with all its meters; what was spent is forgotten.
    #[command(after_help = "Example:\n  tollgate limit remove stripe")]
    Remove(NameArguments),
    /// Puts a value over whatever callers define.
    #[command(after_help = "Example:\n  tollgate limit pin stripe --rate 10/1m")]
    Pin(SetArguments),
    /// Lets what callers define be in force again.
    #[command(after_help = "Example:\n  tollgate limit unpin stripe")]
    Unpin(NameArguments),
    /// Gives one partition rules of its own, or takes them away.
    #[command(
        after_help = "Examples:\n  tollgate limit override stripe acme --rate 1000/1m\n  tollgate limit override stripe acme --remove"
    )]
    Override(OverrideArguments),
    /// Holds back all calls that pay at a limit.
    #[command(after_help = "Example:\n  tollgate limit pause stripe")]
    Pause(NameArguments),
    /// Lets calls go on that pay at a limit.
    #[command(after_help = "Example:\n  tollgate limit resume stripe")]
    Resume(NameArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetArguments {
    /// Its name.
    name: String,
    #[command(flatten)]
    rule: RuleArguments,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NameArguments {
    /// Its name.
    name: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    /// Goes on behind this name.
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct OverrideArguments {
    /// The limit.
    name: String,
    /// The partition.
    partition: String,
    #[command(flatten)]
    rule: RuleArguments,
    /// Takes its rules away: it follows the limit again.
    #[arg(long, conflicts_with = "RuleArguments")]
    remove: bool,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(command: LimitCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        LimitCommand::Set(arguments) => set(&arguments, &[], environment).await,
        LimitCommand::Pin(arguments) => set(&arguments, &["pin"], environment).await,
        LimitCommand::List(arguments) => list_all(&arguments, environment).await,
        LimitCommand::Show(arguments) => ask("GET", &arguments, &[], environment).await,
        LimitCommand::Remove(arguments) => ask("DELETE", &arguments, &[], environment).await,
        LimitCommand::Unpin(arguments) => ask("DELETE", &arguments, &["pin"], environment).await,
        LimitCommand::Pause(arguments) => ask("POST", &arguments, &["pause"], environment).await,
        LimitCommand::Resume(arguments) => ask("POST", &arguments, &["resume"], environment).await,
        LimitCommand::Override(arguments) => override_partition(&arguments, environment).await,
    }
}

async fn set(
    arguments: &SetArguments,
    below: &[&str],
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let SetArguments { name, rule, to } = arguments;
    let at = path(&[&["limits", name], below].concat());
    let answer = to.client(environment)?.request("PUT", &at, Some(rule.definition()?)).await;
    to.say(answer, |limit| vec![line(limit)])
}

async fn ask(
    method: &str,
    arguments: &NameArguments,
    below: &[&str],
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let NameArguments { name, to } = arguments;
    let at = path(&[&["limits", name], below].concat());
    let answer = to.client(environment)?.request(method, &at, None).await;
    to.say(answer, |answer| match (answer["removed"].as_bool(), answer["paused"].as_bool()) {
        (Some(_), _) => vec![format!("{name} is removed")],
        (_, Some(true)) if answer["name"].is_null() => vec![format!("{name} is paused")],
        (_, Some(false)) if answer["name"].is_null() => vec![format!("{name} goes on")],
        _ => described(answer),
    })
}

async fn list_all(arguments: &ListArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let ListArguments { after, limit, to } = arguments;
    let query = [("after", after.as_deref()), ("limit", Some(&**limit))];
    let at = with_query(path(&["limits"]), &query);
    let answer = to.client(environment)?.request("GET", &at, None).await;
    to.say(answer, |answer| {
        page(answer, "limits", &["name", "rules", "pinned"], |limit| {
            let pinned = &limit["pinned"];
            let pinned = if pinned.is_null() { String::new() } else { rules(pinned) };
            vec![text(limit, "name"), rules(&limit["definition"]), pinned]
        })
    })
}

async fn override_partition(
    arguments: &OverrideArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let OverrideArguments { name, partition, rule, remove, to } = arguments;
    let at = path(&["limits", name, "partitions", partition]);
    let client = to.client(environment)?;
    let answer = match remove {
        true => client.request("DELETE", &at, None).await,
        false => client.request("PUT", &at, Some(rule.definition()?)).await,
    };
    to.say(answer, described)
}

fn line(limit: &Value) -> String {
    let pinned = match &limit["pinned"] {
        Value::Null => String::new(),
        pinned => format!(" (pinned over it: {})", rules(pinned)),
    };
    let paused = if limit["paused"] == true { " (paused: nothing passes)" } else { "" };
    format!("{}: {}{pinned}{paused}", text(limit, "name"), rules(&limit["definition"]))
}

fn described(limit: &Value) -> Vec<String> {
    let now = shown::now();
    let mut lines = vec![line(limit)];
    for it in list(limit, "overrides") {
        lines.push(format!("  {}: {}", text(it, "partition"), rules(&it["definition"])));
    }
    for change in list(limit, "history").iter().rev() {
        let after = &change["after"];
        let what = if after.is_null() { "removed".to_owned() } else { rules(after) };
        lines.push(format!("  {} by {}: {what}", when(change, "at", now), text(change, "who")));
    }
    lines
}
