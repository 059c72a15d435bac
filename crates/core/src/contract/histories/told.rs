//! What stores tell when they are looked at, without what differs between two that are alike.

use super::catalog::{key, lane_name, limit_name, partition, queue_name};
use super::tell::Seen;
use crate::contract::{
    CallState, CallsQuery, Histogram, Lanes, LimitTotals, MeterName, MeterState, QueueCounts,
    QueueState, QueueTotals, Tally, Totals,
};
use crate::lanes::{CallId, End};
use crate::name::{Key, QueueName};

/// What is told of every call and every meter, and one part of what can be browsed: which one goes by a
/// number that changes from step to step.
pub async fn everything<S: Lanes>(store: &S, seen: &Seen, which: usize) -> String {
    let calls = store.explain(seen.ids()).await.unwrap();
    let states = store.inspect(meters()).await.unwrap().into_iter();
    let states: Vec<_> = states.map(|state| state.map(uncounted)).collect();
    format!("{calls:?} {states:?} {}", browsed(store, seen, which).await)
}

async fn browsed<S: Lanes>(store: &S, seen: &Seen, which: usize) -> String {
    let (queue, limit) = (queue_name(which % 2), limit_name(which % 5));
    let most = 1 + which % 7;
    let after = Some(CallId(which as u64 % 5)).filter(|id| id.0 > 0);
    match which % 9 {
        0 => format!("{:?}", store.lanes(queue, None, most).await),
        1 => format!("{:?}", store.lane(queue, lane_name(which % 3)).await),
        2 => {
            let found = store.meters(limit, None, most).await.unwrap().into_iter().flatten();
            let found = found.map(|(partition, state)| (partition, uncounted(state)));
            format!("{:?}", found.collect::<Vec<_>>())
        }
        3 => {
            // How many lanes are known and empty is not for all to say alike.
            let queues = store.queues(None, 9).await.unwrap().into_iter();
            let queues = queues.map(|queue| QueueState { lanes: 0, ..queue });
            format!("{:?}", queues.collect::<Vec<_>>())
        }
        4 => format!("{:?}", store.records_of(String::new(), Some(key(0)), most).await),
        5 => {
            let limits = store.limits(None, most).await.unwrap().into_iter();
            let limits = limits.map(|limit| (limit.name, limit.definition, limit.is_paused));
            format!("{:?}", limits.collect::<Vec<_>>())
        }
        6 => format!("{:?}", store.look(seen.ids()).await),
        7 => format!("{:?}", store.payloads(seen.ids()).await),
        _ => {
            let queries = queries(&queue, after, most);
            let query = queries[which / 9 % queries.len()].clone();
            format!("{:?}", store.calls(query).await)
        }
    }
}

/// What was counted since the store was opened.
pub async fn counted<S: Lanes>(store: &S) -> String {
    let Totals { queues, limits, .. } = store.totals().await.unwrap();
    let queues: Vec<_> = queues.into_iter().map(compared_totals).collect();
    let limits = limits.into_iter().map(|(name, totals)| (name, unwaited(totals)));
    format!("{queues:?} {:?}", limits.collect::<Vec<_>>())
}

/// What lasts and can be seen from outside.
pub async fn lasting<S: Lanes>(store: &S, seen: &Seen) -> String {
    let calls = store.explain(seen.ids()).await.unwrap().into_iter();
    let calls = calls.map(|told| told.map(|told| (told.attempts, told.position, told.not_before)));
    let calls: Vec<_> = calls.collect();
    let views = store.look(seen.ids()).await.unwrap();
    let bodies = store.payloads(seen.ids()).await.unwrap();
    let dead = store.ends(seen.ids()).await.unwrap();
    // Other ends are forgotten when a store is opened again.
    let dead: Vec<_> = dead.into_iter().map(|end| end == Some(End::Dead)).collect();
    let configured = Key::new("configured").unwrap();
    let records = store.records(vec![key(0), key(1), configured]).await.unwrap();
    let states = store.inspect(meters()).await.unwrap().into_iter();
    let states = states.map(|told| told.map(|told| (told.standing, told.in_flight, told.closed)));
    let queues = store.queues(None, 10).await.unwrap().into_iter();
    let queues = queues.map(|queue| (queue.name, queue.spec, queue.is_paused));
    let (states, queues): (Vec<_>, Vec<_>) = (states.collect(), queues.collect());
    format!("{calls:?} {views:?} {bodies:?} {dead:?} {records:?} {states:?} {queues:?}")
}

/// Every meter that a history may use.
fn meters() -> Vec<MeterName> {
    let limits = (0..5).map(limit_name);
    limits
        .flat_map(|name| [false, true].map(|is_given| (name.clone(), partition(is_given))))
        .collect()
}

/// All ways to ask for calls of a queue.
pub fn queries(queue: &QueueName, after: Option<CallId>, most: usize) -> Vec<CallsQuery> {
    use CallState::{Dead, InFlight, NotDue, Resting, Waiting};
    let query = |lane, state| CallsQuery { queue: queue.clone(), lane, state, after, most };
    let states = [Waiting, NotDue, Resting, InFlight, Dead].map(Some);
    let lanes = (0..3).map(|lane| query(Some(lane_name(lane)), None));
    let of_lane = states.map(|state| query(Some(lane_name(0)), state));
    let of_queue = states.map(|state| query(None, state));
    lanes.chain(of_lane).chain(of_queue).chain([query(None, None)]).collect()
}

/// Without what was admitted there, for a meter that was forgotten counts anew, and without the waits.
pub fn compared_meter(state: MeterState) -> MeterState {
    let of_limit = unwaited(state.of_limit);
    MeterState { admitted: Tally::default(), of_limit, ..state }
}

/// Without what was counted at its limit, too.
fn uncounted(state: MeterState) -> MeterState {
    MeterState { of_limit: LimitTotals::default(), ..compared_meter(state) }
}

fn unwaited(totals: LimitTotals) -> LimitTotals {
    LimitTotals { waited_ns: 0, ..totals }
}

/// Without how long anything took, and what claims left waiting.
pub fn compared_totals(mut totals: QueueTotals) -> QueueTotals {
    for counts in totals.counts.limits.values_mut() {
        (counts.wanted, counts.granted) = (0, 0);
    }
    totals.counts.limits.retain(|_, counts| counts.unknown > 0);
    let (dwell, lateness) = (Histogram::default(), Histogram::default());
    QueueTotals { counts: QueueCounts { dwell, lateness, ..totals.counts }, ..totals }
}
