//! The load: a child that works at the store as fast as it can until it is killed, and says what it
//! does.

use super::lines::{
    Answer, Blob, Change, Command, Fresh, Line, Outcome, Plan, Settled, Start, Written, digest,
};
use super::model::{DEAD_MAX, FAILURES_MAX, PARALLEL, Part};
use super::random::Random;
use crate::cli::output;
use anyhow::Context;
use std::collections::BTreeSet;
use std::io::stdin;
use std::sync::Arc;
use tokio::task::JoinSet;
use tollgate::embedded::{LogSettings, RealDisk, StoreSettings};
use tollgate::lanes::{
    Act, Ask, CallId, Claim, Configure, Definition, Key, LaneName, Lanes, Lease, LimitName, Meters,
    NewCall, Order, Partition, QueueName, QueueSpec, Revision, Settle, Settlement, StoreError,
    Toll, Tolls, Write,
};
use tollgate::store::{Store, TimeSource};
use tollgate::{Clock, Limit, LimitError, NameError, Priority, Span, SystemClock};

/// Each has one command at a time on its way: so many are committed together.
pub(super) const PARTS: usize = 16;
/// So much may be spent at a meter: more than anyone does.
pub(super) const LIMIT: u64 = 1 << 40;
/// Longer than anyone watches.
const LONG: Span = Span::from_days(366);
const LANES: u64 = 4;
const RECORDS: u64 = 16;
const BODY_BYTES_MAX: u64 = 20_000;

/// Works by the plan on the standard input until it is killed.
pub(in crate::cli) fn work() -> anyhow::Result<()> {
    let plan: Plan = serde_json::from_reader(stdin().lock()).context("the plan")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let worked = runtime.block_on(work_by(plan));
    worked.or_else(|error| {
        let reason = format!("{error:#}");
        let is_full = matches!(error.downcast_ref(), Some(StoreError::Full { .. }));
        say(&if is_full { Line::Full(reason) } else { Line::Failed(reason) })
    })
}

async fn work_by(plan: Plan) -> anyhow::Result<()> {
    let disk = Arc::new(RealDisk::open(&plan.folder)?);
    let log = LogSettings { segment_bytes: plan.segment_bytes };
    let checkpoint_bytes = plan.checkpoint_bytes;
    let settings = StoreSettings { log, checkpoint_bytes, ..StoreSettings::default() };
    let clock = SystemClock::new();
    let now: TimeSource = Arc::new(move || clock.both());
    let store = Store::on(disk, settings, now)?.store;
    store.configure(Configure::limit(limit()?, Some(definition()?))).await??;
    let mut workers = JoinSet::new();
    for part in plan.parts {
        store.define_queue(queue(part.index)?, spec(&part)).await??;
        let random = Random::of(plan.seed, u64::try_from(part.index)?);
        let (store, calls_max) = (store.clone(), plan.calls_max);
        workers.spawn(Worker { store, part, random, calls_max }.work());
    }
    say(&Line::Opened)?;
    while let Some(ended) = workers.join_next().await {
        ended??;
    }
    Ok(())
}

/// In one write, and before anything else happens: what was said is known even if this process is
/// killed at once.
fn say(line: &Line) -> anyhow::Result<()> {
    output::told(&serde_json::to_string(line)?).context("nobody listens any more")
}

/// One part, and who works at it.
struct Worker {
    store: Store,
    part: Part,
    random: Random,
    calls_max: usize,
}

impl Worker {
    async fn work(mut self) -> anyhow::Result<()> {
        loop {
            let command = self.next();
            self.part.begun(&command);
            say(&Line::Begun(self.part.index, command.clone()))?;
            let answer = self.send(&command).await?;
            say(&Line::Answered(self.part.index, answer.clone()))?;
            self.part.answered(&command, &answer).map_err(anyhow::Error::msg)?;
        }
    }

