//! The real disk: a folder of the file system, locked for this process.

use super::{Disk, DiskFile, FolderError};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file whose lock is the folder's. It stays behind: removing it would let two processes each
/// lock a file of that name.
pub(super) const LOCK_NAME: &str = "lock";

/// A folder of the file system.
#[derive(Debug)]
pub struct RealDisk {
    folder: PathBuf,
    /// The folder itself, for syncs: opened for each it could not be when the process has no file
    /// descriptor left, and a sync that fails ends the store.
    handle: File,
    /// Locked as long as the folder is ours: dying lets the lock go as well.
    lock: File,
}

impl RealDisk {
    /// Makes the folder if it is missing, and locks it.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let folder = folder.into();
        match create_folder(&folder).and_then(|()| Ok((lock(&folder)?, File::open(&folder)?))) {
            Ok((Locked::Ours(lock), handle)) => Ok(Self { folder, handle, lock }),
            Ok((Locked::Theirs { process }, _)) => Err(FolderError::InUse { folder, process }),
            Err(source) => Err(FolderError::Failed { folder, source }),
        }
    }

    /// Locks a folder that a store was opened in before; makes nothing.
    pub fn existing(folder: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let folder = folder.into();
        match fs::metadata(folder.join(LOCK_NAME)).map_err(|error| error.kind()) {
            Err(io::ErrorKind::NotFound) if folder.is_dir() => Err(FolderError::NoStore { folder }),
            Err(io::ErrorKind::NotFound) => Err(FolderError::Missing { folder }),
            // Whatever else is wrong is found again, and told.
            _ if folder.is_dir() => Self::open(folder),
            _ => Err(FolderError::Failed { folder, source: io::ErrorKind::NotADirectory.into() }),
        }
    }

    /// Refuses a folder that a process has; takes no lock and makes nothing.
    pub(super) fn check_unused(folder: &Path) -> Result<(), FolderError> {
        let Ok(mut file) = File::open(folder.join(LOCK_NAME)) else { return Ok(()) };
        if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
            // Closed, it is unlocked as well; see the drop of a disk for why that is not enough.
            let _ = file.unlock();
            return Ok(());
        }
        let mut id = String::new();
        // Who it is would be good to know, and is not needed.
        let _ = file.read_to_string(&mut id);
        Err(FolderError::InUse { folder: folder.to_owned(), process: id.parse().ok() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn file(&self, name: &str, options: &mut OpenOptions) -> io::Result<Arc<dyn DiskFile>> {
        let file = options.read(true).append(true).open(self.path(name))?;
        Ok(Arc::new(RealFile { file }))
    }
}

impl Drop for RealDisk {
    /// Closing the file is not enough: a child that this process is just starting has it open too,
    /// until it runs its own program, and the lock lasts as long.
    fn drop(&mut self) {
        // What cannot be unlocked is so when the last one closes it.
        let _ = self.lock.unlock();
    }
}

impl Disk for RealDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        names(&self.folder)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, OpenOptions::new().create_new(true))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.file(name, &mut OpenOptions::new())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn sync(&self) -> io::Result<()> {
        self.handle.sync_all()
    }
}

/// Opened for appending: the system finds the end, so that there is no second idea of where it is.
#[derive(Debug)]
pub(super) struct RealFile {
    pub(super) file: File,
}

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).write_all(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The names of all files in a folder.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().into_string()));
    // A name that is not UTF-8 is none of ours.
    names.filter_map(|name| name.map(Result::ok).transpose()).collect()
}

enum Locked {
    Ours(File),
    Theirs { process: Option<u32> },
}

fn lock(folder: &Path) -> io::Result<Locked> {
    let path = folder.join(LOCK_NAME);
    // Not emptied on opening: until it is ours, it holds the id of another.
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {
            file.set_len(0)?;
            write!(file, "{}", std::process::id())?;
            Ok(Locked::Ours(file))
        }
        Err(TryLockError::WouldBlock) => {
            let mut id = String::new();
            file.read_to_string(&mut id)?;
            Ok(Locked::Theirs { process: id.parse().ok() })
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes a folder and those above it that are missing, each one to last.
fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    create_folder(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_folder(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_process_is_refused_with_the_id_of_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = RealDisk::open(folder.path()).unwrap();
        let error = RealDisk::open(folder.path()).unwrap_err();
        let process = format!("in use by process {}: stop that one", std::process::id());
        assert!(error.to_string().contains(&process), "{error}");
        drop(first);
        RealDisk::open(folder.path()).unwrap();
    }

    #[test]
    fn a_child_that_has_the_file_open_does_not_keep_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let first = RealDisk::open(folder.path()).unwrap();
        // As a fork leaves it: open twice, locked once.
        let _inherited = first.lock.try_clone().unwrap();
        drop(first);
        RealDisk::open(folder.path()).unwrap();
    }

    #[test]
    fn folders_that_are_missing_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b/c");
        assert_eq!(RealDisk::open(&deep).unwrap().names().unwrap(), [LOCK_NAME]);
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = RealDisk::open(folder.path().join("file/d")).unwrap_err();
        assert!(matches!(error, FolderError::Failed { .. }), "{error}");
    }

    #[test]
    fn a_sync_opens_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(parent.path().join("a")).unwrap();
        // What is not found by its name can only be reached by what is open.
        std::fs::rename(parent.path().join("a"), parent.path().join("b")).unwrap();
        disk.sync().unwrap();
    }

    #[test]
    fn a_file_keeps_what_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(folder.path()).unwrap();
        let file = disk.create("a").unwrap();
        assert_eq!(disk.create("a").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        file.append(b"one two").unwrap();
        file.truncate(4).unwrap();
        file.append(b"three").unwrap();
        file.sync().unwrap();
        disk.rename("a", "b").unwrap();
        disk.sync().unwrap();

        let again = disk.open("b").unwrap();
        let mut bytes = [0; 5];
        again.read(4, &mut bytes).unwrap();
        assert_eq!((again.length().unwrap(), &bytes), (9, b"three"));
        assert_eq!(again.read(5, &mut bytes).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        disk.remove("b").unwrap();
        assert_eq!(disk.open("b").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
