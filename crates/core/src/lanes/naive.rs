//! The naive reference: lanes as the contract describes them, in plain lists and loops.
//!
//! It has no index and no cache: who is first, who stands where and what is in the way is found out
//! anew each time by looking at everything. Slow on purpose, so that a scheduler that decides the
//! same on random input has been compared with something too simple to be wrong.

mod advance;
mod again;
mod ask;
mod browse;
mod busiest;
mod check;
mod claim;
mod configure;
mod dead;
mod enqueue;
mod events;
mod explain;
mod heads;
mod operate;
mod perform;
mod totals;
mod transient;
mod ways;

use super::act::{Act, ActError, Acted, Record};
use super::call::{Attempts, CallId, Death, End, Lease, NewCall};
use super::claim::Scope;
use super::event::Event;
use super::learned::Learned;
use super::queue::{LANE_WEIGHT_MAX, LEASE_MAX, QueueError, QueueSpec};
use crate::contract::{LimitTotals, QueueCounts, QueueState, Tally};
use crate::limit::Definition;
use crate::meter::{Meter, Payment};
use crate::name::{Key, LaneName, LimitName, Partition, QueueName};
use crate::rule::slots::HoldId;
use crate::time::{Now, Span, Timestamp};
use crate::turn::Patience;
use std::collections::BTreeMap;

/// Lanes, limits and calls, decided the slow way.
#[derive(Debug, Clone, Default)]
pub struct Naive {
    limits: BTreeMap<LimitName, KnownLimit>,
    meters: BTreeMap<MeterKey, Meter>,
    /// Meters with rules of their own.
    overrides: BTreeMap<MeterKey, Definition>,
    /// The virtual time of each meter; 0 if it is not here.
    vtimes: BTreeMap<MeterKey, u64>,
    /// How far lanes are served at each meter, on average; 0 if it is not here.
    rounds: BTreeMap<MeterKey, u64>,
    /// How far each lane was served at each meter; 0 if it is not here.
    finishes: BTreeMap<(LaneKey, MeterKey), u64>,
    queues: BTreeMap<QueueName, Queue>,
    lanes: BTreeMap<LaneKey, Lane>,
    /// Every call there ever was.
    calls: BTreeMap<CallId, Call>,
    /// What those calls have at their meters that may start next.
    heads: BTreeMap<CallId, Head>,
    /// The first call of a key, and until when the key is remembered.
    dedupes: BTreeMap<(QueueName, Key), (CallId, Timestamp)>,
    joins: BTreeMap<Key, u64>,
    records: BTreeMap<Key, Record>,
    /// The receipts that were settled, and until when that is remembered.
    settled: BTreeMap<u64, Timestamp>,
    /// What was admitted at each meter; nothing if it is not here.
    admitted: BTreeMap<MeterKey, Tally>,
    /// What was counted at each limit; nothing if it is not here.
    totals: BTreeMap<LimitName, LimitTotals>,
    /// What was counted at each queue; nothing if it is not here.
    counts: BTreeMap<QueueName, QueueCounts>,
    /// What calls cost, for queues that estimate by it.
    learned: Learned,
    /// The calls that ended and were not asked for yet.
    ended: Vec<(CallId, End)>,
    /// What happened and was not asked for yet.
    events: Vec<Event>,
    /// The present, as it was told last.
    latest: Now,
    next_call: u64,
    next_arrival: u64,
    last_token: u64,
    last_revision: u64,
}

type MeterKey = (LimitName, Option<Partition>);
type LaneKey = (QueueName, LaneName);

/// A limit that was defined at least once.
#[derive(Debug, Clone)]
struct KnownLimit {
    /// The last one there was, if the limit is removed.
    definition: Definition,
    is_defined: bool,
    is_paused: bool,
    /// It came along with calls, and goes with them.
    is_transient: bool,
}

#[derive(Debug, Clone)]
struct Queue {
    spec: QueueSpec,
    is_paused: bool,
    asks_until: Timestamp,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    is_paused: bool,
    is_held: bool,
    /// How many times as much it is served as others; 0 is 1.
    weight: u32,
}

#[derive(Debug, Clone)]
struct Call {
    id: CallId,
    new: NewCall,
    /// `None` until it joins its lane.
    arrival: Option<u64>,
    attempts: Attempts,
    /// It was started and is to be started again.
    came_back: bool,
    /// It is not eligible until then.
    backoff: Option<Timestamp>,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    Waiting,
    InFlight(Flight),
    Dead(Death),
    Ended(End),
}

/// One start of a call.
#[derive(Debug, Clone)]
struct Flight {
    token: u64,
    /// Which attempt it is.
    attempt: u32,
    started: Now,
    expires: Timestamp,
    is_cancelled: bool,
    payments: Vec<(MeterKey, Payment)>,
}

