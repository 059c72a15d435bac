//! Removes expired cells: one process at a time, a few cells at a time, those first that were written
//! longest ago.

use super::bucket::{ABSENT, Entry};
use super::clock::{CLOCK_LIFE, CLOCKS};
use super::{Inside, value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tollgate_core::contract::Answer;
use tollgate_core::{Span, Timestamp};

/// How many cells are looked at in one sweep.
const SWEEP_CELLS: u64 = 64;
/// How many cells are looked at for each that was added: so those that have expired and are still
/// there never outnumber the others for long.
const LOOKS_PER_CELL: u64 = 4;
/// Whoever sweeps is left alone for so long.
const TURN: Span = Span::from_secs(10);
/// Says who sweeps until when, and where it has got to. Among the clocks, so it is no cell.
const TURN_KEY: &str = "c.=sweeper";

/// Sweeps when it is time. Stops when this is dropped.
pub(super) struct Sweeper {
    owed: AtomicU64,
    due: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Sweeper {
    pub(super) fn start(inside: &Arc<Inside>) -> Self {
        let due = Arc::new(Notify::new());
        let (inside, told) = (Arc::clone(inside), Arc::clone(&due));
        let task = tokio::spawn(async move {
            loop {
                told.notified().await;
                if let Err(error) = sweep(&inside).await {
                    tracing::debug!(%error, "expired cells were not swept");
                }
            }
        });
        Self { owed: AtomicU64::new(0), due, task }
    }

    /// Takes note of a change that added so many cells.
    pub(super) fn wrote(&self, added: u64) {
        let more = 1 + added * LOOKS_PER_CELL;
        let owed = self.owed.fetch_add(more, Ordering::Relaxed) + more;
        if owed >= SWEEP_CELLS {
            self.owed.fetch_sub(SWEEP_CELLS, Ordering::Relaxed);
            self.due.notify_one();
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Looks at the next cells, unless another process does.
async fn sweep(inside: &Inside) -> Answer<()> {
    inside.clock.refresh(&inside.bucket).await?;
    let now = inside.clock.now().at;
    let turn = inside.bucket.read(TURN_KEY).await?;
    if turn.as_ref().is_some_and(|turn| turn.live(now).is_some()) {
        return Ok(());
    }
    let revision = turn.as_ref().map_or(ABSENT, |turn| turn.revision);
    let mut place = turn.as_ref().map_or(ABSENT, place_of);
    let held = value::encode(now.plus(TURN), &place.to_be_bytes());
    let Ok(revision) = inside.bucket.write(TURN_KEY, revision, held).await? else { return Ok(()) };
    for _ in 0..SWEEP_CELLS {
        let Some((key, entry)) = inside.bucket.oldest(place).await? else {
            place = ABSENT;
            break;
        };
        place = entry.revision + 1;
        if key != TURN_KEY && is_over(&key, &entry, now) {
            // If somebody wrote it meanwhile, it stays.
            let _ = inside.bucket.remove(&key, entry.revision).await?;
        }
    }
    // Its turn is over at once, and the next one goes on from here.
    let over = value::encode(now, &place.to_be_bytes());
    let _ = inside.bucket.write(TURN_KEY, revision, over).await?;
    Ok(())
}

fn place_of(turn: &Entry) -> u64 {
    let bytes = turn.cell.as_ref().and_then(|(_, place)| place.as_slice().try_into().ok());
    bytes.map_or(ABSENT, u64::from_be_bytes)
}

fn is_over(key: &str, entry: &Entry, now: Timestamp) -> bool {
    if key.starts_with(CLOCKS) {
        return entry.written.plus(CLOCK_LIFE) <= now;
    }
    entry.live(now).is_none()
}
