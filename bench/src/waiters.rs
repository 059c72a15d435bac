//! Section: tasks that wait on one limiter: processor time, order and share of the rate.

mod crowd;
mod order;

pub(crate) use crowd::{Crowd, Outcome};

use anyhow::Context as _;

use crate::contenders::{ALL, named};
use crate::plan::{AWAITED, CROWDS, Plan, THREADS};
use crate::process;
use crate::table::{Table, grouped};

/// The child's command: `waiters CONTENDER TASKS THREADS MILLISECONDS`.
pub(crate) const COMMAND: &str = "waiters";

/// Lets a child measure each contender with each crowd and returns the section.
pub(crate) fn measure(plan: &Plan) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Waiting tasks",
        &[
            "waiters",
            "threads",
            "contender",
            "CPU per grant, µs",
            "share of the rate",
            "inversions",
        ],
    );
    for crowd in CROWDS {
        for threads in THREADS {
            for contender in ALL.iter().filter(|contender| contender.waiters.is_some()) {
                let numbers = [crowd.to_string(), threads.to_string(), plan.wait_ms.to_string()];
                let [tasks, threads, wait_ms] = &numbers;
                let outcome =
                    process::ask(&[COMMAND, contender.name, tasks, threads, wait_ms])?.into();
                table.add(row([&grouped(crowd), threads, contender.name], outcome));
            }
        }
    }
    Ok(table)
}

/// The child's part: the fields of [`Outcome`].
pub(crate) fn measure_here(name: &str, numbers: [usize; 3]) -> anyhow::Result<Vec<u64>> {
    let [tasks, threads, wait_ms] = numbers;
    let contender = named(name)?;
    let measure = contender.waiters.context("nothing can wait on this contender")?;
    let outcome = measure(&Crowd { tasks, threads, wait_ms: wait_ms as u64, limit: AWAITED })?;
    Ok(<[u64; 5]>::from(outcome).to_vec())
}

fn row(subject: [&str; 3], outcome: Outcome) -> Vec<String> {
    let due = outcome.elapsed_ns as f64 / AWAITED.interval.as_nanos() as f64;
    let cpu_per_grant = outcome.cpu_ns as f64 / 1_000.0 / outcome.grants as f64;
    let percent = |part: f64, whole: f64| format!("{:.1} %", 100.0 * part / whole);
    let mut cells = subject.map(str::to_owned).to_vec();
    cells.push(format!("{cpu_per_grant:.1}"));
    cells.push(percent(outcome.grants as f64, due));
    cells.push(percent(outcome.inversions as f64, outcome.pairs as f64));
    cells
}
