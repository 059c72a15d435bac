//! What lies under the embedded store, each by itself: the scheduler without a disk, and the log with
//! nothing to decide.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_core::Now;
use tollgate_core::lanes::{Act, Effect, Scheduler, Watch};
use tollgate_stores::embedded::log::{Batch, Log, LogError, SegmentNumber, Settings};

use crate::store::{self, Client, Cycles, ROW};
use crate::timed_disk::TimedDisk;

/// So many acts are made before their effects are taken, as the store does it.
const AT_ONCE: usize = 64;

/// The same writes and syncs as the store's: three commits for as many calls as were committed
/// together. Says how many calls that is a second, and how long a sync took.
pub(crate) fn log(folder: &Path, row: Cycles, bytes: u64) -> anyhow::Result<(usize, u64)> {
    let disk = Arc::new(TimedDisk::open(folder, row.sync)?);
    let (unread, together) = (|_, _: &[u8]| Ok(()), row.together);
    let (mut log, _) =
        Log::open::<LogError>(disk.clone(), Settings::default(), SegmentNumber::FIRST, unread)?;
    let record = vec![7; usize::try_from(bytes / 3)?];
    let (begun, mut calls) = (Instant::now(), 0);
    let mut batch = Batch::new();
    while begun.elapsed() < ROW {
        for _ in 0..3 {
            batch.clear();
            (0..together).for_each(|_| {
                batch.push(&record);
            });
            log.commit(&mut batch)?;
        }
        calls += together;
    }
    Ok((store::rate(calls, begun.elapsed()), disk.sync_micros()?))
}

/// The same decisions as the store's, one client's. Says how many calls a second live through them while the
/// scheduler is at work: what it is asked is made beforehand, and what it says is thrown away afterwards.
pub(crate) fn scheduler(together: usize) -> anyhow::Result<usize> {
    let (client, clock) = (Client::of("calls")?, store::clock());
    let mut alone = Alone { scheduler: Scheduler::new(), effects: Vec::new() };
    alone.scheduler.watch(Watch::History);
    alone.scheduler.configure(store::ample()?, clock())?;
    alone.scheduler.define_queue(client.queue(), store::spec(), clock())?;
    let (begun, mut calls, mut at_work) = (Instant::now(), 0, Duration::ZERO);
    while begun.elapsed() < ROW {
        let (mut enqueue, claim) = (client.enqueue(calls, together), client.claim(together));
        let asked = Instant::now();
        alone.make(&mut enqueue, clock())?;
        let started = alone.scheduler.claim(&claim, clock());
        alone.forget();
        at_work += asked.elapsed();
        anyhow::ensure!(started.len() == together, "{} of {together}", started.len());
        let mut settle = store::settle(started.iter().map(|started| started.lease));
        let asked = Instant::now();
        alone.make(&mut settle, clock())?;
        at_work += asked.elapsed();
        drop(alone.scheduler.take_events());
        calls += together;
    }
    Ok(store::rate(calls, at_work))
}

/// A scheduler whose effects nobody writes down.
struct Alone {
    scheduler: Scheduler,
    /// Emptied, for its memory.
    effects: Vec<Effect>,
}

impl Alone {
    fn make(&mut self, acts: &mut [Act], now: Now) -> anyhow::Result<()> {
        for some in acts.chunks_mut(AT_ONCE) {
            for act in some {
                let _ = self.scheduler.make(act, now)?;
            }
            self.forget();
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.scheduler.swap_effects(&mut self.effects);
        self.effects.clear();
        drop(self.scheduler.take_freed());
    }
}
