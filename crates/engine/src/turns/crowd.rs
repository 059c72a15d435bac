//! The books of who waits where: plain data, no decisions.

use super::Seat;
use crate::limiter::Tracking;
use crate::limits::{Address, Entry};
use crate::locked::{Asker, Line};
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tollgate_core::turn::{Company, Patience};
use tollgate_core::{Blocker, Cause, Opening, Place, Span, Timestamp};

/// A head: its number in the order of arrival, and where it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeadId {
    arrival: u64,
    slot: usize,
}

/// A crowd's index, as long as a head has a toll at its meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrowdId(usize);

/// A waiting call.
pub(super) struct Head {
    arrival: u64,
    place: Place,
    pub(super) tolls: SmallVec<[HeadToll; 2]>,
    /// Which toll's meter it stands at.
    pub(super) stands_at: usize,
    /// Set aside: its limit is gone, or never lets it pass as it is now.
    is_parked: bool,
    pub(super) is_senior: bool,
    pub(super) patience: Patience,
    pub(super) tracking: Tracking,
    deadline: Option<Timestamp>,
    pub(super) seat: Arc<Seat>,
}

/// What a waiting call owes at one meter.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadToll {
    pub(super) crowd: CrowdId,
    weight: u64,
}

/// What is to be known of a call that comes to wait.
pub(super) struct Newcomer {
    pub(super) arrival: u64,
    pub(super) place: Place,
    pub(super) tracking: Tracking,
    pub(super) deadline: Option<Timestamp>,
}

impl Head {
    pub(super) fn asker(&self) -> Asker {
        Asker { place: self.place, is_senior: self.is_senior }
    }

    fn stood(&self) -> HeadToll {
        self.tolls[self.stands_at]
    }
}

/// Those who stand at one meter.
struct Crowd {
    entry: Arc<Entry>,
    key: Box<str>,
    hash: u64,
    /// How many heads have a toll here, whether they stand here or not.
    tolls: usize,
    standing: BTreeMap<Place, HeadId>,
    parked: BTreeSet<HeadId>,
    senior: Option<Place>,
    /// The weight of all who stand.
    ahead: u64,
    /// When it is served next.
    wakes: Option<Timestamp>,
    /// How much later would do.
    slack: Span,
}

impl Crowd {
    fn new(line: &Line<'_>) -> Self {
        Self {
            entry: line.entry.clone(),
            key: line.address.key.into(),
            hash: line.address.hash,
            tolls: 0,
            standing: BTreeMap::new(),
            parked: BTreeSet::new(),
            senior: None,
            ahead: 0,
            wakes: None,
            slack: Span::ZERO,
        }
    }

    fn is_at(&self, entry: &Entry, key: &str) -> bool {
        self.entry.id == entry.id && *self.key == *key
    }

    fn line(&self, weight: u64) -> Line<'_> {
        Line { entry: &self.entry, address: Address { key: &self.key, hash: self.hash }, weight }
    }
}

/// What the timer wakes for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Meter(CrowdId),
    Deadline(HeadId),
}

/// All who wait.
#[derive(Default)]
pub(super) struct Crowds {
    heads: Slab<Head>,
    crowds: Slab<Crowd>,
    by_meter: HashTable<CrowdId>,
    due: BTreeSet<(Timestamp, Due)>,
    /// When the timer looks next by itself.
    armed: Option<Timestamp>,
}

