//! The scheduler: the whole of the lanes in memory, as a deterministic state machine.
//!
//! A claim costs what it grants, not what waits. A head stands at one meter, and a meter offers its
//! queue one head at a time: the one that has the turn. What is blocked is looked at again at the
//! instant it opens, or when something changes there.

mod act;
mod advance;
mod allow;
mod apply;
mod ascending;
mod ask;
mod browse;
mod busiest;
mod calls;
mod check;
mod claim;
mod configure;
mod counts;
mod dead;
mod elsewhere;
mod emit;
mod events;
mod expected;
mod explain;
mod forecast;
mod forget;
mod heads;
mod keys;
mod lanes;
#[cfg(test)]
mod lasting;
mod limits;
mod meters;
mod operate;
mod overrides;
mod records;
mod remove;
mod single;
mod snapshot;
mod sorted;
mod standing;
mod survey;
mod throttled;
mod totals;
mod transient;
mod waiting;
mod wakes;

pub use forecast::{Forecast, LaneForecast, Work};
pub use survey::{LaneSurvey, MeterSurvey, Most};

use super::act::Record;
use super::call::{CallId, Lease};
use super::claim::Scope;
use super::effect::Effect;
use super::event::LineWaits;
use super::learned::Learned;
use super::queue::{LANE_WEIGHT_MAX, LEASE_MAX, QueueError, QueueSpec};
use crate::contract::MeterName;
use crate::limit::Definition;
use crate::name::{Key, LaneName, LimitName, QueueName};
use crate::time::{Now, Span, Timestamp};
use advance::Timers;
use calls::{CallSlot, Calls, LaneSlot, MeterSlot};
use counts::Marks;
use events::Watching;
use forget::Idle;
use lanes::Lanes;
use meters::{Meters, QueueSlot};
use records::Records;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Names come from callers: where they fall is seeded anew for each table.
type Hashing = foldhash::fast::RandomState;

/// Calls, lanes, meters and leases, and everything that can be done to them.
#[derive(Debug, Clone, Default)]
pub struct Scheduler {
    calls: Calls,
    lanes: Lanes,
    meters: Meters,
    timers: Timers,
    records: Records,
    joins: HashMap<Key, u64, Hashing>,
    /// The first call of a key, and until when the key is remembered.
    dedupes: HashMap<(QueueSlot, Key), (CallId, Timestamp), Hashing>,
    newest: Newest,
    /// Receipts that were settled and have not expired.
    settled: HashSet<u64, Hashing>,
    /// Units that may be consumed before that is written down.
    allowed: HashMap<MeterName, u64, Hashing>,
    ids: u64,
    tokens: u64,
    arrivals: u64,
    revisions: u64,
    /// The latest instant of limit time that was seen.
    now: Timestamp,
    /// The present, as it was told last.
    present: Now,
    /// What heads waited where they stood before, if they did.
    stood: HashMap<LaneSlot, LineWaits, Hashing>,
    watching: Watching,
    /// Meters that let calls go in the claim that is being served.
    granting: Vec<MeterSlot>,
    /// When calls were accepted, as far as that is measured.
    acceptances: Marks,
    /// When calls came into line, since the present is known.
    lined_up: Marks,
    /// Lanes whose head may have changed.
    touched: Vec<LaneSlot>,
    /// Meters that were paid at or left since they were looked at.
    served: Vec<MeterSlot>,
    /// Meters where the heads of a queue let those of another go first.
    yielding: BTreeSet<(MeterSlot, QueueSlot)>,
    /// What may be forgotten.
    idle: Idle,
    /// Queues that may have something to start and were not told yet.
    woken: BTreeSet<QueueSlot>,
    /// Queues to which a worker is expected back, and those of them that may have something to start.
    expected: BTreeSet<QueueSlot>,
    withheld: BTreeSet<QueueSlot>,
    /// Queues for which someone began or ceased to ask, if that is to be known elsewhere.
    asked: Vec<QueueSlot>,
    /// How many effects there were when meters were levelled, if that is to be known elsewhere.
    levelled: Vec<usize>,
    shares_asks: bool,
    /// Where the bodies of calls that ended were kept.
    freed: Vec<u64>,
    /// What calls cost, for queues that estimate by it.
    learned: Learned,
    /// What changed and was not reported yet.
    effects: Vec<Effect>,
}

