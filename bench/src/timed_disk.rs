//! A disk that knows how long its syncs take, and can let them last longer: what a commit costs hangs on
//! that more than on anything else, and disks differ by a hundred times.

use std::fmt::{self, Debug, Formatter};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tollgate_stores::embedded::disk::{Disk, DiskFile, RealDisk};

/// A folder of this machine, whose files are synced no faster than that.
pub(crate) struct TimedDisk {
    disk: RealDisk,
    syncs: Arc<Syncs>,
}

/// The syncs of files.
struct Syncs {
    at_least: Duration,
    count: AtomicU64,
    micros: AtomicU64,
}

impl TimedDisk {
    pub(crate) fn open(folder: &Path, at_least: Duration) -> anyhow::Result<Self> {
        let (count, micros) = (AtomicU64::new(0), AtomicU64::new(0));
        let syncs = Arc::new(Syncs { at_least, count, micros });
        Ok(Self { disk: RealDisk::open(folder)?, syncs })
    }

    /// How long a sync of a file took, on average.
    pub(crate) fn sync_micros(&self) -> anyhow::Result<u64> {
        let Syncs { count, micros, .. } = &*self.syncs;
        let mean = micros.load(Ordering::Relaxed).checked_div(count.load(Ordering::Relaxed));
        mean.context("nothing was synced")
    }

    fn file(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TimedFile { file, syncs: self.syncs.clone() })
    }
}

impl Debug for TimedDisk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimedDisk").field(&self.disk).finish()
    }
}

impl Disk for TimedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(self.disk.open(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
}

struct TimedFile {
    file: Arc<dyn DiskFile>,
    syncs: Arc<Syncs>,
}

impl Debug for TimedFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TimedFile").field(&self.file).finish()
    }
}

impl DiskFile for TimedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.file.append(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, bytes)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        let begun = Instant::now();
        self.file.sync()?;
        let rest = self.syncs.at_least.saturating_sub(begun.elapsed());
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
        let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.syncs.count.fetch_add(1, Ordering::Relaxed);
        self.syncs.micros.fetch_add(micros, Ordering::Relaxed);
        Ok(())
    }
}