impl Crowds {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Enters a call that comes to wait, and lets it stand at its toll number `at`.
    pub(super) fn enter(
        &mut self,
        new: Newcomer,
        lines: &[Line<'_>],
        (at, blocker): (usize, Blocker),
    ) -> (HeadId, Arc<Seat>, CrowdId) {
        let Newcomer { arrival, place, tracking, deadline } = new;
        let tolls = lines.iter();
        let tolls = tolls.map(|line| HeadToll { crowd: self.join(line), weight: line.weight });
        let tolls: SmallVec<[HeadToll; 2]> = tolls.collect();
        let (crowd, seat) = (tolls[at].crowd, Arc::<Seat>::default());
        let slot = self.heads.insert(Head {
            arrival,
            place,
            tolls,
            stands_at: at,
            is_parked: false,
            is_senior: false,
            patience: Patience::default(),
            tracking,
            deadline,
            seat: seat.clone(),
        });
        let id = HeadId { arrival, slot };
        if let Some(deadline) = deadline {
            self.due.insert((deadline, Due::Deadline(id)));
        }
        self.line_up(id, (at, blocker));
        (id, seat, crowd)
    }

    /// The crowd at a limit's meter, if anyone has a toll there.
    pub(super) fn find(&self, entry: &Entry, address: Address<'_>) -> Option<CrowdId> {
        let is_there = |id: &CrowdId| self.crowds[id.0].is_at(entry, address.key);
        self.by_meter.find(meter_hash(entry.id, address.hash), is_there).copied()
    }

    pub(super) fn head(&self, id: HeadId) -> Option<&Head> {
        self.heads.get(id.slot).filter(|head| head.arrival == id.arrival)
    }

    pub(super) fn head_mut(&mut self, id: HeadId) -> Option<&mut Head> {
        self.heads.get_mut(id.slot).filter(|head| head.arrival == id.arrival)
    }

    /// What a head owes, and where.
    pub(super) fn lines(&self, head: &Head) -> SmallVec<[Line<'_>; 2]> {
        head.tolls.iter().map(|toll| self.crowds[toll.crowd.0].line(toll.weight)).collect()
    }

    /// The meter of a crowd.
    pub(super) fn meter(&self, id: CrowdId) -> Line<'_> {
        self.crowds[id.0].line(1)
    }

    /// Who has the turn among those who stand in a crowd: the senior, if it stands here and nobody
    /// of a higher priority does, or else the first.
    pub(super) fn first_at(&self, id: CrowdId) -> Option<HeadId> {
        let crowd = self.crowds.get(id.0)?;
        let (first, head) = crowd.standing.first_key_value()?;
        let senior = crowd.senior.filter(|senior| senior.priority() >= first.priority());
        let senior = senior.and_then(|senior| crowd.standing.get(&senior));
        Some(*senior.unwrap_or(head))
    }

    /// Strikes a head from the books. Its crowds stay until they are closed.
    pub(super) fn depart(&mut self, id: HeadId) -> Option<Head> {
        self.head(id)?;
        self.unstand(id);
        let head = self.heads.remove(id.slot);
        if let Some(deadline) = head.deadline {
            self.due.remove(&(deadline, Due::Deadline(id)));
        }
        for toll in head.tolls.iter().filter(|_| head.is_senior) {
            self.crowds[toll.crowd.0].senior = None;
        }
        Some(head)
    }

    /// Keeps a crowd while its heads depart.
    pub(super) fn hold(&mut self, id: CrowdId) {
        self.crowds[id.0].tolls += 1;
    }

    /// A toll at a crowd's meter is gone: forgets the crowd if it was the last.
    pub(super) fn close(&mut self, id: CrowdId) {
        let crowd = &mut self.crowds[id.0];
        crowd.tolls -= 1;
        if crowd.tolls > 0 {
            return;
        }
        if let Some(at) = crowd.wakes {
            self.due.remove(&(at, Due::Meter(id)));
        }
        let hash = meter_hash(crowd.entry.id, crowd.hash);
        if let Ok(entry) = self.by_meter.find_entry(hash, |other| *other == id) {
            entry.remove();
        }
        self.crowds.remove(id.0);
    }

    /// Lets a head stand at its toll number `at` instead; says in which crowd that is.
    pub(super) fn stand(&mut self, id: HeadId, (at, blocker): (usize, Blocker)) -> Option<CrowdId> {
        self.unstand(id);
        self.line_up(id, (at, blocker))
    }

    fn line_up(&mut self, id: HeadId, (at, blocker): (usize, Blocker)) -> Option<CrowdId> {
        let head = self.head_mut(id)?;
        head.stands_at = at;
        head.is_parked = matches!(blocker.cause, Cause::Impossible | Cause::Missing);
        let (place, is_parked, toll) = (head.place, head.is_parked, head.stood());
        let crowd = &mut self.crowds[toll.crowd.0];
        if is_parked {
            crowd.parked.insert(id);
            return Some(toll.crowd);
        }
        crowd.standing.insert(place, id);
        crowd.ahead = crowd.ahead.saturating_add(toll.weight);
        if self.first_at(toll.crowd) == Some(id) {
            self.wake_at(toll.crowd, blocker.opening, Span::ZERO);
        }
        Some(toll.crowd)
    }

