//! A file seen through a buffer: read once, in order, in large pieces.

use super::error::LogError;
use crate::embedded::disk::{Disk, DiskFile};
use std::sync::Arc;

/// How much is read at once: enough that the system calls do not count, and still in the cache when
/// it is looked at.
const PIECE_BYTES: usize = 256 << 10;

/// The buffer grows beyond a piece only for a frame that is larger.
#[derive(Debug)]
pub(super) struct Window {
    name: String,
    file: Arc<dyn DiskFile>,
    length: u64,
    /// What is read of the file from `start` on, then room.
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
}

impl Window {
    pub(super) fn open(disk: &dyn Disk, name: String) -> Result<Self, LogError> {
        let opened = disk.open(&name).and_then(|file| Ok((file.length()?, file)));
        let (length, file) =
            opened.map_err(|error| LogError::failed(format_args!("opening {name}"), error))?;
        Ok(Self { name, file, length, buffer: Vec::new(), start: 0, filled: 0 })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Up to `bytes` bytes from `offset` on, fewer where the file ends before. An offset below the
    /// last one is read again from the file.
    #[inline]
    pub(super) fn at(&mut self, offset: u64, bytes: usize) -> Result<&[u8], LogError> {
        let bytes = bytes.min(to_usize(self.length.saturating_sub(offset)));
        let skipped = to_usize(offset.saturating_sub(self.start));
        if offset < self.start || skipped + bytes > self.filled {
            self.load(offset, bytes)?;
            return Ok(&self.buffer[..bytes]);
        }
        Ok(&self.buffer[skipped..skipped + bytes])
    }

    /// Moves the window to `offset`, with at least `bytes` bytes in it.
    #[cold]
    fn load(&mut self, offset: u64, bytes: usize) -> Result<(), LogError> {
        let skipped = to_usize(offset.saturating_sub(self.start));
        let kept = if offset < self.start { 0 } else { self.filled.saturating_sub(skipped) };
        if kept > 0 {
            self.buffer.copy_within(skipped..skipped + kept, 0);
        }
        let wanted = bytes.max(PIECE_BYTES).min(to_usize(self.length - offset));
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        // Nothing is left in the window, should the read fail.
        self.filled = 0;
        self.start = offset;
        let read = self.file.read(offset + kept as u64, &mut self.buffer[kept..wanted]);
        read.map_err(|error| {
            LogError::failed(format_args!("reading {} at {offset}", self.name), error)
        })?;
        self.filled = wanted;
        Ok(())
    }
}

/// Beyond what memory could hold there is no difference: reading it fails.
fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
