//! What was tried, in numbers.

use super::lines::{Answer, Command};
use super::model::Part;
use serde_json::{Value, json};
use std::path::Path;
use tollgate::embedded::{Checked, CheckedCheckpoint};

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) rounds: u64,
    pub(super) kills: u64,
    /// Commands that were answered.
    answered: u64,
    calls: u64,
    starts: u64,
    /// Of bodies and records.
    bytes: u64,
    /// Commands that were begun and not answered, and are there.
    pub(super) whole: u64,
    /// Those that are not, or did nothing.
    pub(super) absent: u64,
    torn: u64,
    checkpoints: u64,
    /// Segments of the journal that went.
    dropped: u32,
    checkpoint: Option<CheckedCheckpoint>,
}

impl Tally {
    /// Counts an answer to a command; the part is as it was before.
    pub(super) fn answered(&mut self, part: &Part, command: &Command, answer: &Answer) {
        self.answered += 1;
        match (command, answer) {
            (Command::Act(change), Answer::Acted { .. }) => {
                let is_new =
                    |key: &Option<u64>| key.is_none_or(|key| !part.dedupes.contains_key(&key));
                let new = change.enqueue.iter().filter(|fresh| is_new(&fresh.dedupe)).count();
                self.calls += u64::try_from(new).unwrap_or(0);
                let bytes: usize = command.blobs().map(|blob| blob.bytes).sum();
                self.bytes += u64::try_from(bytes).unwrap_or(0);
            }
            (_, Answer::Claimed(starts)) => self.starts += u64::try_from(starts.len()).unwrap_or(0),
            _ => {}
        }
    }

    pub(super) fn looked(&mut self, checked: &Checked) {
        self.torn += u64::from(checked.journal.torn.is_some());
        let is_new = checked.checkpoint.is_some() && checked.checkpoint != self.checkpoint;
        self.checkpoints += u64::from(is_new);
        self.checkpoint = checked.checkpoint;
        let oldest = checked.oldest.map_or(1, |oldest| oldest.as_u32());
        self.dropped = self.dropped.max(oldest - 1);
    }

    pub(super) fn progress(&self) -> String {
        let Self { kills, answered, .. } = self;
        format!("{kills} kills, {answered} commands answered, nothing lost so far")
    }

    pub(super) fn text(&self, folder: &Path, seed: u64, difference: Option<&str>) -> Vec<String> {
        let Self { rounds, kills, answered, calls, starts, bytes, whole, absent, .. } = self;
        let Self { torn, checkpoints, dropped, .. } = self;
        let mut lines = vec![
            format!("{rounds} rounds, {kills} kills, seed {seed}"),
            format!("{answered} commands answered: {calls} calls, {starts} starts, {bytes} bytes"),
            format!(
                "{} commands begun and not answered: {whole} there whole, {absent} not at all",
                whole + absent
            ),
            format!(
                "{torn} restarts with a torn tail, {checkpoints} checkpoints seen, {dropped} segments dropped"
            ),
        ];
        match difference {
            None => lines.push("lost: nothing".to_owned()),
            Some(difference) => {
                lines.push(format!("lost: {difference}"));
                lines.push(format!("the folder is kept: {}", folder.display()));
            }
        }
        lines
    }

    pub(super) fn value(&self, folder: &Path, seed: u64, difference: Option<&str>) -> Value {
        json!({
            "seed": seed,
            "rounds": self.rounds,
            "kills": self.kills,
            "answered": self.answered,
            "calls": self.calls,
            "starts": self.starts,
            "bytes": self.bytes,
            "unanswered": { "whole": self.whole, "absent": self.absent },
            "torn_tails": self.torn,
            "checkpoints": self.checkpoints,
            "segments_dropped": self.dropped,
            "is_sound": difference.is_none(),
            "difference": difference,
            "folder": difference.map(|_| folder.display().to_string()),
        })
    }
}
