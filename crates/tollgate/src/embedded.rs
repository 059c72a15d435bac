//! The embedded store: calls, limits and meters in one folder, held by one process.
//!
//! It is the home of a [`Store`](crate::store::Store); [`check`] looks at a folder that
//! nobody uses and changes nothing; [`backup`] copies one that may be in use, and [`restore`] makes a
//! folder of the copy; [`export`] writes all that lasts as lines of JSON, and [`import`] reads them.

pub use tollgate_stores::embedded::disk::{Disk, DiskFile, FolderError, RealDisk};
pub use tollgate_stores::embedded::log::{
    LogError, Report, SegmentNumber, Settings as LogSettings, TornTail,
};
pub use tollgate_stores::embedded::{
    CheckError, Checked, CheckedCheckpoint, CheckedHistory, Contents, Copied, CopyError,
    DamagedHistory, ExportError, Exported, HistorySettings, ImportError, Imported, OpenError,
    Opened, StoreSettings, backup, check, contents, export, import, restore,
};
