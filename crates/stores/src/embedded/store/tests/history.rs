//! Random histories: what can happen, and how it is told to any store.

use proptest::prelude::*;
use tollgate_core::contract::{Ask, Configure, Cost, Lanes, Receipt};
use tollgate_core::lanes::{
    Act, CallId, Claim, Count, End, Lease, NewCall, Order, QueueSpec, Revision, Revive, Scope,
    Settle, Settlement, Write,
};
use tollgate_core::{
    Definition, Key, LaneName, Limit, LimitName, Partition, Priority, QueueName, Span, Toll,
};

/// One thing that happens. Numbers choose among few names, so that things meet.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Enqueue {
        calls: Vec<Fresh>,
    },
    Claim {
        queue: u8,
        most: u8,
    },
    Settle {
        lease: u8,
        outcome: u8,
        follow: Option<Fresh>,
    },
    Cancel {
        call: u8,
    },
    Revive {
        calls: Vec<(u8, Option<u8>)>,
    },
    Consume {
        toll: (u8, bool, u8),
        delay: bool,
    },
    SettleReceipt {
        receipt: u8,
        cost: Option<u8>,
    },
    Renew {
        lease: u8,
    },
    Write {
        key: u8,
        revision: u8,
        bytes: Option<u8>,
    },
    Count {
        key: u8,
        from: u8,
        then: Fresh,
    },
    Limit {
        limit: u8,
        rule: Option<u8>,
    },
    /// What an operator does to a meter: gives its partition a rule, closes it, resets it.
    Operate {
        limit: u8,
        rule: Option<u8>,
        what: u8,
    },
    Queue {
        queue: u8,
        spec: u8,
    },
    /// Removes a queue, if it is empty, and may define it again.
    RemoveQueue {
        queue: u8,
        again: Option<u8>,
    },
    Hold {
        scope: u8,
        pauses: bool,
    },
    Weigh {
        lane: u8,
        weight: u8,
    },
    /// Milliseconds.
    Wait {
        millis: u16,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Fresh {
    queue: u8,
    lane: u8,
    tolls: Vec<(u8, bool, u8)>,
    priority: u8,
    delay: Option<u8>,
    key: Option<u8>,
    body: u16,
}

/// What a history has seen so far: the same for every store that it is told to.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) calls: Vec<CallId>,
    leases: Vec<Lease>,
    receipts: Vec<Receipt>,
}

pub(super) fn fresh() -> impl Strategy<Value = Fresh> {
    let toll = (0..3_u8, any::<bool>(), 1..=3_u8);
    (
        (0..2_u8, 0..3_u8, prop::collection::vec(toll, 0..3), 0..3_u8),
        prop::option::weighted(0.2, 0..5_u8),
        prop::option::weighted(0.2, 0..4_u8),
        prop_oneof![3 => 0..40_u16, 1 => 0..3_000_u16],
    )
        .prop_map(|((queue, lane, tolls, priority), delay, key, body)| Fresh {
            queue,
            lane,
            tolls,
            priority,
            delay,
            key,
            body,
        })
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => prop::collection::vec(fresh(), 1..5).prop_map(|calls| Step::Enqueue { calls }),
        10 => (0..2_u8, 0..5_u8).prop_map(|(queue, most)| Step::Claim { queue, most }),
        8 => (any::<u8>(), any::<u8>(), prop::option::weighted(0.3, fresh()))
            .prop_map(|(lease, outcome, follow)| Step::Settle { lease, outcome, follow }),
        1 => any::<u8>().prop_map(|call| Step::Cancel { call }),
        3 => prop::collection::vec((any::<u8>(), prop::option::weighted(0.3, 0..9_u8)), 1..9)
            .prop_map(|calls| Step::Revive { calls }),
        4 => ((0..3_u8, any::<bool>(), 1..=3_u8), any::<bool>())
            .prop_map(|(toll, delay)| Step::Consume { toll, delay }),
        2 => (any::<u8>(), prop::option::weighted(0.8, 0..6_u8))
            .prop_map(|(receipt, cost)| Step::SettleReceipt { receipt, cost }),
        1 => any::<u8>().prop_map(|lease| Step::Renew { lease }),
        2 => (0..2_u8, 0..4_u8, prop::option::of(any::<u8>()))
            .prop_map(|(key, revision, bytes)| Step::Write { key, revision, bytes }),
        1 => (0..2_u8, 0..4_u8, fresh())
            .prop_map(|(key, from, then)| Step::Count { key, from, then }),
        1 => (0..3_u8, prop::option::weighted(0.8, 0..4_u8))
            .prop_map(|(limit, rule)| Step::Limit { limit, rule }),
        2 => (0..3_u8, prop::option::weighted(0.7, 0..4_u8), 0..4_u8)
            .prop_map(|(limit, rule, what)| Step::Operate { limit, rule, what }),
        1 => (0..2_u8, 0..3_u8).prop_map(|(queue, spec)| Step::Queue { queue, spec }),
        2 => (0..2_u8, prop::option::weighted(0.8, 0..3_u8))
            .prop_map(|(queue, again)| Step::RemoveQueue { queue, again }),
        1 => (0..6_u8, any::<bool>()).prop_map(|(scope, pauses)| Step::Hold { scope, pauses }),
        1 => (0..3_u8, 0..4_u8).prop_map(|(lane, weight)| Step::Weigh { lane, weight }),
        8 => prop_oneof![0..2_000_u16, 0..30_000_u16].prop_map(|millis| Step::Wait { millis }),
    ]
}

