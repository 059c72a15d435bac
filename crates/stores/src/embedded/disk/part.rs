//! A part of a folder: the files whose names begin alike, as if they were a folder of their own.

use super::{Disk, DiskFile};
use std::io;
use std::sync::Arc;

/// The files of a disk with a prefix, without it.
#[derive(Debug)]
pub(in crate::embedded) struct Part {
    disk: Arc<dyn Disk>,
    prefix: String,
}

impl Part {
    pub(in crate::embedded) fn new(disk: Arc<dyn Disk>, prefix: String) -> Self {
        Self { disk, prefix }
    }

    fn whole(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl Disk for Part {
    fn names(&self) -> io::Result<Vec<String>> {
        let names = self.disk.names()?.into_iter();
        let ours = names.filter_map(|name| name.strip_prefix(&self.prefix).map(str::to_owned));
        Ok(ours.collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.create(&self.whole(name))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open(&self.whole(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(&self.whole(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(&self.whole(from), &self.whole(to))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }
}
