//! A folder on the disk that is measured, removed in the end; or a database in its place.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Names a database in which to measure, in place of a folder.
pub(crate) fn database() -> Option<String> {
    std::env::var("TOLLGATE_BENCH_STORE").ok()
}

pub(crate) struct Folder {
    pub(crate) path: PathBuf,
}

impl Folder {
    pub(crate) fn new(name: &str) -> anyhow::Result<Self> {
        let path = std::env::current_dir()?
            .join("target")
            .join(format!("bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

pub(crate) fn size_of_folder(folder: &Path) -> anyhow::Result<u64> {
    let files = std::fs::read_dir(folder)?;
    let sizes = files.map(|file| Ok(file?.metadata()?.len()));
    sizes.sum::<std::io::Result<u64>>().context("the size of a folder")
}
