//! What should be there: a part of the store as its answers say, and what it may answer next.
//!
//! The work is cut into parts, each with a queue, records and a meter of its own and one command at a
//! time. So what a part holds is known exactly, whatever the others do.

use super::lines::{Answer, Blob, Change, Command, Fresh, Outcome, Settled, Start, digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A call that failed so often is dead.
pub(super) const FAILURES_MAX: u32 = 3;
/// So many dead calls are kept.
pub(super) const DEAD_MAX: u64 = 20;
/// Calls of one lane in flight, where there may be several.
pub(super) const PARALLEL: u32 = 3;

/// What one part of the store holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) index: usize,
    /// The number of the next blob.
    pub(super) blobs: u64,
    /// The newest call that was ever answered.
    newest: Option<u64>,
    /// Those that have not ended.
    pub(super) calls: BTreeMap<u64, Call>,
    /// Those that are dead, with the number of the act in which they died.
    pub(super) dead: BTreeMap<u64, (u64, Call)>,
    /// How many acts there were.
    acts: u64,
    /// Records with their revisions.
    pub(super) records: BTreeMap<u64, (u64, Blob)>,
    /// The first call of each key.
    pub(super) dedupes: BTreeMap<u64, u64>,
    /// Paid at the meter.
    pub(super) spent: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) lane: u64,
    pub(super) priority: u64,
    pub(super) weight: u64,
    pub(super) body: Blob,
    pub(super) failures: u32,
    pub(super) was_started: bool,
    pub(super) rests: bool,
    pub(super) is_cancelled: bool,
    /// Its lease, while it is in flight.
    pub(super) token: Option<u64>,
}

impl Part {
    pub(super) fn new(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    /// Half of the parts keep strict order.
    pub(super) fn is_strict(&self) -> bool {
        self.index.is_multiple_of(2)
    }

    /// Notes that a command is on its way.
    pub(super) fn begun(&mut self, command: &Command) {
        for blob in command.blobs() {
            self.blobs = self.blobs.max(blob.number + 1);
        }
    }

    /// Lets happen what was answered, or says why that cannot be the answer.
    pub(super) fn answered(&mut self, command: &Command, answer: &Answer) -> Result<(), String> {
        match (command, answer) {
            (Command::Act(change), Answer::Refused(_)) if self.refuses(change) => Ok(()),
            (Command::Act(change), Answer::Acted { enqueued, cancelled, written })
                if !self.refuses(change) =>
            {
                self.settle_all(change);
                self.cancel(&change.cancel, cancelled)?;
                self.write(change, written)?;
                self.enqueue(&change.enqueue, enqueued)
            }
            (Command::Claim { most }, Answer::Claimed(starts)) => self.claim(*most, starts),
            (Command::Consume { weight }, Answer::Paid) => {
                self.spent += weight;
                Ok(())
            }
            _ => Err(format!("{command:?} was answered with {answer:?}")),
        }
    }

    /// Whether an act cannot be done: a lease that is lost, a record at another revision.
    fn refuses(&self, change: &Change) -> bool {
        let is_held = |settled: &Settled| {
            self.calls.get(&settled.call).is_some_and(|call| call.token == Some(settled.token))
        };
        let revision = |key| self.records.get(key).map_or(0, |(revision, _)| *revision);
        !change.settle.iter().all(is_held)
            || change.write.iter().any(|write| write.expected != revision(&write.key))
    }

    pub(super) fn settle_all(&mut self, change: &Change) {
        self.acts += 1;
        change.settle.iter().for_each(|settled| self.settle(*settled));
    }

    fn settle(&mut self, Settled { call: id, outcome, .. }: Settled) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        call.token = None;
        match outcome {
            Outcome::Done | Outcome::Dead => {}
            Outcome::Release => self.spent -= call.weight,
            Outcome::Retry | Outcome::Rest => call.failures += 1,
        }
        call.rests = outcome == Outcome::Rest;
        let is_worn_out = call.failures >= FAILURES_MAX && !call.is_cancelled;
        let is_dead = outcome == Outcome::Dead || (is_worn_out && outcome != Outcome::Done);
        if !is_dead && outcome != Outcome::Done && !call.is_cancelled {
            return;
        }
        let ended = self.calls.remove(&id);
        if let Some(call) = ended.filter(|_| is_dead) {
            self.die(id, call);
        }
    }

    /// Keeps a dead call; the one that died first goes if there are too many.
    fn die(&mut self, id: u64, call: Call) {
        let call = Call { rests: false, is_cancelled: false, ..call };
        self.dead.insert(id, (self.acts, call));
        if self.dead.len() as u64 > DEAD_MAX
            && let Some(first) = self.dead.iter().map(|(id, (act, _))| (*act, *id)).min()
        {
            self.dead.remove(&first.1);
        }
    }

    /// Whether a call is there, if only among the dead.
    pub(super) fn has(&self, id: u64) -> bool {
        self.calls.contains_key(&id) || self.dead.contains_key(&id)
    }

