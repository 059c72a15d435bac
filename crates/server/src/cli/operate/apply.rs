//! `tollgate apply`: makes the limits and queues of a server what a file says.

use super::To;
use crate::cli::{Environment, Exit, output};
use crate::config::{Actual, Desired, Difference, differences};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use tollgate_client::path::path;
use tollgate_client::{Client, ClientError};

/// What is said of a limit or queue that is not there.
const UNKNOWN: u16 = 404;

#[derive(Debug, Args)]
pub(in crate::cli) struct ApplyArguments {
    /// A configuration file, as `tollgate config` prints one.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Changes nothing: ends with 1 if there is something to change.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    to: To,
}

pub(super) async fn run(
    arguments: &ApplyArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let ApplyArguments { file, check, to } = arguments;
    let desired = Desired::read(file)?;
    let client = to.client(environment)?;
    let actual = match actual(&client, &desired).await {
        Ok(actual) => actual,
        Err(error) => return to.refused(error),
    };
    let found = differences(&desired, &actual);
    if !to.json {
        found.iter().for_each(|difference| output::outcome(None, &difference.lines()));
    }
    if !check {
        for Difference { path, sent, .. } in &found {
            if let Err(error) = client.request("PUT", path, Some(sent.clone())).await {
                return to.refused(error);
            }
        }
    }
    let changes = found.iter().filter(|difference| !difference.is_unsure());
    let changes: Vec<_> = changes.map(Difference::json).collect();
    let is_done = changes.is_empty() || !check;
    let count = changes.len();
    let value = json!({ "changes": changes, "applied": is_done });
    output::outcome(to.json.then_some(&value), &[summary(count, is_done)]);
    Ok(if is_done { Exit::Done } else { Exit::Refused })
}

fn summary(count: usize, is_done: bool) -> String {
    match (count, is_done) {
        (0, _) => "all is as the file says".to_owned(),
        (1, true) => "1 change was made".to_owned(),
        (count, true) => format!("{count} changes were made"),
        (1, false) => "1 change would be made".to_owned(),
        (count, false) => format!("{count} changes would be made"),
    }
}

/// What the server has of what the file names.
async fn actual(client: &Client, desired: &Desired) -> Result<Actual, ClientError> {
    let mut actual = Actual::default();
    for name in desired.limits.keys() {
        let Some(limit) = found(client, &path(&["limits", name])).await? else { continue };
        actual.limits.insert(name.clone(), limit["definition"].clone());
        let overrides = limit["overrides"].as_array().map_or(&[][..], Vec::as_slice);
        for own in overrides {
            let partition = own["partition"].as_str().unwrap_or_default().to_owned();
            actual.partitions.insert((name.clone(), partition), own["definition"].clone());
        }
    }
    for name in desired.queues.keys() {
        let Some(queue) = found(client, &path(&["queues", name])).await? else { continue };
        actual.queues.insert(name.clone(), queue["definition"].clone());
    }
    Ok(actual)
}

/// What is there; `None` if nothing is.
pub(super) async fn found(client: &Client, path: &str) -> Result<Option<Value>, ClientError> {
    match client.request("GET", path, None).await {
        Ok(value) => Ok(Some(value)),
        Err(ClientError::Problem(problem)) if problem.status == UNKNOWN => Ok(None),
        Err(error) => Err(error),
    }
}
