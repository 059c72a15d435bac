//! `tollgate enqueue`: one call from flags, or all calls of a file.

mod file;

use super::To;
use crate::cli::{Environment, Exit};
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use tollgate::Span;

pub(super) const EXAMPLES: &str = "Examples:\n  tollgate enqueue charges --lane acme --toll stripe/acme --body '{\"amount\":42}'\n  tollgate enqueue charges --file calls.ndjson\n  tollgate enqueue charges --file - --skip 2000";

#[derive(Debug, Args)]
pub(in crate::cli) struct EnqueueArguments {
    /// The queue.
    queue: String,
    #[command(flatten)]
    call: Option<NewCallArguments>,
    /// A file with a call in JSON on each line; `-` for the standard input.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "NewCallArguments",
        required_unless_present = "lane"
    )]
    file: Option<PathBuf>,
    /// Leaves out so many lines of the file: those that were accepted before.
    #[arg(long, value_name = "N", requires = "file", default_value_t = 0)]
    skip: u64,
    /// Goes on with a run that was cut short, which said this: lines that it handed in are not taken twice.
    #[arg(long, value_name = "KEY", requires = "file")]
    key: Option<String>,
    #[command(flatten)]
    to: To,
}

/// A call as flags.
#[derive(Debug, Args)]
pub(in crate::cli) struct NewCallArguments {
    /// Its lane: calls of one lane go in order.
    #[arg(long, value_name = "LANE")]
    lane: String,
    /// What the worker gets: JSON, or any text.
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// What it owes when it starts, as in stripe, stripe/acme or openai-tpm/acme=1200. May be given several times.
    #[arg(long = "toll", value_name = "LIMIT[/PARTITION][=WEIGHT]", value_parser = toll)]
    tolls: Vec<Value>,
    /// Higher goes first, from 0 to 9.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// It joins its lane so long after it is accepted.
    #[arg(long, value_name = "DURATION")]
    delay: Option<Span>,
    /// It ends unstarted if it could not start within so long.
    #[arg(long, value_name = "DURATION")]
    expires_after: Option<Span>,
    /// A second call with this key is this one.
    #[arg(long, value_name = "KEY")]
    dedupe_id: Option<String>,
    /// It takes the place of the call of this key that waits in its lane.
    #[arg(long, value_name = "KEY")]
    supersedes: Option<String>,
    /// Where it is delivered to, if its queue has its calls delivered; where the queue says if left out.
    #[arg(long, value_name = "URL")]
    destination: Option<String>,
}

fn toll(text: &str) -> Result<Value, String> {
    let (meter, weight) = match text.rsplit_once('=') {
        Some((meter, weight)) => {
            let weight: u64 = weight.parse().map_err(|_| {
                format!("{weight:?} is no weight: write a whole number, as in stripe/acme=2")
            })?;
            (meter, weight)
        }
        None => (text, 1),
    };
    Ok(match meter.split_once('/') {
        Some((limit, partition)) => {
            json!({"limit": limit, "partition": partition, "weight": weight})
        }
        None => json!({"limit": meter, "weight": weight}),
    })
}

impl NewCallArguments {
    /// The call as the server takes it.
    pub(super) fn wire(&self) -> anyhow::Result<Value> {
        let mut call = json!({"lane": self.lane});
        if let Some(body) = &self.body {
            // What is no JSON is a text.
            call["body"] = serde_json::from_str(body).unwrap_or_else(|_| body.as_str().into());
        }
        if !self.tolls.is_empty() {
            call["tolls"] = self.tolls.clone().into();
        }
        for (field, value) in [
            ("priority", self.priority.map(Value::from)),
            ("delay", self.delay.map(|span| span.to_string().into())),
            ("expires_after", self.expires_after.map(|span| span.to_string().into())),
            ("dedupe_id", self.dedupe_id.clone().map(Value::from)),
            ("supersedes", self.supersedes.clone().map(Value::from)),
            ("destination", self.destination.clone().map(Value::from)),
        ] {
            if let Some(value) = value {
                call[field] = value;
            }
        }
        Ok(call)
    }
}

pub(super) async fn run(
    arguments: &EnqueueArguments,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let EnqueueArguments { queue, call, file, to, .. } = arguments;
    // Requests have keys: what was accepted before its answer was lost is not accepted twice.
    let client = to.persistent_client(environment)?;
    match (call, file) {
        (_, Some(file)) => file::all_of(file, client, arguments).await,
        (Some(call), None) => {
            let ids = client.enqueue_written(queue, &[call.wire()?.to_string()]).await;
            let answer = ids.map(|ids| json!({"ids": ids}));
            to.say(answer, |answer| {
                let id = answer["ids"][0].as_str().unwrap_or_default();
                vec![format!("call {id} waits in queue {queue}")]
            })
        }
        (None, None) => anyhow::bail!("give a call its lane with --lane, or name a --file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toll_is_a_limit_a_partition_and_a_weight() {
        assert_eq!(toll("stripe"), Ok(json!({"limit": "stripe", "weight": 1})));
        let acme = json!({"limit": "tpm", "partition": "acme/eu", "weight": 1200});
        assert_eq!(toll("tpm/acme/eu=1200"), Ok(acme));
        assert!(toll("stripe=much").unwrap_err().contains("whole number"));
    }
}
