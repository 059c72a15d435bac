//! Want of room: of space on the disk, or of files that may be open.

use std::io;
use std::io::ErrorKind::{QuotaExceeded, StorageFull};
use std::time::{Duration, Instant};
use tollgate_core::contract::StoreError;

/// How long it is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// Nothing could be written for want of room.
pub(super) struct NoRoom {
    /// How long that is left alone.
    pub(super) until: Instant,
    /// What is said to who comes meanwhile.
    pub(super) error: StoreError,
}

impl NoRoom {
    /// What the system said at an instant.
    pub(super) fn at(now: Instant, source: &io::Error) -> Self {
        let reason = match source.kind() {
            StorageFull | QuotaExceeded => {
                "the disk has no space: free some, it is tried again".to_owned()
            }
            _ => format!("{source}: close some or raise how many there may be, it is tried again"),
        };
        Self { until: now + RETRY, error: StoreError::Full { reason } }
    }
}