/// Tells a store of a step; what it answers, as text. Time passes elsewhere.
pub(super) async fn tell<S: Lanes>(store: &S, step: &Step, seen: &mut Seen) -> String {
    match step {
        Step::Wait { .. } => format!("{:?}", store.advance().await),
        Step::Enqueue { calls } => {
            let enqueue = each(store, calls).await;
            act(store, Act { enqueue, ..Act::default() }, seen).await
        }
        Step::Claim { queue, most } => {
            let (queue, asks) = (queue_name(*queue), Span::from_secs(1));
            let claim = Claim { queue, most: usize::from(*most), lease: None, asks };
            let claimed = store.claim(claim).await.unwrap();
            seen.leases.extend(claimed.iter().map(|claimed| claimed.started.lease));
            format!("{claimed:?}")
        }
        Step::Settle { lease, outcome, follow } => {
            let Some(&lease) = recent(&seen.leases, *lease) else { return String::new() };
            let settle = vec![Settle::new(lease, settlement(*outcome))];
            let enqueue = each(store, follow.as_slice()).await;
            act(store, Act { settle, enqueue, ..Act::default() }, seen).await
        }
        Step::Cancel { call } => {
            let cancel = recent(&seen.calls, *call).copied().into_iter().collect();
            act(store, Act { cancel, ..Act::default() }, seen).await
        }
        Step::Revive { calls } => {
            let revive = revives(store, calls, seen).await;
            act(store, Act { revive, ..Act::default() }, seen).await
        }
        Step::Consume { toll, delay } => consume(store, self::toll(*toll), *delay, seen).await,
        Step::SettleReceipt { receipt, cost } => {
            let Some(receipt) = recent(&seen.receipts, *receipt).cloned() else {
                return String::new();
            };
            let limit = receipt.lines[0].limit.clone();
            let cost = cost.map_or(Cost::Nothing, |cost| Cost::Told(vec![(limit, cost.into())]));
            format!("{:?}", store.settle(vec![(receipt, cost)]).await)
        }
        Step::Renew { lease } => {
            let leases = recent(&seen.leases, *lease).copied().into_iter().collect();
            format!("{:?}", store.renew_leases(leases, Span::from_secs(9)).await)
        }
        Step::Write { key, revision, bytes } => {
            let (key, expected) = (self::key(*key), Revision((*revision).into()));
            let bytes = bytes.map(|byte| vec![byte; 3].into());
            let write = vec![Write { key, expected, bytes }];
            act(store, Act { write, ..Act::default() }, seen).await
        }
        Step::Count { key, from, then } => {
            let then = each(store, std::slice::from_ref(then)).await.remove(0);
            let count_down = vec![Count { key: self::key(*key), from: (*from).into(), then }];
            act(store, Act { count_down, ..Act::default() }, seen).await
        }
        Step::Limit { limit, rule } => {
            let change = Configure::limit(limit_name(*limit), rule.map(definition));
            format!("{:?}", store.configure(change).await)
        }
        Step::Operate { limit, rule, what } => operate(store, *limit, *rule, *what).await,
        Step::Queue { queue, spec } => {
            format!("{:?}", store.define_queue(queue_name(*queue), self::spec(*spec)).await)
        }
        Step::RemoveQueue { queue, again } => remove_queue(store, *queue, *again).await,
        Step::Hold { scope, pauses: true } => format!("{:?}", store.pause(held(*scope)).await),
        Step::Hold { scope, .. } => format!("{:?}", store.resume(held(*scope)).await),
        Step::Weigh { lane, weight } => {
            let answer = store.weigh(queue_name(0), lane_name(*lane), (*weight).into()).await;
            format!("{answer:?}")
        }
    }
}