    /// Lets all who were set aside in a crowd stand again.
    pub(super) fn unpark(&mut self, id: CrowdId) {
        let crowd = &mut self.crowds[id.0];
        for id in std::mem::take(&mut crowd.parked) {
            let head = &mut self.heads[id.slot];
            head.is_parked = false;
            crowd.standing.insert(head.place, id);
            crowd.ahead = crowd.ahead.saturating_add(head.stood().weight);
        }
    }

    /// Makes a head the senior of all its meters, if none of them has one.
    pub(super) fn make_senior(&mut self, id: HeadId) -> bool {
        let Some(head) = self.heads.get_mut(id.slot) else { return false };
        let has_senior = |toll: &HeadToll| self.crowds[toll.crowd.0].senior.is_some();
        if head.tolls.iter().any(has_senior) {
            return false;
        }
        for toll in &head.tolls {
            self.crowds[toll.crowd.0].senior = Some(head.place);
        }
        head.is_senior = true;
        true
    }

    /// Who is at a meter, and what they weigh together.
    pub(super) fn company(&self, id: CrowdId) -> (Company, u64) {
        let crowd = &self.crowds[id.0];
        let first = crowd.standing.first_key_value().map(|(place, _)| *place);
        (Company { first, senior: crowd.senior }, crowd.ahead)
    }

    /// The crowds at a limit's meters, kept until each is closed.
    pub(super) fn hold_all_of(&mut self, entry: &Entry) -> Vec<CrowdId> {
        let of_entry = self.crowds.iter_mut().filter(|(_, crowd)| crowd.entry.id == entry.id);
        let held = of_entry.map(|(index, crowd)| {
            crowd.tolls += 1;
            CrowdId(index)
        });
        held.collect()
    }

    /// Serves a crowd again when its meter opens.
    pub(super) fn wake_at(&mut self, id: CrowdId, opening: Opening, slack: Span) {
        let crowd = &mut self.crowds[id.0];
        let wakes = match opening {
            Opening::At(at) => Some(at),
            Opening::OnRelease => None,
        };
        crowd.slack = slack;
        let before = std::mem::replace(&mut crowd.wakes, wakes);
        if before == wakes {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, Due::Meter(id)));
        }
        if let Some(at) = wakes {
            self.due.insert((at, Due::Meter(id)));
        }
    }

    /// The next that is due by `now`.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<Due> {
        if self.due.first()?.0 > now {
            return None;
        }
        let (_, due) = self.due.pop_first()?;
        if let Due::Meter(id) = due {
            self.crowds[id.0].wakes = None;
        }
        Some(due)
    }

    /// Notes when the timer looks next: then, or so much later.
    pub(super) fn arm(&mut self) -> Option<(Timestamp, Span)> {
        let next = self.due.first().copied();
        self.armed = next.map(|(at, _)| at);
        next.map(|(at, due)| match due {
            Due::Meter(id) => (at, self.crowds[id.0].slack),
            Due::Deadline(_) => (at, Span::from_secs(1)),
        })
    }

    /// Whether something is due before the timer would look.
    pub(super) fn is_due_before_armed(&self) -> bool {
        let next = self.due.first().map(|(at, _)| *at);
        next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed))
    }

    fn unstand(&mut self, id: HeadId) {
        let Some(head) = self.head(id) else { return };
        let (place, is_parked, toll) = (head.place, head.is_parked, head.stood());
        let crowd = &mut self.crowds[toll.crowd.0];
        if is_parked {
            crowd.parked.remove(&id);
        } else if crowd.standing.remove(&place).is_some() {
            crowd.ahead = crowd.ahead.saturating_sub(toll.weight);
        }
    }

    /// The crowd at a line's meter, with one more toll there.
    fn join(&mut self, line: &Line<'_>) -> CrowdId {
        let id = self.find(line.entry, line.address).unwrap_or_else(|| {
            let id = CrowdId(self.crowds.insert(Crowd::new(line)));
            let hash_of = |id: &CrowdId| {
                let crowd = &self.crowds[id.0];
                meter_hash(crowd.entry.id, crowd.hash)
            };
            self.by_meter.insert_unique(hash_of(&id), id, hash_of);
            id
        });
        self.hold(id);
        id
    }
}

fn meter_hash(entry: u64, key: u64) -> u64 {
    key ^ entry.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
