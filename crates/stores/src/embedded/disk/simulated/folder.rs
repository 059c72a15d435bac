//! Which simulated files there are: as it is seen now, and as it was synced.

use super::random::Random;
use std::collections::BTreeMap;
use std::io;

type Entries = BTreeMap<String, usize>;

#[derive(Debug, Default)]
pub(super) struct Folder {
    current: Entries,
    synced: Entries,
    /// What was done since the last sync, in order.
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Enter { name: String, id: usize },
    Leave { name: String },
    Rename { from: String, to: String, id: usize },
}

impl Folder {
    pub(super) fn find(&self, name: &str) -> io::Result<usize> {
        self.current.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn synced(&self, name: &str) -> Option<usize> {
        self.synced.get(name).copied()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&str, usize)> {
        self.current.iter().map(|(name, id)| (name.as_str(), *id))
    }

    pub(super) fn change(&mut self, change: Change) {
        apply(&mut self.current, change.clone());
        self.changes.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.keep(|| true);
    }

    /// All of it lasts, or it never will.
    pub(super) fn fail_to_sync(&mut self, random: &mut Random) {
        let lasts = random.coin();
        self.keep(|| lasts);
    }

    pub(super) fn crash(&mut self, random: &mut Random) {
        self.keep(|| random.coin());
        self.current.clone_from(&self.synced);
    }

    fn keep(&mut self, mut lasts: impl FnMut() -> bool) {
        for change in self.changes.drain(..).filter(|_| lasts()) {
            apply(&mut self.synced, change);
        }
    }
}

fn apply(entries: &mut Entries, change: Change) {
    match change {
        Change::Enter { name, id } => {
            entries.insert(name, id);
        }
        Change::Leave { name } => {
            entries.remove(&name);
        }
        Change::Rename { from, to, id } => {
            entries.remove(&from);
            entries.insert(to, id);
        }
    }
}
