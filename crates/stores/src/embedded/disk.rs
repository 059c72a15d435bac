//! The disk as the embedded store sees it: one folder of files that grow at their end.
//!
//! Who has a [`Disk`] has the folder alone: opening one takes a lock that the system lets go when
//! the process dies. Used as trait objects, so that nothing above has a type parameter; a call
//! through a table is nothing beside the system call behind it.

pub(in crate::embedded) mod fresh;
pub(in crate::embedded) mod onlooker;
pub(in crate::embedded) mod part;
mod real;
#[cfg(any(test, feature = "simulation"))]
pub mod simulated;
pub(in crate::embedded) mod telling;

pub use real::RealDisk;

use std::fmt::Debug;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// One folder, held by this process alone.
pub trait Disk: Debug + Send + Sync + 'static {
    /// The names of all files in the folder, in no order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file; fails if the name is taken. Lasts once the folder is synced.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading and appending; fails if there is none.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file. Whoever has it open can go on reading. Lasts once the folder is synced.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, at once or not at all. Lasts once the folder is synced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes last which files there are and what they are called; not what is in them.
    fn sync(&self) -> io::Result<()>;
}

/// A file of a [`Disk`]. One thread at a time changes it, any number read it meanwhile.
pub trait DiskFile: Debug + Send + Sync + 'static {
    /// How many bytes it has.
    fn length(&self) -> io::Result<u64>;

    /// Writes behind the last byte. After an error any part of it, from the front, may be there.
    fn append(&self, bytes: &[u8]) -> io::Result<()>;

    /// Fills `bytes` from `offset` on, or fails if the file ends before.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Cuts off everything from `length` on.
    fn truncate(&self, length: u64) -> io::Result<()>;

    /// Makes last all that was written and cut off. After an error nobody knows what lasts, and a
    /// second sync that succeeds proves nothing.
    fn sync(&self) -> io::Result<()>;
}

/// Why a folder could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FolderError {
    /// Another process has it.
    #[error(
        "the folder {} is in use by {}: stop that one first, or give this one a folder of its own",
        folder.display(), describe(*process)
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
        /// The id of the process that has it, if it is known.
        process: Option<u32>,
    },
    /// There is none.
    #[error("there is no folder {}", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
    },
    /// It never was a store's.
    #[error("the folder {} holds no store", folder.display())]
    NoStore {
        /// The folder.
        folder: PathBuf,
    },
    /// There is something in it already.
    #[error("{} is not empty: give a folder that is, or one that does not exist", folder.display())]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
    /// The system does not let us.
    #[error("the folder {} cannot be opened: {source}", folder.display())]
    Failed {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

fn describe(process: Option<u32>) -> String {
    process.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"))
}
