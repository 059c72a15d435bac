//! The things of one random world: queues, limits, lanes, keys, and calls made of them.

use super::limits::Kind;
use super::random::Random;
use tollgate_core::Toll;
use tollgate_core::lanes::{Backoff, NewCall, OnDead, Order, Payload, QueueSpec};
use tollgate_core::{
    Key, LaneName, LimitName, Now, Partition, Priority, QueueName, Span, Timestamp,
};

/// Most that a call of these worlds owes at one meter: three tolls of three.
pub(super) const OWED_MAX: u64 = 9;
/// Lanes of a crowded world.
const CROWD: usize = 2_000;

/// What exists in a world.
pub(super) struct Catalog {
    pub(super) queues: Vec<QueueName>,
    pub(super) limits: Vec<(LimitName, Kind)>,
    pub(super) lanes: Vec<LaneName>,
    /// Of records and joins.
    pub(super) keys: Vec<Key>,
    partitions: Vec<Option<Partition>>,
    /// Calls of all lanes pay at the same meters, or those of a lane at its own.
    are_meters_shared: bool,
    /// The wall clock is set by days, or by seconds only.
    pub(super) has_days: bool,
    /// How many calls of each queue there may be.
    depths: (u64, u64),
}

/// How many lanes there are, and where they pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    Small,
    /// Thousands of lanes that share one meter of each limit.
    CrowdAtOneMeter,
    /// Thousands of lanes with a meter each.
    CrowdOfMeters,
}

impl Catalog {
    pub(super) fn new(random: &mut Random, size: Size) -> Self {
        let names = hostile_names();
        let count = 1 + random.index(3);
        let queues = names.iter().take(count).map(|name| QueueName::new(name).unwrap()).collect();
        let (count, has_days) = (1 + random.index(4), random.one_in(2));
        let limits = names.iter().rev().take(count).map(|name| {
            let kind = Kind::any(random, has_days);
            (LimitName::new(name).unwrap(), kind)
        });
        let limits = limits.collect();
        let count = 1 + random.index(names.len());
        let crowd = || (0..CROWD).map(|number| format!("lane {number}")).collect::<Vec<_>>();
        let lanes = if size == Size::Small { names[..count].to_vec() } else { crowd() };
        let count = random.index(4);
        let mut partitions = vec![None];
        match size {
            Size::Small => partitions.extend(names.iter().take(count).map(|n| partition(n))),
            Size::CrowdAtOneMeter => {}
            Size::CrowdOfMeters => partitions = lanes.iter().map(|name| partition(name)).collect(),
        }
        let are_meters_shared = random.one_in(2) && size != Size::CrowdOfMeters;
        Self {
            queues,
            limits,
            lanes: lanes.iter().map(|name| LaneName::new(name).unwrap()).collect(),
            keys: names[..3].iter().map(|name| Key::new(name).unwrap()).collect(),
            partitions,
            are_meters_shared,
            has_days,
            depths: if size == Size::Small { (6, 40) } else { (CROWD as u64 * 2, 10_000) },
        }
    }

    pub(super) fn queue(&self, random: &mut Random) -> QueueName {
        random.pick(&self.queues).clone()
    }

    pub(super) fn call(&self, random: &mut Random, now: Now) -> NewCall {
        let lane = random.index(self.lanes.len());
        self.call_of(lane, random, now)
    }

    /// A call of the lane of this number.
    pub(super) fn call_of(&self, lane: usize, random: &mut Random, now: Now) -> NewCall {
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
            payload: Payload::default(),
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

    /// How a queue may be, at first and after a change.
    pub(super) fn spec(&self, random: &mut Random) -> QueueSpec {
        QueueSpec {
            order: match random.index(3) {
                0 => Order::Parallel(u32::try_from(random.between(1, 4)).unwrap()),
                _ => Order::Strict,
            },
            lease: Span::from_millis(random.between(500, 8_000)),
            failures_max: u32::try_from(random.between(1, 4)).unwrap(),
            crashes_max: u32::try_from(random.between(1, 3)).unwrap(),
            limited_max: u32::try_from(random.between(1, 3)).unwrap(),
            backoff: Backoff {
                jitter: if random.one_in(3) { 50 } else { 0 },
                ..Backoff::doubling(Span::from_millis(300), Span::from_millis(2_000))
            },
            on_dead: if random.one_in(3) { OnDead::Hold } else { OnDead::Skip },
            depth_max: random.between(self.depths.0, self.depths.1),
            dead_max: 100_000,
            dedupe: Span::from_millis(random.between(500, 10_000)),
            tolls: Vec::new(),
            delivery: None,
            tells_accepted: false,
        }
    }
}

/// When worlds begin: within a minute of a midnight, most of them of a day with a change of clocks.
/// In seconds: in Berlin the start and the end of 2026-03-29 and of 2026-10-25; in Kathmandu the
/// start of 2026-06-01; in Greenwich that of 2026-11-16.
const BEGINNINGS: [u64; 6] =
    [1_774_738_800, 1_774_821_600, 1_792_879_200, 1_792_969_200, 1_780_251_300, 1_794_787_200];

pub(super) fn beginning(random: &mut Random) -> Timestamp {
    let midnight = Span::from_secs(*random.pick(&BEGINNINGS));
    let before = Span::from_millis(random.between(0, 40_000));
    Timestamp::default().plus(midnight).minus(before)
}

/// Names that a careless table would confuse, cut or trip over.
fn hostile_names() -> Vec<String> {
    let long = "x".repeat(511);
    let names = ["a", " ", "\0", "ключ🔑", "a\0a", "../%00'\"", "A"].map(str::to_owned);
    names.into_iter().chain([format!("{long}a"), format!("{long}b"), long]).collect()
}

fn partition(name: &str) -> Option<Partition> {
    Partition::new(name).ok()
}

fn key(random: &mut Random, one_in: u64) -> Option<Key> {
    let is_given = random.one_in(one_in);
    let name = random.pick(&["k", " k", "K"]);
    is_given.then(|| Key::new(name).unwrap())
}
