//! The child: this program again, listened to line by line until it is killed.

use super::lines::{Line, Plan};
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::process::{self, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Lines that were read and not heeded yet; the child waits when there are more.
const LINES_MAX: usize = 4_096;

pub(super) struct Child {
    process: process::Child,
    lines: Receiver<anyhow::Result<Line>>,
    reader: JoinHandle<()>,
    has_ended: bool,
}

impl Child {
    pub(super) fn start(plan: &Plan) -> anyhow::Result<Self> {
        let mut process = process::Command::new(std::env::current_exe()?)
            .arg("torture-load")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the child cannot be started")?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let stdout = stdout.context("the child has no output")?;
        serde_json::to_writer(stdin.context("the child has no input")?, plan)?;
        let (sender, lines) = sync_channel(LINES_MAX);
        let reader = thread::Builder::new().name("torture-reader".to_owned());
        let reader = reader.spawn(move || read(stdout, &sender))?;
        Ok(Self { process, lines, reader, has_ended: false })
    }

    /// The next line, if there is one in that time.
    pub(super) fn next(&mut self, at_most: Duration) -> Option<Line> {
        match self.lines.recv_timeout(at_most) {
            Ok(Ok(line)) => Some(line),
            Ok(Err(error)) => Some(Line::Failed(format!("{error:#}"))),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                self.has_ended = true;
                None
            }
        }
    }

    /// Whether it said its last without having been killed.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Kills it, and returns what it said before.
    pub(super) fn kill(mut self) -> anyhow::Result<Vec<Line>> {
        self.process.kill()?;
        let rest = self.lines.into_iter().collect();
        self.process.wait()?;
        // It ends with the child's output; if it panicked, that was told.
        let _ = self.reader.join();
        rest
    }
}

fn read(stdout: ChildStdout, lines: &SyncSender<anyhow::Result<Line>>) {
    let mut stdout = BufReader::with_capacity(1 << 20, stdout);
    let mut text = String::new();
    while stdout.read_line(&mut text).is_ok_and(|bytes| bytes > 0) {
        // Killed within a line: it was not said.
        if !text.ends_with('\n') {
            return;
        }
        let line = serde_json::from_str(&text).with_context(|| format!("the line {text:?}"));
        if lines.send(line).is_err() {
            return;
        }
        text.clear();
    }
}
