//! A folder in the making: it stands beside the place where it is to be, and has its name once it is
//! whole.

use super::real::{LOCK_NAME, names, sync_folder};
use super::{Disk, FolderError, RealDisk};
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Behind the name of a folder that is not whole.
const PARTIAL: &str = ".partial";
/// What the names of a store's files begin with, its lock aside.
const PREFIXES: [&str; 3] = ["journal-", "checkpoint-", "history-"];

/// A folder that will be at `target`; dropped before, nothing is left of it.
#[derive(Debug)]
pub(in crate::embedded) struct Fresh {
    target: PathBuf,
    partial: PathBuf,
    disk: Arc<dyn Disk>,
    is_whole: bool,
}

impl Fresh {
    /// Begins one, if there is nothing at `target`, or an empty folder. What is left of one that was
    /// begun before and not finished is removed.
    pub(in crate::embedded) fn begin(target: &Path) -> Result<Self, FolderError> {
        // Without a slash at its end, which would hide that it is a link.
        let target: PathBuf = target.components().collect();
        check_vacant(&target)?;
        let Some(name) = target.file_name() else {
            let source = io::Error::other("it has no name of its own: write the path out");
            return Err(FolderError::Failed { folder: target, source });
        };
        let mut partial = name.to_owned();
        partial.push(PARTIAL);
        let partial = target.with_file_name(partial);
        // Before it is locked, which makes a file: what is not ours stays as it is.
        if names(&partial).is_ok_and(|names| names.iter().any(|name| !is_ours(name))) {
            return Err(FolderError::Taken { folder: partial });
        }
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(&partial)?);
        match clear(&*disk) {
            Ok(()) => Ok(Self { target, partial, disk, is_whole: false }),
            Err(source) => Err(FolderError::Failed { folder: partial, source }),
        }
    }

    /// What is in it, and goes into it.
    pub(in crate::embedded) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Gives it its name, to last.
    pub(in crate::embedded) fn finish(mut self) -> Result<(), FolderError> {
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let named = self.disk.sync().and_then(|()| fs::rename(&self.partial, &self.target));
        self.is_whole = named.is_ok();
        let lasts = named.and_then(|()| sync_folder(parent.unwrap_or(Path::new("."))));
        lasts.map_err(|source| FolderError::Failed { folder: self.target.clone(), source })
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if self.is_whole {
            return;
        }
        // One that cannot be removed does not pass for a whole one, and is removed by the next.
        let _ = clear(&*self.disk);
        let _ = self.disk.remove(LOCK_NAME);
        let _ = fs::remove_dir(&self.partial);
    }
}

fn check_vacant(target: &Path) -> Result<(), FolderError> {
    let folder = target.to_owned();
    let is_link = fs::symlink_metadata(target).is_ok_and(|found| found.is_symlink());
    let is_vacant = match fs::metadata(target) {
        _ if is_link => Err(irreplaceable()),
        Ok(found) if found.is_dir() => {
            RealDisk::check_unused(target)?;
            check_replaceable(target, &found)
                .map_err(|source| FolderError::Failed { folder: folder.clone(), source })?;
            names(target).map(|names| names.is_empty())
        }
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    };
    match is_vacant {
        Ok(true) => Ok(()),
        Ok(false) => Err(FolderError::Taken { folder }),
        Err(source) => Err(FolderError::Failed { folder, source }),
    }
}

/// What is written beside a folder takes its place at the end, if that is no other disk's.
fn check_replaceable(target: &Path, found: &Metadata) -> io::Result<()> {
    let beside = fs::canonicalize(target)?.parent().map(fs::metadata).transpose()?;
    let is_mounted = beside.is_none_or(|beside| beside.dev() != found.dev());
    if is_mounted { Err(irreplaceable()) } else { Ok(()) }
}

fn irreplaceable() -> io::Error {
    let what =
        "it is a link or the root of a disk, and no folder can take its place: name one in it";
    io::Error::other(what)
}

/// Whether a file is a store's.
fn is_ours(name: &str) -> bool {
    name == LOCK_NAME || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Removes a store's files, but for the lock.
fn clear(disk: &dyn Disk) -> io::Result<()> {
    let names = disk.names()?.into_iter();
    let mut ours = names.filter(|name| is_ours(name) && name != LOCK_NAME);
    ours.try_for_each(|name| disk.remove(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_no_folder_can_take_the_place_none_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, link) = (parent.path().join("a"), parent.path().join("link"));
        fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, &link).unwrap();
        for link in [link.clone(), link.join("")] {
            let refused = Fresh::begin(&link).unwrap_err().to_string();
            assert!(refused.contains("name one in it"), "{refused}");
        }
        fs::remove_dir(&folder).unwrap();
        assert!(Fresh::begin(&link).is_err(), "it leads nowhere");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
        drop(Fresh::begin(&folder).unwrap());
    }

    #[test]
    fn a_folder_has_its_name_once_it_is_whole() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("a");
        let fresh = Fresh::begin(&target).unwrap();
        fresh.disk().create("journal-1").unwrap();
        assert!(!target.exists());
        let error = Fresh::begin(&target).unwrap_err();
        assert!(matches!(error, FolderError::InUse { .. }), "{error}");
        fresh.finish().unwrap();
        assert!(target.join("journal-1").exists());
        assert_eq!(names(parent.path()).unwrap(), ["a"]);
    }

    #[test]
    fn one_that_is_dropped_or_was_left_behind_is_gone() {
        let parent = tempfile::tempdir().unwrap();
        let (target, partial) = (parent.path().join("a"), parent.path().join("a.partial"));
        fs::create_dir(&partial).unwrap();
        fs::write(partial.join("journal-9"), "left by a crash").unwrap();
        fs::write(partial.join("history-1-journal-9"), "left, too").unwrap();
        let fresh = Fresh::begin(&target).unwrap();
        assert_eq!(names(&partial).unwrap(), [LOCK_NAME]);
        fresh.disk().create("checkpoint-1").unwrap();
        fresh.disk().create("history-1-journal-1").unwrap();
        drop(fresh);
        assert_eq!(names(parent.path()).unwrap(), [""; 0]);
    }

    #[test]
    fn what_is_not_ours_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("a");
        fs::create_dir(parent.path().join("a.partial")).unwrap();
        fs::write(parent.path().join("a.partial/letters"), "dear").unwrap();
        let error = Fresh::begin(&target).unwrap_err();
        assert!(matches!(error, FolderError::Taken { .. }), "{error}");
        assert_eq!(names(&parent.path().join("a.partial")).unwrap(), ["letters"]);
        for taken in [parent.path(), &parent.path().join("a.partial/letters")] {
            let error = Fresh::begin(taken).unwrap_err();
            assert!(matches!(error, FolderError::Taken { .. }), "{error}");
        }
    }
}
