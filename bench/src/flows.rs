//! Steps of machines, beside plain calls that do the same: each hands in the next one.

use std::time::Instant;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tollgate::flows::{Machine, NewRun, Step, StepError, StepOutcome, done, next};
use tollgate::lanes::QueueSpec;
use tollgate::{Call, Job, Limit, Outcome, Tollgate, global, toll};

use crate::folder::Folder;
use crate::process::{self, cpu_ns};
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
const ROUNDS: usize = 5;
/// What a child is told to measure a cell by.
pub(crate) const COMMAND: &str = "cell";
const COLUMNS: [(&str, Pays); 3] =
    [("no limit", Pays::Nothing), ("one hot limit", Pays::Hot), ("100 partitions", Pays::Parted)];
const ROWS: [(&str, Kind); 4] = [
    ("calls, handed in first", Kind::Ahead),
    ("calls, each hands in the next", Kind::Calls),
    ("runs of ten steps", Kind::Runs),
    ("runs of one step", Kind::Short),
];
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
/// this in them. Each cell is measured a few times, in turn with all others, and tells the middle.
pub(crate) fn measure(steps: u32, of_rows: &str) -> anyhow::Result<[Table; 2]> {
    let columns: Vec<_> = [""].into_iter().chain(COLUMNS.map(|(name, _)| name)).collect();
    let mut rates = Table::new("Steps a second", &columns);
    let mut costs = Table::new("Processor time of a step, µs", &columns);
    let rows = || ROWS.iter().filter(|(name, _)| name.contains(of_rows));
    let mut cells: Vec<_> = rows().map(|_| [const { Vec::new() }; 3]).collect();
    for _ in 0..ROUNDS {
        for (column, (pays, _)) in COLUMNS.iter().enumerate() {
            for ((kind, _), cells) in rows().zip(&mut cells) {
                cells[column].push(Measured::ask(kind, pays, steps)?);
            }
        }
    }
    for ((name, _), cells) in rows().zip(cells) {
        let middle = cells.map(middle);
        let row = |told: fn(&Measured) -> String| {
            [name.to_string()].into_iter().chain(middle.iter().map(told)).collect()
        };
        rates.add(row(|measured| grouped(measured.rate)));
        costs.add(row(|measured| format!("{:.1}", measured.cpu_ns as f64 / 1_000.0)));
    }
    Ok([rates, costs])
}

/// Of one cell.
#[derive(Clone, Copy)]
struct Measured {
    rate: usize,
    /// Of one step. It tells more than the rate where others take the processor away.
    cpu_ns: u64,
}

impl Measured {
    /// Lets a child measure: what one cell leaves behind is not what the next one begins with.
    fn ask(row: &str, column: &str, steps: u32) -> anyhow::Result<Self> {
        let [rate, cpu_ns] = process::ask(&[COMMAND, row, column, &steps.to_string()])?;
        Ok(Self { rate: usize::try_from(rate)?, cpu_ns })
    }
}

/// The one in the middle of a few, by what a step took.
fn middle(mut rounds: Vec<Measured>) -> Measured {
    rounds.sort_by_key(|round| round.cpu_ns);
    rounds[rounds.len() / 2]
}

/// The child's part: the rate of a cell, and the processor time of a step.
pub(crate) fn measure_here(row: &str, column: &str, steps: u32) -> anyhow::Result<[u64; 2]> {
    let (_, kind) = ROWS.into_iter().find(|(name, _)| *name == row).context("no such row")?;
    let column = COLUMNS.into_iter().find(|(name, _)| *name == column);
    let (_, pays) = column.context("no such column")?;
    let folder = Folder::new("flows")?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    let path = folder.path.clone();
    // All of it on the threads of the runtime: a worker of a machine is there, whoever waits for it.
    let measured = runtime.spawn(async move {
        let gate = Tollgate::open(&path).await?;
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
    });
    let (took, cpu_ns) = runtime.block_on(measured)??;
    let rate = u128::from(steps) * 1_000_000_000 / took.as_nanos().max(1);
    Ok([u64::try_from(rate)?, cpu_ns / u64::from(steps.max(1))])
}

async fn calls(gate: &Tollgate, (lanes, left): (u32, u32), pays: Pays) -> anyhow::Result<()> {
    let numbers: Vec<u32> = (0..lanes).collect();
    for numbers in numbers.chunks(TOGETHER) {
        let calls: Vec<_> = numbers.iter().map(|number| call(*number, left, pays)).collect();
        gate.enqueue_all("plain", calls).await?;
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
        let new: Vec<_> = new.collect();
        flows.start_all(new).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    flows.worker(Counts(pays)).concurrency(HANDS).until_drained().run().await?;
    Ok(())
}
