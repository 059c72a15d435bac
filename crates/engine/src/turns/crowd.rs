//! The books of who waits where: plain data, no decisions.

use super::Seat;
use crate::limiter::Tracking;
use crate::limits::Entry;
use crate::locked::{Asker, Line};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tollgate_core::turn::{Company, Patience};
use tollgate_core::{Blocker, Cause, Opening, Place, Span, Timestamp};

/// A head's number: its place in the order of arrival.
pub(super) type HeadId = u64;
/// A crowd's index, as long as a head has a toll at its meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CrowdId(u32);

/// A waiting call.
pub(super) struct Head {
    pub(super) place: Place,
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
pub(super) struct HeadToll {
    pub(super) crowd: CrowdId,
    entry: Arc<Entry>,
    key: Box<str>,
    weight: u64,
}

/// What is to be known of a call that comes to wait.
pub(super) struct Newcomer {
    pub(super) place: Place,
    pub(super) tracking: Tracking,
    pub(super) deadline: Option<Timestamp>,
}

impl Head {
    pub(super) fn asker(&self) -> Asker {
        Asker { place: self.place, is_senior: self.is_senior }
    }

    pub(super) fn lines(&self) -> SmallVec<[Line<'_>; 2]> {
        let each = self.tolls.iter();
        each.map(|HeadToll { entry, key, weight, .. }| {
            let address = entry.address(Some(&**key).filter(|key| !key.is_empty()));
            Line { entry, address, weight: *weight }
        })
        .collect()
    }

    pub(super) fn stood(&self) -> CrowdId {
        self.tolls[self.stands_at].crowd
    }
}

/// Those who stand at one meter.
struct Crowd {
    entry: Arc<Entry>,
    key: Box<str>,
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

/// What the timer wakes for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Meter(CrowdId),
    Deadline(HeadId),
}

/// All who wait.
#[derive(Default)]
pub(super) struct Crowds {
    heads: HashMap<HeadId, Box<Head>, foldhash::fast::RandomState>,
    crowds: Vec<Option<Crowd>>,
    free: Vec<CrowdId>,
    by_meter: HashMap<(u64, Box<str>), CrowdId, foldhash::fast::RandomState>,
    due: BTreeSet<(Timestamp, Due)>,
    /// When the timer looks next by itself.
    armed: Option<Timestamp>,
}

impl Crowds {
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Enters a call that comes to wait; it stands nowhere yet.
    pub(super) fn enter(&mut self, id: HeadId, new: Newcomer, lines: &[Line<'_>]) -> Arc<Seat> {
        let tolls = lines.iter().map(|line| HeadToll {
            crowd: self.crowd_at(line),
            entry: line.entry.clone(),
            key: line.address.key.into(),
            weight: line.weight,
        });
        let tolls = tolls.collect();
        let Newcomer { place, tracking, deadline } = new;
        if let Some(deadline) = deadline {
            self.due.insert((deadline, Due::Deadline(id)));
        }
        let seat = Arc::<Seat>::default();
        let head = Head {
            place,
            tolls,
            stands_at: 0,
            is_parked: false,
            is_senior: false,
            patience: Patience::default(),
            tracking,
            deadline,
            seat: seat.clone(),
        };
        self.heads.insert(id, Box::new(head));
        seat
    }

    /// The crowd at a limit's meter, if anyone has a toll there.
    pub(super) fn find(&self, entry: &Entry, key: &str) -> Option<CrowdId> {
        if self.by_meter.is_empty() {
            return None;
        }
        self.by_meter.get(&(entry.id, key.into())).copied()
    }

    /// The meter of a crowd.
    pub(super) fn meter(&self, id: CrowdId) -> Option<(Arc<Entry>, Box<str>)> {
        self.crowd(id).map(|crowd| (crowd.entry.clone(), crowd.key.clone()))
    }

    /// Who has the turn among those who stand in a crowd: the senior, if it stands here and nobody
    /// of a higher priority does, or else the first.
    pub(super) fn first_at(&self, id: CrowdId) -> Option<HeadId> {
        let crowd = self.crowd(id)?;
        let (first, head) = crowd.standing.first_key_value()?;
        let senior = crowd.senior.filter(|senior| senior.priority() >= first.priority());
        let senior = senior.and_then(|senior| crowd.standing.get(&senior));
        Some(*senior.unwrap_or(head))
    }

    /// Takes a head into the hands of the caller, who puts it back or lets it depart.
    pub(super) fn take(&mut self, id: HeadId) -> Option<Box<Head>> {
        self.heads.remove(&id)
    }

    pub(super) fn put_back(&mut self, id: HeadId, head: Box<Head>) {
        self.heads.insert(id, head);
    }

    /// Strikes a head that was taken from all books.
    pub(super) fn depart(&mut self, id: HeadId, head: &Head) {
        if let Some(deadline) = head.deadline {
            self.due.remove(&(deadline, Due::Deadline(id)));
        }
        self.unstand(id, head);
        for toll in &head.tolls {
            let Some(crowd) = self.crowd_mut(toll.crowd) else { continue };
            if head.is_senior {
                crowd.senior = None;
            }
            crowd.tolls -= 1;
            if crowd.tolls == 0 {
                self.close(toll.crowd);
            }
        }
    }

    /// Lets a head stand at its toll number `at`; says in which crowd that is.
    pub(super) fn stand(
        &mut self,
        id: HeadId,
        head: &mut Head,
        (at, blocker): (usize, Blocker),
    ) -> CrowdId {
        self.unstand(id, head);
        head.stands_at = at;
        head.is_parked = matches!(blocker.cause, Cause::Impossible | Cause::Missing);
        let (place, weight, crowd_id) = (head.place, head.tolls[at].weight, head.stood());
        let Some(crowd) = self.crowd_mut(crowd_id) else { return crowd_id };
        if head.is_parked {
            crowd.parked.insert(id);
            return crowd_id;
        }
        crowd.standing.insert(place, id);
        crowd.ahead = crowd.ahead.saturating_add(weight);
        if self.first_at(crowd_id) == Some(id) {
            self.wake_at(crowd_id, blocker.opening, Span::ZERO);
        }
        crowd_id
    }

    /// Lets all who were set aside in a crowd stand again.
    pub(super) fn unpark(&mut self, id: CrowdId) {
        let Some(crowd) = self.crowds.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        for id in std::mem::take(&mut crowd.parked) {
            if let Some(head) = self.heads.get_mut(&id) {
                head.is_parked = false;
                crowd.standing.insert(head.place, id);
                crowd.ahead = crowd.ahead.saturating_add(head.tolls[head.stands_at].weight);
            }
        }
    }

    /// Makes a head the senior of all its meters, if none of them has one.
    pub(super) fn make_senior(&mut self, head: &mut Head) -> bool {
        let has_senior =
            |toll: &HeadToll| self.crowd(toll.crowd).is_some_and(|crowd| crowd.senior.is_some());
        if head.tolls.iter().any(has_senior) {
            return false;
        }
        for toll in &head.tolls {
            if let Some(crowd) = self.crowd_mut(toll.crowd) {
                crowd.senior = Some(head.place);
            }
        }
        head.is_senior = true;
        true
    }

    /// Who is at a meter, and what they weigh together.
    pub(super) fn company(&self, id: CrowdId) -> (Company, u64) {
        self.crowd(id).map_or_else(Default::default, |crowd| {
            let first = crowd.standing.keys().next().copied();
            (Company { first, senior: crowd.senior }, crowd.ahead)
        })
    }

    /// The crowds at a limit's meters.
    pub(super) fn crowds_of(&self, entry: &Entry) -> Vec<CrowdId> {
        let of_entry =
            |(meter, id): (&(u64, Box<str>), &CrowdId)| (meter.0 == entry.id).then_some(*id);
        self.by_meter.iter().filter_map(of_entry).collect()
    }

    /// Serves a crowd again when its meter opens.
    pub(super) fn wake_at(&mut self, id: CrowdId, opening: Opening, slack: Span) {
        let Some(crowd) = self.crowds.get_mut(id.0 as usize).and_then(Option::as_mut) else {
            return;
        };
        if let Some(before) = crowd.wakes.take() {
            self.due.remove(&(before, Due::Meter(id)));
        }
        if let Opening::At(at) = opening {
            (crowd.wakes, crowd.slack) = (Some(at), slack);
            self.due.insert((at, Due::Meter(id)));
        }
    }

    /// The next that is due by `now`.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<Due> {
        if self.due.first()?.0 > now {
            return None;
        }
        let (_, due) = self.due.pop_first()?;
        if let Due::Meter(id) = due
            && let Some(crowd) = self.crowd_mut(id)
        {
            crowd.wakes = None;
        }
        Some(due)
    }