async fn remove_queue<S: Lanes>(store: &S, queue: u8, again: Option<u8>) -> String {
    let removed = store.remove_queue(queue_name(queue)).await;
    if let (Ok(Ok(true)), Some(spec)) = (&removed, again) {
        store.define_queue(queue_name(queue), self::spec(spec)).await.unwrap().unwrap();
    }
    format!("{removed:?}")
}

/// What lasts and can be seen from outside.
pub(super) async fn told<S: Lanes>(store: &S, seen: &Seen) -> String {
    let calls = store.explain(seen.calls.clone()).await.unwrap().into_iter();
    let calls = calls.map(|told| told.map(|told| (told.attempts, told.position, told.not_before)));
    let calls: Vec<_> = calls.collect();
    let views = store.look(seen.calls.clone()).await.unwrap();
    let bodies = store.payloads(seen.calls.clone()).await.unwrap();
    let dead = store.ends(seen.calls.clone()).await.unwrap();
    // Other ends are forgotten when a store is opened again.
    let dead: Vec<_> = dead.into_iter().map(|end| end == Some(End::Dead)).collect();
    let records = store.records(vec![key(0), key(1)]).await.unwrap();
    let meters = (0..3)
        .flat_map(|limit| [false, true].map(|is_given| (limit_name(limit), partition(is_given))));
    let meters = store.inspect(meters.collect()).await.unwrap().into_iter();
    let meters = meters.map(|told| told.map(|told| (told.standing, told.in_flight, told.closed)));
    let queues = store.queues(None, 10).await.unwrap().into_iter();
    let queues = queues.map(|queue| (queue.name, queue.spec, queue.is_paused));
    let (meters, queues): (Vec<_>, Vec<_>) = (meters.collect(), queues.collect());
    format!("{calls:?} {views:?} {bodies:?} {dead:?} {records:?} {meters:?} {queues:?}")
}

async fn act<S: Lanes>(store: &S, act: Act, seen: &mut Seen) -> String {
    let answer = store.act(vec![act]).await.unwrap().remove(0);
    if let Ok(acted) = &answer {
        let counted = acted.counted.iter().filter_map(|(_, then)| *then);
        for id in acted.enqueued.iter().copied().chain(counted) {
            if !seen.calls.contains(&id) {
                seen.calls.push(id);
            }
        }
    }
    format!("{answer:?}")
}

async fn consume<S: Lanes>(store: &S, toll: Toll, delay: bool, seen: &mut Seen) -> String {
    let delay_max = delay.then_some(Span::from_secs(2));
    let (priority, life) = (Priority::default(), Span::from_secs(5));
    let ask = Ask { tolls: vec![toll], priority, delay_max, life };
    let answer = store.consume(vec![ask]).await.unwrap().remove(0);
    seen.receipts.extend(answer.iter().map(|paid| paid.receipt.clone()));
    format!("{:?}", answer.map(|paid| (paid.receipt.id, paid.starts, paid.standing)))
}

async fn operate<S: Lanes>(store: &S, limit: u8, rule: Option<u8>, what: u8) -> String {
    let (limit, part) = (limit_name(limit), partition(true));
    match what {
        0 => {
            let reason = "closed".to_owned();
            format!("{:?}", store.close((limit, part), Span::from_secs(2), reason).await)
        }
        1 => format!("{:?}", store.reset((limit, part)).await),
        2 => {
            let change = Configure::partition(limit, part.unwrap(), rule.map(definition));
            format!("{:?}", store.configure(change).await)
        }
        _ => {
            let (key, definition) = (key(2), rule.map(definition));
            let found = store.records(vec![key.clone()]).await.unwrap().remove(0);
            let expected = found.map(|found| found.revision).unwrap_or_default();
            let change = Configure {
                write: vec![Write { key, expected, bytes: Some([7; 3].into()) }],
                limits: vec![(limit.clone(), definition.clone())],
                overrides: vec![(limit, part.unwrap(), definition)],
            };
            format!("{:?}", store.configure(change).await)
        }
    }
}

