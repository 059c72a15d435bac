//! `tollgate enqueue`: one call from flags, or all calls of a file.

use super::To;
use crate::cli::{Environment, Exit, output, shown};
use anyhow::Context;
use clap::Args;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::{Path, PathBuf};
use tollgate::{Span, Timestamp};
use tollgate_client::{Client, ClientError, Problem};

/// How many lines go in one request: accepted together, or not at all.
const LINES_MAX: usize = 1_000;
/// How many bytes: half of what a server takes.
const BYTES_MAX: usize = 512 << 10;
/// How wide the bar is.
const BAR: u64 = 30;

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
    let EnqueueArguments { queue, call, file, skip, to } = arguments;
    let client = to.client(environment)?;
    match (call, file) {
        (_, Some(file)) => all_of(file, *skip, Sending::new(client, queue), to).await,
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

/// Calls on their way, a batch at a time.
struct Sending<'a> {
    client: Client,
    queue: &'a str,
    lines: Vec<String>,
    bytes: usize,
    /// The number of the first line of the batch, from 1.
    first: u64,
    accepted: u64,
    begun: Timestamp,
}

/// Why a file was not taken to its end.
enum Stopped {
    /// A line is wrong, or the server said no.
    Refused {
        line: Option<u64>,
        problem: Box<Problem>,
    },
    Failed(anyhow::Error),
}

impl<'a> Sending<'a> {
    fn new(client: Client, queue: &'a str) -> Self {
        let (lines, begun) = (Vec::new(), shown::now());
        Self { client, queue, lines, bytes: 0, first: 1, accepted: 0, begun }
    }

    /// Sends what is there.
    async fn send(&mut self) -> Result<(), Stopped> {
        let count = u64::try_from(self.lines.len()).unwrap_or(u64::MAX);
        match self.client.enqueue_written(self.queue, &self.lines).await {
            Ok(_) => {
                (self.accepted, self.first) = (self.accepted + count, self.first + count);
                (self.lines, self.bytes) = (Vec::new(), 0);
                Ok(())
            }
            Err(ClientError::Problem(problem)) => {
                let nth = problem.field.as_deref().and_then(place);
                Err(Stopped::Refused { line: nth.map(|nth| self.first + nth), problem })
            }
            Err(error) => Err(Stopped::Failed(error.into())),
        }
    }

    fn rate(&self) -> u64 {
        let ms = (shown::now().since(self.begun).as_nanos() / 1_000_000).max(1);
        self.accepted.saturating_mul(1_000) / ms
    }

    fn progress(&self, read: u64, size: Option<u64>) {
        let (accepted, rate) = (self.accepted, self.rate());
        let bar = size.filter(|size| *size > 0).map(|size| {
            let done = (read * BAR / size).min(BAR);
            let bar: String = (0..BAR).map(|at| if at < done { '#' } else { '.' }).collect();
            format!("[{bar}] {} % ", (read * 100 / size).min(100))
        });
        output::redraw(&format!("{}{accepted} calls, {rate} a second", bar.unwrap_or_default()));
    }
}

/// The number of the call that a problem of a batch is about.
fn place(field: &str) -> Option<u64> {
    field.strip_prefix('[')?.split(']').next()?.parse().ok()
}

async fn all_of(file: &Path, skip: u64, mut sending: Sending<'_>, to: &To) -> anyhow::Result<Exit> {
    let (input, size): (Box<dyn BufRead>, _) = if file == Path::new("-") {
        (Box::new(BufReader::new(stdin())), None)
    } else {
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let size = opened.metadata().ok().map(|metadata| metadata.len());
        (Box::new(BufReader::new(opened)), size)
    };
    sending.first += skip;
    let stopped = send_all(input, skip, size, &mut sending).await.err();
    output::redraw_done();
    let (accepted, rate) = (sending.accepted, sending.rate());
    let (exit, mut value, mut lines) = match stopped {
        None => (Exit::Done, json!({}), Vec::new()),
        Some(Stopped::Failed(error)) => {
            let go_on =
                format!("{accepted} calls were accepted: go on with --skip {}", skip + accepted);
            return Err(error.context(go_on));
        }
        Some(Stopped::Refused { line, problem }) => {
            let at = line.map_or_else(String::new, |line| format!("line {line}: "));
            let value = json!({"problem": problem, "line": line});
            let go_on = format!("go on with --skip {}", skip + accepted);
            (Exit::Refused, value, vec![format!("{at}{problem}"), go_on])
        }
    };
    value["accepted"] = accepted.into();
    lines.insert(0, format!("{accepted} calls were accepted, {rate} a second"));
    output::outcome(to.json.then_some(&value), &lines);
    Ok(exit)
}

async fn send_all(
    input: Box<dyn BufRead>,
    skip: u64,
    size: Option<u64>,
    sending: &mut Sending<'_>,
) -> Result<(), Stopped> {
    let mut read = 0;
    for (number, line) in (1_u64..).zip(input.lines()) {
        let line = line.map_err(|error| Stopped::Failed(error.into()))?;
        read += u64::try_from(line.len() + 1).unwrap_or(0);
        if number <= skip {
            continue;
        }
        let is_full = sending.bytes + line.len() > BYTES_MAX || sending.lines.len() >= LINES_MAX;
        if is_full && !sending.lines.is_empty() {
            sending.send().await?;
            sending.progress(read, size);
        }
        if let Err(error) = serde_json::from_str::<Value>(&line) {
            // What comes before it is accepted.
            sending.send().await?;
            return Err(Stopped::Failed(anyhow::anyhow!("line {number} is not JSON: {error}")));
        }
        sending.bytes += line.len();
        sending.lines.push(line);
    }
    if !sending.lines.is_empty() {
        sending.send().await?;
    }
    sending.progress(read, size);
    Ok(())
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

    #[test]
    fn the_place_of_a_problem_is_found() {
        assert_eq!(place("[12].lane"), Some(12));
        assert_eq!(place("lane"), None);
    }
}