    fn cancel(&mut self, calls: &[u64], answers: &[bool]) -> Result<(), String> {
        for (id, answer) in same_length(calls, answers)? {
            if self.has(*id) != *answer {
                return Err(format!("to cancel call {id} was answered with {answer}"));
            }
            self.dead.remove(id);
            match self.calls.get_mut(id) {
                Some(call) if call.token.is_some() => call.is_cancelled = true,
                _ => drop(self.calls.remove(id)),
            }
        }
        Ok(())
    }

    fn write(&mut self, change: &Change, revisions: &[u64]) -> Result<(), String> {
        for (write, revision) in same_length(&change.write, revisions)? {
            if *revision <= write.expected {
                return Err(format!("{write:?} was answered with revision {revision}"));
            }
            match write.bytes {
                Some(bytes) => drop(self.records.insert(write.key, (*revision, bytes))),
                None => drop(self.records.remove(&write.key)),
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, calls: &[Fresh], ids: &[u64]) -> Result<(), String> {
        for (fresh, id) in same_length(calls, ids)? {
            let first = fresh.dedupe.and_then(|key| self.dedupes.get(&key).copied());
            let is_right = match first {
                Some(first) => first == *id,
                None => self.newest.is_none_or(|newest| newest < *id),
            };
            if !is_right {
                let newest = self.newest;
                return Err(format!(
                    "{fresh:?} was answered with call {id}: the first is {first:?}, the newest {newest:?}"
                ));
            }
            if first.is_none() {
                self.newest = Some(*id);
                self.dedupes.extend(fresh.dedupe.map(|key| (key, *id)));
                self.calls.insert(*id, Call::new(fresh));
            }
        }
        Ok(())
    }

    fn claim(&mut self, most: usize, starts: &[Start]) -> Result<(), String> {
        for start in starts {
            let Some(lane) = self.calls.get(&start.call).map(|call| call.lane) else {
                return Err(format!("call {} started, and is not there", start.call));
            };
            let head = self.head(lane);
            if head != Some(start.call) {
                return Err(format!(
                    "call {} started, and its lane's first is {head:?}",
                    start.call
                ));
            }
            self.start(start)?;
        }
        let lanes = self.calls.values().map(|call| call.lane);
        let left = lanes.filter_map(|lane| self.head(lane)).next();
        match left {
            Some(left) if starts.len() < most => {
                Err(format!("a claim of {most} got {}, and left call {left}", starts.len()))
            }
            _ if starts.len() > most => Err(format!("a claim of {most} got {}", starts.len())),
            _ => Ok(()),
        }
    }

    fn start(&mut self, start: &Start) -> Result<(), String> {
        let Some(call) = self.calls.get_mut(&start.call) else { return Ok(()) };
        if call.failures != start.failures {
            return Err(format!("{call:?} started as one that failed {} times", start.failures));
        }
        if digest(&call.body.make(self.index)) != start.digest {
            return Err(format!("call {} started with another body: {call:?}", start.call));
        }
        call.token = Some(start.token);
        call.was_started = true;
        self.spent += call.weight;
        Ok(())
    }

    /// The call of a lane that may start next.
    fn head(&self, lane: u64) -> Option<u64> {
        let of_lane = || self.calls.iter().filter(move |(_, call)| call.lane == lane);
        let in_flight = of_lane().filter(|(_, call)| call.token.is_some()).count();
        let in_flight_max = if self.is_strict() { 1 } else { PARALLEL };
        if u32::try_from(in_flight).unwrap_or(u32::MAX) >= in_flight_max {
            return None;
        }
        let waiting = || of_lane().filter(|(_, call)| call.token.is_none());
        let rank = |(id, call): &(&u64, &Call)| (u64::MAX - call.priority, **id);
        if !self.is_strict() {
            return waiting().filter(|(_, call)| !call.rests).min_by_key(rank).map(|(id, _)| *id);
        }
        // Whoever was started stays first, and holds its lane while it rests.
        let current = waiting().filter(|(_, call)| call.was_started).min_by_key(rank);
        let first = current.or_else(|| waiting().min_by_key(rank));
        first.filter(|(_, call)| !call.rests).map(|(id, _)| *id)
    }
}

impl Call {
    fn new(fresh: &Fresh) -> Self {
        Self {
            lane: fresh.lane,
            priority: fresh.priority,
            weight: fresh.weight,
            body: fresh.body,
            failures: 0,
            was_started: false,
            rests: false,
            is_cancelled: false,
            token: None,
        }
    }
}

fn same_length<'a, A, B>(
    asked: &'a [A],
    answered: &'a [B],
) -> Result<impl Iterator<Item = (&'a A, &'a B)>, String> {
    if asked.len() != answered.len() {
        return Err(format!("{} were asked, and {} answered", asked.len(), answered.len()));
    }
    Ok(asked.iter().zip(answered))
}
