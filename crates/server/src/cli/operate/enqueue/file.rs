//! The calls of a file: a batch at a time, each once, and how to go on if that is cut short.

use super::EnqueueArguments;
use crate::cli::signals::Signals;
use crate::cli::{Exit, output, shown};
use anyhow::Context;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{interval, timeout};
use tollgate::{Span, Timestamp};
use tollgate_client::{Client, ClientError, Problem};

/// How many lines go in one request: accepted together, or not at all.
const LINES_MAX: usize = 1_000;
/// How many bytes: half of what a server takes.
const BYTES_MAX: usize = 512 << 10;
/// How long lines that come slowly wait for more.
const QUIET: Duration = Duration::from_millis(200);
/// How long a queue without room is waited for, since it took the last call.
const ROOM_WAIT: Span = Span::from_secs(30);
/// How often it is asked meanwhile.
const ROOM_EVERY: Duration = Duration::from_millis(500);
/// How wide the bar is.
const BAR: u64 = 30;

/// A line with a call, and its number from 1.
struct Line {
    number: u64,
    text: String,
}

/// Lines as they are read.
type Lines = mpsc::Receiver<std::io::Result<String>>;

/// Calls on their way, a batch at a time.
struct Sending<'a> {
    client: Client,
    queue: &'a str,
    /// What the calls of this run are known by.
    key: String,
    lines: Vec<Line>,
    bytes: usize,
    /// Most lines of a batch: fewer while the queue has little room.
    most: usize,
    /// The last line that needs not be sent again.
    passed: u64,
    /// Lines that were sent, while nobody knows what came of them.
    unsure: Option<(u64, u64)>,
    accepted: u64,
    begun: Timestamp,
    /// When calls were accepted last.
    moved: Timestamp,
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
    fn new(client: Client, arguments: &'a EnqueueArguments) -> anyhow::Result<Self> {
        let key = match &arguments.key {
            Some(key) => key.clone(),
            None => new_key()?,
        };
        let begun = shown::now();
        Ok(Self {
            client,
            queue: &arguments.queue,
            key,
            lines: Vec::new(),
            bytes: 0,
            most: LINES_MAX,
            passed: arguments.skip,
            unsure: None,
            accepted: 0,
            begun,
            moved: begun,
        })
    }

    /// Sends what is there. A queue with little room gets fewer at a time, and is waited for.
    async fn send(&mut self) -> Result<(), Stopped> {
        let mut ticks = interval(ROOM_EVERY);
        while !self.lines.is_empty() {
            let count = self.lines.len().min(self.most);
            match self.send_some(count).await {
                Ok(()) => self.most = (self.most * 2).min(LINES_MAX),
                Err(stopped) if !is_full(&stopped) => return Err(stopped),
                Err(_) if count > 1 => self.most = count / 2,
                Err(stopped) if shown::now().since(self.moved) > ROOM_WAIT => return Err(stopped),
                Err(_) => {
                    output::redraw(&format!("queue {} is full: waiting for room", self.queue));
                    ticks.reset();
                    ticks.tick().await;
                }
            }
        }
        self.bytes = 0;
        Ok(())
    }

    async fn send_some(&mut self, count: usize) -> Result<(), Stopped> {
        let batch = &self.lines[..count];
        let (Some(first), Some(last)) = (batch.first(), batch.last()) else { return Ok(()) };
        let (first, last) = (first.number, last.number);
        let key = key_of(&self.key, batch);
        let texts: Vec<&str> = batch.iter().map(|line| &*line.text).collect();
        self.unsure = Some((first, last));
        match self.client.enqueue_keyed(self.queue, &texts, &key).await {
            Ok(ids) => {
                self.accepted += u64::try_from(ids.len()).unwrap_or(0);
                (self.passed, self.unsure, self.moved) = (last, None, shown::now());
                self.lines.drain(..count);
                Ok(())
            }
            Err(ClientError::Problem(problem)) => {
                if problem.status < 500 {
                    self.unsure = None;
                }
                let line = problem.place().and_then(|nth| batch.get(nth)).map(|line| line.number);
                Err(Stopped::Refused { line, problem })
            }
            Err(error) => Err(Stopped::Failed(error.into())),
        }
    }

    /// Takes in a line; what is full goes first.
    async fn take(&mut self, number: u64, text: String) -> Result<(), Stopped> {
        if self.bytes + text.len() > BYTES_MAX || self.lines.len() >= LINES_MAX {
            self.send().await?;
        }
        if let Err(error) = serde_json::from_str::<Value>(&text) {
            // What comes before it is accepted.
            self.send().await?;
            return Err(Stopped::Failed(anyhow::anyhow!("line {number} is not JSON: {error}")));
        }
        self.bytes += text.len();
        self.lines.push(Line { number, text });
        Ok(())
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

    /// What is known of the calls, and how to hand in the others.
    fn go_on(&self) -> String {
        let doubt = match self.unsure {
            Some((first, last)) => format!("; lines {first}–{last} may have been accepted, too"),
            None => String::new(),
        };
        let Self { accepted, passed, key, .. } = self;
        format!("{accepted} calls were accepted{doubt}: go on with --skip {passed} --key {key}")
    }

    fn told(&self) -> Value {
        let unsure = self.unsure.map(|(first, last)| json!({"first": first, "last": last}));
        json!({"accepted": self.accepted, "skip": self.passed, "key": self.key, "unsure": unsure})
    }
}

