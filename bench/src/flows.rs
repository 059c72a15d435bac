//! Steps of machines, beside plain calls that do the same: each hands in the next one.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, done, next};
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Outcome, Tollgate, global, toll};

use crate::folder::Folder;
use crate::process::cpu_ns;
use crate::table::{Table, grouped};

/// Steps of each row.
pub(crate) const STEPS_IN_ALL: u32 = 200_000;
/// Steps of each run, and calls of each lane.
const STEPS: u32 = 10;
/// Handlers at a time.
const HANDS: usize = 256;
/// Begun, or handed in, at a time.
const TOGETHER: usize = 256;
/// How often each cell is measured.
const ROUNDS: usize = 3;
/// Never refused: what is measured is the way.
const RATE: u64 = 1_000_000_000;

/// What a step pays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pays {
    Nothing,
    /// At one meter, all of them.
    Hot,
    /// At one of a hundred meters.
    Parted,
}

/// What is measured.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Calls of which each hands in the next.
    Calls,
    /// Calls that are all handed in first, each in a lane of its own.
    Ahead,
    /// Runs of ten steps.
    Runs,
    /// Runs of one step.
    Short,
}

#[derive(Serialize, Deserialize)]
struct Count {
    number: u32,
    left: u32,
}

struct Counts(Pays);

impl Machine for Counts {
    const NAME: &'static str = "counts";
    type State = Count;

    async fn step(&self, step: Step<Count>) -> Result<StepOutcome, StepError> {
        let Count { number, left } = step.state;
        if left <= 1 {
            return Ok(done(number));
        }
        let then = next("count", Count { number, left: left - 1 });
        Ok(match self.0 {
            Pays::Nothing => then,
            Pays::Hot => then.pays(global("limit")),
            Pays::Parted => then.pays(toll("limit", &part(number))),
        })
    }
}

fn part(number: u32) -> String {
    (number % 100).to_string()
}

fn call(number: u32, left: u32, pays: Pays) -> Call {
    let call =
        Call::new(number.to_string()).body(format!("{{\"number\":{number},\"left\":{left}}}"));
    match pays {
        Pays::Nothing => call,
        Pays::Hot => call.pays(global("limit")),
        Pays::Parted => call.pays(toll("limit", &part(number))),
    }
}

fn made(job: &Job, pays: Pays) -> Outcome {
    match serde_json::from_slice(&job.body) {
        Ok(Count { number, left }) if left > 1 => {
            Outcome::done().enqueue("plain", call(number, left - 1, pays))
        }
        _ => Outcome::done(),
    }
}

/// Steps or calls a second, with so many in all, and what each takes of a processor, in the rows whose names have
/// this in them. Each cell is measured a few times, in turn with the others of its column, and tells the middle.
pub(crate) fn measure(steps: u32, of_rows: &str) -> anyhow::Result<[Table; 2]> {
    let columns = ["", "no limit", "one hot limit", "100 partitions"];
    let mut rates = Table::new("Steps a second", &columns);
    let mut costs = Table::new("Processor time of a step, µs", &columns);
    let mut rows = vec![
        ("calls, handed in first", Kind::Ahead),
        ("calls, each hands in the next", Kind::Calls),
        ("runs of ten steps", Kind::Runs),
        ("runs of one step", Kind::Short),
    ];
    rows.retain(|(name, _)| name.contains(of_rows));
    let mut cells: Vec<_> = rows.iter().map(|_| [const { Vec::new() }; 3]).collect();
    for (column, pays) in [Pays::Nothing, Pays::Hot, Pays::Parted].into_iter().enumerate() {
        for _ in 0..ROUNDS {
            for ((_, kind), cells) in rows.iter().zip(&mut cells) {
                cells[column].push(measured(*kind, pays, steps)?);
            }
        }
    }
    for ((name, _), cells) in rows.iter().zip(cells) {
        let middle = cells.map(middle);
        let row = |told: fn(&Measured) -> String| {
            [name.to_string()].into_iter().chain(middle.iter().map(told)).collect()
        };
        rates.add(row(|measured| grouped(measured.rate)));
        costs.add(row(|measured| format!("{:.1}", measured.cpu_us)));
    }
    Ok([rates, costs])
}

/// Of one cell.
#[derive(Clone, Copy)]
struct Measured {
    rate: usize,
    /// Of one step. It tells more than the rate where others take the processor away.
    cpu_us: f64,
}

/// The one in the middle of a few, by what a step took.
fn middle(mut rounds: Vec<Measured>) -> Measured {
    rounds.sort_by(|one, other| one.cpu_us.total_cmp(&other.cpu_us));
    rounds[rounds.len() / 2]
}

fn measured(kind: Kind, pays: Pays, steps: u32) -> anyhow::Result<Measured> {
    let folder = Folder::new("flows")?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    let (took, cpu_ns) = runtime.block_on(async {
        let gate = Tollgate::open(&folder.path).await?;
        gate.limit("limit", Limit::per_second(RATE)).await?;
        gate.queue("plain", QueueSpec::default()).await?;
        let (began, cpu_before) = (Instant::now(), cpu_ns()?);
        match kind {
            Kind::Ahead => calls(&gate, (steps, 1), pays).await?,
            Kind::Calls => calls(&gate, (steps / STEPS, STEPS), pays).await?,
            Kind::Runs => runs(&gate, (steps / STEPS, STEPS), pays).await?,
            Kind::Short => runs(&gate, (steps, 1), pays).await?,
        }
        let took = (began.elapsed(), cpu_ns()?.saturating_sub(cpu_before));
        gate.shut_down().await;
        anyhow::Ok(took)
    })?;
    let rate = u128::from(steps) * 1_000_000_000 / took.as_nanos().max(1);
    let cpu_us = cpu_ns as f64 / 1_000.0 / f64::from(steps);
    Ok(Measured { rate: usize::try_from(rate)?, cpu_us })
}

async fn calls(gate: &Tollgate, (lanes, left): (u32, u32), pays: Pays) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..lanes).collect();
    for numbers in numbers.chunks(TOGETHER) {
        gate.enqueue_all("plain", numbers.iter().map(|number| call(*number, left, pays))).await?;
    }
    let worker = gate.worker("plain").concurrency(HANDS).until_drained();
    worker.run(move |job| async move { made(&job, pays) }).await?;
    Ok(())
}

async fn runs(gate: &Tollgate, (runs, left): (u32, u32), pays: Pays) -> anyhow::Result<()> {
    let flows = gate.flows();
    let numbers: Vec<u32> = (0..runs).collect();
    for numbers in numbers.chunks(TOGETHER) {
        let new = numbers.iter().map(|number| {
            let new = NewRun::new::<Counts>("count", Count { number: *number, left });
            match pays {
                Pays::Nothing => new,
                Pays::Hot => new.pays(global("limit")),
                Pays::Parted => new.pays(toll("limit", &part(*number))),
            }
        });
        flows.start_all(new).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    flows.worker(Counts(pays)).concurrency(HANDS).until_drained().run().await?;
    Ok(())
}
