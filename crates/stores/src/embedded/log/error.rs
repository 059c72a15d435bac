//! What can go wrong with the log, by what can be done about it.

use super::position::Position;
use super::segment::VERSION;
use rustix::io::Errno;
use std::fmt::Display;
use std::io;
use std::sync::Arc;

/// Why the log did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The disk has no space, or the system no file to open. The log is as it was: make room and commit again.
    #[error("there is no room, and the journal is as it was: make some and try again ({source})")]
    Full {
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// No segment can hold the batch: split it.
    #[error(
        "a batch of {bytes} bytes is over the largest that the journal takes, {bytes_max}: split it"
    )]
    TooLarge {
        /// How many bytes it has.
        bytes: usize,
        /// The most it may have.
        bytes_max: usize,
    },
    /// There is no such record, or no longer.
    #[error("the journal has no {bytes} bytes at offset {} of {}", position.offset(), position.segment().file_name())]
    Absent {
        /// Where it was looked for.
        position: Position,
        /// How much was asked for.
        bytes: usize,
    },
    /// A later release wrote this: use that one.
    #[error(
        "{file} has format {version}, and this release knows up to {VERSION}: open it with the release that wrote it, or a later one"
    )]
    Newer {
        /// The file.
        file: String,
        /// The format it has.
        version: u32,
    },
    /// What was written is not what is read. Nothing was changed.
    #[error("{file} is damaged at offset {offset}: {found}; restore the folder from a copy")]
    Corrupt {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        found: String,
    },
    /// A sync failed: nobody knows what lasts, and a second one that succeeds would prove nothing.
    #[error(
        "the journal failed syncing {what}: {source}; nobody knows what lasts: look after the disk and start again"
    )]
    Unsynced {
        /// What was to last.
        what: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// The disk failed. No more is written; a new start reads again what is there.
    #[error("the journal failed {doing}: {source}; look after the disk and start again")]
    Failed {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: Arc<io::Error>,
    },
}

impl LogError {
    pub(in crate::embedded) fn failed(doing: impl Display, source: io::Error) -> Self {
        Self::Failed { doing: doing.to_string(), source: Arc::new(source) }
    }

    pub(in crate::embedded) fn unsynced(what: impl Display, source: io::Error) -> Self {
        Self::Unsynced { what: what.to_string(), source: Arc::new(source) }
    }

    /// For an act that can fail for want of space and leaves behind nothing that cannot be undone.
    pub(in crate::embedded) fn full_or_failed(doing: impl Display, source: io::Error) -> Self {
        let has_room = !is_full(source.kind()) && !has_no_file(&source);
        if has_room { Self::failed(doing, source) } else { Self::Full { source: Arc::new(source) } }
    }

    /// Whether what was read is not what was written, or cannot be read at all, and will not be the next time.
    pub(in crate::embedded) fn is_damage(&self) -> bool {
        match self {
            Self::Corrupt { .. } => true,
            Self::Failed { source, .. } => Errno::from_io_error(source) == Some(Errno::IO),
            _ => false,
        }
    }

    pub(in crate::embedded) fn corrupt(file: String, offset: u64, found: impl Display) -> Self {
        Self::Corrupt { file, offset, found: found.to_string() }
    }
}

fn is_full(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether as many files are open as may be: by this process or by all, and likely not for long.
fn has_no_file(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
