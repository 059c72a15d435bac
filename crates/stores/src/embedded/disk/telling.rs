//! A disk whose failed syncs are told to someone who must know, whoever meets them.

use super::{Disk, DiskFile};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::sync::Arc;

/// Hears of each sync that failed: of which file, or of the folder (`None`), and why.
pub(in crate::embedded) type Tell = Arc<dyn Fn(Option<&str>, &io::Error) + Send + Sync>;

/// A disk, and who hears of its failed syncs. The folder is synced through one handle: whoever is told
/// of a failure there is the only one, also if it was another's file that is lost.
pub(in crate::embedded) struct Telling {
    disk: Arc<dyn Disk>,
    tell: Tell,
}

impl Telling {
    pub(in crate::embedded) fn new(disk: Arc<dyn Disk>, tell: Tell) -> Self {
        Self { disk, tell }
    }

    fn file(&self, name: &str, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(TellingFile { file, name: name.to_owned(), tell: self.tell.clone() })
    }
}

impl Debug for Telling {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Telling").field(&self.disk).finish()
    }
}

impl Disk for Telling {
    fn names(&self) -> io::Result<Vec<String>> {
        self.disk.names()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(name, self.disk.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(name, self.disk.open(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync().inspect_err(|error| (self.tell)(None, error))
    }
}

struct TellingFile {
    file: Arc<dyn DiskFile>,
    name: String,
    tell: Tell,
}

impl Debug for TellingFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TellingFile").field(&self.file).finish()
    }
}

impl DiskFile for TellingFile {
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
        self.file.sync().inspect_err(|error| (self.tell)(Some(&self.name), error))
    }
}
