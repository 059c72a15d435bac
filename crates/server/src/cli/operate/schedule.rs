//! `tollgate schedule`: calls that are handed in again and again, or once.

use super::To;
use super::answer::{page, text, when};
use super::enqueue::NewCallArguments;
use crate::cli::shown::{self, table};
use crate::cli::{Environment, Exit};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tollgate::Timestamp;
use tollgate_client::path::{path, with_query};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ScheduleCommand {
    /// Hands in a call at each tick. A schedule of that name is replaced.
    #[command(
        after_help = "Examples:\n  tollgate schedule set report --queue reports --lane acme --cron '0 9 * * 1-5' --zone Europe/Berlin\n  tollgate schedule set once --queue reports --lane acme --at 2030-01-01T00:00:00Z --body '{\"n\":1}'"
    )]
    Set(Box<SetArguments>),
    /// Lists schedules by name.
    #[command(after_help = "Example:\n  tollgate schedule list")]
    List(ListArguments),
    /// Shows a schedule.
    #[command(after_help = "Example:\n  tollgate schedule show report")]
    Show(NameArguments),
    /// Removes a schedule. Calls that it handed in stay.
    #[command(after_help = "Example:\n  tollgate schedule remove report")]
    Remove(NameArguments),
    /// Hands in nothing more until it is resumed.
    #[command(after_help = "Example:\n  tollgate schedule pause report")]
    Pause(NameArguments),
    /// Goes on with the next tick from now.
    #[command(after_help = "Example:\n  tollgate schedule resume report")]
    Resume(NameArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetArguments {
    /// Its name.
    name: String,
    /// Where its calls are handed in.
    #[arg(long, value_name = "QUEUE")]
    queue: String,
    /// When it ticks: minute, hour, day, month and weekday.
    #[arg(long, value_name = "EXPRESSION", required_unless_present = "at", conflicts_with = "at")]
    cron: Option<String>,
    /// On the calendar of this time zone; UTC if left out.
    #[arg(long, value_name = "ZONE", requires = "cron")]
    zone: Option<String>,
    /// The one instant at which it ticks, as in 2030-01-01T00:00:00Z.
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,
    #[command(flatten)]
    call: NewCallArguments,
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

const HEAD: [&str; 7] = ["name", "queue", "when", "next", "last", "state", "problem"];

pub(super) async fn run(
    command: ScheduleCommand,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    match command {
        ScheduleCommand::Set(arguments) => set(&arguments, environment).await,
        ScheduleCommand::List(ListArguments { after, limit, to }) => {
            let query = [("after", after.as_deref()), ("limit", Some(&*limit))];
            let at = with_query(path(&["schedules"]), &query);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            let now = shown::now();
            to.say(answer, |answer| page(answer, "schedules", &HEAD, |it| row(it, now)))
        }
        ScheduleCommand::Show(arguments) => ask("GET", &arguments, &[], environment).await,
        ScheduleCommand::Remove(arguments) => ask("DELETE", &arguments, &[], environment).await,
        ScheduleCommand::Pause(arguments) => ask("POST", &arguments, &["pause"], environment).await,
        ScheduleCommand::Resume(arguments) => {
            ask("POST", &arguments, &["resume"], environment).await
        }
    }
}

async fn set(arguments: &SetArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let SetArguments { name, queue, cron, zone, at, call, to } = arguments;
    let mut body = json!({"queue": queue, "call": call.wire()?});
    for (field, value) in [("cron", cron), ("zone", zone), ("at", at)] {
        if let Some(value) = value {
            body[field] = value.as_str().into();
        }
    }
    let at = path(&["schedules", name]);
    let answer = to.client(environment)?.request("PUT", &at, Some(body)).await;
    to.say(answer, described)
}

async fn ask(
    method: &str,
    arguments: &NameArguments,
    below: &[&str],
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let NameArguments { name, to } = arguments;
    let at = path(&[&["schedules", name], below].concat());
    let answer = to.client(environment)?.request(method, &at, None).await;
    to.say(answer, |answer| match answer["name"].is_null() {
        true if method == "DELETE" => vec![format!("{name} is removed")],
        true => vec![format!("{name}: done")],
        false => described(answer),
    })
}

fn described(schedule: &Value) -> Vec<String> {
    let mut lines = table(&HEAD, &[row(schedule, shown::now())]);
    lines.push(format!("  call: {}", schedule["call"]));
    lines
}

fn row(schedule: &Value, now: Timestamp) -> Vec<String> {
    let ticks = match schedule["cron"].as_str() {
        Some(cron) => format!("{cron} ({})", text(schedule, "zone")),
        None => format!("once, {}", when(schedule, "at", now)),
    };
    let state = if schedule["paused"] == true { "paused" } else { "" };
    vec![
        text(schedule, "name"),
        text(schedule, "queue"),
        ticks,
        when(schedule, "next", now),
        when(schedule, "last", now),
        state.to_owned(),
        text(schedule, "problem"),
    ]
}
