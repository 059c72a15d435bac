//! Telling a store what happens, and what it answers.

use super::catalog::{definition, key, lane_name, limit_name, part, partition, queue_name, spec};
use super::made::{call, scope, settlement};
use super::steps::{Fresh, Step};
use crate::contract::{Ask, Configure, Cost, Lanes, Paid, Receipt};
use crate::lanes::{Act, CallId, Claim, Count, Door, End, Lease, NewCall, Revision, Revive, Write};
use crate::name::Key;
use crate::time::{Now, Span, Timestamp};
use proptest::sample::Index;

/// What a history has seen of one store, and the time that it is.
#[derive(Debug)]
pub struct Seen {
    pub now: Now,
    /// How many calls there were so far: they are named in order.
    pub calls: u64,
    leases: Vec<Lease>,
    receipts: Vec<Receipt>,
}

impl Default for Seen {
    fn default() -> Self {
        let now = Now::both(Timestamp::from_nanos(1_790_000_000_000_000_000));
        Self { now, calls: 0, leases: vec![], receipts: vec![] }
    }
}

impl Seen {
    /// Lets the time pass that a step takes, and says what time it is then.
    pub fn pass(&mut self, step: &Step) -> Now {
        let Now { at, wall } = self.now;
        match step {
            Step::Wait(millis) => self.now = self.now.moved_to(at.plus(Span::from_millis(*millis))),
            Step::SetWall { ahead, back } => {
                let wall = wall.plus(Span::from_secs(*ahead));
                self.now.wall = wall.minus(Span::from_secs(*back));
            }
            _ => {}
        }
        self.now
    }

    /// All calls there were.
    pub fn ids(&self) -> Vec<CallId> {
        (0..self.calls).map(CallId).collect()
    }

    /// One of the calls there were, or one that never was.
    fn known(&self, index: &Index) -> CallId {
        CallId(index.index(usize::try_from(self.calls).unwrap() + 1) as u64)
    }

    /// One of the newest leases: some are settled already.
    fn lease(&self, index: &Index) -> Option<Lease> {
        recent(&self.leases, index).copied()
    }

    fn each(&self, calls: &[Fresh]) -> Vec<NewCall> {
        calls.iter().map(|fresh| call(fresh, self.now)).collect()
    }
}

fn recent<'a, T>(all: &'a [T], index: &Index) -> Option<&'a T> {
    let recent = &all[all.len().saturating_sub(6)..];
    (!recent.is_empty()).then(|| index.get(recent))
}

/// Tells a store of a step; what it answers, as text. Time has passed before.
pub async fn tell<S: Lanes>(store: &S, step: &Step, seen: &mut Seen) -> String {
    match step {
        Step::Wait(_) | Step::SetWall { .. } => format!("{:?}", store.advance().await),
        Step::Claim { queue, most, asks } => {
            let (queue, asks) = (queue_name(*queue), Span::from_secs(*asks));
            let claim = Claim { queue, most: *most, lease: None, asks };
            let claimed = store.claim(claim).await.unwrap();
            seen.leases.extend(claimed.iter().map(|claimed| claimed.started.lease));
            format!("{claimed:?}")
        }
        Step::Renew(lease, span) => {
            let leases = seen.lease(lease).into_iter().collect();
            format!("{:?}", store.renew_leases(leases, Span::from_secs(*span)).await)
        }
        Step::Ask(queue, seconds) => {
            let until = seen.now.at.plus(Span::from_secs(*seconds));
            format!("{:?}", store.ask(queue_name(*queue), until).await)
        }
        Step::Consume { .. } | Step::SettleReceipt(..) | Step::RenewReceipt(..) => {
            pay(store, step, seen).await
        }
        Step::Pause(_)
        | Step::Resume(_)
        | Step::Limit(..)
        | Step::Queue(..)
        | Step::RemoveQueue(..)
        | Step::Reopen(..)
        | Step::Override(..)
        | Step::Configure(..)
        | Step::Close(..)
        | Step::Reset(..)
        | Step::Weigh(..) => operate(store, step).await,
        _ => {
            let act = act(store, step, seen).await;
            let answer = store.act(vec![act]).await.unwrap().remove(0);
            if let Ok(acted) = &answer {
                let counted = acted.counted.iter().filter_map(|(_, id)| *id);
                let newest = acted.enqueued.iter().copied().chain(counted).map(|id| id.0 + 1).max();
                seen.calls = seen.calls.max(newest.unwrap_or(0));
            }
            format!("{answer:?}")
        }
    }
}

