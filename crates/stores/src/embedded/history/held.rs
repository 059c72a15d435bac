//! History as a backup takes it, from a folder that may be in use.
//!
//! A segment that has an index never changes. The others are taken as long as they are when they are
//! looked at, before the journal is: so the copy never knows of more than the journal beside it, and what
//! it lacks is made again from there, as after a crash. Segments that vanish are old.

use super::index;
use super::segment;
use crate::embedded::disk::{Disk, DiskFile};
use std::io;
use std::sync::Arc;

/// A file to be copied: its name, and up to where.
type File = (String, Arc<dyn DiskFile>, Option<u64>);

/// Which files of history there are at an instant, and how much of those that grow.
#[derive(Debug, Default)]
pub(in crate::embedded) struct HeldHistory {
    /// Logs, each followed by its index.
    sealed: Vec<String>,
    /// Open, with their lengths.
    growing: Vec<(String, Arc<dyn DiskFile>, u64)>,
}

impl HeldHistory {
    /// Looks at a folder.
    pub(in crate::embedded) fn of(disk: &dyn Disk) -> io::Result<Self> {
        let names = disk.names()?;
        let mut held = Self::default();
        for number in segment::numbers_of(&names).1 {
            let (log, index) = (segment::file_name(number), segment::name_of(number, index::NAME));
            if names.contains(&index) {
                held.sealed.extend([log, index]);
            } else if let Some(file) = found(disk.open(&log))? {
                let length = file.length()?;
                held.growing.push((log, file, length));
            }
        }
        Ok(held)
    }

    /// Each file that is still there, with how many of its bytes are to be taken; `None`: all.
    pub(in crate::embedded) fn files(
        self,
        disk: &dyn Disk,
    ) -> impl Iterator<Item = io::Result<File>> {
        let sealed = self.sealed.into_iter().filter_map(|name| {
            let file = found(disk.open(&name)).transpose()?;
            Some(file.map(|file| (name, file, None)))
        });
        let growing = self.growing.into_iter();
        sealed.chain(growing.map(|(name, file, bytes)| Ok((name, file, Some(bytes)))))
    }
}

fn found(opened: io::Result<Arc<dyn DiskFile>>) -> io::Result<Option<Arc<dyn DiskFile>>> {
    match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}
