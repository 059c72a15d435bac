//! Reading single records back, from any thread.

use super::error::LogError;
use super::position::Position;
use super::segment::SegmentNumber;
use crate::embedded::disk::{Disk, DiskFile};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// How many files are kept open: enough for all that is read at a time, and few beside the 1,024
/// that a process may commonly open.
const OPEN_FILES_MAX: usize = 64;

/// Reads committed records. Clones share their open files. The folder is in use while one lives.
#[derive(Debug, Clone)]
pub struct Reader {
    files: Arc<OpenFiles>,
}

impl Reader {
    pub(super) fn new(files: Arc<OpenFiles>) -> Self {
        Self { files }
    }

    /// Reads the journal on a disk that nobody writes.
    pub(in crate::embedded) fn on(disk: Arc<dyn Disk>) -> Self {
        Self::new(Arc::new(OpenFiles::new(disk)))
    }

    /// The `bytes` bytes at `position`, of any segment that was not dropped.
    ///
    /// They are not checked again: their checksum was, when the log was opened, or was made here.
    pub fn read(&self, position: Position, bytes: usize) -> Result<Vec<u8>, LogError> {
        let record = self.read_up_to(position, bytes)?;
        if record.len() < bytes {
            return Err(LogError::Absent { position, bytes });
        }
        Ok(record)
    }

    /// As [`Reader::read`], or fewer bytes if the segment ends before: for who does not know how long
    /// a record is.
    pub fn read_up_to(&self, position: Position, bytes: usize) -> Result<Vec<u8>, LogError> {
        let file = self.files.find(position.segment());
        let record = file.and_then(|file| {
            let offset = u64::from(position.offset());
            // Asked first, so that a length that is nonsense takes no memory.
            let rest = file.length()?.saturating_sub(offset);
            let bytes = bytes.min(usize::try_from(rest).unwrap_or(usize::MAX));
            let mut record = vec![0; bytes];
            file.read(offset, &mut record)?;
            Ok(record)
        });
        record.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => {
                LogError::Absent { position, bytes }
            }
            _ => {
                LogError::failed(format_args!("reading {}", position.segment().file_name()), error)
            }
        })
    }
}

/// The files that were read last, opened when they are first needed.
#[derive(Debug)]
pub(super) struct OpenFiles {
    disk: Arc<dyn Disk>,
    /// The one read last at the end. Few enough to look through, beside the read that follows.
    recent: Mutex<Vec<(SegmentNumber, Arc<dyn DiskFile>)>>,
}

impl OpenFiles {
    pub(super) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, recent: Mutex::default() }
    }

    /// Closes the file of a segment that is dropped, so that its space is freed.
    pub(super) fn forget(&self, segment: SegmentNumber) {
        self.with_recent(|recent| recent.retain(|(number, _)| *number != segment));
    }

    fn find(&self, segment: SegmentNumber) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.with_recent(|recent| find_recent(recent, segment)) {
            return Ok(file);
        }
        let file = self.disk.open(&segment.file_name())?;
        self.with_recent(|recent| {
            if recent.len() >= OPEN_FILES_MAX {
                recent.remove(0);
            }
            recent.push((segment, file.clone()));
        });
        Ok(file)
    }

    fn with_recent<T>(
        &self,
        act: impl FnOnce(&mut Vec<(SegmentNumber, Arc<dyn DiskFile>)>) -> T,
    ) -> T {
        // What is in there is right at every moment, so a panic elsewhere spoils nothing.
        act(&mut self.recent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn find_recent(
    recent: &mut [(SegmentNumber, Arc<dyn DiskFile>)],
    segment: SegmentNumber,
) -> Option<Arc<dyn DiskFile>> {
    let place = recent.iter().rposition(|(number, _)| *number == segment)?;
    recent[place..].rotate_left(1);
    recent.last().map(|(_, file)| file.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::disk::simulated::Host;

    #[test]
    fn the_files_read_last_are_kept_open_and_no_more() {
        let disk = Host::new(1).open().unwrap();
        let files = OpenFiles::new(disk.clone());
        let often = SegmentNumber::new(1);
        for number in (1..=200).map(SegmentNumber::new) {
            disk.create(&number.file_name()).unwrap();
            files.find(number).unwrap();
            files.find(often).unwrap();
        }
        let open = files.with_recent(|recent| recent.iter().map(|(it, _)| *it).collect::<Vec<_>>());
        assert_eq!(open.len(), OPEN_FILES_MAX);
        assert_eq!(open.iter().filter(|it| **it == often).count(), 1);
    }
}
