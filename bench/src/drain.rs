//! Tenants whose calls wait for their limits, drained by workers: how long it takes beside the shortest
//! time that the limits allow, how late calls start, and what a call costs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tollgate::lanes::QueueSpec;
use tollgate::{Call, Clock as _, Job, Limit, Span, SystemClock, Timestamp, Tollgate, toll};

use crate::folder::{Folder, database};
use crate::process;
use crate::table::{Table, grouped};

/// Units a second for each tenant, and at once.
const RATE: u64 = 100;
const BURST: u64 = 10;
/// Calls that are handed in together.
const TOGETHER: usize = 1_000;
/// Handlers of one worker at a time.
const HANDS: usize = 64;

/// What a row drains.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    model: Model,
    tenants: usize,
    calls: usize,
    workers: usize,
}

/// How calls pay.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Model {
    /// One unit a call: a request with a batch in it, a message, or a single operation.
    One,
    /// One to ten units a call.
    Weighted,
    /// A request and five operations, at two limits at once.
    Both,
    /// So many in any ten seconds.
    Rolling,
}

impl Model {
    fn name(self) -> &'static str {
        match self {
            Self::One => "A, B, C: one unit a call",
            Self::Weighted => "D: by weight, 1 to 10",
            Self::Both => "A+B: two limits",
            Self::Rolling => "E: 20 in any 10 s",
        }
    }

    async fn define(self, gate: &Tollgate) -> anyhow::Result<()> {
        match self {
            Self::One => gate.limit("calls", Limit::per_second(RATE).burst(BURST)).await?,
            Self::Weighted => gate.limit("calls", Limit::per_second(10 * RATE).burst(100)).await?,
            Self::Both => {
                gate.limit("calls", Limit::per_second(RATE).burst(BURST)).await?;
                gate.limit("operations", Limit::per_second(250).burst(25)).await?;
            }
            Self::Rolling => {
                gate.limit("calls", Limit::sliding_window(20, Span::from_secs(10))).await?;
            }
        }
        Ok(())
    }

    fn weight(self, call: usize) -> u64 {
        if self == Self::Weighted { 1 + call as u64 % 10 } else { 1 }
    }

    fn call(self, tenant: &str, number: usize) -> Call {
        let call = Call::new(tenant).pays(toll("calls", tenant).weight(self.weight(number)));
        let call = call.body(vec![b'x'; 100]);
        if self == Self::Both { call.pays(toll("operations", tenant).weight(5)) } else { call }
    }

    /// How long after the first start of a tenant a call may start at the earliest, in ns.
    fn earliest(self, call: usize) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        let until = |units: u64, burst: u64, rate: u64| units.saturating_sub(burst) * SECOND / rate;
        let units = call as u64 + 1;
        match self {
            Self::One => until(units, BURST, RATE),
            Self::Weighted => {
                let paid: u64 = (0..=call).map(|call| self.weight(call)).sum();
                until(paid, 100, 10 * RATE)
            }
            Self::Both => until(5 * units, 25, 250).max(until(units, BURST, RATE)),
            Self::Rolling => (call as u64 / 20) * 10 * SECOND,
        }
    }
}

/// The rows of the comparison: the stress, and each model.
pub(crate) fn rows() -> Vec<Row> {
    let stress = [(10, 500), (50, 2_000), (100, 5_000)];
    let stress = stress.into_iter().flat_map(|(tenants, calls)| {
        [1, 4, 8].map(|workers| Row { model: Model::One, tenants, calls, workers })
    });
    let models = [(Model::Weighted, 2_000), (Model::Both, 1_000), (Model::Rolling, 60)];
    let models = models.map(|(model, calls)| Row { model, tenants: 50, calls, workers: 4 });
    stress.chain(models).collect()
}

/// A short row, to look at one thing.
pub(crate) fn row(tenants: usize, calls: usize, workers: usize) -> Row {
    Row { model: Model::One, tenants, calls, workers }
}

/// Drains each row.
pub(crate) fn measure(rows: &[Row]) -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Drain at the limit",
        &[
            "calls pay",
            "tenants × calls",
            "workers",
            "shortest, s",
            "real, s",
            "share",
            "calls/s a tenant, worst",
            "early",
            "late p50, ms",
            "late p99, ms",
            "CPU, µs a call",
        ],
    );
    for row in rows {
        table.add(drained(*row)?);
    }
    Ok(table)
}

type Starts = Arc<Mutex<Vec<(String, Timestamp, Timestamp)>>>;

