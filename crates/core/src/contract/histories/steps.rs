//! What can happen, at random, in a world small enough for things to meet.

use proptest::prelude::*;
use proptest::sample::Index;

/// One thing that happens.
#[derive(Debug, Clone)]
pub enum Step {
    Enqueue(Vec<Fresh>),
    /// Calls that may wait for their limits to be defined, and the record that must be there.
    Park(Vec<Fresh>, Option<usize>),
    /// Limits that come along, with their rules, and calls.
    Come(Vec<(usize, usize)>, Vec<Fresh>),
    Claim {
        queue: usize,
        most: usize,
        asks: u64,
    },
    Settle {
        starts: Vec<(Index, Outcome)>,
        follow: Option<Fresh>,
        cancel: Option<Index>,
    },
    Renew(Index, u64),
    Cancel(Index),
    /// Revives calls, at once or in so many seconds, with one that may be cancelled and one that may be deleted in
    /// the same act.
    Revive {
        calls: Vec<(Index, Option<u64>)>,
        gone: [Option<Index>; 2],
        follow: Option<Fresh>,
    },
    /// Milliseconds.
    Wait(u64),
    /// Sets the wall clock, in seconds from where it would be.
    SetWall {
        ahead: u64,
        back: u64,
    },
    Pause(Held),
    Resume(Held),
    /// Gives a limit another rule; `None` removes it.
    Limit(usize, Option<usize>),
    Queue(usize, usize),
    /// Removes a queue, if it is empty, and may define it again.
    RemoveQueue(usize, Option<usize>),
    Reopen(usize, bool),
    /// Gives the partition of a limit a rule of its own; `None` takes it away.
    Override(usize, Option<usize>),
    /// As [`Self::Limit`] and [`Self::Override`] in one change, with a record at this revision.
    Configure(usize, Option<usize>, Option<usize>, u64),
    /// Closes a meter for so many seconds.
    Close(usize, bool, u64),
    Reset(usize, bool),
    Consume {
        call: Fresh,
        delay: Option<u64>,
        life: u64,
    },
    SettleReceipt(Index, Option<(usize, u64)>),
    RenewReceipt(Index, u64),
    Weigh(usize, usize, u32),
    /// Until so many seconds from now a queue is asked for.
    Ask(usize, u64),
    Write {
        key: usize,
        is_right: bool,
        removes: bool,
    },
    Forget(usize),
    Count {
        key: usize,
        from: u64,
        then: Fresh,
    },
}

/// A call to be.
#[derive(Debug, Clone)]
pub struct Fresh {
    pub queue: usize,
    pub lane: usize,
    pub tolls: Vec<(usize, bool, u64, bool)>,
    pub priority: u64,
    pub delay: Option<u64>,
    pub expires: Option<u64>,
    pub dedupe: Option<usize>,
    pub supersedes: Option<usize>,
    pub body: usize,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Done,
    Retry(Option<u64>),
    Release,
    Dead,
    Limited(u64),
    /// Done, at a true cost of so much at a limit.
    Cost(usize, u64),
}

#[derive(Debug, Clone)]
pub enum Held {
    Queue(usize),
    Lane(usize, usize),
    Limit(usize),
}

fn configure() -> impl Strategy<Value = Step> {
    let rule = || prop::option::weighted(0.7, 0..4_usize);
    let change = (0..5_usize, rule(), rule(), 0..=1_u64);
    change.prop_map(|(limit, rule, own, expected)| Step::Configure(limit, rule, own, expected))
}

fn fresh() -> impl Strategy<Value = Fresh> {
    let toll = (0..5_usize, any::<bool>(), 1..=4_u64, prop::bool::weighted(0.2));
    let rarely = |probability, most: u64| prop::option::weighted(probability, 0..=most);
    (
        0..2_usize,
        0..3_usize,
        prop::collection::vec(toll, 0..4),
        prop_oneof![3 => Just(0_u64), 1 => 0..=2_u64],
        rarely(0.1, 20),
        rarely(0.1, 20),
        prop::option::weighted(0.1, 0..2_usize),
        (prop::option::weighted(0.1, 0..2_usize), prop_oneof![4 => 1..3_usize, 1 => 0..6_usize]),
    )
        .prop_map(
            |(queue, lane, tolls, priority, delay, expires, dedupe, (supersedes, body))| Fresh {
                queue,
                lane,
                tolls,
                priority,
                delay,
                expires,
                dedupe,
                supersedes,
                body,
            },
        )
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        6 => Just(Outcome::Done),
        2 => prop::option::of(0..=5_u64).prop_map(Outcome::Retry),
        2 => Just(Outcome::Release),
        2 => Just(Outcome::Dead),
        1 => (0..=10_u64).prop_map(Outcome::Limited),
        1 => (0..5_usize, 0..=8_u64).prop_map(|(limit, cost)| Outcome::Cost(limit, cost)),
    ]
}

