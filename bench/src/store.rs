//! The embedded store on this machine's disk: life cycles beside a bare log that does the same writes
//! and syncs, restarts, and lateness.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tollgate_core::contract::{Configure, Lanes as _, Meters as _};
use tollgate_core::lanes::{Act, Claim, NewCall, Order, QueueSpec, Settle, Settlement};
use tollgate_core::{
    Definition, LaneName, Limit, LimitName, Now, Partition, QueueName, Span, Toll,
};
use tollgate_engine::{Clock as _, SystemClock};
use tollgate_stores::embedded::disk::RealDisk;
use tollgate_stores::embedded::log::{Batch, Log, LogError, SegmentNumber, Settings};
use tollgate_stores::embedded::{HistorySettings, StoreSettings};
use tollgate_stores::store::{Store, TimeSource};

use crate::folder::{Folder, size_of_folder};
use crate::process;
use crate::table::{Table, grouped};

/// Commands that are committed together.
pub(crate) const TOGETHER: [usize; 3] = [1, 64, 1_024];
/// How long a row is measured.
const ROW: Duration = Duration::from_secs(3);
/// Bytes of a call's body.
const BODY: usize = 100;
/// Calls that wait when the store is opened again.
const WAITING: [usize; 2] = [100_000, 5_000_000];

/// The child's command: `restart FOLDER`.
pub(crate) const COMMAND: &str = "restart";

/// Life cycles per second beside a bare log, round by round.
pub(crate) fn life_cycles(rows: &[usize], history: HistorySettings) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Life cycles",
        &["commands a commit", "store, calls/s", "bare log, calls/s", "ratio", "bytes a call"],
    );
    for &together in rows {
        let store = Folder::new("store")?;
        let (calls, bytes) = store_cycles(&store.path, together, history)?;
        let bare = Folder::new("bare")?;
        let log = bare_cycles(&bare.path, together, bytes)?;
        table.add(vec![
            grouped(together),
            grouped(calls),
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
    let store = opened(&folder.path, history)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let begun = Instant::now();
    runtime.block_on(async {
        define(&store).await?;
        for calls in (0..most).step_by(2 * together) {
            let [one, other] = [0, 1].map(|client| cycle(&store, client, calls, together));
            let (one, other) = tokio::join!(one, other);
            one.and(other)?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    anyhow::ensure!(store.history_dropped() == 0, "{} dropped", store.history_dropped());
    Ok(rate(most, begun.elapsed()))
}

fn opened(folder: &Path, history: HistorySettings) -> anyhow::Result<Store> {
    let disk = Arc::new(RealDisk::open(folder)?);
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
fn store_cycles(
    folder: &Path,
    together: usize,
    history: HistorySettings,
) -> anyhow::Result<(usize, u64)> {
    let store = opened(folder, history)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (begun, mut calls) = (Instant::now(), 0);
    runtime.block_on(async {
        define(&store).await?;
        while begun.elapsed() < ROW {
            let both = [0, 1].map(|client| cycle(&store, client, calls, together));
            let [one, other] = both;
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

/// So many calls of a client's own queue, each a command by itself.
async fn cycle(store: &Store, client: usize, from: usize, together: usize) -> anyhow::Result<()> {
    let queue = QueueName::new(["calls", "others"][client])?;
    let acts = (from..from + together).map(|number| {
        let call = NewCall { queue: queue.clone(), ..call(number)? };
        Ok(Act { enqueue: vec![call], ..Act::default() })
    });
    for acted in store.act(acts.collect::<anyhow::Result<_>>()?).await? {
        let _ = acted?;
    }
    let claim = Claim { queue, most: together, lease: None, asks: Span::ZERO };
    let claimed = store.claim(claim).await?;
    anyhow::ensure!(claimed.len() == together, "{} of {together}", claimed.len());
    let acts = claimed.iter().map(|claimed| {
        let (lease, settlement) = (claimed.started.lease, Settlement::Done);
        let settle = vec![Settle::new(lease, settlement)];
        Act { settle, ..Act::default() }
    });
    for acted in store.act(acts.collect()).await? {
        let _ = acted?;
    }
    Ok(())
}

/// The same writes and syncs with nothing behind them: three commits for as many calls as were
/// committed together.
fn bare_cycles(folder: &Path, together: usize, bytes: u64) -> anyhow::Result<usize> {
    let disk = Arc::new(RealDisk::open(folder)?);
    let unread = |_, _: &[u8]| Ok(());
    let (mut log, _) =
        Log::open::<LogError>(disk, Settings::default(), SegmentNumber::FIRST, unread)?;
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
    Ok(rate(calls, begun.elapsed()))
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
    let limit = Limit::per(1_000_000_000, Span::from_secs(1)).burst(1_000_000_000);
    let definition = Some(Definition::new(limit)?);
    store.configure(Configure::limit(LimitName::new("api")?, definition)).await??;
    let order = Order::Parallel(1_000_000);
    let spec = QueueSpec { order, depth_max: 1 << 50, ..QueueSpec::default() };
    store.define_queue(QueueName::new("calls")?, spec.clone()).await??;
    store.define_queue(QueueName::new("others")?, spec).await??;
    Ok(())
}

/// One of a hundred thousand tenants' calls, paid at the tenant's own meter of a hundred.
pub(crate) fn call(number: usize) -> anyhow::Result<NewCall> {
    let lane = LaneName::new(&format!("tenant-{:06}", number % 100_000))?;
    let partition = Some(Partition::new(&format!("key-{:02}", number % 100))?);
    let limit = LimitName::new("api")?;
    let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
    let call = NewCall::new(QueueName::new("calls")?, lane);
    Ok(NewCall { tolls, payload: vec![b'x'; BODY].into(), ..call })
}

pub(crate) fn clock() -> TimeSource {
    let clock = SystemClock::new();
    Arc::new(move || -> Now { clock.both() })
}

fn rate(calls: usize, time: Duration) -> usize {
    let nanos = time.as_nanos().max(1);
    usize::try_from(calls as u128 * 1_000_000_000 / nanos).unwrap_or(usize::MAX)
}
