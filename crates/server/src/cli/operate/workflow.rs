//! `tollgate workflow`: tasks that depend on each other, and beginning runs of them.

use super::To;
use super::answer::{list, page, text};
use super::run::ended;
use crate::cli::shown::table;
use crate::cli::{Environment, Exit, output};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use tollgate::Span;
use tollgate_client::path::{path, with_query};

/// Longest file: a server takes no more.
const FILE_BYTES_MAX: u64 = 32 << 20;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum WorkflowCommand {
    /// Defines a workflow, or changes it: each change is a version, and runs go on with their own.
    #[command(
        after_help = "Examples:\n  tollgate workflow set summarise.json\n  tollgate workflow set summarise.toml --name summarise\n  tollgate workflow set -"
    )]
    Set(SetArguments),
    /// Lists workflows by name.
    #[command(after_help = "Example:\n  tollgate workflow list")]
    List(ListArguments),
    /// Shows a workflow and its tasks.
    #[command(after_help = "Example:\n  tollgate workflow show summarise")]
    Show(NameArguments),
    /// Draws a workflow in the language of Mermaid.
    #[command(after_help = "Example:\n  tollgate workflow picture summarise > summarise.mmd")]
    Picture(NameArguments),
    /// Begins a run, and waits for its end if it is told to.
    ///
    /// With --wait it ends with 0 if the run is done, and with 1 if it failed, was taken back or has not ended.
    #[command(
        after_help = "Examples:\n  tollgate workflow start summarise --input '{\"id\":7}'\n  tollgate workflow start summarise --file input.json --wait 30s\n  tollgate workflow start summarise --file -"
    )]
    Start(StartArguments),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetArguments {
    /// What it is to be, as JSON, YAML or TOML; `-` for the standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its name, if the file does not say it.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
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
pub(in crate::cli) struct StartArguments {
    /// The workflow.
    name: String,
    /// The input, as JSON; null if it is left out.
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    input: Option<String>,
    /// A file that holds the input; `-` for the standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Waits so long for its end, up to 10m.
    #[arg(long, value_name = "DURATION")]
    wait: Option<Span>,
    #[command(flatten)]
    to: To,
}

const HEAD: [&str; 4] = ["name", "version", "tasks", "types"];
const TASKS_HEAD: [&str; 7] = ["task", "type", "after", "rate", "at a time", "timeout", "attempts"];

pub(super) async fn run(
    command: WorkflowCommand,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    match command {
        WorkflowCommand::Set(arguments) => set(&arguments, environment).await,
        WorkflowCommand::List(ListArguments { after, limit, to }) => {
            let query = [("after", after.as_deref()), ("limit", Some(&*limit))];
            let at = with_query(path(&["workflows"]), &query);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, |answer| page(answer, "workflows", &HEAD, row))
        }
        WorkflowCommand::Show(NameArguments { name, to }) => {
            let at = path(&["workflows", &name]);
            let answer = to.client(environment)?.request("GET", &at, None).await;
            to.say(answer, described)
        }
        WorkflowCommand::Picture(NameArguments { name, to }) => {
            let picture = to.client(environment)?.workflow_picture(&name).await;
            to.draw(picture, &format!("there is no workflow {name}"))
        }
        WorkflowCommand::Start(arguments) => start(&arguments, environment).await,
    }
}

async fn set(arguments: &SetArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let SetArguments { file, name, to } = arguments;
    let definition = definition(&contents(file)?)
        .with_context(|| format!("{} does not define a workflow", file.display()))?;
    let name = match (name, definition["name"].as_str()) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => bail!("the file does not say `name`: add it, or give --name"),
    };
    let at = path(&["workflows", &name]);
    let answer = to.client(environment)?.request("PUT", &at, Some(definition)).await;
    to.say(answer, |answer| {
        let mut lines = described(answer);
        if answer["new"] == false {
            lines.push("  it was so before".to_owned());
        }
        lines
    })
}

async fn start(arguments: &StartArguments, environment: &Environment) -> anyhow::Result<Exit> {
    let StartArguments { name, input, file, wait, to } = arguments;
    let input = match (input, file) {
        (Some(input), _) => input.clone(),
        (None, Some(file)) => contents(file)?,
        (None, None) => "null".to_owned(),
    };
    // As it stands, for a number may be one that fits no type.
    let input: Box<RawValue> = serde_json::from_str(&input).context("the input is not JSON")?;
    let begun = match to.client(environment)?.start_workflow(name, &input).await {
        Ok(begun) => begun,
        Err(error) => return to.refused(error),
    };
    if let Some(wait) = wait {
        return ended(to, environment, &begun.run, *wait).await;
    }
    let answer = json!({"run": begun.run, "known": begun.is_known});
    to.say(Ok(answer), |_| {
        let has = if begun.is_known { "is there already" } else { "has begun" };
        vec![format!("run {} {has}", begun.run)]
    })
}

