//! The embedded store on this machine's disk: life cycles beside a bare log that does the same writes
//! and syncs, restarts, and lateness.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tollgate_core::contract::{Configure, Lanes as _, Meters as _};
use tollgate_core::lanes::{
    Act, Claim, Lease, NewCall, Order, Payload, QueueSpec, Settle, Settlement,
};
use tollgate_core::{
    Definition, LaneName, Limit, LimitName, Now, Partition, QueueName, Span, Toll,
};
use tollgate_engine::{Clock as _, SystemClock};
use tollgate_stores::embedded::disk::{Disk, RealDisk};
use tollgate_stores::embedded::{HistorySettings, StoreSettings};
use tollgate_stores::store::{Store, TimeSource};

use crate::bare;
use crate::folder::{Folder, size_of_folder};
use crate::process;
use crate::table::{Table, grouped};
use crate::timed_disk::TimedDisk;

/// Commands that are committed together.
const TOGETHER: [usize; 3] = [1, 64, 1_024];
/// Syncs of most disks last longer than those of this machine's: all is measured with such, too. With the first
/// a bare log does about as many life cycles as the one on which the store was designed.
const SLOW_SYNCS: [Duration; 2] = [Duration::from_micros(600), Duration::from_millis(1)];
/// How long a row is measured.
pub(crate) const ROW: Duration = Duration::from_secs(3);
/// Bytes of a call's body.
const BODY: usize = 100;
/// Tenants, and the meters at which they pay.
const LANES: usize = 100_000;
const PARTITIONS: usize = 100;
/// Calls that wait when the store is opened again.
const WAITING: [usize; 2] = [100_000, 5_000_000];

/// The child's command: `restart FOLDER`.
pub(crate) const COMMAND: &str = "restart";

/// How life cycles are measured.
#[derive(Clone, Copy)]
pub(crate) struct Cycles {
    /// Commands that are committed together.
    pub(crate) together: usize,
    pub(crate) history: HistorySettings,
    /// How long a sync lasts at least; zero for the disk's own.
    pub(crate) sync: Duration,
}

/// All that is measured.
pub(crate) fn rows() -> Vec<Cycles> {
    let syncs = [Duration::ZERO].into_iter().chain(SLOW_SYNCS);
    let rows = syncs.map(|sync| TOGETHER.map(|together| Cycles { sync, ..row(together) }));
    rows.flatten().collect()
}

/// So many commands a commit, on the disk as it is.
pub(crate) fn row(together: usize) -> Cycles {
    Cycles { together, history: HistorySettings::default(), sync: Duration::ZERO }
}

/// Life cycles per second beside a bare log, round by round.
pub(crate) fn life_cycles(rows: &[Cycles]) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Life cycles",
        &[
            "commands a commit",
            "a sync, ms",
            "store, calls/s",
            "bare scheduler, calls/s",
            "bare log, calls/s",
            "ratio",
            "bytes a call",
        ],
    );
    for row in rows {
        let store = Folder::new("store")?;
        let (calls, bytes) = store_cycles(&store.path, *row)?;
        let scheduler = bare::scheduler(row.together)?;
        let folder = Folder::new("bare")?;
        let (log, micros) = bare::log(&folder.path, *row, bytes)?;
        table.add(vec![
            grouped(row.together),
            format!("{:.2}", micros as f64 / 1e3),
            grouped(calls),
            grouped(scheduler),
            grouped(log),
            format!("{:.2}", calls as f64 / log as f64),
            bytes.to_string(),
        ]);
    }
    Ok(table)
}