fn is_full(stopped: &Stopped) -> bool {
    matches!(stopped, Stopped::Refused { problem, .. } if problem.code == "queue_full")
}

/// A key that no other run has.
fn new_key() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).context("the system gives no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key of a batch: the same lines at the same place of the same run are the same calls.
fn key_of(run: &str, batch: &[Line]) -> String {
    let mut hash = Sha256::new();
    hash.update(run);
    for Line { number, text } in batch {
        hash.update(format!("\n{number} {text}"));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hands in all calls of a file.
pub(super) async fn all_of(
    file: &Path,
    client: Client,
    arguments: &EnqueueArguments,
) -> anyhow::Result<Exit> {
    let (input, size): (Box<dyn BufRead + Send>, _) = if file == Path::new("-") {
        (Box::new(BufReader::new(stdin())), None)
    } else {
        let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let size = opened.metadata().ok().map(|metadata| metadata.len());
        (Box::new(BufReader::new(opened)), size)
    };
    let mut sending = Sending::new(client, arguments)?;
    let mut signals = Signals::new()?;
    let stopped = tokio::select! {
        sent = send_all(read(input)?, arguments.skip, size, &mut sending) => sent.err(),
        () = signals.next() => Some(Stopped::Failed(anyhow::anyhow!("it was stopped"))),
    };
    output::redraw_done();
    report(&sending, stopped, arguments.to.json)
}

fn report(sending: &Sending<'_>, stopped: Option<Stopped>, json: bool) -> anyhow::Result<Exit> {
    let mut value = sending.told();
    let (exit, lines) = match stopped {
        None => {
            let (accepted, rate) = (sending.accepted, sending.rate());
            (Exit::Done, vec![format!("{accepted} calls were accepted, {rate} a second")])
        }
        Some(Stopped::Failed(error)) if json => {
            value["error"] = format!("{error:#}").into();
            (Exit::Failed, Vec::new())
        }
        Some(Stopped::Failed(error)) => return Err(error.context(sending.go_on())),
        Some(Stopped::Refused { line, problem }) => {
            let at = line.map_or_else(String::new, |line| format!("line {line}: "));
            let said = format!("{at}{problem}");
            let exit = if problem.status < 500 { Exit::Refused } else { Exit::Failed };
            (value["problem"], value["line"]) = (json!(problem), line.into());
            (exit, vec![said, sending.go_on()])
        }
    };
    output::outcome(json.then_some(&value), &lines);
    Ok(exit)
}

/// Reads lines on a thread of its own: those that came are sent while others are waited for. It ends with
/// its input, or with the process.
fn read(input: Box<dyn BufRead + Send>) -> anyhow::Result<Lines> {
    let (told, lines) = mpsc::channel(LINES_MAX);
    std::thread::Builder::new().spawn(move || {
        for line in input.lines() {
            if told.blocking_send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(lines)
}

async fn send_all(
    mut lines: Lines,
    skip: u64,
    size: Option<u64>,
    sending: &mut Sending<'_>,
) -> Result<(), Stopped> {
    let (mut read, mut number) = (0, 0);
    loop {
        let line = match timeout(QUIET, lines.recv()).await {
            Ok(Some(line)) => line.map_err(|error| Stopped::Failed(error.into()))?,
            Ok(None) => break,
            Err(_) => {
                sending.send().await?;
                sending.progress(read, size);
                // What was sent is sent: now there is all the time for more.
                match lines.recv().await {
                    Some(line) => line.map_err(|error| Stopped::Failed(error.into()))?,
                    None => break,
                }
            }
        };
        number += 1;
        read += u64::try_from(line.len() + 1).unwrap_or(0);
        let text = line.trim_start_matches('\u{feff}').trim();
        if number <= skip || text.is_empty() {
            continue;
        }
        let before = sending.passed;
        sending.take(number, text.to_owned()).await?;
        if sending.passed > before {
            sending.progress(read, size);
        }
    }
    sending.send().await?;
    sending.progress(read, size);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_known_by_its_run_its_place_and_its_lines() {
        let batch = |number, text: &str| [Line { number, text: text.to_owned() }];
        let key = key_of("run", &batch(1, "{}"));
        assert_eq!(key, key_of("run", &batch(1, "{}")));
        assert_ne!(key, key_of("other", &batch(1, "{}")));
        assert_ne!(key, key_of("run", &batch(2, "{}")));
        assert_ne!(key, key_of("run", &batch(1, "{ }")));
    }
}