/// The call of each key that newer ones replace.
#[derive(Debug, Clone, Default)]
struct Newest {
    by_key: HashMap<(LaneSlot, Key), CallSlot, Hashing>,
    keys: HashMap<CallSlot, (LaneSlot, Key), Hashing>,
}

impl Newest {
    fn find(&self, lane: LaneSlot, key: &Key) -> Option<CallSlot> {
        self.by_key.get(&(lane, key.clone())).copied()
    }

    fn insert(&mut self, lane: LaneSlot, key: &Key, call: CallSlot) {
        self.by_key.insert((lane, key.clone()), call);
        self.keys.insert(call, (lane, key.clone()));
    }

    fn remove(&mut self, call: CallSlot) {
        if !self.keys.is_empty()
            && let Some(key) = self.keys.remove(&call)
            && self.by_key.get(&key) == Some(&call)
        {
            self.by_key.remove(&key);
        }
    }
}

impl Scheduler {
    /// Without limits, queues and calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Defines a limit, changes it, or removes it (`None`). What was spent stays spent.
    pub fn define_limit(&mut self, name: &LimitName, definition: Option<Definition>, now: Now) {
        self.advance(now);
        let known = self.there(name, now).map(|limit| self.meters.book(limit));
        let known = known.filter(|book| !book.is_transient() || definition.is_none());
        // Said again with every call, a limit costs nothing.
        if known.and_then(|book| book.definition()) == definition.as_ref() {
            return;
        }
        self.begin_anew(name, now);
        let definition = definition.map(Box::new);
        self.emit(Effect::LimitDefined { name: name.clone(), definition, now });
    }

    /// Defines a queue, or changes it: at once, for waiting calls, too.
    pub fn define_queue(
        &mut self,
        name: &QueueName,
        spec: QueueSpec,
        now: Now,
    ) -> Result<(), QueueError> {
        self.advance(now);
        spec.check()?;
        let known = self.lanes.find(name).map(|queue| &self.lanes.queue(queue).spec);
        if known != Some(&spec) {
            self.emit(Effect::QueueDefined { name: name.clone(), spec: Box::new(spec) });
            if let Some(queue) = self.lanes.find(name) {
                self.drop_dead(queue);
            }
            self.rehead();
        }
        Ok(())
    }

    /// Holds leases longer; says of each whether it was still held.
    pub fn renew(&mut self, leases: &[Lease], lease: Span, now: Now) -> Vec<bool> {
        self.advance(now);
        let expires = now.at.plus(lease.min(LEASE_MAX));
        leases.iter().map(|lease| self.renew_one(*lease, expires, now)).collect()
    }

    fn renew_one(&mut self, lease: Lease, expires: Timestamp, now: Now) -> bool {
        let held = self.in_flight(lease).and_then(|slot| self.calls.flight(&self.calls[slot]));
        let Some(flight) = held else { return false };
        if expires > flight.expires {
            self.emit(Effect::Renewed { lease, now, expires });
        }
        true
    }

    /// Holds back a queue, a lane or a limit: nothing of it starts.
    pub fn pause(&mut self, scope: &Scope, now: Now) {
        self.advance(now);
        // One that went with its calls is not to be found by those who apply this again.
        if let Scope::Limit(limit) = scope
            && self.there(limit, now).is_none()
        {
            return;
        }
        self.emit(Effect::Paused(scope.clone()));
        self.rehead();
    }

    /// Lets a queue, a lane or a limit go on; a lane that a dead call holds, too.
    pub fn resume(&mut self, scope: &Scope, now: Now) {
        self.advance(now);
        self.emit(Effect::Resumed(scope.clone()));
        self.rehead();
    }

