//! Backups: a folder is copied while its store runs, and the copy opens as after a crash at some
//! instant since the copy began.
//!
//! # Why that holds
//! No lock is taken and nobody is asked: files are opened, first all of them, then they are read. One
//! that is open can be read whoever removes it.
//!
//! - A checkpoint is whole as long as its file `.whole` is there, which goes before the others. It is
//!   looked for once more after those are open.
//! - A segment that has a later one never changes. The last one grows at its end, and what is read of
//!   it ends within a frame at worst: a torn tail, as after a crash.
//! - Between the first segment of a first list and the last one of a second list all must be there. A
//!   segment is dropped when the journal has said of each body in it that its call ended or that it
//!   moved; if the first list lacks that segment, then that was said before the second list was made,
//!   in a segment that is on it, and is read.
//! - What was answered before it all began was synced to segments that the second list has, or is in
//!   the checkpoint.
//! - History is looked at before all of it, see [`HeldHistory`]: it knows of nothing that the journal's
//!   copy does not.
//!
//! Whatever is missing in between begins it anew: the lists again, which takes an instant, and not the
//! reading.

use super::check::{CheckError, Checked, check};
use super::checkpoint;
use crate::embedded::disk::fresh::Fresh;
use crate::embedded::disk::onlooker::Onlooker;
use crate::embedded::disk::{Disk, DiskFile, FolderError};
use crate::embedded::history::HeldHistory;
use crate::embedded::log::SegmentNumber;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How often files may vanish while they are being opened. A store drops some every few seconds.
const TRIES_MAX: usize = 1_000;
/// Read and written at once.
const PIECE_BYTES: u64 = 1 << 20;

/// A copy that was made, and found sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// What is in it.
    pub checked: Checked,
    /// How many files were copied.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Why there is no copy. Where it was to be, nothing is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// One of the folders cannot be had.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The copy is not sound, and so is what was copied.
    #[error(transparent)]
    Unsound(#[from] CheckError),
    /// Files vanished faster than they could be opened.
    #[error("the folder kept changing while its files were being opened: try again")]
    Restless,
    /// The system did not let us.
    #[error("copying failed {doing}: {source}")]
    Failed {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl CopyError {
    fn failed(doing: &str, name: &str, source: io::Error) -> Self {
        Self::Failed { doing: format!("{doing} {name}"), source }
    }
}

/// Copies a store's folder while a process may be using it, and checks the copy. All that was answered
/// before this was called is in it. The target must not exist, or be empty; it is there once it is
/// whole. Opens all files of the journal at once.
pub fn backup(folder: &Path, target: &Path) -> Result<Copied, CopyError> {
    let from = Onlooker::at(folder)?;
    if segments(&listed(&from)?).is_empty() {
        return Err(FolderError::NoStore { folder: folder.to_owned() }.into());
    }
    let fresh = Fresh::begin(target)?;
    let (files, bytes) = copy(&from, &**fresh.disk())?;
    let checked = check(fresh.disk())?;
    fresh.finish()?;
    Ok(Copied { checked, files, bytes })
}

/// Makes a store's folder of a backup, and checks it. The folder must not exist, or be empty; it is
/// there once it is whole, and the backup stays as it is.
pub fn restore(backup: &Path, folder: &Path) -> Result<Copied, CopyError> {
    self::backup(backup, folder)
}

/// Copies what a store needs from one disk to an empty one, to last; says how many files and bytes.
pub(super) fn copy(from: &dyn Disk, to: &dyn Disk) -> Result<(u64, u64), CopyError> {
    let opening = |error| CopyError::failed("opening", "history", error);
    let history = HeldHistory::of(from).map_err(opening)?;
    let held = (0..TRIES_MAX).find_map(|_| hold(from).transpose());
    let Held { files, whole } = held.ok_or(CopyError::Restless)??;
    let (mut count, mut bytes) = (0, 0);
    for (name, file) in files {
        bytes += copy_file(&name, &*file, None, to)?;
        count += 1;
    }
    for file in history.files(from) {
        let (name, file, most) = file.map_err(opening)?;
        bytes += copy_file(&name, &*file, most, to)?;
        count += 1;
    }
    if let Some(whole) = whole {
        to.create(&whole).map_err(|error| CopyError::failed("making", &whole, error))?;
        count += 1;
    }
    to.sync().map_err(|error| CopyError::failed("syncing", "the folder", error))?;
    Ok((count, bytes))
}

/// All that makes a copy, open.
struct Held {
    /// In the order in which they are read: the segment that may grow is the last.
    files: Vec<(String, Arc<dyn DiskFile>)>,
    /// The file that says that the checkpoint is whole, if there is one.
    whole: Option<String>,
}

/// Opens everything; `None` if something vanished meanwhile.
fn hold(disk: &dyn Disk) -> Result<Option<Held>, CopyError> {
    let (first, second) = (listed(disk)?, listed(disk)?);
    let newest = checkpoint::newest_of(&first);
    let (Some(oldest), Some(latest)) =
        (segments(&first).into_iter().min(), segments(&second).into_iter().max())
    else {
        return Ok(None);
    };
    let from = newest.unwrap_or(SegmentNumber::FIRST);
    if !(oldest..=latest).contains(&from) {
        return Ok(None);
    }
    let of_checkpoint = newest.map(|number| checkpoint::names_of(number, &second));
    let of_journal =
        (oldest.as_u32()..=latest.as_u32()).map(|it| SegmentNumber::new(it).file_name());
    let mut files = Vec::new();
    for name in of_checkpoint.into_iter().flatten().chain(of_journal) {
        let Some(file) = open(disk, &name)? else { return Ok(None) };
        files.push((name, file));
    }
    let whole = newest.map(checkpoint::whole_name);
    let is_whole = match &whole {
        Some(whole) => open(disk, whole)?.is_some(),
        None => true,
    };
    Ok(is_whole.then_some(Held { files, whole }))
}

fn listed(disk: &dyn Disk) -> Result<Vec<String>, CopyError> {
    disk.names().map_err(|error| CopyError::failed("listing", "the folder", error))
}

fn segments(names: &[String]) -> Vec<SegmentNumber> {
    names.iter().filter_map(|name| SegmentNumber::of_file(name)).collect()
}

fn open(disk: &dyn Disk, name: &str) -> Result<Option<Arc<dyn DiskFile>>, CopyError> {
    match disk.open(name) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CopyError::failed("opening", name, error)),
    }
}

/// Copies what a file has when this begins, or so many bytes of it, to last; says how many.
fn copy_file(
    name: &str,
    file: &dyn DiskFile,
    most: Option<u64>,
    to: &dyn Disk,
) -> Result<u64, CopyError> {
    let reading = |error| CopyError::failed("reading", name, error);
    let writing = |error| CopyError::failed("writing", name, error);
    let copy = to.create(name).map_err(writing)?;
    let (length, mut copied) = (file.length().map_err(reading)?, 0);
    let mut length = most.map_or(length, |most| most.min(length));
    while copied < length {
        let bytes = PIECE_BYTES.min(length - copied);
        let mut piece = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        match file.read(copied, &mut piece) {
            Ok(()) => {
                copy.append(&piece).map_err(writing)?;
                copied += bytes;
            }
            // A frame that found no space, or was not synced, was cut off: nobody was answered.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let left = file.length().map_err(reading)?;
                if left >= length {
                    return Err(reading(error));
                }
                length = left;
            }
            Err(error) => return Err(reading(error)),
        }
    }
    copy.sync().map_err(writing)?;
    Ok(copied)
}
