//! The things of one random world: queues, limits, lanes, and calls made of them.

use super::random::Random;
use tollgate_core::Toll;
use tollgate_core::lanes::{Backoff, NewCall, OnDead, Order, QueueSpec};
use tollgate_core::{
    Definition, Key, LaneName, Limit, LimitName, Now, Partition, Priority, QueueName, Span,
    Timestamp,
};

/// Most that a call of these worlds owes at one meter: three tolls of three.
pub(super) const OWED_MAX: u64 = 9;

/// What exists in a world.
pub(super) struct Catalog {
    pub(super) queues: Vec<(QueueName, QueueSpec)>,
    pub(super) limits: Vec<(LimitName, Kind)>,
    pub(super) lanes: Vec<LaneName>,
    partitions: Vec<Option<Partition>>,
    /// Calls of all lanes pay at the same meters, or those of a lane at its own.
    are_meters_shared: bool,
}

/// Which rules a limit has; their numbers change while the world runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bucket,
    Sliding,
    Window,
    Slots,
    BucketAndSlots,
    SlidingAndWindow,
}

const KINDS: [Kind; 6] = [
    Kind::Bucket,
    Kind::Sliding,
    Kind::Window,
    Kind::Slots,
    Kind::BucketAndSlots,
    Kind::SlidingAndWindow,
];

impl Catalog {
    pub(super) fn new(random: &mut Random) -> Self {
        let names = hostile_names();
        let count = 1 + random.index(3);
        let queues = names.iter().take(count).map(|name| {
            let name = QueueName::new(name).unwrap();
            (name, spec(random))
        });
        let queues = queues.collect();
        let count = 1 + random.index(4);
        let limits = names.iter().rev().take(count).map(|name| {
            let kind = *random.pick(&KINDS);
            (LimitName::new(name).unwrap(), kind)
        });
        let limits = limits.collect();
        let count = 1 + random.index(names.len());
        let lanes = names.iter().take(count).map(|name| LaneName::new(name).unwrap()).collect();
        let count = random.index(4);
        let mut partitions = vec![None];
        partitions.extend(names.iter().take(count).map(|name| Partition::new(name).ok()));
        Self { queues, limits, lanes, partitions, are_meters_shared: random.one_in(2) }
    }

    pub(super) fn queue(&self, random: &mut Random) -> QueueName {
        random.pick(&self.queues).0.clone()
    }

    pub(super) fn call(&self, random: &mut Random, now: Now) -> NewCall {
        let lane = random.index(self.lanes.len());
        let tolls = [0, 1, 1, 1, 2, 2, 3][random.index(7)];
        let tolls = (0..tolls).map(|_| self.toll(random, lane)).collect();
        let later = |random: &mut Random, one_in| {
            let is_given = random.one_in(one_in);
            let span = Span::from_millis(random.between(0, 9_000));
            is_given.then(|| now.wall.plus(span))
        };
        NewCall {
            queue: self.queue(random),
            lane: self.lanes[lane].clone(),
            tolls,
            priority: Priority::new([0, 0, 0, 5, 9][random.index(5)]).unwrap(),
            not_before: later(random, 8),
            expires: later(random, 8),
            dedupe: key(random, 6),
            supersedes: key(random, 8),
        }
    }

    fn toll(&self, random: &mut Random, lane: usize) -> Toll {
        let partition = match self.are_meters_shared {
            true => random.index(self.partitions.len()),
            false => lane % self.partitions.len(),
        };
        Toll {
            limit: random.pick(&self.limits).0.clone(),
            partition: self.partitions[partition].clone(),
            weight: [1, 1, 1, 2, 3][random.index(5)],
            hears_feedback: random.one_in(3),
        }
    }
}

impl Kind {
    /// This kind of limit with some numbers.
    pub(super) fn definition(self, random: &mut Random) -> Definition {
        // Odd lengths, so that nothing divides evenly.
        let per = Span::from_nanos(random.between(200_000_001, 3_000_000_007));
        let (limit, burst) = (random.between(1, 5), random.between(1, 6));
        let guard = if random.one_in(4) { Span::from_nanos(50_000_003) } else { Span::ZERO };
        let slots = Limit::concurrency(limit);
        let made = match self {
            Self::Bucket => Limit::per(limit, per).burst(burst + 1).guard(guard),
            Self::Sliding => Limit::sliding_window(burst, per).guard(guard),
            Self::Window => Limit::fixed_window(burst, per).guard(guard),
            Self::Slots => slots,
            Self::BucketAndSlots => Limit::per(limit, per).burst(burst).and(slots),
            Self::SlidingAndWindow => Limit::sliding_window(limit, per)
                .and(Limit::fixed_window(burst, Span::from_nanos(per.as_nanos() * 3))),
        };
        Definition::new(made)
            .unwrap_or_else(|_| Definition::new(Limit::per(limit, per).burst(burst)).unwrap())
    }

    /// This kind of limit, large enough for every call.
    pub(super) fn large(self) -> Definition {
        let (most, second) = (OWED_MAX, Span::from_secs(1));
        Definition::new(match self {
            Self::Bucket => Limit::per(most, second),
            Self::Sliding => Limit::sliding_window(most, second),
            Self::Window => Limit::fixed_window(most, second),
            Self::Slots => Limit::concurrency(most),
            Self::BucketAndSlots => Limit::per(most, second).and(Limit::concurrency(most)),
            Self::SlidingAndWindow => {
                Limit::sliding_window(most, second).and(Limit::fixed_window(most * 2, second))
            }
        })
        .unwrap()
    }
}

/// Where worlds begin: late enough for the wall clock to be set back.
pub(super) const BEGINNING: Timestamp = Timestamp::from_nanos(1_000_000_000_000);

/// Names that a careless table would confuse, cut or trip over.
fn hostile_names() -> Vec<String> {
    let long = "x".repeat(511);
    let names = ["a", " ", "\0", "ключ🔑", "a\0a", "../%00'\"", "A"].map(str::to_owned);
    names.into_iter().chain([format!("{long}a"), format!("{long}b"), long]).collect()
}

fn key(random: &mut Random, one_in: u64) -> Option<Key> {
    let is_given = random.one_in(one_in);
    let name = random.pick(&["k", " k", "K"]);
    is_given.then(|| Key::new(name).unwrap())
}

fn spec(random: &mut Random) -> QueueSpec {
    QueueSpec {
        order: match random.index(3) {
            0 => Order::Parallel(u32::try_from(random.between(1, 4)).unwrap()),
            _ => Order::Strict,
        },
        lease: Span::from_millis(random.between(500, 8_000)),
        failures_max: u32::try_from(random.between(1, 4)).unwrap(),
        crashes_max: u32::try_from(random.between(1, 3)).unwrap(),
        limited_max: u32::try_from(random.between(1, 3)).unwrap(),
        backoff: Backoff { first: Span::from_millis(300), most: Span::from_millis(2_000) },
        on_dead: if random.one_in(3) { OnDead::Hold } else { OnDead::Skip },
        depth_max: random.between(6, 40),
        dedupe: Span::from_millis(random.between(500, 10_000)),
    }
}