/// So many life cycles; says how many a second.
pub(crate) fn live_through(
    together: usize,
    most: usize,
    history: HistorySettings,
) -> anyhow::Result<usize> {
    let folder = Folder::new("calls")?;
    let disk = Arc::new(RealDisk::open(&folder.path)?);
    let (store, clients) = (opened(disk, history)?, Client::both()?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let begun = Instant::now();
    runtime.block_on(async {
        define(&store).await?;
        for calls in (0..most).step_by(2 * together) {
            let [one, other] = clients.each_ref().map(|it| it.cycle(&store, calls, together));
            let (one, other) = tokio::join!(one, other);
            one.and(other)?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    anyhow::ensure!(store.history_dropped() == 0, "{} dropped", store.history_dropped());
    Ok(rate(most, begun.elapsed()))
}

fn opened(disk: Arc<dyn Disk>, history: HistorySettings) -> anyhow::Result<Store> {
    let settings = StoreSettings { history, ..StoreSettings::default() };
    Ok(Store::on(disk, settings, clock())?.store)
}

/// How long a restart takes, and how much memory.
pub(crate) fn restarts() -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Restart",
        &["waiting", "journal, MB", "seconds", "resident, MB", "bytes a waiting call"],
    );
    for waiting in WAITING {
        let folder = Folder::new("restart")?;
        fill(&folder.path, waiting)?;
        let path = folder.path.to_str().context("a path of text")?;
        let [millis, bytes]: [u64; 2] = process::ask(&[COMMAND, path])?;
        table.add(vec![
            grouped(waiting),
            (size_of_folder(&folder.path)? >> 20).to_string(),
            format!("{:.2}", millis as f64 / 1_000.0),
            (bytes >> 20).to_string(),
            (bytes / waiting as u64).to_string(),
        ]);
    }
    Ok(table)
}

/// The child's part of a restart: milliseconds, and bytes.
pub(crate) fn restart_here(folder: &str) -> anyhow::Result<Vec<u64>> {
    let before = process::memory_bytes("VmRSS")?;
    let begun = Instant::now();
    let opened = Store::open(Path::new(folder), clock())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(opened.store.advance())?;
    let millis = u64::try_from(begun.elapsed().as_millis())?;
    Ok(vec![millis, process::memory_bytes("VmRSS")?.saturating_sub(before)])
}

/// Calls a second that are enqueued, claimed and settled, and the bytes each takes in the journal. Two
/// clients take turns, so that one is served while the other's commit is synced.
fn store_cycles(folder: &Path, row: Cycles) -> anyhow::Result<(usize, u64)> {
    let Cycles { together, history, sync } = row;
    let disk = Arc::new(TimedDisk::open(folder, sync)?);
    let (store, clients) = (opened(disk, history)?, Client::both()?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (begun, mut calls) = (Instant::now(), 0);
    runtime.block_on(async {
        define(&store).await?;
        while begun.elapsed() < ROW {
            let [one, other] = clients.each_ref().map(|it| it.cycle(&store, calls, together));
            let (one, other) = tokio::join!(one, other);
            one?;
            other?;
            calls += 2 * together;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    let rate = rate(calls, begun.elapsed());
    drop(store);
    Ok((rate, size_of_folder(folder)? / calls as u64))
}

/// Who hands in calls of a queue of its own and settles them, with the names at hand: to write them out would cost as
/// much as some of what is measured.
pub(crate) struct Client {
    queue: QueueName,
    limit: LimitName,
    partitions: Vec<Partition>,
    lanes: Vec<LaneName>,
}

impl Client {
    fn both() -> anyhow::Result<[Self; 2]> {
        Ok([Self::of("calls")?, Self::of("others")?])
    }

    pub(crate) fn of(queue: &str) -> anyhow::Result<Self> {
        let partitions = (0..PARTITIONS).map(partition).collect::<anyhow::Result<_>>()?;
        let lanes = (0..LANES).map(lane).collect::<anyhow::Result<_>>()?;
        Ok(Self { queue: QueueName::new(queue)?, limit: LimitName::new("api")?, partitions, lanes })
    }

    /// As [`call`] has it.
    fn call(&self, number: usize) -> NewCall {
        let (limit, partition) = (self.limit.clone(), self.partitions.get(number % PARTITIONS));
        let partition = partition.cloned();
        let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
        let call = NewCall::new(self.queue.clone(), self.lanes[number % LANES].clone());
        NewCall { tolls: tolls.into(), payload: Payload::body_alone(&[b'x'; BODY]), ..call }
    }

    /// So many calls, each a command by itself.
    async fn cycle(&self, store: &Store, from: usize, together: usize) -> anyhow::Result<()> {
        for acted in store.act(self.enqueue(from, together)).await? {
            let _ = acted?;
        }
        let claimed = store.claim(self.claim(together)).await?;
        anyhow::ensure!(claimed.len() == together, "{} of {together}", claimed.len());
        for acted in store.act(settle(claimed.iter().map(|it| it.started.lease))).await? {
            let _ = acted?;
        }
        Ok(())
    }

    pub(crate) fn queue(&self) -> &QueueName {
        &self.queue
    }

    pub(crate) fn enqueue(&self, from: usize, together: usize) -> Vec<Act> {
        let calls = (from..from + together).map(|number| self.call(number));
        calls.map(|call| Act { enqueue: vec![call], ..Act::default() }).collect()
    }

    pub(crate) fn claim(&self, most: usize) -> Claim {
        Claim { queue: self.queue.clone(), most, lease: None, asks: Span::ZERO }
    }
}

/// Each start, done, an act by itself.
pub(crate) fn settle(leases: impl Iterator<Item = Lease>) -> Vec<Act> {
    let settlements = leases.map(|lease| vec![Settle::new(lease, Settlement::Done)]);
    settlements.map(|settle| Act { settle, ..Act::default() }).collect()
}

pub(crate) fn fill(folder: &Path, waiting: usize) -> anyhow::Result<()> {
    let store = Store::open(folder, clock())?.store;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        define(&store).await?;
        for from in (0..waiting).step_by(10_000) {
            let calls =
                (from..waiting.min(from + 10_000)).map(call).collect::<anyhow::Result<_>>()?;
            let act = Act { enqueue: calls, ..Act::default() };
            let _ = store.act(vec![act]).await?.remove(0)?;
        }
        Ok(())
    })
}

pub(crate) async fn define(store: &Store) -> anyhow::Result<()> {
    store.configure(ample()?).await??;
    let spec = spec();
    store.define_queue(QueueName::new("calls")?, spec.clone()).await??;
    store.define_queue(QueueName::new("others")?, spec).await??;
    Ok(())
}

/// A limit that is never in the way.
pub(crate) fn ample() -> anyhow::Result<Configure> {
    let limit = Limit::per(1_000_000_000, Span::from_secs(1)).burst(1_000_000_000);
    Ok(Configure::limit(LimitName::new("api")?, Some(Definition::new(limit)?)))
}

pub(crate) fn spec() -> QueueSpec {
    QueueSpec { order: Order::Parallel(1_000_000), depth_max: 1 << 50, ..QueueSpec::default() }
}

/// One of a hundred thousand tenants' calls, paid at the tenant's own meter of a hundred.
pub(crate) fn call(number: usize) -> anyhow::Result<NewCall> {
    let (lane, partition) = (lane(number)?, Some(partition(number)?));
    let limit = LimitName::new("api")?;
    let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
    let call = NewCall::new(QueueName::new("calls")?, lane);
    Ok(NewCall { tolls: tolls.into(), payload: vec![b'x'; BODY].into(), ..call })
}

fn lane(number: usize) -> anyhow::Result<LaneName> {
    Ok(LaneName::new(&format!("tenant-{:06}", number % LANES))?)
}

fn partition(number: usize) -> anyhow::Result<Partition> {
    Ok(Partition::new(&format!("key-{:02}", number % PARTITIONS))?)
}

pub(crate) fn clock() -> TimeSource {
    let clock = SystemClock::new();
    Arc::new(move || -> Now { clock.both() })
}

pub(crate) fn rate(calls: usize, time: Duration) -> usize {
    let nanos = time.as_nanos().max(1);
    usize::try_from(calls as u128 * 1_000_000_000 / nanos).unwrap_or(usize::MAX)
}
