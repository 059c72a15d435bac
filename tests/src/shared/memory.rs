//! Cells in the memory of the test: what a store does, without one.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tollgate::lanes::{Answer, Meters, StoreError};
use tollgate::shared::Shared;
use tollgate::shared::cells::{CellKey, Cells, Change, Decide, Doing, Found, Kind, Wanted};
use tollgate::{Now, Span};

/// Tells the time, as the test sets it.
pub(super) type Time = Arc<Mutex<Now>>;

/// Cells in memory.
#[derive(Default)]
pub(super) struct MemoryCells {
    cells: Mutex<BTreeMap<CellKey, Vec<u8>>>,
    /// One change at a time.
    changing: Mutex<()>,
    now: Time,
    changes: AtomicU64,
    /// Writes cells one by one, as far as who asks is concerned.
    is_apart: bool,
    /// How many changes more than one it likes to have under way.
    more: usize,
    /// The most cells of a change.
    widest: AtomicUsize,
    is_gone: AtomicBool,
    /// How long it takes to find out that it is gone.
    deadline: Mutex<Duration>,
    /// Is gone as soon as a cell of this kind was written.
    goes_after: Mutex<Option<Kind>>,
    /// Another store, which is faster the next time that is written.
    faster: Mutex<Option<Shared>>,
    /// Set while changes have to wait.
    held: Mutex<Option<Arc<Hold>>>,
}

/// Changes that have come wait as long as this is held.
struct Hold {
    asked: Semaphore,
    released: Semaphore,
}

/// Lets changes go when it is dropped.
pub(super) struct Held<'a>(&'a MemoryCells, Arc<Hold>);

impl Held<'_> {
    /// Until a change has come, or one more.
    pub(super) async fn until_asked(&self) {
        self.1.asked.acquire().await.unwrap().forget();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        *self.0.held.lock() = None;
        self.1.released.close();
    }
}

impl MemoryCells {
    pub(super) fn new(now: Time) -> Self {
        Self { now, ..Self::default() }
    }

    /// Whose cells are not written together.
    pub(super) fn apart(now: Time) -> Self {
        Self { now, is_apart: true, more: 31, ..Self::default() }
    }

    /// Which two changes of one process may be under way at.
    pub(super) fn two_at_once(now: Time) -> Self {
        Self { now, more: 1, ..Self::default() }
    }

    /// The most cells that one change might have written.
    pub(super) fn widest(&self) -> usize {
        self.widest.load(Ordering::Relaxed)
    }

    /// How many changes there were.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Is out of reach, or there again.
    pub(super) fn fail(&self, is_gone: bool) {
        self.is_gone.store(is_gone, Ordering::Relaxed);
    }

    /// Is out of reach, which takes so long to find out.
    pub(super) fn hang(&self, deadline: Duration) {
        *self.deadline.lock() = deadline;
        self.fail(true);
    }

    /// Goes in the middle of the change that next writes a cell of this kind, or after it.
    pub(super) fn go_after(&self, kind: Kind) {
        *self.goes_after.lock() = Some(kind);
    }

    /// Has another process be faster when it is next written since when this remembers.
    pub(super) fn overtake_epoch(&self, other: Shared) {
        *self.faster.lock() = Some(other);
    }

    /// Has changes that come wait.
    pub(super) fn hold(&self) -> Held<'_> {
        let [asked, released] = [0, 0].map(Semaphore::new);
        let hold = Arc::new(Hold { asked, released });
        *self.held.lock() = Some(hold.clone());
        Held(self, hold)
    }

    pub(super) fn wait(&self, span: Span) {
        let mut now = self.now.lock();
        *now = now.moved_to(now.at.plus(span));
    }

    /// Forgets everything, as a store does that comes back empty.
    pub(super) fn clear(&self) {
        self.cells.lock().clear();
    }
}

impl MemoryCells {
    fn found(&self, wanted: Wanted<'_>) -> Found {
        let cells = self.cells.lock();
        let found = |keys: &[CellKey]| keys.iter().map(|key| cells.get(key).cloned()).collect();
        Found { read: found(wanted.read), change: found(wanted.change) }
    }

    fn written(&self, wanted: Wanted<'_>, changes: Vec<Change>) -> Answer<()> {
        let mut changes = changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            let key = wanted.change[change.at].clone();
            let kind = key.kind;
            match change.value {
                Some(value) => self.cells.lock().insert(key, value),
                None => self.cells.lock().remove(&key),
            };
            if self.goes_after.lock().take_if(|it| *it == kind).is_some() {
                self.fail(true);
                if changes.peek().is_some() {
                    return Err(gone());
                }
            }
        }
        Ok(())
    }
}

fn gone() -> StoreError {
    StoreError::Unreachable { reason: "it was told to be".to_owned() }
}

impl Cells for MemoryCells {
    fn change<'a>(
        &'a self,
        wanted: Wanted<'a>,
        decide: &'a mut dyn Decide,
    ) -> Doing<'a, Answer<()>> {
        Box::pin(async move {
            self.changes.fetch_add(1, Ordering::Relaxed);
            self.widest.fetch_max(wanted.change.len(), Ordering::Relaxed);
            let held = self.held.lock().clone();
            if let Some(hold) = held {
                hold.asked.add_permits(1);
                // Closed, it holds nobody.
                let _ = hold.released.acquire().await;
            }
            if self.is_gone.load(Ordering::Relaxed) {
                let deadline = *self.deadline.lock();
                let _ = tokio::time::timeout(deadline, std::future::pending::<()>()).await;
                return Err(gone());
            }
            let writes_epoch = wanted.change.iter().any(|key| key.kind == Kind::Epoch);
            let faster = writes_epoch.then(|| self.faster.lock().take()).flatten();
            if let Some(other) = faster {
                let _ = decide.decide(*self.now.lock(), &self.found(wanted));
                self.wait(Span::from_millis(1));
                other.now().await?;
            }
            let _alone = self.changing.lock();
            let now = *self.now.lock();
            let changes = decide.decide(now, &self.found(wanted));
            self.written(wanted, changes)
        })
    }

    fn names<'a>(
        &'a self,
        kind: Kind,
        after: Option<&'a str>,
        most: usize,
    ) -> Doing<'a, Answer<Vec<Box<str>>>> {
        Box::pin(async move {
            let cells = self.cells.lock();
            let names = cells.keys().filter(|key| key.kind == kind).map(|key| &*key.name);
            let mut names: Vec<_> =
                names.filter(|name| after.is_none_or(|it| *name > it)).collect();
            names.dedup();
            names.truncate(most);
            Ok(names.into_iter().map(Box::from).collect())
        })
    }

    fn writes_together(&self) -> bool {
        !self.is_apart
    }

    fn spreads(&self) -> bool {
        false
    }

    fn changes_max(&self) -> usize {
        1 + self.more
    }

    fn shares(&self) -> usize {
        1 + self.more
    }

    fn decides_itself(&self) -> bool {
        !self.is_apart
    }
}
