//! The oracle: judges a record of commands and answers by what was promised, and nothing else.
//!
//! It knows what became of each call from the answers alone, naively, and never looks into the
//! scheduler. What ended without being asked (leases that ran out, calls that grew too old or were
//! replaced) it works out itself and compares with what was reported.

mod acts;
mod calls;
mod meters;
mod starts;

use super::record::{Entry, Event};
use super::run::Checked;
use calls::{Call, Line};
use meters::{LimitBook, MeterBook};
use std::collections::BTreeMap;
use tollgate_core::lanes::{CallId, End, OnDead, QueueSpec, Scope};
use tollgate_core::{Key, LaneName, LimitName, Now, Partition, QueueName, Timestamp};

/// All that was said so far.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    queues: BTreeMap<QueueName, QueueBook>,
    lanes: Vec<LaneBook>,
    limits: Vec<LimitBook>,
    meters: Vec<MeterBook>,
    /// By id.
    calls: Vec<Call>,
    /// The calls that have not ended, by id.
    open: Vec<usize>,
    dedupes: BTreeMap<(QueueName, Key), (CallId, Timestamp)>,
    /// The highest that was given.
    token: u64,
    /// What must have ended with the present entry.
    ends: Vec<(CallId, End)>,
}

#[derive(Debug)]
struct QueueBook {
    spec: QueueSpec,
    is_paused: bool,
}

#[derive(Debug)]
struct LaneBook {
    queue: QueueName,
    name: LaneName,
    is_paused: bool,
    is_held: bool,
}

impl Oracle {
    /// Judges what was done and answered.
    pub(super) fn observe(&mut self, entry: &Entry) -> Checked {
        let now = entry.now;
        self.advance(now);
        match &entry.event {
            Event::Queue(name, spec) => {
                let book = QueueBook { spec: spec.clone(), is_paused: false };
                self.queues.insert(name.clone(), book);
            }
            Event::Limit(name, definition) => self.define(name, definition.as_ref()),
            Event::Enqueue(calls, Ok(ids)) => self.accepted(calls, ids, now)?,
            Event::Enqueue(calls, Err(error)) => self.refused(calls, error)?,
            Event::Claim { queue, most, expected, started } => {
                self.claimed(started, *expected, now)?;
                if started.len() > *most {
                    return Err(format!("{} started of {most} asked for", started.len()));
                }
                if started.len() < *most {
                    self.nothing_idles(queue, now)?;
                }
            }
            Event::Renew(lease, span, is_held) => self.renewed((*lease, *span), *is_held, now)?,
            Event::Settle(settle, answer) => self.settled(settle, answer, now)?,
            Event::Cancel(id, was_there) => self.cancelled(*id, *was_there)?,
            Event::Pause(scope) => self.set_paused(scope, true),
            Event::Resume(scope) => self.set_paused(scope, false),
            Event::Reopen(limit, partition) => {
                let meter = self.meter(limit, partition.as_ref());
                self.meters[meter].closed_until = Timestamp::default();
            }
            Event::Advance => {}
        }
        self.compare_ends(entry)
    }

    /// Each call, and whether it ended.
    pub(super) fn calls(&self) -> impl Iterator<Item = (CallId, bool)> {
        self.calls.iter().map(|call| (call.id, call.end.is_some()))
    }

    pub(super) fn first_waiting(&self) -> String {
        self.open.first().map_or("no call".to_owned(), |id| format!("call {id}"))
    }

    pub(super) fn held_lanes(&self) -> Vec<(QueueName, LaneName)> {
        let held = self.lanes.iter().filter(|lane| lane.is_held || lane.is_paused);
        held.map(|lane| (lane.queue.clone(), lane.name.clone())).collect()
    }

    /// The limits at which a call pays, with what it pays at one of their meters.
    pub(super) fn limits_paid(&self, id: CallId) -> Vec<(LimitName, u64)> {
        let Some(call) = usize::try_from(id.0).ok().and_then(|id| self.calls.get(id)) else {
            return vec![];
        };
        let mut paid: Vec<(LimitName, u64)> = vec![];
        for Line { meter, weight, .. } in &call.lines {
            let limit = &self.limits[self.meters[*meter].limit].name;
            if !paid.iter().any(|(known, _)| known == limit) {
                paid.push((limit.clone(), *weight));
            }
        }
        paid
    }

    /// What happens by itself when time passes.
    fn advance(&mut self, now: Now) {
        for id in self.open.clone() {
            let call = &mut self.calls[id];
            call.has_joined |= call.new.not_before.is_none_or(|due| due <= now.wall);
            let is_old = call.new.expires.is_some_and(|expires| expires <= now.wall);
            if is_old && !call.has_started {
                self.end(id, End::Expired);
                continue;
            }
            if self.calls[id].flight.is_some_and(|flight| flight.expires <= now.at) {
                self.crashed(id, now);
            }
        }
        self.dedupes.retain(|_, (_, until)| *until > now.at);
    }

    fn end(&mut self, id: usize, end: End) {
        let call = &mut self.calls[id];
        call.end = Some(end);
        call.flight = None;
        let (name, lane) = (call.id, call.lane);
        self.open.retain(|open| *open != id);
        self.ends.push((name, end));
        let holds = self.queues[&self.lanes[lane].queue].spec.on_dead == OnDead::Hold;
        self.lanes[lane].is_held |= end == End::Dead && holds;
    }

    /// What was reported to have ended is what must have, each once.
    fn compare_ends(&mut self, entry: &Entry) -> Checked {
        let (mut due, mut reported) = (std::mem::take(&mut self.ends), entry.ends.clone());
        due.sort_unstable();
        reported.sort_unstable();
        if due == reported {
            return Ok(());
        }
        Err(format!("every call ends once: {due:?} ended by the answers, {reported:?} reported"))
    }

    fn set_paused(&mut self, scope: &Scope, is_paused: bool) {
        match scope {
            Scope::Queue(name) => {
                if let Some(queue) = self.queues.get_mut(name) {
                    queue.is_paused = is_paused;
                }
            }
            Scope::Lane(queue, name) => {
                let lane = self.lane(queue, name);
                self.lanes[lane].is_paused = is_paused;
                self.lanes[lane].is_held &= is_paused;
            }
            Scope::Limit(name) => {
                let limit = self.limit(name);
                self.limits[limit].is_paused = is_paused;
            }
        }
    }

    fn lane(&mut self, queue: &QueueName, name: &LaneName) -> usize {
        let is_it = |lane: &LaneBook| lane.queue == *queue && lane.name == *name;
        self.lanes.iter().position(is_it).unwrap_or_else(|| {
            let (queue, name) = (queue.clone(), name.clone());
            self.lanes.push(LaneBook { queue, name, is_paused: false, is_held: false });
            self.lanes.len() - 1
        })
    }

    fn limit(&mut self, name: &LimitName) -> usize {
        self.limits.iter().position(|limit| limit.name == *name).unwrap_or_else(|| {
            self.limits.push(LimitBook::new(name.clone()));
            self.limits.len() - 1
        })
    }

    fn meter(&mut self, limit: &LimitName, partition: Option<&Partition>) -> usize {
        let limit = self.limit(limit);
        let is_it =
            |meter: &MeterBook| meter.limit == limit && meter.partition.as_ref() == partition;
        self.meters.iter().position(is_it).unwrap_or_else(|| {
            self.meters.push(MeterBook::new(limit, partition.cloned()));
            self.meters.len() - 1
        })
    }
}