fn drained(row: Row) -> anyhow::Result<Vec<String>> {
    let (folder, clock) = (Folder::new("drain")?, SystemClock::new());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let starts: Starts = Arc::default();
    let cpu = runtime.block_on(async {
        let gates = gates(row, &folder, &clock).await?;
        let gate = &gates[0];
        gate.queue("calls", QueueSpec::default()).await?;
        row.model.define(gate).await?;
        // Held back until all are there, so that all begin together.
        gate.pause_queue("calls").await?;
        fill(gate, row).await?;
        let before = process::cpu_ns()?;
        let mut workers = tokio::task::JoinSet::new();
        for gate in &gates {
            let (starts, clock) = (starts.clone(), clock.clone());
            let worker = gate.worker("calls").concurrency(HANDS).until_drained();
            workers.spawn(worker.run(move |job: Job| {
                let now = clock.now();
                let mut starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
                starts.push((job.lane.to_string(), job.started, now));
                async {}
            }));
        }
        gate.resume_queue("calls").await?;
        while let Some(worked) = workers.join_next().await {
            let worked = worked??;
            anyhow::ensure!(worked.lost == 0 && worked.late == 0, "{worked:?}");
        }
        Ok::<_, anyhow::Error>(process::cpu_ns()?.saturating_sub(before))
    })?;
    let starts = starts.lock().unwrap_or_else(PoisonError::into_inner);
    told(row, &starts, cpu)
}

/// A store for each worker: all have one folder, or in a database each is a node of its own.
async fn gates(row: Row, folder: &Folder, clock: &SystemClock) -> anyhow::Result<Vec<Tollgate>> {
    let Some(url) = database() else {
        let gate = Tollgate::builder().clock(clock.clone()).open(&folder.path).await?;
        return Ok(vec![gate; row.workers]);
    };
    let Row { tenants, calls, workers, .. } = row;
    let schema = format!("drain_{}_{tenants}_{calls}_{workers}", std::process::id());
    let mut gates = Vec::with_capacity(workers);
    for _ in 0..workers {
        gates.push(Tollgate::builder().prefix(&schema).connect(&url).await?);
    }
    Ok(gates)
}

async fn fill(gate: &Tollgate, row: Row) -> anyhow::Result<()> {
    let names: Vec<String> = (0..row.tenants).map(|tenant| format!("tenant-{tenant:03}")).collect();
    for from in (0..row.calls).step_by(TOGETHER) {
        for name in &names {
            let some = from..row.calls.min(from + TOGETHER);
            let calls = some.map(|number| row.model.call(name, number));
            gate.enqueue_all("calls", calls).await?;
        }
    }
    Ok(())
}

fn told(
    row: Row,
    starts: &[(String, Timestamp, Timestamp)],
    cpu: u64,
) -> anyhow::Result<Vec<String>> {
    let Row { model, tenants, calls, workers } = row;
    anyhow::ensure!(starts.len() == tenants * calls, "{} started", starts.len());
    let mut by_tenant: HashMap<&str, Vec<(Timestamp, Timestamp)>> = HashMap::new();
    for (tenant, started, handled) in starts {
        by_tenant.entry(tenant).or_default().push((*started, *handled));
    }
    let (mut late, mut early, mut slowest) = (Vec::new(), 0, f64::MAX);
    let mut longest = Span::ZERO;
    for starts in by_tenant.values_mut() {
        starts.sort_unstable();
        let (first, last) = (starts[0].0, starts[starts.len() - 1].0);
        // A database has a clock of its own: there the first call is taken to be in time.
        let zero = if database().is_some() { starts[0].1 } else { first };
        longest = longest.max(last.since(first));
        slowest = slowest.min(calls as f64 / seconds(last.since(first)));
        for (number, (started, handled)) in starts.iter().enumerate() {
            let earliest = first.plus(Span::from_nanos(model.earliest(number)));
            early += usize::from(*started < earliest);
            let in_time = zero.plus(Span::from_nanos(model.earliest(number)));
            late.push(handled.since(in_time).as_nanos());
        }
    }
    late.sort_unstable();
    let shortest = Span::from_nanos(model.earliest(calls - 1));
    let at = |share: usize| late[(late.len() - 1) * share / 100] as f64 / 1e6;
    Ok(vec![
        model.name().to_owned(),
        format!("{tenants} × {}", grouped(calls)),
        workers.to_string(),
        format!("{:.2}", seconds(shortest)),
        format!("{:.2}", seconds(longest)),
        format!("{:.2} %", 100.0 * seconds(shortest) / seconds(longest)),
        format!("{slowest:.1}"),
        early.to_string(),
        format!("{:.2}", at(50)),
        format!("{:.2}", at(99)),
        format!("{:.1}", cpu as f64 / 1e3 / starts.len() as f64),
    ])
}

fn seconds(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e9
}
