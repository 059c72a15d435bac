//! The embedded store: everything in one folder, held by one process.
//!
//! It is the home of a [`Store`](crate::store::Store), whose effects are records: collected in a
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
#[cfg(feature = "postgres")]
pub(crate) use store::each_fact;
pub use store::{
    CheckError, Checked, CheckedCheckpoint, Contents, Copied, CopyError, ExportError, Exported,
    ImportError, Imported, OpenError, Opened, StoreSettings, backup, check, contents, export,
    import, restore,
};
