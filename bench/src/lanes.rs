//! The scheduler of lanes: what a call costs with few and with millions waiting, in memory and time.
//!
//! Each row runs in a fresh child. Claims are measured apart from what follows them; every call that
//! starts is settled and another is enqueued in its stead, so that as many go on waiting.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tollgate_core::Toll;
use tollgate_core::lanes::{
    Act, Claim, NewCall, Order, QueueSpec, Scheduler, Settle, Settlement, Started,
};
use tollgate_core::{
    Definition, LaneName, Limit, LimitName, Now, Partition, QueueName, Span, Timestamp,
};

use crate::process;
use crate::table::{Table, grouped};

/// The child's command: `lanes METERS LANES CALLS`.
pub(crate) const COMMAND: &str = "lanes";

/// Lanes, and calls that wait in them.
const SIZES: [(usize, usize); 5] = [
    (100, 1_000),
    (10_000, 100_000),
    (10_000, 1_000_000),
    (1_000_000, 1_000_000),
    (1_000_000, 10_000_000),
];
/// Calls that one claim asks for.
const CLAIMS: [usize; 3] = [1, 100, 1_000];
/// Calls that are started in one round; the best of the rounds is told.
const ROUND: usize = 20_000;
const ROUNDS: usize = 7;
/// Claims of a meter that is spent.
const BLOCKED: usize = 10_000;

/// Lets a child measure each size and returns the section.
pub(crate) fn measure() -> anyhow::Result<Table> {
    let mut table = Table::new(
        "Lanes",
        &[
            "meters",
            "lanes",
            "waiting",
            "enqueue, ns a call",
            "claim of 1, ns a call",
            "of 100",
            "of 1,000",
            "claim, settle and enqueue 100, ns a call",
            "claim that finds all blocked, ns",
            "bytes a waiting call",
        ],
    );
    for meters in [OWN, SHARED, COMING] {
        for (lanes, calls) in SIZES {
            let numbers = [lanes.to_string(), calls.to_string()];
            let row: [u64; 7] = process::ask(&[COMMAND, meters, &numbers[0], &numbers[1]])?;
            let mut cells = vec![meters.to_owned(), grouped(lanes), grouped(calls)];
            cells.extend(row.iter().map(u64::to_string));
            table.add(cells);
        }
    }
    Ok(table)
}

const OWN: &str = "one a lane";
const SHARED: &str = "one for all";
/// Each lane has a limit of its own, which comes along with its calls.
const COMING: &str = "a limit that came along a lane";

/// The child's part: a row's numbers.
pub(crate) fn measure_here(meters: &str, lanes: usize, calls: usize) -> anyhow::Result<Vec<u64>> {
    let mut world = World::new(meters, lanes)?;
    let before = process::memory_bytes("VmRSS")?;
    let begun = Instant::now();
    for from in (0..calls).step_by(1_000) {
        world.enqueue(1_000.min(calls - from), vec![])?;
    }
    let enqueue = nanos_each(begun.elapsed(), calls);
    let bytes = process::memory_bytes("VmRSS")?.saturating_sub(before) / u64::try_from(calls)?;
    let mut numbers = vec![enqueue];
    let mut cycle = 0;
    for claim in CLAIMS {
        let (claims, all) = world.cycles(claim)?;
        numbers.push(claims);
        cycle = if claim == 100 { all } else { cycle };
    }
    numbers.extend([cycle, world.blocked()?, bytes]);
    Ok(numbers)
}

struct World {
    scheduler: Scheduler,
    now: Now,
    names: Names,
    has_own_meters: bool,
    has_own_limits: bool,
    lanes: usize,
    enqueued: usize,
}

struct Names {
    queue: QueueName,
    limit: LimitName,
}

impl World {
    fn new(meters: &str, lanes: usize) -> anyhow::Result<Self> {
        let now = Now::both(Timestamp::from_nanos(1_000_000_000));
        let names = Names { queue: QueueName::new("calls")?, limit: LimitName::new("api")? };
        let mut scheduler = Scheduler::new();
        let order = Order::Parallel(1_000_000);
        let spec = QueueSpec { order, depth_max: 1 << 50, ..QueueSpec::default() };
        scheduler.define_queue(&names.queue, spec, now)?;
        let (has_own_meters, has_own_limits) = (meters == OWN, meters == COMING);
        let mut world =
            Self { scheduler, now, names, has_own_meters, has_own_limits, lanes, enqueued: 0 };
        world.limit(ample())?;
        Ok(world)
    }

