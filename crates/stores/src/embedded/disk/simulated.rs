//! A host with a disk in memory, which loses power, fails and fills up where a test says so.
//!
//! All chance comes from one seed: the same calls in the same order give the same disk. A crash
//! keeps what was synced and anything of the rest that a real disk might keep; see
//! [`Host::crash`].

mod content;
mod folder;
mod random;

use self::content::Content;
use self::folder::{Change, Folder};
use self::random::Random;
use super::{Disk, DiskFile, FolderError};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a test sees and does from outside the process. Clones are the same host.
#[derive(Debug, Clone)]
pub struct Host {
    state: Arc<Mutex<State>>,
}

/// What goes wrong, once, at an operation that is counted from now on; 0 is the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A sync, of a file or of the folder, fails. What it was to make last may last or never will,
    /// and later syncs do not tell.
    SyncFails(u64),
    /// An append stops midway because the disk is full, or a file is not created for that reason.
    DiskFull(u64),
    /// From now on no append and no new file finds space, until the crash is over.
    DiskStaysFull,
    /// The next file whose name begins so is not created, because the disk is full.
    NoSpaceFor(&'static str),
    /// A file is not created or opened, or the folder not listed, because as many are open as may be.
    TooManyFiles(u64),
    /// The next read fails, as that of a sector that is broken.
    ReadFails,
    /// Who creates the next file whose name begins so panics.
    PanicsAt(&'static str),
    /// The power goes during an operation that changes something; every one after it fails, until
    /// the crash is over.
    PowerCut(u64),
}

impl Host {
    /// A host with an empty disk.
    pub fn new(seed: u64) -> Self {
        let state = State { random: Random::new(seed), is_on: true, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// The folder, for one process at a time: refused until the disk that was given before is
    /// dropped or the host has crashed.
    pub fn open(&self) -> Result<Arc<dyn Disk>, FolderError> {
        let mut state = lock(&self.state);
        if state.is_locked {
            return Err(FolderError::InUse { folder: PathBuf::from("simulated"), process: None });
        }
        state.is_locked = true;
        let (disk, boot) = (self.state.clone(), state.boot);
        Ok(Arc::new(SimulatedDisk { state: disk, boot, has_lock: true }))
    }

    /// The folder as another process sees it that does not have it.
    pub fn look(&self) -> Arc<dyn Disk> {
        let boot = lock(&self.state).boot;
        Arc::new(SimulatedDisk { state: self.state.clone(), boot, has_lock: false })
    }

    /// Lets something go wrong.
    pub fn plan(&self, fault: Fault) {
        let faults = &mut lock(&self.state).faults;
        match fault {
            Fault::SyncFails(operations) => faults.sync_fails = Some(operations),
            Fault::DiskFull(operations) => faults.disk_full = Some(operations),
            Fault::DiskStaysFull => faults.stays_full = true,
            Fault::NoSpaceFor(prefix) => faults.no_space_for = Some(prefix),
            Fault::TooManyFiles(operations) => faults.too_many_files = Some(operations),
            Fault::ReadFails => faults.read_fails = true,
            Fault::PanicsAt(prefix) => faults.panics_at = Some(prefix),
            Fault::PowerCut(operations) => faults.power_cut = Some(operations),
        }
    }

    /// The power goes and comes back. Each file keeps what was synced and some of what was done to
    /// it since: the first few changes, sectors of which may be lost or torn. Each file created,
    /// removed or renamed since the folder was synced may have been so or not. All faults that were
    /// planned are forgotten, and disks opened before are dead.
    pub fn crash(&self) {
        let mut state = lock(&self.state);
        let State { contents, folder, random, .. } = &mut *state;
        for content in contents {
            content.crash(random);
        }
        folder.crash(random);
        state.faults = Faults::default();
        state.boot += 1;
        state.is_on = true;
        state.is_locked = false;
    }

    /// Flips one bit of a file, of what is synced and of what is read.
    pub fn flip(&self, name: &str, bit: usize) {
        let mut state = lock(&self.state);
        let id = state.folder.find(name);
        assert!(id.is_ok(), "there is no file {name} with bits to flip");
        id.into_iter().for_each(|id| state.contents[id].flip(bit));
    }

    /// What a file would have after the worst of crashes; `None` if it might not be there.
    pub fn synced(&self, name: &str) -> Option<Vec<u8>> {
        let state = lock(&self.state);
        state.folder.synced(name).map(|id| state.contents[id].synced().to_vec())
    }

    /// Every file as it is read now.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = lock(&self.state);
        let files = state.folder.files();
        files.map(|(name, id)| (name.to_owned(), state.contents[id].current().to_vec())).collect()
    }
}

#[derive(Debug, Default)]
struct State {
    /// All files there ever were; a file's id is its place here.
    contents: Vec<Content>,
    folder: Folder,
    faults: Faults,
    random: Random,
    /// How often the host was started. What was opened before the last start is dead.
    boot: u64,
    is_on: bool,
    is_locked: bool,
}

/// In how many operations each fault comes, or with which name.
#[derive(Debug, Default)]
struct Faults {
    sync_fails: Option<u64>,
    disk_full: Option<u64>,
    stays_full: bool,
    no_space_for: Option<&'static str>,
    too_many_files: Option<u64>,
    read_fails: bool,
    panics_at: Option<&'static str>,
    power_cut: Option<u64>,
}

impl State {
    fn append(&mut self, id: usize, bytes: &[u8]) -> io::Result<()> {
        let is_full = self.faults.stays_full || is_due(&mut self.faults.disk_full);
        let written = if is_full { self.random.below(bytes.len()) } else { bytes.len() };
        self.contents[id].append(&bytes[..written]);
        self.use_power()?;
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn truncate(&mut self, id: usize, length: u64) -> io::Result<()> {
        self.contents[id].truncate(within(length)?, &mut self.random);
        self.use_power()
    }

    fn sync_file(&mut self, id: usize) -> io::Result<()> {
        self.use_power()?;
        if is_due(&mut self.faults.sync_fails) {
            self.contents[id].fail_to_sync(&mut self.random);
            return Err(io::Error::other("the disk could not write"));
        }
        self.contents[id].sync();
        Ok(())
    }

    fn create(&mut self, name: &str) -> io::Result<usize> {
        if self.folder.find(name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let is_full = is_named(&mut self.faults.no_space_for, name) || self.faults.stays_full;
        if is_full || is_due(&mut self.faults.disk_full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.open_another()?;
        assert!(!is_named(&mut self.faults.panics_at, name), "a panic was planned for {name}");
        let id = self.contents.len();
        self.contents.push(Content::default());
        self.folder.change(Change::Enter { name: name.to_owned(), id });
        self.use_power()?;
        Ok(id)
    }

    fn open_another(&mut self) -> io::Result<()> {
        if is_due(&mut self.faults.too_many_files) { Err(Errno::MFILE.into()) } else { Ok(()) }
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.folder.find(name)?;
        self.folder.change(Change::Leave { name: name.to_owned() });
        self.use_power()
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let id = self.folder.find(from)?;
        self.folder.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), id });
        self.use_power()
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        self.use_power()?;
        if is_due(&mut self.faults.sync_fails) {
            self.folder.fail_to_sync(&mut self.random);
            return Err(io::Error::other("the disk could not write"));
        }
        self.folder.sync();
        Ok(())
    }

    /// Counts one operation, and fails if it is the one during which the power goes.
    fn use_power(&mut self) -> io::Result<()> {
        self.is_on &= !is_due(&mut self.faults.power_cut);
        if self.is_on { Ok(()) } else { Err(io::Error::other("the power is gone")) }
    }
}

/// Counts an operation towards a fault and tells whether it is due; then it is done with.
fn is_due(operations: &mut Option<u64>) -> bool {
    let is_due = *operations == Some(0);
    *operations = operations.and_then(|left| left.checked_sub(1));
    is_due
}

/// Whether a name begins as a fault says; then it is done with.
fn is_named(prefix: &mut Option<&'static str>, name: &str) -> bool {
    prefix.take_if(|prefix| name.starts_with(*prefix)).is_some()
}

#[derive(Debug)]
struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    boot: u64,
    has_lock: bool,
}

impl SimulatedDisk {
    fn file(&self, id: usize) -> Arc<dyn DiskFile> {
        Arc::new(SimulatedFile { state: self.state.clone(), boot: self.boot, id })
    }
}

impl Drop for SimulatedDisk {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.is_locked &= state.boot != self.boot || !self.has_lock;
    }
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut state = running(&self.state, self.boot)?;
        state.open_another()?;
        Ok(state.folder.files().map(|(name, _)| name.to_owned()).collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let id = running(&self.state, self.boot)?.create(name)?;
        Ok(self.file(id))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = running(&self.state, self.boot)?;
        state.open_another()?;
        Ok(self.file(state.folder.find(name)?))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        running(&self.state, self.boot)?.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        running(&self.state, self.boot)?.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        running(&self.state, self.boot)?.sync_folder()
    }
}

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    boot: u64,
    id: usize,
}

impl DiskFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        let state = running(&self.state, self.boot)?;
        Ok(state.contents[self.id].current().len() as u64)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        running(&self.state, self.boot)?.append(self.id, bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let mut state = running(&self.state, self.boot)?;
        if std::mem::take(&mut state.faults.read_fails) {
            return Err(Errno::IO.into());
        }
        let offset = within(offset)?;
        let range = offset..offset.saturating_add(bytes.len());
        let found = state.contents[self.id].current().get(range);
        bytes.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        running(&self.state, self.boot)?.truncate(self.id, length)
    }

    fn sync(&self) -> io::Result<()> {
        running(&self.state, self.boot)?.sync_file(self.id)
    }
}

/// A length or offset as memory counts it.
fn within(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A test that panicked may still want to look at the disk.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn running(state: &Mutex<State>, boot: u64) -> io::Result<MutexGuard<'_, State>> {
    let state = lock(state);
    let is_alive = state.is_on && state.boot == boot;
    if is_alive { Ok(state) } else { Err(io::Error::other("the power is gone")) }
}

#[cfg(test)]
mod tests;
