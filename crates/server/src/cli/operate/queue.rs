//! `tollgate queue`: queues and their lanes, set, shown and held back.

use super::To;
use super::answer::{page, text};
use super::apply::found;
use crate::cli::shown::table;
use crate::cli::{Environment, Exit};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};
use tollgate::Span;
use tollgate_client::path::{path, with_query};
use tollgate_client::{Client, ClientError};

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum QueueCommand {
    /// Defines a queue, or changes it. What is left out is as it was, and by default if there was none.
    #[command(
        after_help = "Examples:\n  tollgate queue set charges\n  tollgate queue set mails --parallel 50 --failures 5 --on-dead hold\n  tollgate queue set hooks --destination https://api.example.com/hooks --header x-tenant=acme\n  tollgate queue set sms --define '{\"lease\":\"1m\"}'"
    )]
    Set(Box<SetArguments>),
    /// Lists queues by name.
    #[command(after_help = "Example:\n  tollgate queue list")]
    List(ListArguments),
    /// Shows a queue: how much is in it, and how it is defined.
    #[command(after_help = "Example:\n  tollgate queue show charges")]
    Show(NameArguments),
    /// Removes a queue that has no calls.
    #[command(after_help = "Example:\n  tollgate queue remove charges")]
    Remove(NameArguments),
    /// Holds back a queue, or one of its lanes: none of its calls start.
    #[command(
        after_help = "Examples:\n  tollgate queue pause charges\n  tollgate queue pause charges --lane acme"
    )]
    Pause(LaneArguments),
    /// Lets a queue, or one of its lanes, go on.
    #[command(after_help = "Example:\n  tollgate queue resume charges --lane acme")]
    Resume(LaneArguments),
    /// Lists the lanes of a queue by name.
    #[command(after_help = "Example:\n  tollgate queue lanes charges")]
    Lanes(LanesArguments),
    /// Serves a lane so many times as much as others where both wait.
    #[command(after_help = "Example:\n  tollgate queue weigh charges acme 3")]
    Weigh(WeighArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetArguments {
    /// Its name.
    name: String,
    /// So many calls of a lane at a time; one, in order, if left out.
    #[arg(long, value_name = "N")]
    parallel: Option<u32>,
    /// How long a call is leased to a worker.
    #[arg(long, value_name = "DURATION")]
    lease: Option<Span>,
    /// Failures after which a call is dead.
    #[arg(long, value_name = "N")]
    failures: Option<u32>,
    /// Crashes after which a call is dead.
    #[arg(long, value_name = "N")]
    crashes: Option<u32>,
    /// Pauses asked for by the upstream after which a call is dead.
    #[arg(long, value_name = "N")]
    limited: Option<u32>,
    /// How long a call rests after its first failure; twice as long each time.
    #[arg(long, value_name = "DURATION")]
    backoff: Option<Span>,
    /// Longest rest.
    #[arg(long, value_name = "DURATION")]
    backoff_max: Option<Span>,
    /// By how many percent a rest may be shorter, by chance: calls that failed together do not come again together.
    #[arg(long, value_name = "PERCENT")]
    backoff_jitter: Option<u32>,
    /// What a dead call does to its lane.
    #[arg(long, value_name = "WHAT", value_enum)]
    on_dead: Option<OnDead>,
    /// Most calls of the queue.
    #[arg(long, value_name = "N")]
    depth: Option<u64>,
    /// Most dead calls that are kept.
    #[arg(long, value_name = "N")]
    dead: Option<u64>,
    /// How long a duplicate is known.
    #[arg(long, value_name = "DURATION")]
    dedupe: Option<Span>,
    /// Where Tollgate delivers the calls to itself, so that no worker claims them.
    #[arg(long, value_name = "URL")]
    destination: Option<String>,
    /// How they are sent there; POST if left out.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// What is sent with each of them. May be given several times.
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// How long the answer may take.
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// The definition in JSON, as the server takes it; flags win over it.
    #[arg(long, value_name = "JSON")]
    define: Option<String>,
    /// What is left out is as by default, though the queue was there.
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(in crate::cli) enum OnDead {
    /// The lane goes on.
    Skip,
    /// The lane waits for an operator.
    Hold,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct NameArguments {
    /// Its name.
    name: String,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LaneArguments {
    /// The queue.
    name: String,
    /// This lane alone.
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct PageArguments {
    /// Goes on behind this name.
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// At most so many, up to 1000.
    #[arg(long, value_name = "N", default_value = "100")]
    limit: String,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArguments {
    #[command(flatten)]
    page: PageArguments,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LanesArguments {
    /// The queue.
    name: String,
    #[command(flatten)]
    page: PageArguments,
    #[command(flatten)]
    to: To,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WeighArguments {
    /// The queue.
    name: String,
    /// The lane.
    lane: String,
    /// How many times as much, up to 100.
    weight: u32,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(command: QueueCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        QueueCommand::Set(arguments) => {
            let SetArguments { name, to, .. } = &*arguments;
            let answer =
                set(&to.client(environment)?, &path(&["queues", name]), &arguments).await?;
            to.say(answer, described)
        }
        QueueCommand::List(ListArguments { page: at, to }) => {
            let at = with_query(path(&["queues"]), &at.query());
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, |answer| page(answer, "queues", &HEAD, row))
        }
        QueueCommand::Show(NameArguments { name, to }) => {
            let at = path(&["queues", &name]);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, described)
        }
        QueueCommand::Remove(NameArguments { name, to }) => {
            let at = path(&["queues", &name]);
            let answer = to.client(environment)?.request("DELETE", &at, None).await;
            to.say(answer, |_| vec![format!("{name} is removed")])
        }
        QueueCommand::Pause(arguments) => hold(&arguments, "pause", environment).await,
        QueueCommand::Resume(arguments) => hold(&arguments, "resume", environment).await,
        QueueCommand::Lanes(LanesArguments { name, page: at, to }) => {
            let at = with_query(path(&["queues", &name, "lanes"]), &at.query());
            let answer = to.client(environment)?.request("GET", &at, None).await;
            let head = ["name", "waiting", "in flight", "dead", "weight", "state", "head"];
            to.say(answer, |answer| page(answer, "lanes", &head, lane))
        }
        QueueCommand::Weigh(WeighArguments { name, lane, weight, to }) => {
            let at = path(&["queues", &name, "lanes", &lane]);
            let body = Some(json!({"weight": weight}));
            let answer = to.client(environment)?.request("PUT", &at, body).await;
            to.say(answer, |_| vec![format!("{lane} has weight {weight}")])
        }
    }
}

/// Makes a queue what the arguments say, and leaves what they do not as it was.
async fn set(
    client: &Client,
    at: &str,
    arguments: &SetArguments,
) -> anyhow::Result<Result<Value, ClientError>> {
    let mut definition = arguments.definition()?;
    if !arguments.replace {
        match found(client, at).await {
            Ok(Some(mut queue)) => {
                let mut was = queue["definition"].take();
                merge(&mut was, definition);
                definition = was;
            }
            Ok(None) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(client.request("PUT", at, Some(definition)).await)
}

/// Settings that have several parts, each of which stays as it was if it is left out.
const PARTS: [&str; 3] = ["backoff", "destination", "headers"];

/// A header as it is written in a command.
fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    pair.ok_or_else(|| format!("{text:?} is no header: write it as x-tenant=acme"))
}

/// Puts what is new over what was.
fn merge(was: &mut Value, new: Value) {
    match (was, new) {
        // How long calls rest and where they go have several parts; an order is one thing or the other.
        (Value::Object(was), Value::Object(new)) => {
            for (field, value) in new {
                match was.get_mut(&field) {
                    Some(old) if PARTS.contains(&field.as_str()) => merge(old, value),
                    _ => drop(was.insert(field, value)),
                }
            }
        }
        (was, new) => *was = new,
    }
}

async fn hold(
    arguments: &LaneArguments,
    action: &str,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let LaneArguments { name, lane, to } = arguments;
    let at = match lane {
        Some(lane) => path(&["queues", name, "lanes", lane, action]),
        None => path(&["queues", name, action]),
    };
    let answer = to.client(environment)?.request("POST", &at, None).await;
    let what = lane.as_ref().unwrap_or(name);
    to.say(answer, |answer| match answer["paused"].as_bool() {
        Some(true) => vec![format!("{what} is paused")],
        _ => vec![format!("{what} goes on")],
    })
}

impl PageArguments {
    fn query(&self) -> [(&'static str, Option<&str>); 2] {
        [("after", self.after.as_deref()), ("limit", Some(&self.limit))]
    }
}

impl SetArguments {
    fn definition(&self) -> anyhow::Result<Value> {
        let mut definition: Map<String, Value> = match &self.define {
            Some(json) => serde_json::from_str(json)
                .map_err(|error| anyhow::anyhow!("--define is not an object in JSON: {error}"))?,
            None => Map::new(),
        };
        let span = |span: Option<Span>| span.map(|span| Value::from(span.to_string()));
        let backoff = [
            ("first", span(self.backoff)),
            ("most", span(self.backoff_max)),
            ("jitter", self.backoff_jitter.map(Value::from)),
        ];
        let backoff = backoff.map(|(field, given)| Some((field.to_owned(), given?)));
        let backoff: Map<String, Value> = backoff.into_iter().flatten().collect();
        let on_dead = self.on_dead.map(|it| match it {
            OnDead::Skip => "skip",
            OnDead::Hold => "hold",
        });
        let destination = self.destination();
        for (field, value) in [
            ("order", self.parallel.map(|calls| json!({"parallel": calls}))),
            ("lease", span(self.lease)),
            ("failures_max", self.failures.map(Value::from)),
            ("crashes_max", self.crashes.map(Value::from)),
            ("limited_max", self.limited.map(Value::from)),
            ("backoff", (!backoff.is_empty()).then_some(Value::from(backoff))),
            ("on_dead", on_dead.map(Value::from)),
            ("depth_max", self.depth.map(Value::from)),
            ("dead_max", self.dead.map(Value::from)),
            ("dedupe", span(self.dedupe)),
            ("destination", (!destination.is_empty()).then_some(Value::from(destination))),
        ] {
            if let Some(value) = value {
                definition.insert(field.to_owned(), value);
            }
        }
        Ok(definition.into())
    }

    fn destination(&self) -> Map<String, Value> {
        let headers: Map<String, Value> =
            self.headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let parts = [
            ("url", self.destination.clone().map(Value::from)),
            ("method", self.method.clone().map(Value::from)),
            ("headers", (!headers.is_empty()).then_some(Value::from(headers))),
            ("timeout", self.timeout.map(|timeout| Value::from(timeout.to_string()))),
        ];
        parts.into_iter().filter_map(|(part, value)| Some((part.to_owned(), value?))).collect()
    }
}

const HEAD: [&str; 6] = ["name", "waiting", "in flight", "dead", "lanes", "state"];

fn row(queue: &Value) -> Vec<String> {
    let state = if queue["paused"] == true { "paused" } else { "" };
    let cells = ["name", "waiting", "in_flight", "dead", "lanes"].map(|field| text(queue, field));
    cells.into_iter().chain([state.to_owned()]).collect()
}

fn lane(lane: &Value) -> Vec<String> {
    let is = |field: &str| lane[field] == true;
    let state = match (is("paused"), is("held")) {
        (true, _) => "paused",
        (_, true) => "held by a dead call",
        _ => "",
    };
    let cells = ["name", "waiting", "in_flight", "dead", "weight"].map(|field| text(lane, field));
    cells.into_iter().chain([state.to_owned(), text(lane, "head")]).collect()
}

fn described(queue: &Value) -> Vec<String> {
    let mut lines = table(&HEAD, &[row(queue)]);
    for (field, value) in queue["definition"].as_object().into_iter().flatten() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        lines.push(format!("  {field}: {value}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_as_it_was() {
        let mut was =
            json!({"lease": "30s", "order": "fifo", "backoff": {"first": "1s", "most": "1m"}});
        merge(&mut was, json!({"order": {"parallel": 5}, "backoff": {"most": "2m"}}));
        let merged = json!({"lease": "30s", "order": {"parallel": 5},
            "backoff": {"first": "1s", "most": "2m"}});
        assert_eq!(was, merged);
        let mut was = json!({"destination": {"url": "https://a", "headers": {"a": "1", "b": "2"}}});
        merge(&mut was, json!({"destination": {"method": "PUT", "headers": {"b": "3"}}}));
        let headers = json!({"a": "1", "b": "3"});
        let merged = json!({"url": "https://a", "method": "PUT", "headers": headers});
        assert_eq!(was["destination"], merged);
        merge(&mut was, json!({"destination": null}));
        assert_eq!(was, json!({"destination": null}));
    }
}