    /// Serves a lane so many times as much as others, from 1 to [`LANE_WEIGHT_MAX`].
    pub fn weigh(&mut self, queue: &QueueName, lane: &LaneName, weight: u32, now: Now) {
        self.advance(now);
        let weight = weight.clamp(1, LANE_WEIGHT_MAX);
        let (queue, lane) = (queue.clone(), lane.clone());
        self.emit(Effect::LaneWeighed { queue, lane, weight });
        self.rehead();
    }

    /// If a limit may open by then that heads of a queue wait for, when they have been tried at the latest. Not all
    /// that may are looked at.
    pub fn opens_by(&self, queue: &QueueName, by: Timestamp) -> Option<Timestamp> {
        self.lanes.find(queue).and_then(|queue| self.timers.wakes.next_of(queue, by))
    }

    /// Whether any queue may have something to start: [`Self::take_woken`] says which.
    pub fn has_woken(&self) -> bool {
        !self.woken.is_empty()
    }

    /// The queues that may have something to start since this was asked last: whoever asks for one
    /// of them should claim again. What opens by itself is told by [`Self::next_due`].
    pub fn take_woken(&mut self) -> Vec<QueueName> {
        let woken = std::mem::take(&mut self.woken);
        woken.into_iter().map(|queue| self.lanes.queue(queue).name.clone()).collect()
    }

    /// Within how long meters are gathered that open. A wake costs a commit, an answer and a claim that follows
    /// it; a call that goes along costs little more. At 5,000 starts a second a millisecond halves what one
    /// costs. As much is left of the two that a start may be late, for the commit and the way to the worker.
    pub const GATHER: Span = Span::from_millis(1);

    /// Meters that open within so long of each other are looked at together, with the last of them, so
    /// that one claim brings what many would; those that would lose some of their rate by that are not.
    /// Without this, each is looked at the instant it opens.
    pub fn gather(&mut self, within: Span) {
        self.timers.wakes.gather(within);
    }

    /// The record of a key.
    pub fn record(&self, key: &Key) -> Option<&Record> {
        self.records.get(key)
    }

    /// Limit time, as far as it is known: it goes on from there.
    pub fn latest(&self) -> Timestamp {
        self.now
    }

    /// Notes where the store keeps a call's body; says where it was kept before, 0 if nowhere. `None`: the call has
    /// ended.
    pub fn locate(&mut self, id: CallId, body: u64) -> Option<u64> {
        let slot = self.calls.find(id)?;
        Some(std::mem::replace(&mut self.calls[slot].body, body))
    }

    /// Where the bodies of all calls are kept.
    pub fn locations(&self) -> impl Iterator<Item = u64> {
        self.calls.iter().map(|(_, call)| call.body)
    }

    /// Where the bodies were kept of calls that ended since this was asked last.
    pub fn take_freed(&mut self) -> impl Iterator<Item = u64> {
        self.freed.drain(..)
    }

    /// Where the store keeps a call's body, as it was noted; 0 if it was not.
    pub fn located(&self, id: CallId) -> Option<u64> {
        self.calls.find(id).map(|slot| self.calls[slot].body)
    }

    /// Whether a call is there and neither in flight nor dead.
    pub fn is_waiting(&self, id: CallId) -> bool {
        let waits = |slot| !self.is_dead(slot) && self.calls.flight(&self.calls[slot]).is_none();
        self.calls.find(id).is_some_and(waits)
    }

    /// Whether a call is among the dead.
    pub fn is_among_dead(&self, id: CallId) -> bool {
        self.calls.find(id).is_some_and(|slot| self.is_dead(slot))
    }

    /// When a start was made, if it is still held.
    pub fn started_at(&self, lease: Lease) -> Option<Timestamp> {
        let slot = self.in_flight(lease)?;
        self.calls.flight(&self.calls[slot]).map(|flight| flight.started.at)
    }

    /// Whether a call is in flight.
    pub fn is_in_flight(&self, id: CallId) -> bool {
        self.calls.find(id).is_some_and(|slot| self.calls.flight(&self.calls[slot]).is_some())
    }
}