/// What a file holds.
fn contents(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let unread = || format!("{} cannot be read", file.display());
    let read = if file == Path::new("-") {
        stdin().take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    } else {
        let opened = std::fs::File::open(file).with_context(unread)?;
        opened.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)
    };
    match read.with_context(unread)? as u64 {
        0..=FILE_BYTES_MAX => Ok(text),
        _ => bail!("{} is longer than the 32 MiB that a server takes", file.display()),
    }
}

/// A definition as JSON, TOML or YAML: an object in JSON begins as nothing in TOML does, and no table in TOML is an
/// object in YAML.
fn definition(text: &str) -> anyhow::Result<Value> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).context("it is not JSON");
    }
    let not_toml = match toml::from_str(text) {
        Ok(definition) => return Ok(definition),
        Err(error) => error,
    };
    match serde_saphyr::from_str(text) {
        Ok(definition @ Value::Object(_)) => Ok(definition),
        Ok(_) => bail!("it is neither JSON nor YAML with keys; as TOML: {not_toml}"),
        Err(error) => bail!("it is neither JSON, nor YAML: {error}, nor TOML: {not_toml}"),
    }
}

fn described(workflow: &Value) -> Vec<String> {
    let definition = &workflow["definition"];
    let mut said = format!("{}: version {}", text(workflow, "name"), text(workflow, "version"));
    for (field, word) in [
        ("timeout", "a run may take"),
        ("runs_max", "runs at a time:"),
        ("tasks_max", "tasks of a run at a time:"),
        ("idempotency", "once for each"),
    ] {
        if !definition[field].is_null() {
            said = format!("{said}, {word} {}", text(definition, field));
        }
    }
    let rows: Vec<_> = list(definition, "tasks").iter().map(task_row).collect();
    [said].into_iter().chain(table(&TASKS_HEAD, &rows)).collect()
}

fn row(workflow: &Value) -> Vec<String> {
    let tasks = list(&workflow["definition"], "tasks");
    let mut types: Vec<String> = tasks.iter().map(|task| text(task, "type")).collect();
    types.sort();
    types.dedup();
    let version = text(workflow, "version");
    vec![text(workflow, "name"), version, tasks.len().to_string(), types.join(", ")]
}

fn task_row(task: &Value) -> Vec<String> {
    let names = |field| list(task, field).iter().filter_map(Value::as_str).collect::<Vec<_>>();
    let (plain, keyed) = (&task["rate_limit"], &task["keyed_rate_limit"]);
    let rate = match (plain.is_null(), keyed.is_null()) {
        (false, _) => format!("{} per {}", text(plain, "limit"), text(plain, "per")),
        (_, false) => {
            let (limit, per) = (text(keyed, "limit"), text(keyed, "per"));
            format!("{limit} per {per} for each {}", text(keyed, "key"))
        }
        _ => String::new(),
    };
    let retry = &task["retry"];
    vec![
        text(task, "name"),
        text(task, "type"),
        names("after").join(", "),
        rate,
        text(task, "concurrency"),
        text(task, "timeout"),
        text(retry, "attempts"),
    ]
}

impl To {
    /// Says a picture as it is, for a program that draws it.
    pub(super) fn draw(
        &self,
        picture: Result<Option<String>, tollgate_client::ClientError>,
        unknown: &str,
    ) -> anyhow::Result<Exit> {
        match picture {
            Ok(Some(picture)) if self.json => {
                output::outcome(Some(&json!({ "picture": picture })), &[]);
                Ok(Exit::Done)
            }
            Ok(Some(picture)) => {
                output::text(&picture);
                Ok(Exit::Done)
            }
            Ok(None) => {
                output::refusal(unknown);
                Ok(Exit::Refused)
            }
            Err(error) => self.refused(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_json_yaml_or_toml() {
        let json = definition(r#" {"name":"w","tasks":[{"name":"a","type":"t"}]}"#).unwrap();
        let toml = "name = \"w\"\n[[tasks]]\nname = \"a\"\ntype = \"t\"\n";
        assert_eq!(definition(toml).unwrap(), json);
        let yaml = "name: w\ntasks:\n  - name: a\n    type: t\n";
        assert_eq!(definition(yaml).unwrap(), json);
        for text in ["tasks", "tasks: [", "[tasks"] {
            let error = format!("{:#}", definition(text).unwrap_err());
            assert!(error.starts_with("it is neither JSON"), "{error}");
        }
    }
}