fn held() -> impl Strategy<Value = Held> {
    prop_oneof![
        (0..2_usize).prop_map(Held::Queue),
        (0..2_usize, 0..3_usize).prop_map(|(queue, lane)| Held::Lane(queue, lane)),
        (0..5_usize).prop_map(Held::Limit),
    ]
}

pub fn step() -> impl Strategy<Value = Step> {
    let starts = prop::collection::vec((any::<Index>(), outcome()), 1..4);
    let settle =
        (starts, prop::option::weighted(0.3, fresh()), prop::option::weighted(0.1, any::<Index>()));
    prop_oneof![
        12 => prop::collection::vec(fresh(), 1..5).prop_map(Step::Enqueue),
        2 => (
            prop::collection::vec(fresh(), 1..3),
            prop::option::weighted(0.2, 0..2_usize),
        )
            .prop_map(|(calls, needs)| Step::Park(calls, needs)),
        5 => (
            prop::collection::vec((prop_oneof![Just(4_usize), 0..5_usize], 0..4_usize), 1..3),
            prop::collection::vec(fresh(), 0..3),
        )
            .prop_map(|(limits, calls)| Step::Come(limits, calls)),
        14 => (0..2_usize, 0..6_usize, 0..=3_u64)
            .prop_map(|(queue, most, asks)| Step::Claim { queue, most, asks }),
        8 => settle.prop_map(|(starts, follow, cancel)| Step::Settle { starts, follow, cancel }),
        1 => (any::<Index>(), 0..=60_u64).prop_map(|(lease, span)| Step::Renew(lease, span)),
        1 => any::<Index>().prop_map(Step::Cancel),
        3 => (
            prop::collection::vec((any::<Index>(), prop::option::weighted(0.3, 0..=20_u64)), 1..4),
            [(); 2].map(|()| prop::option::weighted(0.2, any::<Index>())),
            prop::option::weighted(0.2, fresh()),
        )
            .prop_map(|(calls, gone, follow)| Step::Revive { calls, gone, follow }),
        10 => prop_oneof![0..=2_000_u64, 0..=20_000_u64, Just(60_000_u64)].prop_map(Step::Wait),
        1 => (0..=60_u64, 0..=60_u64).prop_map(|(ahead, back)| Step::SetWall { ahead, back }),
        1 => held().prop_map(Step::Pause),
        2 => held().prop_map(Step::Resume),
        2 => (0..5_usize, prop::option::weighted(0.8, 0..4_usize))
            .prop_map(|(limit, rule)| Step::Limit(limit, rule)),
        1 => (0..2_usize, 0..5_usize).prop_map(|(queue, spec)| Step::Queue(queue, spec)),
        2 => (0..2_usize, prop::option::weighted(0.8, 0..5_usize))
            .prop_map(|(queue, spec)| Step::RemoveQueue(queue, spec)),
        1 => (0..5_usize, any::<bool>()).prop_map(|(limit, part)| Step::Reopen(limit, part)),
        2 => (0..5_usize, prop::option::weighted(0.7, 0..4_usize))
            .prop_map(|(limit, rule)| Step::Override(limit, rule)),
        1 => configure(),
        1 => (0..5_usize, any::<bool>(), 0..=10_u64)
            .prop_map(|(limit, part, seconds)| Step::Close(limit, part, seconds)),
        1 => (0..5_usize, any::<bool>()).prop_map(|(limit, part)| Step::Reset(limit, part)),
        4 => (fresh(), prop::option::weighted(0.3, 0..=5_u64), 1..=20_u64)
            .prop_map(|(call, delay, life)| Step::Consume { call, delay, life }),
        2 => (any::<Index>(), prop::option::weighted(0.8, (0..5_usize, 0..=6_u64)))
            .prop_map(|(receipt, cost)| Step::SettleReceipt(receipt, cost)),
        1 => (any::<Index>(), 0..=60_u64)
            .prop_map(|(receipt, life)| Step::RenewReceipt(receipt, life)),
        1 => (0..2_usize, 0..=3_u64).prop_map(|(queue, until)| Step::Ask(queue, until)),
        1 => (0..2_usize, 0..3_usize, 0..=3_u32)
            .prop_map(|(queue, lane, weight)| Step::Weigh(queue, lane, weight)),
        1 => (0..2_usize, any::<bool>(), any::<bool>())
            .prop_map(|(key, is_right, removes)| Step::Write { key, is_right, removes }),
        1 => (0..2_usize, 0..=3_u64, fresh())
            .prop_map(|(key, from, then)| Step::Count { key, from, then }),
        1 => (0..2_usize).prop_map(Step::Forget),
    ]
}

/// The limits and queues that every history begins with.
pub fn beginning() -> Vec<Step> {
    let limits = (0..4).map(|limit| Step::Limit(limit, Some(limit)));
    (0..2).map(|queue| Step::Queue(queue, queue)).chain(limits).collect()
}
