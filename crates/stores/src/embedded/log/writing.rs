//! The segment that is being written.

use super::error::LogError;
use super::segment::{self, HEADER_BYTES, Header, SegmentNumber};
use crate::embedded::disk::{Disk, DiskFile};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Writing {
    header: Header,
    file: Arc<dyn DiskFile>,
    // Invariant: the file ends here and is synced, except while a frame is being written.
    end: u64,
    /// Whether something was written behind the end and cut off. A crash may bring it back to light
    /// among what is written there later, so nothing is.
    is_spoiled: bool,
}

impl Writing {
    /// A new segment, made to last.
    pub(super) fn create(
        disk: &dyn Disk,
        number: SegmentNumber,
        first_sequence: u64,
    ) -> Result<Self, LogError> {
        let header = Header::new(number, first_sequence);
        let file = segment::create(disk, header)?;
        Ok(Self { header, file, end: HEADER_BYTES as u64, is_spoiled: false })
    }

    /// A segment that is there, of which all from `end` on is to go.
    pub(super) fn open(disk: &dyn Disk, header: Header, end: u64) -> Result<Self, LogError> {
        let name = header.number.file_name();
        let file = disk.open(&name);
        let file = file.map_err(|error| LogError::failed(format_args!("opening {name}"), error))?;
        Ok(Self { header, file, end, is_spoiled: false })
    }

    pub(super) fn number(&self) -> SegmentNumber {
        self.header.number
    }

    pub(super) fn salt(&self) -> u32 {
        self.header.salt
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Whether it has no frame yet.
    pub(super) fn is_empty(&self) -> bool {
        self.end == HEADER_BYTES as u64
    }

    /// Whether no frame may be written to it any more.
    pub(super) fn is_spoiled(&self) -> bool {
        self.is_spoiled
    }

    /// The segment to write after this one: the next, or a new one in its place if it is empty.
    pub(super) fn followed(&self, disk: &dyn Disk, first_sequence: u64) -> Result<Self, LogError> {
        let number = self.number();
        let number = if self.is_empty() { number } else { number.next()? };
        Self::create(disk, number, first_sequence)
    }

    /// Writes a frame, to last. After [`LogError::Full`] the segment is as it was.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), LogError> {
        if let Err(error) = self.file.append(frame) {
            let error = LogError::full_or_failed(format_args!("writing {}", self.name()), error);
            if matches!(error, LogError::Full { .. }) {
                self.is_spoiled = true;
                self.cut()?;
            }
            return Err(error);
        }
        if let Err(error) = self.sync() {
            // So that a new start does not read from memory what may never be on the disk.
            let _ = self.file.truncate(self.end);
            return Err(error);
        }
        self.end += frame.len() as u64;
        Ok(())
    }

    /// Cuts off what is behind the last frame, to last: the next frame begins another segment, and
    /// what is left here would then be corruption.
    pub(super) fn cut(&self) -> Result<(), LogError> {
        let cut = self.file.truncate(self.end);
        cut.map_err(|error| LogError::failed(format_args!("truncating {}", self.name()), error))?;
        self.sync()
    }

    fn sync(&self) -> Result<(), LogError> {
        self.file.sync().map_err(|error| LogError::unsynced(self.name(), error))
    }

    fn name(&self) -> String {
        self.header.number.file_name()
    }
}
