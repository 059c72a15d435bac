//! The embedded store: everything in one folder, held by one process.
//!
//! [`Embedded`] keeps the contracts of meters and lanes. Its effects are records: collected in a
//! [`log::Batch`], committed by one write and one sync, on the thread of a [`committer::Committer`]
//! while the next batch is being filled.

pub mod codec;
pub mod committer;
pub mod disk;
mod history;
pub mod log;
mod store;
mod varint;
#[cfg(test)]
mod waiting;

pub use history::{CheckedHistory, DamagedHistory, HistorySettings};
pub use store::{
    CheckError, Checked, CheckedCheckpoint, Contents, Copied, CopyError, Embedded, ExportError,
    Exported, ImportError, Imported, OpenError, Opened, StoreSettings, TimeSource, backup, check,
    contents, export, import, restore,
};
