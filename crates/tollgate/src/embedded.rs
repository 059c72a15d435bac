//! The embedded store: calls, limits and meters in one folder, held by one process.
//!
//! [`Embedded`] keeps the contracts of [`lanes`](crate::lanes); [`check`] looks at a folder that
//! nobody uses and changes nothing.

pub use tollgate_stores::embedded::disk::{Disk, FolderError, RealDisk};
pub use tollgate_stores::embedded::log::{
    LogError, Report, SegmentNumber, Settings as LogSettings, TornTail,
};
pub use tollgate_stores::embedded::{
    CheckError, Checked, CheckedCheckpoint, Contents, Embedded, OpenError, Opened, StoreSettings,
    TimeSource, check, contents,
};