    /// Notes when the timer looks next: then, or so much later.
    pub(super) fn arm(&mut self) -> Option<(Timestamp, Span)> {
        let next = self.due.first().copied();
        self.armed = next.map(|(at, _)| at);
        next.map(|(at, due)| match due {
            Due::Meter(id) => (at, self.crowd(id).map_or(Span::ZERO, |crowd| crowd.slack)),
            Due::Deadline(_) => (at, Span::from_secs(1)),
        })
    }

    /// Whether something is due before the timer would look.
    pub(super) fn is_due_before_armed(&self) -> bool {
        let next = self.due.first().map(|(at, _)| *at);
        next.is_some_and(|next| self.armed.is_none_or(|armed| next < armed))
    }

    fn unstand(&mut self, id: HeadId, head: &Head) {
        let weight = head.tolls[head.stands_at].weight;
        let Some(crowd) = self.crowd_mut(head.stood()) else { return };
        crowd.parked.remove(&id);
        if crowd.standing.remove(&head.place).is_some() {
            crowd.ahead = crowd.ahead.saturating_sub(weight);
        }
    }

    fn crowd_at(&mut self, line: &Line<'_>) -> CrowdId {
        let (entry, key): (_, Box<str>) = (line.entry.clone(), line.address.key.into());
        let (crowds, free) = (&mut self.crowds, &mut self.free);
        let id = *self.by_meter.entry((entry.id, key.clone())).or_insert_with(|| {
            let crowd = Some(Crowd {
                entry,
                key,
                tolls: 0,
                standing: BTreeMap::new(),
                parked: BTreeSet::new(),
                senior: None,
                ahead: 0,
                wakes: None,
                slack: Span::ZERO,
            });
            if let Some(id) = free.pop() {
                crowds[id.0 as usize] = crowd;
                return id;
            }
            crowds.push(crowd);
            CrowdId(u32::try_from(crowds.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(crowd) = self.crowd_mut(id) {
            crowd.tolls += 1;
        }
        id
    }

    /// Forgets a crowd that has gone.
    fn close(&mut self, id: CrowdId) {
        let Some(crowd) = self.crowds[id.0 as usize].take() else { return };
        if let Some(at) = crowd.wakes {
            self.due.remove(&(at, Due::Meter(id)));
        }
        self.by_meter.remove(&(crowd.entry.id, crowd.key));
        self.free.push(id);
    }

    fn crowd(&self, id: CrowdId) -> Option<&Crowd> {
        self.crowds.get(id.0 as usize)?.as_ref()
    }

    fn crowd_mut(&mut self, id: CrowdId) -> Option<&mut Crowd> {
        self.crowds.get_mut(id.0 as usize)?.as_mut()
    }
}