    fn limit(&mut self, limit: Limit) -> anyhow::Result<()> {
        let definition = Some(Definition::new(limit)?);
        self.scheduler.define_limit(&self.names.limit, definition, self.now);
        Ok(())
    }

    fn call(&self, number: usize) -> anyhow::Result<NewCall> {
        let lane = self.lane(number);
        let partition = if self.has_own_meters { Some(Partition::new(&lane)?) } else { None };
        let limit = match self.has_own_limits {
            true => LimitName::new(&lane)?,
            false => self.names.limit.clone(),
        };
        let tolls = vec![Toll { limit, partition, weight: 1, hears_feedback: false }];
        let call = NewCall::new(self.names.queue.clone(), LaneName::new(&lane)?);
        Ok(NewCall { tolls: tolls.into(), ..call })
    }

    /// Settles what has started and enqueues new calls, in one act.
    fn enqueue(&mut self, count: usize, settle: Vec<Settle>) -> anyhow::Result<()> {
        let numbers = self.enqueued..self.enqueued + count;
        let define = self.coming(numbers.clone(), &ample())?;
        let enqueue = numbers.map(|number| self.call(number)).collect::<Result<_, _>>()?;
        let _ = self.scheduler.act(Act { define, settle, enqueue, ..Act::default() }, self.now)?;
        self.enqueued += count;
        // A store would write them down.
        drop(self.scheduler.take_effects());
        Ok(())
    }

    fn lane(&self, number: usize) -> String {
        format!("lane-{:07}", number % self.lanes)
    }

    /// The limits that come along with calls of these numbers.
    fn coming(
        &self,
        numbers: Range<usize>,
        limit: &Limit,
    ) -> anyhow::Result<Vec<(LimitName, Definition)>> {
        let own = numbers.filter(|_| self.has_own_limits);
        let own = own.map(|number| -> anyhow::Result<_> {
            Ok((LimitName::new(&self.lane(number))?, Definition::new(limit.clone())?))
        });
        own.collect()
    }

    fn claim(&mut self, most: usize) -> Vec<Started> {
        self.now = self.now.moved_to(self.now.at.plus(Span::from_nanos(1_000)));
        let claim = Claim {
            queue: self.names.queue.clone(),
            most,
            lease: Some(Span::from_days(1)),
            asks: Span::ZERO,
        };
        self.scheduler.claim(&claim, self.now)
    }

    /// The time of claims alone, and of a call's whole life, for each call.
    fn cycles(&mut self, claim: usize) -> anyhow::Result<(u64, u64)> {
        let (mut claims, mut all) = (u64::MAX, u64::MAX);
        for _ in 0..ROUNDS {
            let (begun, mut claiming, mut calls) = (Instant::now(), Duration::ZERO, 0);
            while calls < ROUND {
                let asked = Instant::now();
                let started = self.claim(claim);
                claiming += asked.elapsed();
                calls += started.len();
                let settle =
                    started.iter().map(|started| Settle::new(started.lease, Settlement::Done));
                self.enqueue(started.len(), settle.collect())?;
            }
            claims = claims.min(nanos_each(claiming, calls));
            all = all.min(nanos_each(begun.elapsed(), calls));
        }
        Ok((claims, all))
    }

    /// The time of a claim when every head is blocked, after the first that finds it so.
    fn blocked(&mut self) -> anyhow::Result<u64> {
        self.limit(Limit::per_day(1))?;
        for from in (0..self.lanes).step_by(1_000) {
            let define = self.coming(from..self.lanes.min(from + 1_000), &Limit::per_day(1))?;
            let _ = self.scheduler.act(Act { define, ..Act::default() }, self.now)?;
            drop(self.scheduler.take_effects());
        }
        while !self.claim(1_000).is_empty() {}
        let begun = Instant::now();
        for _ in 0..BLOCKED {
            let started = self.claim(100).len();
            anyhow::ensure!(started == 0, "{started} calls started at a meter that is spent");
        }
        Ok(nanos_each(begun.elapsed(), BLOCKED))
    }
}

/// A limit that is never in the way.
fn ample() -> Limit {
    Limit::per(1_000_000_000, Span::from_secs(1)).burst(1_000_000_000)
}

fn nanos_each(time: Duration, count: usize) -> u64 {
    let count = u128::try_from(count.max(1)).unwrap_or(u128::MAX);
    u64::try_from(time.as_nanos() / count).unwrap_or(u64::MAX)
}

/// A child's arguments.
pub(crate) fn parse(lanes: &str, calls: &str) -> anyhow::Result<(usize, usize)> {
    let count = |text: &str| text.parse().with_context(|| format!("{text:?} is no count"));
    Ok((count(lanes)?, count(calls)?))
}
