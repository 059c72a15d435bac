//! The oracle: judges a record of commands and answers by what was promised, and nothing else.
//!
//! It knows what became of each call from the answers alone, naively, and never looks into the
//! scheduler. What ended without being asked (leases that ran out, calls that grew too old or were
//! replaced) it works out itself and compares with what was reported.

mod acts;
mod calendar;
mod calls;
mod door;
mod explained;
mod lanes;
mod meters;
mod records;
mod starts;

use super::record::{Entry, Event};
use super::run::Checked;
use calls::{Call, Line};
use lanes::{LaneBook, QueueBook};
use meters::{LimitBook, MeterBook};
use records::Records;
use std::collections::{BTreeMap, BTreeSet};
use tollgate_core::lanes::{CallId, End, OnDead, Record};
use tollgate_core::{Key, LaneName, LimitName, Now, Partition, QueueName, Timestamp};

/// All that was said so far.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    queues: BTreeMap<QueueName, QueueBook>,
    lanes: Vec<LaneBook>,
    lanes_by_name: BTreeMap<(QueueName, LaneName), usize>,
    limits: Vec<LimitBook>,
    meters: Vec<MeterBook>,
    meters_by_name: BTreeMap<(usize, Option<Partition>), usize>,
    /// By id.
    calls: Vec<Call>,
    /// The calls that have not ended, by id.
    open: BTreeSet<usize>,
    /// Those of them to which something may happen by itself.
    restless: BTreeSet<usize>,
    /// Everything that was due by then has happened.
    advanced: Option<Now>,
    /// How many places were given in lanes.
    places: u64,
    dedupes: BTreeMap<(QueueName, Key), (CallId, Timestamp)>,
    records: Records,
    /// The highest that was given.
    token: u64,
    /// What must have ended with the present entry.
    ends: Vec<(CallId, End)>,
    /// Calls that were told not to start before an instant, with the instant at which they were.
    told: BTreeMap<CallId, (Timestamp, Timestamp)>,
    /// Calls that nothing and nobody keeps from starting at the claim that is made now.
    unhindered: Vec<CallId>,
    clocks: Option<Now>,
    /// When the wall clock was last seen to have been set.
    was_set: Option<Timestamp>,
}

impl Oracle {
    /// Judges what was done and answered.
    pub(super) fn observe(&mut self, entry: &Entry) -> Checked {
        let now = entry.now;
        let mut unhindered = std::mem::take(&mut self.unhindered);
        unhindered.retain(|_| self.clocks == Some(now));
        self.read_clocks(now);
        self.advance(now);
        match &entry.event {
            Event::Queue(name, spec, answer) => self.queue_defined(name, spec, answer)?,
            Event::RemoveQueue(name, answer) => self.queue_removed(name, answer)?,
            Event::Limit(name, definition) => self.define(name, definition.as_ref()),
            Event::Act(act, answer) => self.acted(act, answer, now)?,
            Event::Claim { queue, most, lease, expected, started } => {
                self.claimed(started, *expected, *lease, now)?;
                if started.len() > *most {
                    return Err(format!("{} started of {most} asked for", started.len()));
                }
                if started.len() < *most {
                    self.all_started(&unhindered, queue)?;
                    self.nothing_idles(queue, now)?;
                }
            }
            Event::Renew(lease, span, is_held) => self.renewed((*lease, *span), *is_held, now)?,
            Event::Pause(scope) => self.set_paused(scope, true),
            Event::Resume(scope) => self.set_paused(scope, false),
            Event::Reopen(limit, partition) => {
                let meter = self.meter(limit, partition.as_ref());
                self.meters[meter].closed_until = Timestamp::default();
                self.told.clear();
            }
            Event::Advance => {}
        }
        self.compare_ends(entry)
    }

    /// Each call, and whether it ended.
    pub(super) fn calls(&self) -> impl Iterator<Item = (CallId, bool)> {
        self.calls.iter().map(|call| (call.id, call.end.is_some()))
    }

    pub(super) fn is_over(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn first_waiting(&self) -> String {
        self.open.first().map_or("no call".to_owned(), |id| format!("call {id}"))
    }

    /// The calls that are in flight.
    pub(super) fn in_flight(&self) -> Vec<CallId> {
        let open = self.open.iter().map(|id| &self.calls[*id]);
        open.filter(|call| call.flight.is_some()).map(|call| call.id).collect()
    }

    /// What is kept under a key.
    pub(super) fn record(&self, key: &Key) -> Option<&Record> {
        self.records.kept(key)
    }

    pub(super) fn held_lanes(&self) -> Vec<(QueueName, LaneName)> {
        let held = self.lanes.iter().filter(|lane| lane.is_held || lane.is_paused);
        held.map(|lane| (lane.queue.clone(), lane.name.clone())).collect()
    }

    /// The calls that are dead.
    pub(super) fn dead(&self) -> Vec<CallId> {
        let dead = self.calls.iter().filter(|call| call.end == Some(End::Dead));
        dead.map(|call| call.id).collect()
    }

    /// The meters that an upstream had closed.
    pub(super) fn closed_meters(&self, now: Now) -> Vec<(LimitName, Option<Partition>)> {
        let closed = self.meters.iter().filter(|meter| meter.closed_until > now.at);
        let named = closed.map(|meter| {
            let limit = self.limits[meter.limit].name.clone();
            (limit, meter.partition.clone())
        });
        named.collect()
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

    /// Notices a wall clock that was set: what was told of times counts no more.
    fn read_clocks(&mut self, now: Now) {
        if self.clocks.is_some_and(|before| before.moved_to(now.at) != now) {
            self.was_set = Some(now.at);
            self.told.clear();
        }
        self.clocks = Some(now);
    }

    /// What happens by itself when time passes.
    fn advance(&mut self, now: Now) {
        if self.advanced.replace(now) == Some(now) {
            return;
        }
        self.join(now);
        let restless = self.restless.iter().copied();
        let is_due = |id: &usize| self.calls[*id].changes_by(now);
        for id in restless.filter(is_due).collect::<Vec<_>>() {
            if self.calls[id].is_too_old(now) {
                self.end(id, End::Expired);
            } else {
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
        for line in &call.lines {
            self.meters[line.meter].open.remove(&id);
        }
        self.open.remove(&id);
        self.restless.remove(&id);
        self.lanes[lane].open.remove(&id);
        self.ends.push((name, end));
        if matches!(end, End::Cancelled | End::Superseded) {
            // Those behind it may start before they were told.
            self.told.clear();
        }
        if let Some(queue) = self.queues.get_mut(&self.lanes[lane].queue) {
            queue.depth -= 1;
            let holds = queue.spec.on_dead == OnDead::Hold;
            self.lanes[lane].is_held |= end == End::Dead && holds;
        }
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

    fn limit(&mut self, name: &LimitName) -> usize {
        self.limits.iter().position(|limit| limit.name == *name).unwrap_or_else(|| {
            self.limits.push(LimitBook::new(name.clone()));
            self.limits.len() - 1
        })
    }

    fn meter(&mut self, limit: &LimitName, partition: Option<&Partition>) -> usize {
        let name = (self.limit(limit), partition.cloned());
        if let Some(found) = self.meters_by_name.get(&name) {
            return *found;
        }
        self.meters.push(MeterBook::new(name.0, name.1.clone()));
        self.meters_by_name.insert(name, self.meters.len() - 1);
        self.meters.len() - 1
    }
}
