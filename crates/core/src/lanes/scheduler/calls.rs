//! The calls that have not ended or are dead, and the sets of tolls they share.

use crate::lanes::call::{Attempts, CallId, Death};
use crate::lanes::event::LineWaits;
use crate::meter::Payment;
use crate::time::{Now, Timestamp};
use crate::turn::Priority;
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use std::num::{NonZeroU32, NonZeroU64};

/// Where a call is kept.
pub(super) type CallSlot = u32;
/// Where a lane is kept.
pub(super) type LaneSlot = u32;
/// Where a meter is kept.
pub(super) type MeterSlot = u32;
/// Where a set of tolls is kept.
type TollsSlot = u32;
/// Where it is kept what came of a call's starts, counted from 1.
type ProgressSlot = NonZeroU32;

/// A call's place among those of its lane, and of its queue: what is less goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank(NonZeroU64);

impl Rank {
    /// The highest priority goes first, then the earliest arrival.
    pub(super) fn new(priority: Priority, arrival: u64) -> Self {
        let below = u64::from(Priority::MAX.level() - priority.level());
        // Arrivals count calls: 2^60 of them take longer than anyone waits.
        Self(NonZeroU64::MIN.saturating_add(below << 60 | arrival))
    }
}

/// A call that has not ended, or is dead.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: CallId,
    /// Before it has joined its lane: the instant at which it does, on the wall clock.
    pub(super) arrival: u64,
    /// Where the store keeps its body.
    pub(super) body: u64,
    pub(super) lane: LaneSlot,
    pub(super) tolls: TollsSlot,
    pub(super) priority: Priority,
    pub(super) has_joined: bool,
    /// It may end unstarted, while it waits: no attempt of it counts.
    pub(super) may_expire: bool,
    /// Where it is kept what came of its starts; `None` as long as it never started.
    pub(super) progress: Option<ProgressSlot>,
}

/// What is known of a call that was started before.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) attempts: Attempts,
    pub(super) is_cancelled: bool,
    pub(super) flight: Option<Flight>,
    /// Not to start again before.
    pub(super) rests_until: Timestamp,
    /// It is dead.
    pub(super) death: Option<Death>,
}

/// How a call is started.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) now: Now,
    pub(super) expires: Timestamp,
    pub(super) waits: LineWaits,
}

/// A start that is not settled.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    pub(super) token: u64,
    pub(super) expires: Timestamp,
    pub(super) started: Now,
    /// What it waited for before.
    pub(super) waits: LineWaits,
    /// One for each line of its tolls.
    pub(super) payments: SmallVec<[Payment; 1]>,
}

impl Call {
    /// When it joins its lane, if it has not.
    pub(super) fn due(&self) -> Option<Timestamp> {
        (!self.has_joined).then(|| Timestamp::from_nanos(self.arrival))
    }

    pub(super) fn rank(&self) -> Rank {
        Rank::new(self.priority, self.arrival)
    }
}

/// What a call owes at one meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) meter: MeterSlot,
    pub(super) weight: u64,
    pub(super) hears_feedback: bool,
}

#[derive(Debug, Clone)]
struct TollSet {
    lines: SmallVec<[Line; 1]>,
    /// How many calls owe it.
    calls: u32,
}

/// All calls that have not ended, and the dead.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    calls: Slab<Call>,
    progresses: Slab<Progress>,
    by_id: HashTable<CallSlot>,
    sets: Slab<TollSet>,
    by_lines: HashTable<TollsSlot>,
}

impl Calls {
    pub(super) fn insert(&mut self, call: Call) -> CallSlot {
        let hash = call.id.place();
        let slot = slot(self.calls.insert(call));
        let calls = &self.calls;
        self.by_id.insert_unique(hash, slot, |slot| calls[index(*slot)].id.place());
        slot
    }

    pub(super) fn find(&self, id: CallId) -> Option<CallSlot> {
        self.by_id.find(id.place(), |slot| self.calls[index(*slot)].id == id).copied()
    }

    /// Removes a call; says which set of tolls nobody owes any more.
    pub(super) fn remove(&mut self, slot: CallSlot) -> Option<SmallVec<[Line; 1]>> {
        let call = self.calls.remove(index(slot));
        if let Some(progress) = call.progress {
            self.progresses.remove(index(progress.get()) - 1);
        }
        if let Ok(found) = self.by_id.find_entry(call.id.place(), |other| *other == slot) {
            found.remove();
        }
        self.forget_tolls(call.tolls)
    }