    async fn send(&self, command: &Command) -> anyhow::Result<Answer> {
        let part = self.part.index;
        Ok(match command {
            Command::Act(change) => match self.store.act(vec![act(part, change)?]).await?.remove(0)
            {
                Ok(acted) => Answer::Acted {
                    enqueued: acted.enqueued.iter().map(|id| id.0).collect(),
                    cancelled: acted.cancelled,
                    written: acted.written.iter().map(|revision| revision.0).collect(),
                },
                Err(error) => Answer::Refused(error.to_string()),
            },
            Command::Claim { most } => {
                let claim =
                    Claim { queue: queue(part)?, most: *most, lease: None, asks: Span::ZERO };
                let claimed = self.store.claim(claim).await?;
                let start = claimed.iter().map(|claimed| Start {
                    call: claimed.started.lease.call.0,
                    token: claimed.started.lease.token,
                    failures: claimed.started.attempts.failures,
                    digest: digest(claimed.payload.body()),
                });
                Answer::Claimed(start.collect())
            }
            Command::Consume { weight } => {
                let (tolls, priority) = (tolls(part, *weight)?, Priority::default());
                let ask = Ask { tolls, priority, delay_max: None, life: Span::from_secs(1) };
                match self.store.consume(vec![ask]).await?.remove(0) {
                    Ok(_) => Answer::Paid,
                    Err(error) => Answer::Refused(error.to_string()),
                }
            }
        })
    }

    /// Whatever comes to mind.
    fn next(&mut self) -> Command {
        match self.random.below(100) {
            0..8 => Command::Consume { weight: 1 + self.random.below(9) },
            8..38 => self.claim(),
            _ => {
                let settle = self.settle();
                let change = Change {
                    cancel: self.cancel(&settle),
                    write: self.write(),
                    enqueue: self.enqueue(),
                    settle,
                };
                let Change { settle, cancel, write, enqueue } = &change;
                let parts = settle.len() + cancel.len() + write.len() + enqueue.len();
                if parts > 0 { Command::Act(change) } else { self.claim() }
            }
        }
    }

    fn claim(&mut self) -> Command {
        Command::Claim { most: 1 + usize::try_from(self.random.below(8)).unwrap_or(0) }
    }

    fn settle(&mut self) -> Vec<Settled> {
        let in_flight = self.part.calls.iter().filter_map(|(id, call)| Some((*id, call.token?)));
        let in_flight: Vec<_> = in_flight.collect();
        let few = self.random.below(5);
        let mut settled = Vec::new();
        for (call, token) in in_flight {
            if self.random.below(5) < few {
                // Some come too late, and nothing of their act may be done.
                let token = if self.random.once_in(100) { token - 1 } else { token };
                let outcome = match self.random.below(12) {
                    0 | 1 => Outcome::Retry,
                    2 => Outcome::Rest,
                    3 => Outcome::Release,
                    4 => Outcome::Dead,
                    _ => Outcome::Done,
                };
                settled.push(Settled { call, token, outcome });
            }
        }
        settled
    }

    /// Calls that are not settled at the same time, one of them ended long ago perhaps.
    fn cancel(&mut self, settle: &[Settled]) -> Vec<u64> {
        let is_settled = |id: &u64| settle.iter().any(|settled| settled.call == *id);
        let there = self.part.calls.keys().chain(self.part.dead.keys());
        let calls: Vec<_> = there.filter(|id| !is_settled(id)).copied().collect();
        let mut cancelled = Vec::new();
        if calls.len() > self.calls_max || self.random.once_in(8) {
            cancelled.extend(self.random.choose(&calls));
        }
        if self.random.once_in(30) {
            cancelled.push(u64::MAX);
        }
        cancelled
    }

    fn write(&mut self) -> Vec<Written> {
        let mut keys = BTreeSet::new();
        if self.random.once_in(4) {
            keys.extend([self.random.below(RECORDS), self.random.below(RECORDS)]);
        }
        let mut written = Vec::new();
        for key in keys {
            let revision = self.part.records.get(&key).map_or(0, |(revision, _)| *revision);
            let expected = if self.random.once_in(50) { revision + 1 } else { revision };
            let bytes = (!self.random.once_in(6)).then(|| self.blob(500));
            written.push(Written { key, expected, bytes });
        }
        written
    }

    fn enqueue(&mut self) -> Vec<Fresh> {
        if self.part.calls.len() >= self.calls_max {
            return Vec::new();
        }
        let mut keys = BTreeSet::new();
        let count = self.random.below(4);
        (0..count).map(|_| self.fresh(&mut keys)).collect()
    }

