//! Checking history offline, and nothing is changed.

use super::index;
use super::segment::{self, BROKEN};
use crate::embedded::disk::Disk;
use crate::embedded::log::SegmentNumber;
use std::io;
use std::sync::Arc;

/// What history there is in a folder. Whatever is wrong with it, no call is lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedHistory {
    /// How many segments.
    pub segments: u64,
    /// How many events.
    pub events: u64,
    /// How many bytes.
    pub bytes: u64,
    /// What is broken.
    pub damaged: Vec<DamagedHistory>,
}

/// A file of history that is broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedHistory {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub found: String,
}

/// Reads all segments and changes nothing.
pub(in crate::embedded) fn check(disk: &Arc<dyn Disk>) -> io::Result<CheckedHistory> {
    let (all, whole) = segment::numbers(&**disk)?;
    let mut checked = CheckedHistory::default();
    for number in all {
        let set_aside = format!("{}{BROKEN}", segment::log_name());
        if segment::part(disk, number).names()?.contains(&set_aside) {
            let file = format!("{}{BROKEN}", segment::file_name(number));
            let found = "it was broken and set aside: remove it once nobody needs it".to_owned();
            checked.damaged.push(DamagedHistory { file, found });
        }
        if whole.contains(&number) {
            checked.add(disk, number);
        }
    }
    Ok(checked)
}

impl CheckedHistory {
    fn add(&mut self, disk: &Arc<dyn Disk>, number: SegmentNumber) {
        let file = segment::file_name(number);
        let mut events = 0;
        let summary = match segment::read(disk, number, |_, _| events += 1) {
            Ok(summary) => summary,
            Err(error) => {
                let found = error.to_string();
                return self.damaged.push(DamagedHistory { file, found });
            }
        };
        self.segments += 1;
        self.events += events;
        self.bytes += summary.bytes;
        let part = segment::part(disk, number);
        let Some(indexed) = index::summary(&part) else { return };
        let is_whole = part.open(index::NAME).and_then(|file| index::is_whole(&*file, &indexed));
        if indexed != summary || !is_whole.unwrap_or(false) {
            let found = "it is not what its index says: it ends too early, or the index is broken";
            self.damaged.push(DamagedHistory { file, found: found.to_owned() });
        }
    }
}