/// Of all calls there were: most that died are not among the last.
async fn revives<S: Lanes>(store: &S, calls: &[(u8, Option<u8>)], seen: &Seen) -> Vec<Revive> {
    let now = store.now().await.unwrap();
    let revive = calls.iter().filter_map(|(call, delay)| {
        let not_before = delay.map(|delay| now.wall.plus(Span::from_secs(delay.into())));
        let call = *seen.calls.get(usize::from(*call) % seen.calls.len().max(1))?;
        Some(Revive { call, not_before })
    });
    revive.collect()
}

async fn each<S: Lanes>(store: &S, calls: &[Fresh]) -> Vec<NewCall> {
    let now = store.now().await.unwrap();
    let call = |fresh: &Fresh| NewCall {
        queue: queue_name(fresh.queue),
        lane: lane_name(fresh.lane),
        tolls: fresh.tolls.iter().map(|given| toll(*given)).collect(),
        priority: Priority::new(fresh.priority.into()).unwrap(),
        not_before: fresh.delay.map(|delay| now.wall.plus(Span::from_secs(delay.into()))),
        expires: None,
        dedupe: fresh.key.filter(|key| *key < 2).map(key),
        supersedes: fresh.key.filter(|key| *key >= 2).map(key),
        payload: vec![fresh.lane; fresh.body.into()].into(),
    };
    calls.iter().map(call).collect()
}

fn recent<T>(all: &[T], which: u8) -> Option<&T> {
    let recent = &all[all.len().saturating_sub(5)..];
    recent.get(usize::from(which) % recent.len().max(1))
}

fn settlement(outcome: u8) -> Settlement {
    match outcome % 8 {
        0 => Settlement::Retry(None),
        1 => Settlement::Retry(Some(Span::from_secs(2))),
        2 => Settlement::Release,
        3 => Settlement::Dead,
        4 => Settlement::Limited(Span::from_secs(3)),
        _ => Settlement::Done,
    }
}

fn held(scope: u8) -> Scope {
    match scope {
        0 | 1 => Scope::Queue(queue_name(scope)),
        2 | 3 => Scope::Lane(queue_name(0), lane_name(scope - 2)),
        _ => Scope::Limit(limit_name(scope - 4)),
    }
}

fn definition(rule: u8) -> Definition {
    let second = Span::from_secs(1);
    let limit = match rule {
        0 => Limit::per(1, second).burst(4),
        1 => Limit::sliding_window(3, second),
        2 => Limit::concurrency(3),
        _ => Limit::fixed_window(3, second).and(Limit::concurrency(3)),
    };
    Definition::new(limit).unwrap()
}

fn spec(which: u8) -> QueueSpec {
    let few = QueueSpec {
        lease: Span::from_secs(10),
        failures_max: 3,
        crashes_max: 2,
        depth_max: 20,
        dead_max: 3,
        ..QueueSpec::default()
    };
    match which {
        0 => few,
        1 => QueueSpec { order: Order::Parallel(2), tells_accepted: true, ..few },
        _ => QueueSpec { order: Order::Parallel(5), depth_max: 9, ..few },
    }
}

/// The limits and queues that every history begins with.
pub(super) fn beginning() -> Vec<Step> {
    let limits = (0..3).map(|limit| Step::Limit { limit, rule: Some(limit) });
    limits.chain((0..2).map(|queue| Step::Queue { queue, spec: queue })).collect()
}

fn toll((limit, part, weight): (u8, bool, u8)) -> Toll {
    let (limit, partition) = (limit_name(limit), partition(part));
    Toll { limit, partition, weight: weight.into(), hears_feedback: false }
}

fn queue_name(queue: u8) -> QueueName {
    QueueName::new(["one", "two"][usize::from(queue)]).unwrap()
}

fn lane_name(lane: u8) -> LaneName {
    LaneName::new(["a", "b", "c"][usize::from(lane)]).unwrap()
}

fn limit_name(limit: u8) -> LimitName {
    LimitName::new(["bucket", "sliding", "slots"][usize::from(limit)]).unwrap()
}

fn partition(is_given: bool) -> Option<Partition> {
    is_given.then(|| Partition::new("part").unwrap())
}

fn key(key: u8) -> Key {
    Key::new(["first", "second", "third", "fourth"][usize::from(key)]).unwrap()
}
