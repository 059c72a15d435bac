//! The one place where commands print.

use super::Exit;
use super::shown::plain;
use crate::config::Place;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write, stderr, stdout};

/// Says where the server listens, and what it promises.
pub(super) fn listening(url: &str, place: &Place) {
    line(&format!("tollgate listens on {url}"));
    match place {
        Place::Folder(data) => line(&format!("what it is told is kept in {}", data.display())),
        Place::Memory => line("limits are kept in memory: they start anew when the server does"),
        Place::Shared(store, _) if store.keeps_calls() => {
            line(&plain(&format!("what it is told is kept in {store}, for all who share it")));
        }
        Place::Shared(store, _) => {
            line(&plain(&format!("limits are kept in {store}, for all who share that store")));
            line("it serves limits only: no queues, calls, schedules, push or QStash");
        }
    }
}

/// Says a text of many lines as it is.
pub(super) fn text(text: &str) {
    line(text.trim_end());
}

/// Says what came of a command: a value for programs, lines for people.
pub(super) fn outcome(json: Option<&serde_json::Value>, text: &[String]) {
    match json {
        Some(value) => line(&value.to_string()),
        None => text.iter().for_each(|text| line(&plain(text))),
    }
}

/// Says how a command that takes long is getting on.
pub(super) fn progress(text: impl Display) {
    let _ = writeln!(stderr(), "{text}");
}

/// Draws a line over the last one, if a person is there to see it.
pub(super) fn redraw(text: &str) {
    if stderr().is_terminal() {
        let mut out = stderr().lock();
        let _ = write!(out, "\r\x1b[2K{text}").and_then(|()| out.flush());
    }
}

/// Leaves no line that was drawn.
pub(super) fn redraw_done() {
    redraw("");
}

/// Whether a person reads the output.
pub(super) fn is_terminal() -> bool {
    stdout().is_terminal()
}

/// Draws the screen anew.
pub(super) fn screen(lines: &[String]) {
    let mut out = stdout().lock();
    let drawn =
        lines.iter().fold("\x1b[H\x1b[2J".to_owned(), |all, line| all + &plain(line) + "\n");
    let _ = out.write_all(drawn.as_bytes()).and_then(|()| out.flush());
}

/// Says that a server said no, and why.
pub(super) fn refusal(detail: &str) {
    let _ = writeln!(stderr(), "tollgate: {}", plain(detail));
}

/// Says a line to a program that must not miss it.
pub(super) fn told(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(format!("{text}\n").as_bytes())?;
    out.flush()
}

/// Where a command writes what it was asked for, if that is more than a few lines.
pub(super) fn lines() -> impl Write {
    BufWriter::new(stdout().lock())
}

/// Says why a command could not run.
pub(super) fn failure(error: &anyhow::Error) {
    // Nobody may be listening any more, and there is no one else to tell.
    let _ = writeln!(stderr(), "tollgate: {error:#}");
}

/// Shows help, or what is wrong with the arguments.
pub(super) fn usage(message: &clap::Error) -> Exit {
    let _ = message.print();
    if message.use_stderr() { Exit::Failed } else { Exit::Done }
}

fn line(text: &str) {
    // As above: a server goes on when the one who started it has stopped reading.
    let mut out = stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
