//! A folder as one sees it who does not have it: read, and never changed, whoever changes it meanwhile.

use super::real::{RealFile, names};
use super::{Disk, DiskFile, FolderError};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder of the file system without its lock.
#[derive(Debug)]
pub(in crate::embedded) struct Onlooker {
    folder: PathBuf,
}

impl Onlooker {
    /// Looks at a folder that is there.
    pub(in crate::embedded) fn at(folder: &Path) -> Result<Self, FolderError> {
        let folder = folder.to_owned();
        match fs::metadata(&folder) {
            Ok(found) if found.is_dir() => Ok(Self { folder }),
            Ok(_) => {
                Err(FolderError::Failed { folder, source: io::ErrorKind::NotADirectory.into() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(FolderError::Missing { folder })
            }
            Err(source) => Err(FolderError::Failed { folder, source }),
        }
    }
}

impl Disk for Onlooker {
    fn names(&self) -> io::Result<Vec<String>> {
        names(&self.folder)
    }

    fn create(&self, _: &str) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(RealFile { file: File::open(self.folder.join(name))? }))
    }

    fn remove(&self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn rename(&self, _: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
