//! The busiest lanes and meters, found in slices: a walk over all there are, between whose steps the store
//! does other things.

use super::{EndCounts, LaneState, LimitTotals, MeterName, MeterState, OutcomeCounts};
use crate::lanes::CallId;
use crate::meter::Blocker;
use crate::name::{LaneName, LimitName, QueueName};
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::collections::HashSet;

/// How many lanes or meters one slice looks at: less than a millisecond, for which others wait.
pub const BUSIEST_AT_ONCE: usize = 4_096;

/// Which queues or limits are walked over, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Among {
    /// The one of that name.
    One(String),
    /// Those whose names begin so, but for some.
    All {
        /// With what they begin.
        prefix: String,
        /// With what those begin that are left out.
        but: Option<&'static str>,
    },
}

impl Among {
    /// All there are.
    pub const EVERYTHING: Self = Self::All { prefix: String::new(), but: None };

    /// Whether a queue or limit of that name is among them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::All { prefix, but } => {
                name.starts_with(prefix) && but.is_none_or(|but| !name.starts_with(but))
            }
        }
    }
}

/// Where a walk goes on: at which queue or limit, and how many of its lanes or meters are left, if it was
/// come to. They are walked over from the last to the first: as one that goes leaves its place to the last,
/// none that stays is passed over, though one may be come to twice. Limits that came along with calls are walked over
/// from the first where limits are asked for, and one of them may be passed over as another goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Onward {
    pub(crate) owner: u32,
    pub(crate) left: Option<u32>,
}

/// One slice of a walk over queues and their lanes, or several joined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyLanes {
    /// The queues that were come to.
    pub queues: Vec<BusyQueue>,
    /// Those with most calls that wait first; of equals, by name.
    pub lanes: Vec<BusyLane>,
    /// Where to go on; `None` at the end.
    pub next: Option<Onward>,
}

/// A queue, with how much is in it and what happened there since the store was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyQueue {
    /// Its name.
    pub name: QueueName,
    /// An operator holds it back.
    pub is_paused: bool,
    /// Calls that wait, also those that rest or are not due.
    pub waiting: u64,
    /// Calls that are started and not settled.
    pub in_flight: u64,
    /// Calls that are dead.
    pub dead: u64,
    /// Of those that are first in line in their lanes the call that has been in line longest: not those that are
    /// not due. Of the calls of a lane that never started the first of each priority is looked at, and of those
    /// that are to be tried again the first that rests and the first that does not. `None` also where lanes are
    /// not looked at.
    pub oldest: Option<Oldest>,
    /// Calls that were accepted.
    pub enqueued: u64,
    /// Starts.
    pub started: u64,
    /// What came of starts.
    pub settled: OutcomeCounts,
    /// How calls ended.
    pub ended: EndCounts,
}

/// The call of a queue that has been in line longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oldest {
    /// Which.
    pub call: CallId,
    /// Its place among all: who came into line before has a lesser one.
    pub arrival: u64,
    /// When it came into line, in limit time: never later than it did, and by no more than a twentieth of the
    /// time since too early. `None` if that was before the store was opened.
    pub since: Option<Timestamp>,
}

/// A lane, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyLane {
    /// Its queue.
    pub queue: QueueName,
    /// How it is.
    pub state: LaneState,
}

/// One slice of a walk over limits and their meters, or several joined.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusyMeters {
    /// The limits that were come to, if those are asked for.
    pub limits: Vec<BusyLimit>,
    /// Of those that are not as new, or where someone stands, those with most who stand there first; of
    /// equals those first that are closed or held back, by name. The global one of a limit that is held back
    /// is among them in any case.
    pub meters: Vec<BusyMeter>,
    /// What happened at all limits there ever were since the store was opened.
    pub totals: LimitTotals,
    /// Where to go on; `None` at the end.
    pub next: Option<Onward>,
}

/// A limit, with who is at those of its meters that were come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyLimit {
    /// Its name.
    pub name: LimitName,
    /// What happened at all its meters since the store was opened.
    pub totals: LimitTotals,
    /// Heads of lanes that stand there.
    pub waiting: u64,
    /// Slots that are held.
    pub in_flight: u64,
}

/// A meter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyMeter {
    /// Which.
    pub name: MeterName,
    /// How it stands.
    pub state: MeterState,
    /// What is in the way of one unit that nobody goes before.
    pub blocker: Option<Blocker>,
}

impl BusyLanes {
    /// Goes on with what the next slice found, and keeps so many lanes.
    pub fn join(&mut self, mut slice: Self, most: usize) {
        let again: HashSet<_> = slice.lanes.iter().map(BusyLane::name).collect();
        self.lanes.retain(|lane| !again.contains(&lane.name()));
        self.lanes.append(&mut slice.lanes);
        self.lanes.sort_by(|one, other| one.place().cmp(&other.place()));
        self.lanes.truncate(most);
        for queue in slice.queues {
            match self.queues.last_mut().filter(|last| last.name == queue.name) {
                Some(last) => last.oldest = Oldest::of_both(last.oldest, queue.oldest),
                None => self.queues.push(queue),
            }
        }
        self.next = slice.next;
    }
}

impl Oldest {
    pub(crate) fn of_both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min_by_key(|it| it.arrival)
    }
}

impl BusyLane {
    fn name(&self) -> (QueueName, LaneName) {
        (self.queue.clone(), self.state.name.clone())
    }

    fn place(&self) -> impl Ord + '_ {
        (Reverse(self.state.waiting), &self.queue, &self.state.name)
    }
}

impl BusyMeters {
    /// Goes on with what the next slice found, and keeps so many meters.
    pub fn join(&mut self, mut slice: Self, most: usize) {
        let again: HashSet<_> = slice.meters.iter().map(|meter| meter.name.clone()).collect();
        self.meters.retain(|meter| !again.contains(&meter.name));
        self.meters.append(&mut slice.meters);
        self.meters.sort_by(|one, other| one.place().cmp(&other.place()));
        self.meters.truncate(most);
        for limit in slice.limits {
            match self.limits.last_mut().filter(|last| last.name == limit.name) {
                Some(last) => {
                    last.waiting += limit.waiting;
                    last.in_flight += limit.in_flight;
                }
                None => self.limits.push(limit),
            }
        }
        (self.totals, self.next) = (slice.totals, slice.next);
    }
}

impl BusyMeter {
    fn is_shut(&self) -> bool {
        self.state.closed.is_some() || self.state.is_paused
    }

    fn place(&self) -> impl Ord + '_ {
        (Reverse(self.state.waiting), !self.is_shut(), &self.name)
    }
}