    /// What came of a call's starts.
    pub(super) fn progress(&self, call: &Call) -> Option<&Progress> {
        call.progress.map(|slot| &self.progresses[index(slot.get()) - 1])
    }

    /// What came of a call's starts, to be changed; made if it never started.
    pub(super) fn progress_mut(&mut self, call: CallSlot) -> &mut Progress {
        let call = &mut self.calls[index(call)];
        let slot = match call.progress {
            Some(slot) => index(slot.get()) - 1,
            None => {
                let made = self.progresses.insert(Progress::default());
                call.progress = NonZeroU32::new(slot(made + 1));
                made
            }
        };
        &mut self.progresses[slot]
    }

    /// Forgets what came of a call's starts: it is as one that never started.
    pub(super) fn forget_progress(&mut self, call: CallSlot) {
        if let Some(progress) = self.calls[index(call)].progress.take() {
            self.progresses.remove(index(progress.get()) - 1);
        }
    }

    /// How a call came to be among the dead, if it is.
    pub(super) fn death(&self, call: &Call) -> Option<Death> {
        self.progress(call)?.death
    }

    pub(super) fn attempts(&self, call: &Call) -> Attempts {
        self.progress(call).map(|progress| progress.attempts).unwrap_or_default()
    }

    pub(super) fn flight(&self, call: &Call) -> Option<&Flight> {
        self.progress(call)?.flight.as_ref()
    }

    /// The flight of a call that is in flight, to be changed.
    pub(super) fn flight_mut(&mut self, call: CallSlot) -> Option<&mut Option<Flight>> {
        let slot = self.calls[index(call)].progress?;
        Some(&mut self.progresses[index(slot.get()) - 1].flight)
    }

    pub(super) fn lines(&self, call: &Call) -> &[Line] {
        &self.sets[index(call.tolls)].lines
    }

    pub(super) fn lines_at(&self, slot: CallSlot) -> &[Line] {
        self.lines(&self[slot])
    }

    /// The slot of a set of tolls, with one more call that owes it; says whether it is the first.
    pub(super) fn intern(&mut self, lines: &[Line]) -> (TollsSlot, bool) {
        let hash = lines_hash(lines);
        let sets = &mut self.sets;
        if let Some(&found) = self.by_lines.find(hash, |set| sets[index(*set)].lines[..] == *lines)
        {
            sets[index(found)].calls += 1;
            return (found, false);
        }
        let made = slot(sets.insert(TollSet { lines: lines.into(), calls: 1 }));
        self.by_lines.insert_unique(hash, made, |set| lines_hash(&sets[index(*set)].lines));
        (made, true)
    }

    /// All calls, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (CallSlot, &Call)> {
        self.calls.iter().map(|(index, call)| (slot(index), call))
    }

    /// The calls in the order of their ids, as they are.
    #[cfg(test)]
    pub(super) fn lasting(&self) -> Vec<String> {
        let mut calls: Vec<_> = self.calls.iter().map(|(_, call)| call).collect();
        calls.sort_unstable_by_key(|call| call.id);
        let written = calls.into_iter().map(|call| {
            let Call { id, arrival, priority, has_joined, .. } = call;
            let progress = self.progress(call);
            format!("{id:?} {arrival} {priority:?} {has_joined} {progress:?}")
        });
        written.collect()
    }

    fn forget_tolls(&mut self, set: TollsSlot) -> Option<SmallVec<[Line; 1]>> {
        let tolls = &mut self.sets[index(set)];
        tolls.calls -= 1;
        if tolls.calls > 0 {
            return None;
        }
        let hash = lines_hash(&tolls.lines);
        if let Ok(found) = self.by_lines.find_entry(hash, |other| *other == set) {
            found.remove();
        }
        Some(self.sets.remove(index(set)).lines)
    }
}

impl std::ops::Index<CallSlot> for Calls {
    type Output = Call;

    fn index(&self, slot: CallSlot) -> &Call {
        &self.calls[index(slot)]
    }
}

impl std::ops::IndexMut<CallSlot> for Calls {
    fn index_mut(&mut self, slot: CallSlot) -> &mut Call {
        &mut self.calls[index(slot)]
    }
}

/// Four billion of a kind fit in a slot; memory ends before.
pub(super) fn slot(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

pub(super) fn index(slot: u32) -> usize {
    slot as usize
}

/// Spreads numbers that follow each other; they are ours, not a caller's.
fn mixed(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

fn lines_hash(lines: &[Line]) -> u64 {
    lines.iter().fold(0, |hash, line| {
        mixed(hash ^ mixed(u64::from(line.meter)) ^ line.weight.rotate_left(17))
    })
}
