//! The embedded store with more and more calls that wait: what a call costs then, how much memory they
//! take, and the worst commit while a checkpoint is made.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tollgate_core::contract::Lanes as _;
use tollgate_core::lanes::{Act, Claim, NewCall, Settle, Settlement};
use tollgate_core::{QueueName, Span};
use tollgate_stores::embedded::StoreSettings;
use tollgate_stores::embedded::disk::RealDisk;
use tollgate_stores::store::Store;

use crate::folder::Folder;
use crate::process;
use crate::store::{call, clock, define, fill};
use crate::table::{Table, grouped};

/// Calls that wait.
const WAITING: [usize; 5] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// Calls that are claimed, settled and replaced at a time.
const TOGETHER: usize = 100;
/// How long a row is measured.
const ROW: Duration = Duration::from_secs(3);
/// Calls that wait while commits are timed.
const BESIDE: usize = 1_000_000;

/// The child's command: `waiting CALLS`.
pub(crate) const COMMAND: &str = "waiting";
/// The child's command: `commits CHECKPOINT_BYTES`.
pub(crate) const COMMITS: &str = "commits";

/// What a call costs beside so many that wait.
pub(crate) fn costs() -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Calls that wait in a store",
        &[
            "waiting",
            "claim, settle and enqueue, µs a call",
            "resident, MB",
            "bytes a waiting call",
        ],
    );
    for waiting in WAITING {
        let [nanos, bytes]: [u64; 2] = process::ask(&[COMMAND, &waiting.to_string()])?;
        table.add(vec![
            grouped(waiting),
            format!("{:.2}", nanos as f64 / 1e3),
            (bytes >> 20).to_string(),
            (bytes / waiting as u64).to_string(),
        ]);
    }
    Ok(table)
}

/// The child's part: nanoseconds of a call, and resident bytes.
pub(crate) fn cost_here(waiting: usize) -> anyhow::Result<Vec<u64>> {
    let before = process::memory_bytes("VmRSS")?;
    let folder = Folder::new("waiting")?;
    fill(&folder.path, waiting)?;
    let store = Store::open(&folder.path, clock())?.store;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(define(&store))?;
    let resident = process::memory_bytes("VmRSS")?.saturating_sub(before);
    let (begun, mut calls) = (Instant::now(), 0);
    while begun.elapsed() < ROW {
        runtime.block_on(replace(&store, waiting + calls))?;
        calls += TOGETHER;
    }
    let nanos = begun.elapsed().as_nanos() / calls.max(1) as u128;
    Ok(vec![u64::try_from(nanos)?, resident])
}

/// The worst commit with checkpoints and without, beside calls that wait.
pub(crate) fn commits() -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Commits while a checkpoint is made",
        &["checkpoints", "commits", "p50, ms", "p99, ms", "worst, ms"],
    );
    for (name, bytes) in [("none", u64::MAX), ("one after another", 1 << 20)] {
        let numbers: [u64; 4] = process::ask(&[COMMITS, &bytes.to_string()])?;
        let [commits, half, most, worst] = numbers;
        let millis = |nanos: u64| format!("{:.2}", nanos as f64 / 1e6);
        let commits = grouped(usize::try_from(commits)?);
        table.add(vec![name.to_owned(), commits, millis(half), millis(most), millis(worst)]);
    }
    Ok(table)
}

/// The child's part: how many commits, the time of half of them, of 99 %, and of the worst.
pub(crate) fn commits_here(checkpoint_bytes: u64) -> anyhow::Result<Vec<u64>> {
    let folder = Folder::new("commits")?;
    fill(&folder.path, BESIDE)?;
    let disk = Arc::new(RealDisk::open(Path::new(&folder.path))?);
    let settings = StoreSettings { checkpoint_bytes, ..StoreSettings::default() };
    let store = Store::on(disk, settings, clock())?.store;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (begun, mut number, mut times) = (Instant::now(), 0, Vec::new());
    // Several checkpoints of a million calls are made in this time.
    while begun.elapsed() < 5 * ROW {
        let commit = Instant::now();
        runtime.block_on(replace(&store, BESIDE + number))?;
        // It is three commits, one after the other.
        times.push(u64::try_from(commit.elapsed().as_nanos() / 3)?);
        number += TOGETHER;
    }
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    let worst = times.last().copied().context("a commit")?;
    Ok(vec![3 * times.len() as u64, at(50), at(99), worst])
}

/// Claims some calls, settles them, and enqueues as many.
async fn replace(store: &Store, from: usize) -> anyhow::Result<()> {
    let queue = QueueName::new("calls")?;
    let claim = Claim { queue, most: TOGETHER, lease: None, asks: Span::ZERO };
    let claimed = store.claim(claim).await?;
    anyhow::ensure!(claimed.len() == TOGETHER, "{} of {TOGETHER}", claimed.len());
    let settle = claimed.iter().map(|claimed| {
        let (lease, settlement) = (claimed.started.lease, Settlement::Done);
        Settle::new(lease, settlement)
    });
    let settled = Act { settle: settle.collect(), ..Act::default() };
    let calls = (from..from + TOGETHER).map(call);
    let enqueue = calls.collect::<anyhow::Result<Vec<NewCall>>>()?;
    for act in [settled, Act { enqueue, ..Act::default() }] {
        let _ = store.act(vec![act]).await?.remove(0)?;
    }
    Ok(())
}