    fn fresh(&mut self, keys: &mut BTreeSet<u64>) -> Fresh {
        let longest = [64, 2_000, BODY_BYTES_MAX];
        let longest = self.random.choose(&longest).copied().unwrap_or_default();
        // Keys go on slowly, so that some are met again.
        let key = (self.part.blobs / 32).saturating_sub(self.random.below(4));
        let dedupe = Some(key).filter(|key| self.random.once_in(8) && keys.insert(*key));
        let lane = self.random.below(LANES);
        let priority = if self.random.once_in(5) { self.random.below(10) } else { 0 };
        let weight = self.random.below(4);
        Fresh { lane, priority, weight, dedupe, body: self.blob(longest) }
    }

    fn blob(&mut self, longest: u64) -> Blob {
        let number = self.part.blobs;
        self.part.blobs += 1;
        Blob { number, bytes: usize::try_from(self.random.below(longest + 1)).unwrap_or(0) }
    }
}

fn act(part: usize, change: &Change) -> anyhow::Result<Act> {
    let mut act = Act::default();
    for Settled { call, token, outcome } in &change.settle {
        let settlement = match outcome {
            Outcome::Done => Settlement::Done,
            Outcome::Retry => Settlement::Retry(Some(Span::ZERO)),
            Outcome::Rest => Settlement::Retry(Some(LONG)),
            Outcome::Release => Settlement::Release,
            Outcome::Dead => Settlement::Dead,
        };
        let lease = Lease { call: CallId(*call), token: *token };
        act.settle.push(Settle::new(lease, settlement));
    }
    act.cancel = change.cancel.iter().map(|id| CallId(*id)).collect();
    for Written { key, expected, bytes } in &change.write {
        let (key, expected) = (self::key(part, *key)?, Revision(*expected));
        act.write.push(Write { key, expected, bytes: bytes.map(|blob| blob.make(part)) });
    }
    for fresh in &change.enqueue {
        act.enqueue.push(NewCall {
            queue: queue(part)?,
            lane: LaneName::new(&format!("lane-{}", fresh.lane))?,
            tolls: tolls(part, fresh.weight)?,
            priority: Priority::new(fresh.priority)?,
            not_before: None,
            expires: None,
            dedupe: fresh.dedupe.map(|key| self::key(part, key)).transpose()?,
            supersedes: None,
            payload: (&*fresh.body.make(part)).into(),
        });
    }
    Ok(act)
}

fn tolls(part: usize, weight: u64) -> Result<Tolls, NameError> {
    let partition = Some(Partition::new(&format!("part-{part}"))?);
    let toll = Toll { limit: limit()?, partition, weight, hears_feedback: false };
    Ok(if weight > 0 { [toll].into() } else { Tolls::new() })
}

fn spec(part: &Part) -> QueueSpec {
    QueueSpec {
        order: if part.is_strict() { Order::Strict } else { Order::Parallel(PARALLEL) },
        lease: Span::from_days(1),
        failures_max: FAILURES_MAX,
        dedupe: LONG,
        dead_max: DEAD_MAX,
        ..QueueSpec::default()
    }
}

/// A quota that does not come back: what is left says exactly what was paid.
pub(super) fn definition() -> Result<Definition, LimitError> {
    Definition::new(Limit::fixed_window(LIMIT, LONG))
}

fn limit() -> Result<LimitName, NameError> {
    LimitName::new("quota")
}

fn queue(part: usize) -> Result<QueueName, NameError> {
    QueueName::new(&format!("part-{part}"))
}

fn key(part: usize, key: u64) -> Result<Key, NameError> {
    Key::new(&format!("{part}/{key}"))
}

/// The part whose queue or partition this is.
pub(super) fn part_of(name: &str) -> Option<usize> {
    name.strip_prefix("part-")?.parse().ok()
}

pub(super) fn lane_of(name: &str) -> Option<u64> {
    name.strip_prefix("lane-")?.parse().ok()
}

pub(super) fn key_of(key: &str) -> Option<(usize, u64)> {
    let (part, key) = key.split_once('/')?;
    Some((part.parse().ok()?, key.parse().ok()?))
}