/// The act that a step is.
async fn act<S: Lanes>(store: &S, step: &Step, seen: &Seen) -> Act {
    let act = Act::default();
    match step {
        Step::Enqueue(calls) => Act { enqueue: seen.each(calls), ..act },
        Step::Park(calls, needs) => {
            let needs = needs.iter().map(|which| key(*which)).collect();
            Act { enqueue: seen.each(calls), needs, door: Door::Parks, ..act }
        }
        Step::Come(limits, calls) => {
            let define = limits.iter().map(|(name, rule)| (limit_name(*name), definition(*rule)));
            Act { define: define.collect(), enqueue: seen.each(calls), ..act }
        }
        Step::Settle { starts, follow, cancel } => {
            let settled = starts
                .iter()
                .filter_map(|(lease, outcome)| Some(settlement(seen.lease(lease)?, outcome)));
            let cancel = cancel.iter().map(|call| seen.known(call)).collect();
            let enqueue = seen.each(follow.as_slice());
            Act { settle: settled.collect(), enqueue, cancel, ..act }
        }
        Step::Cancel(call) => Act { cancel: vec![seen.known(call)], ..act },
        Step::Revive { calls, gone, follow } => {
            let dead = dead(store, seen).await;
            let chosen = |index: &Index| match dead.len() {
                0 => seen.known(index),
                _ => *index.get(&dead),
            };
            let revive = calls.iter().map(|(call, delay)| Revive {
                call: chosen(call),
                not_before: delay.map(|seconds| seen.now.wall.plus(Span::from_secs(seconds))),
            });
            let [cancel, delete] = gone.each_ref().map(|it| it.iter().map(chosen).collect());
            let enqueue = seen.each(follow.as_slice());
            Act { revive: revive.collect(), cancel, delete, enqueue, ..act }
        }
        Step::Write { key: which, is_right, removes } => {
            let found = store.records(vec![key(*which)]).await.unwrap().remove(0);
            let found = found.map(|record| record.revision).unwrap_or_default();
            let expected = if *is_right { found } else { Revision(found.0 + 1) };
            let bytes = (!removes).then(|| Box::from(*b"bytes"));
            Act { write: vec![Write { key: key(*which), expected, bytes }], ..act }
        }
        Step::Count { key: which, from, then } => {
            let then = call(then, seen.now);
            Act { count_down: vec![Count { key: key(*which), from: *from, then }], ..act }
        }
        Step::Forget(which) => Act { forget: vec![key(*which)], ..act },
        other => panic!("{other:?} is no act"),
    }
}

async fn dead<S: Lanes>(store: &S, seen: &Seen) -> Vec<CallId> {
    let ends = store.ends(seen.ids()).await.unwrap();
    let dead = seen.ids().into_iter().zip(ends).filter(|(_, end)| *end == Some(End::Dead));
    dead.map(|(id, _)| id).collect()
}

/// What is paid without a call.
async fn pay<S: Lanes>(store: &S, step: &Step, seen: &mut Seen) -> String {
    match step {
        Step::Consume { call: fresh, delay, life } => {
            let NewCall { tolls, priority, .. } = call(fresh, seen.now);
            let (delay_max, life) = (delay.map(Span::from_secs), Span::from_secs(*life));
            let ask = Ask { tolls, priority, delay_max, life };
            let peeked = store.peek(vec![ask.clone()]).await;
            let answer = store.consume(vec![ask]).await.unwrap().remove(0);
            seen.receipts.extend(answer.iter().map(|paid| paid.receipt.clone()));
            // A meter that was forgotten counts its payments anew.
            let told = |Paid { receipt, starts, standing, tightest }: Paid| {
                (receipt.id, receipt.expires, starts, standing, tightest)
            };
            format!("{peeked:?} {:?}", answer.map(told))
        }
        Step::SettleReceipt(which, cost) => {
            let Some(receipt) = recent(&seen.receipts, which).cloned() else {
                return String::new();
            };
            let cost = match cost {
                Some((limit, cost)) => Cost::Told(vec![(limit_name(*limit), *cost)]),
                None => Cost::Nothing,
            };
            format!("{:?}", store.settle(vec![(receipt, cost)]).await)
        }
        Step::RenewReceipt(which, life) => {
            let Some(receipt) = recent(&seen.receipts, which).cloned() else {
                return String::new();
            };
            let renewed = store.renew(vec![receipt], Span::from_secs(*life)).await.unwrap();
            seen.receipts.extend(renewed.iter().flatten().cloned());
            let told = renewed.into_iter().map(|renewed| renewed.map(|receipt| receipt.expires));
            format!("{:?}", told.collect::<Vec<_>>())
        }
        other => panic!("{other:?} pays nothing"),
    }
}

/// What an operator does.
async fn operate<S: Lanes>(store: &S, step: &Step) -> String {
    match step {
        Step::Pause(held) => format!("{:?}", store.pause(scope(held)).await),
        Step::Resume(held) => format!("{:?}", store.resume(scope(held)).await),
        Step::Limit(limit, rule) => {
            let change = Configure::limit(limit_name(*limit), rule.map(definition));
            format!("{:?}", store.configure(change).await)
        }
        Step::Queue(queue, which) => {
            format!("{:?}", store.define_queue(queue_name(*queue), spec(*which)).await)
        }
        Step::RemoveQueue(queue, again) => {
            let removed = store.remove_queue(queue_name(*queue)).await;
            if let (Ok(Ok(true)), Some(again)) = (&removed, again) {
                store.define_queue(queue_name(*queue), spec(*again)).await.unwrap().unwrap();
            }
            format!("{removed:?}")
        }
        Step::Reopen(limit, part) => {
            format!("{:?}", store.reopen((limit_name(*limit), partition(*part))).await)
        }
        Step::Override(limit, rule) => {
            let change = Configure::partition(limit_name(*limit), part(), rule.map(definition));
            format!("{:?}", store.configure(change).await)
        }
        Step::Configure(limit, rule, own, expected) => {
            let (name, expected) = (limit_name(*limit), Revision(*expected));
            let key = Key::new("configured").unwrap();
            let change = Configure {
                write: vec![Write { key, expected, bytes: Some([].into()) }],
                limits: vec![(name.clone(), rule.map(definition))],
                overrides: vec![(name, part(), own.map(definition))],
            };
            format!("{:?}", store.configure(change).await)
        }
        Step::Close(limit, part, seconds) => {
            let (meter, span) = ((limit_name(*limit), partition(*part)), Span::from_secs(*seconds));
            format!("{:?}", store.close(meter, span, "closed".to_owned()).await)
        }
        Step::Reset(limit, part) => {
            format!("{:?}", store.reset((limit_name(*limit), partition(*part))).await)
        }
        Step::Weigh(queue, lane, weight) => {
            format!("{:?}", store.weigh(queue_name(*queue), lane_name(*lane), *weight).await)
        }
        other => panic!("{other:?} is no operator's"),
    }
}