/// What a head has at its meters.
#[derive(Debug, Clone, Default)]
struct Head {
    stand: Stand,
    patience: Patience,
    is_senior: bool,
}

/// Where a head is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Stand {
    /// Nowhere: it owes nothing.
    #[default]
    Ready,
    /// In the order at a meter.
    At(MeterKey, u64),
    /// At a meter where nothing passes until its limit changes.
    Parked(MeterKey),
}

impl Naive {
    /// Nothing is defined and nothing waits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines, changes or removes a limit. What was spent stays spent.
    pub fn define_limit(&mut self, name: &LimitName, definition: Option<Definition>, now: Now) {
        self.advance(now);
        match definition {
            Some(definition) => self.set_definition(name, definition, now, false),
            None => {
                let has_gone = self.has_gone(name, now);
                if let Some(limit) = self.limits.get_mut(name).filter(|_| !has_gone) {
                    (limit.is_defined, limit.is_transient) = (false, false);
                }
            }
        }
        self.limit_changed(name, true);
    }

    /// Defines or changes a queue; its calls follow at once.
    pub fn define_queue(
        &mut self,
        name: &QueueName,
        spec: QueueSpec,
        now: Now,
    ) -> Result<(), QueueError> {
        self.advance(now);
        spec.check()?;
        match self.queues.get_mut(name) {
            Some(queue) => queue.spec = spec,
            None => {
                let queue = Queue { spec, is_paused: false, asks_until: Timestamp::default() };
                self.queues.insert(name.clone(), queue);
            }
        }
        self.drop_dead(name);
        self.refresh_heads();
        Ok(())
    }

    /// Removes a queue without calls; says whether there was one.
    pub fn remove_queue(&mut self, name: &QueueName, now: Now) -> Result<bool, QueueError> {
        self.advance(now);
        let Some(state) = self.queues(None, usize::MAX).into_iter().find(|it| it.name == *name)
        else {
            return Ok(false);
        };
        let QueueState { waiting, in_flight, dead, .. } = state;
        if waiting + in_flight + dead > 0 {
            return Err(QueueError::NotEmpty { waiting, in_flight, dead });
        }
        self.queues.remove(name);
        self.learned.forget(name);
        self.counts.remove(name);
        self.lanes.retain(|(queue, _), _| queue != name);
        self.finishes.retain(|((queue, _), _), _| queue != name);
        self.dedupes.retain(|(queue, _), _| queue != name);
        Ok(true)
    }

    /// Does all of an act, or says why it did nothing.
    pub fn act(&mut self, act: Act, now: Now) -> Result<Acted, ActError> {
        self.advance(now);
        self.check(&act)?;
        // Which calls are new is known once the act is done: it is done to a copy.
        let mut after = self.clone();
        let performed = after.perform(&act, now);
        self.check_depth(&act, &performed.deepened)?;
        after.refresh_heads();
        *self = after;
        Ok(performed.acted)
    }

    /// Holds leases for longer; says of each whether it was there.
    pub fn renew(&mut self, leases: &[Lease], lease: Span, now: Now) -> Vec<bool> {
        self.advance(now);
        let until = now.at.plus(lease.min(LEASE_MAX));
        leases.iter().map(|lease| self.renew_one(*lease, until, now)).collect()
    }

    /// Holds something back.
    pub fn pause(&mut self, scope: &Scope, now: Now) {
        self.advance(now);
        self.set_paused(scope, true);
        if let Scope::Limit(limit) = scope {
            self.limit_changed(limit, false);
        }
        self.refresh_heads();
    }

    /// Lets go of what was held back; for a lane also what a dead call held.
    pub fn resume(&mut self, scope: &Scope, now: Now) {
        self.advance(now);
        self.set_paused(scope, false);
        if let Scope::Lane(queue, lane) = scope
            && let Some(lane) = self.lanes.get_mut(&(queue.clone(), lane.clone()))
        {
            lane.is_held = false;
        }
        if let Scope::Limit(limit) = scope {
            self.limit_changed(limit, true);
        }
        self.refresh_heads();
    }

    /// Serves a lane so many times as much as others.
    pub fn weigh(&mut self, queue: &QueueName, lane: &LaneName, weight: u32, now: Now) {
        self.advance(now);
        if self.queues.contains_key(queue) {
            let lane = self.lanes.entry((queue.clone(), lane.clone())).or_default();
            lane.weight = weight.clamp(1, LANE_WEIGHT_MAX);
        }
    }

    /// Says until when someone asks for a queue's calls, whatever was said before.
    pub fn ask(&mut self, queue: &QueueName, until: Timestamp, now: Now) {
        self.advance(now);
        if let Some(queue) = self.queues.get_mut(queue) {
            queue.asks_until = until;
        }
    }

    /// A record as it is kept.
    pub fn record(&self, key: &Key) -> Option<&Record> {
        self.records.get(key)
    }

    /// The calls that ended since this was asked last.
    pub fn take_ended(&mut self) -> Vec<(CallId, End)> {
        std::mem::take(&mut self.ended)
    }

    /// How a call ended, if it did.
    pub fn end(&self, id: CallId) -> Option<End> {
        match self.calls.get(&id)?.state {
            State::Ended(end) => Some(end),
            State::Dead(_) => Some(End::Dead),
            State::Waiting | State::InFlight(_) => None,
        }
    }

    /// Whether a call waits, in its lane or to join it.
    pub fn is_waiting(&self, id: CallId) -> bool {
        self.calls.get(&id).is_some_and(Call::is_waiting)
    }

    /// Whether a call was started and not settled.
    pub fn is_in_flight(&self, id: CallId) -> bool {
        self.calls.get(&id).is_some_and(|call| call.flight().is_some())
    }

    fn set_definition(
        &mut self,
        name: &LimitName,
        definition: Definition,
        now: Now,
        is_transient: bool,
    ) {
        self.begin_anew(name, now);
        let is_paused = self.limits.get(name).is_some_and(|limit| limit.is_paused);
        let known = KnownLimit { definition, is_defined: true, is_paused, is_transient };
        let new = known.definition.clone();
        let Some(old) = self.limits.insert(name.clone(), known) else { return };
        if old.definition == new {
            return;
        }
        for (key, meter) in &mut self.meters {
            if key.0 == *name && !self.overrides.contains_key(key) {
                meter.carry(&old.definition, &new, now);
            }
        }
    }

    /// A limit changed: who was parked at it may stand there, and who stood there may be shut out.
    fn limit_changed(&mut self, name: &LimitName, wakes_parked: bool) {
        let heads: Vec<(CallId, Stand)> =
            self.heads.iter().map(|(id, head)| (*id, head.stand.clone())).collect();
        for (id, stand) in heads {
            match stand {
                Stand::Parked(meter) if meter.0 == *name && wakes_parked => {
                    self.stand_at(id, &meter)
                }
                Stand::At(meter, _) if meter.0 == *name => self.stand_at(id, &meter),
                _ => {}
            }
        }
    }

    fn renew_one(&mut self, lease: Lease, until: Timestamp, now: Now) -> bool {
        let Some(call) = self.calls.get_mut(&lease.call) else { return false };
        let State::InFlight(flight) = &mut call.state else { return false };
        if flight.token != lease.token {
            return false;
        }
        flight.expires = flight.expires.max(until);
        for (key, _) in &flight.payments {
            if let Some(meter) = self.meters.get_mut(key) {
                meter.renew(HoldId(flight.token), flight.expires, now.at);
            }
        }
        true
    }

    fn set_paused(&mut self, scope: &Scope, is_paused: bool) {
        match scope {
            Scope::Queue(queue) => {
                if let Some(queue) = self.queues.get_mut(queue) {
                    queue.is_paused = is_paused;
                }
            }
            Scope::Lane(queue, lane) => {
                if self.queues.contains_key(queue) {
                    let key = (queue.clone(), lane.clone());
                    self.lanes.entry(key).or_default().is_paused = is_paused;
                }
            }
            Scope::Limit(limit) => {
                let has_gone = self.has_gone(limit, self.latest);
                if let Some(limit) = self.limits.get_mut(limit).filter(|_| !has_gone) {
                    limit.is_paused = is_paused;
                }
            }
        }
    }

    /// The rules that a meter follows, if its limit is not removed.
    fn definition(&self, meter: &MeterKey) -> Option<&Definition> {
        let common = self.common(&meter.0)?;
        Some(self.overrides.get(meter).unwrap_or(common))
    }

    /// The definition of a limit that is not removed.
    fn common(&self, name: &LimitName) -> Option<&Definition> {
        let known = self.limits.get(name).filter(|limit| limit.is_defined)?;
        (!self.has_gone(name, self.latest)).then_some(&known.definition)
    }
}

impl Call {
    fn lane_key(&self) -> LaneKey {
        (self.new.queue.clone(), self.new.lane.clone())
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }

    fn flight(&self) -> Option<&Flight> {
        match &self.state {
            State::InFlight(flight) => Some(flight),
            State::Waiting | State::Dead(_) | State::Ended(_) => None,
        }
    }

    fn never_started(&self) -> bool {
        self.is_waiting() && !self.came_back
    }

    /// Whether its time counts: it waits, and no attempt of it counts.
    fn may_expire(&self) -> bool {
        self.is_waiting() && self.attempts == Attempts::default()
    }
}
