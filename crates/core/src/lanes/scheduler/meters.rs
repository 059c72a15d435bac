//! Meters, and who stands at each.

use super::Hashing;
use super::calls::{LaneSlot, MeterSlot, Rank, index, slot};
use super::limits::{Home, LimitBook, LimitSlot};
use super::sorted::Sorted;
use super::standing::Refusals;
use crate::contract::{LimitTotals, MeterName, Tally};
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::Partition;
use crate::time::{Now, Timestamp};
use crate::turn::Place;
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Where a queue is kept.
pub(super) type QueueSlot = u32;

/// A meter, and who is at it.
#[derive(Debug, Clone)]
pub(super) struct MeterBook {
    pub(super) limit: LimitSlot,
    /// Its place among the meters of its limit, or among the keys.
    pub(super) place: u32,
    /// Counts the meters that were ever made.
    pub(super) birth: u32,
    /// How many sets of tolls name it.
    pub(super) owed: u32,
    /// It is among those that may be forgotten.
    pub(super) is_listed: bool,
    /// How many went from here in the claim that is being served.
    pub(super) granted: u32,
    /// Its partition, empty if it has none; of a key its name.
    pub(super) label: SmolStr,
    /// The rules of a key.
    pub(super) rules: Option<Arc<Definition>>,
    /// `None`: as new.
    pub(super) meter: Option<Box<Meter>>,
    /// The start tag of the last that started: what fair queueing counts from.
    pub(super) vtime: u64,
    /// How far lanes are served that stand here, on average: where a newcomer begins.
    pub(super) round: u64,
    /// How far any lane was served.
    pub(super) farthest: u64,
    /// Who stands here, a crowd for each queue: almost always one.
    pub(super) crowds: SmallVec<[Crowd; 1]>,
    pub(super) senior: Option<LaneSlot>,
    pub(super) admitted: Tally,
    /// How long calls waited at a key.
    pub(super) waited_ns: u64,
}

/// The heads of one queue that stand at one meter.
#[derive(Debug, Clone)]
pub(super) struct Crowd {
    pub(super) queue: QueueSlot,
    pub(super) standing: Sorted<(Place, LaneSlot)>,
    /// What they weigh here.
    pub(super) weight: u64,
    /// The rank under which the queue has this meter among those to try.
    pub(super) offered: Option<Rank>,
    /// When it is offered again by itself; the end of time for never.
    wakes: Timestamp,
    /// How long they were refused here.
    pub(super) refusals: Refusals,
    /// Since when the first of them may be open; the end of time if it is not.
    opened: Timestamp,
}

impl Crowd {
    /// They may be asked for again. Who was to be open before was open from then on, whoever comes
    /// only now.
    pub(super) fn try_again(&mut self, now: Timestamp) {
        let at = now.min(self.wakes);
        self.refusals.end(at);
        self.opened = self.opened.min(at);
    }

    /// The first of them was asked for in vain.
    pub(super) fn refuse(&mut self, now: Timestamp) {
        self.refusals.begin(now);
        self.opened = Timestamp::MAX;
    }

    /// Says since when the first of them, which starts, was open; the next may be from now on.
    pub(super) fn reopened(&mut self, now: Timestamp) -> Option<Timestamp> {
        let before = std::mem::replace(&mut self.opened, now);
        Some(before).filter(|before| *before <= now)
    }

    /// Sets when it is offered again by itself; says when it was to be.
    pub(super) fn wake_at(&mut self, at: Option<Timestamp>) -> Option<Timestamp> {
        let before = std::mem::replace(&mut self.wakes, at.unwrap_or(Timestamp::MAX));
        Some(before).filter(|before| *before < Timestamp::MAX)
    }
}

impl MeterBook {
    /// One that is as new, and nobody is at it.
    pub(super) fn new(limit: LimitSlot, label: SmolStr, place: u32) -> Self {
        Self {
            limit,
            place,
            birth: 0,
            owed: 0,
            is_listed: false,
            granted: 0,
            label,
            rules: None,
            meter: None,
            vtime: 0,
            round: 0,
            farthest: 0,
            crowds: SmallVec::new(),
            senior: None,
            admitted: Tally::default(),
            waited_ns: 0,
        }
    }

    pub(super) fn partition(&self) -> Option<Partition> {
        let is_one = !self.label.is_empty() && matches!(self.limit.home(), Home::Book(_));
        is_one.then(|| Partition::of(self.label.clone()))
    }

    pub(super) fn crowd(&self, queue: QueueSlot) -> Option<&Crowd> {
        self.crowds.iter().find(|crowd| crowd.queue == queue)
    }

    pub(super) fn crowd_mut(&mut self, queue: QueueSlot) -> Option<&mut Crowd> {
        self.crowds.iter_mut().find(|crowd| crowd.queue == queue)
    }

    /// Puts a head of a queue in its place.
    pub(super) fn stand(&mut self, queue: QueueSlot, head: (Place, LaneSlot), weight: u64) {
        if self.crowd(queue).is_none() {
            let standing = Sorted::default();
            self.crowds.push(Crowd {
                queue,
                standing,
                weight: 0,
                offered: None,
                wakes: Timestamp::MAX,
                refusals: Refusals::default(),
                opened: Timestamp::MAX,
            });
        }
        if let Some(crowd) = self.crowd_mut(queue) {
            crowd.standing.insert(head);
            crowd.weight = crowd.weight.saturating_add(weight);
        }
    }

    /// Takes a head of a queue from its place.
    pub(super) fn leave(&mut self, queue: QueueSlot, head: (Place, LaneSlot), weight: u64) {
        if let Some(crowd) = self.crowd_mut(queue)
            && crowd.standing.remove(head)
        {
            crowd.weight = crowd.weight.saturating_sub(weight);
        }
    }

    /// How many stand here.
    pub(super) fn standing(&self) -> u64 {
        self.crowds.iter().map(|crowd| crowd.standing.len() as u64).sum()
    }

    /// Whether nobody has anything to do with it. Who is set aside here owes here.
    pub(super) fn is_left(&self) -> bool {
        let is_empty = self.crowds.iter().all(|crowd| crowd.standing.is_empty());
        self.owed == 0 && is_empty && self.senior.is_none()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Meters {
    pub(super) limits: Slab<LimitBook>,
    /// The meters that are limits of their own.
    pub(super) keys: Vec<MeterSlot>,
    pub(super) by_name: HashTable<LimitSlot>,
    pub(super) meters: Slab<MeterBook>,
    /// The meters of limits with a book.
    by_label: HashTable<MeterSlot>,
    pub(super) hashing: Hashing,
    births: u32,
    /// The definitions that came last.
    pub(super) recent: VecDeque<Arc<Definition>>,
    /// Heads that are set aside, by meter.
    parked: BTreeSet<(MeterSlot, LaneSlot)>,
    /// What happened at all limits, also those that are gone.
    pub(super) all_totals: LimitTotals,
}

impl Meters {
    /// The limit and the partition of a meter.
    pub(super) fn name(&self, meter: MeterSlot) -> MeterName {
        let book = &self[meter];
        (self.book(book.limit).to_name(), book.partition())
    }

    /// Sets a head aside at a meter.
    pub(super) fn park(&mut self, meter: MeterSlot, lane: LaneSlot) {
        self.parked.insert((meter, lane));
    }

    /// Takes a head from among those set aside at a meter.
    pub(super) fn unpark(&mut self, meter: MeterSlot, lane: LaneSlot) {
        self.parked.remove(&(meter, lane));
    }

    /// Who is set aside at a meter.
    pub(super) fn parked(&self, meter: MeterSlot) -> impl Iterator<Item = LaneSlot> {
        self.parked.range((meter, 0)..=(meter, LaneSlot::MAX)).map(|(_, lane)| *lane)
    }

    /// All meters of a limit.
    pub(super) fn of(&self, limit: LimitSlot) -> Vec<MeterSlot> {
        self.book(limit).meters().collect()
    }

    /// The meter of a limit for a partition, made if there is none; a key that gets one gets a book.
    pub(super) fn at(&mut self, limit: LimitSlot, partition: Option<&Partition>) -> MeterSlot {
        if let Some(found) = self.find_at(limit, partition) {
            return found;
        }
        let at = self.in_a_book(limit);
        let label = partition.map(|partition| partition.text().clone()).unwrap_or_default();
        let place = slot(self.limits[at].meters.len());
        let made = self.make_meter(|_| MeterBook::new(LimitSlot::book(at), label, place));
        self.limits[at].meters.push(made);
        self.label_meter(made);
        made
    }

    pub(super) fn make_meter(&mut self, make: impl FnOnce(MeterSlot) -> MeterBook) -> MeterSlot {
        self.births = self.births.wrapping_add(1);
        let vacant = self.meters.vacant_entry();
        let made = slot(vacant.key());
        vacant.insert(MeterBook { birth: self.births, ..make(made) });
        made
    }

    /// A meter can be found by its limit and label from now on.
    pub(super) fn label_meter(&mut self, meter: MeterSlot) {
        let Self { meters, hashing, by_label, .. } = self;
        let hash = |meter: &MeterSlot| {
            let book = &meters[index(*meter)];
            hashing.hash_one((book.limit, book.label.as_str()))
        };
        by_label.insert_unique(hash(&meter), meter, hash);
    }

    /// The meter of a limit for a partition.
    pub(super) fn find(&self, limit: &str, partition: Option<&Partition>) -> Option<MeterSlot> {
        self.find_at(self.limit(limit)?, partition)
    }

    /// The meter of a limit for a partition.
    pub(super) fn find_at(
        &self,
        limit: LimitSlot,
        partition: Option<&Partition>,
    ) -> Option<MeterSlot> {
        if let Home::Meter(meter) = limit.home() {
            return partition.is_none().then_some(meter);
        }
        let label = partition.map_or("", |partition| partition.as_str());
        let is_it = |slot: &MeterSlot| {
            let book = &self.meters[index(*slot)];
            book.limit == limit && book.label == label
        };
        self.by_label.find(self.hashing.hash_one((limit, label)), is_it).copied()
    }

    /// Whether a meter could be forgotten without anyone noticing.
    pub(super) fn is_forgettable(&self, meter: MeterSlot, now: Now) -> bool {
        let book = &self[meter];
        let is_fresh = match (&book.meter, self.last(meter)) {
            (Some(meter), Some(last)) => meter.is_forgettable(last, now),
            _ => true,
        };
        is_fresh && book.is_left()
    }

    /// Forgets a meter that nobody has anything to do with.
    pub(super) fn forget(&mut self, meter: MeterSlot) {
        let limit = self[meter].limit;
        let Home::Book(at) = limit.home() else {
            self.unname_limit(limit);
            self.take_key(meter);
            self.meters.remove(index(meter));
            return;
        };
        let MeterBook { label, place, .. } = self.meters.remove(index(meter));
        let hash = self.hashing.hash_one((limit, label.as_str()));
        if let Ok(found) = self.by_label.find_entry(hash, |other| *other == meter) {
            found.remove();
        }
        let book = &mut self.limits[at];
        book.meters.swap_remove(index(place));
        if let Some(&moved) = book.meters.get(index(place)) {
            self.meters[index(moved)].place = place;
        }
        let book = &self.limits[at];
        if book.meters.is_empty() && book.goes_with_calls() {
            self.unname_limit(limit);
            self.limits.remove(at);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.meters.len()
    }

    /// The meter in a place, if there is one.
    pub(super) fn get(&self, meter: MeterSlot) -> Option<&MeterBook> {
        self.meters.get(index(meter))
    }

    /// The meters that are not as new, by name: what they let pass, and when. How that is written
    /// down may differ, for one that was as new in between may have been forgotten.
    #[cfg(test)]
    pub(super) fn lasting(&self, now: Now) -> Vec<String> {
        let spent = self.meters.iter().filter_map(|(slot, book)| {
            let last = self.last(self::slot(slot))?;
            let meter = book.meter.as_ref().filter(|meter| !meter.is_fresh(last, now))?;
            let opens = |(weight, seconds): (u64, u64)| {
                let then = now.moved_to(now.at.plus(crate::time::Span::from_secs(seconds)));
                (meter.standing(last, then), meter.blocker(last, weight, then))
            };
            let opens = [(1, 0), (2, 0), (3, 0), (4, 0), (1, 1), (4, 1), (4, 5)].map(opens);
            let state = (opens, meter.closed(now.at), meter.in_flight(last, now));
            Some(format!("{:?} {state:?}", self.name(self::slot(slot))))
        });
        let overrides = self.limits().flat_map(|limit| {
            let overrides = limit.overrides().into_iter().flat_map(|all| all.iter());
            overrides.map(move |(partition, own)| format!("{} {partition} {own:?}", limit.name()))
        });
        let there = self.limits().filter(|limit| !self.has_gone(*limit, now)).map(|limit| {
            let (name, definition) = (limit.name(), limit.definition());
            format!("{name} {definition:?} {} {}", limit.is_paused(), limit.is_transient())
        });
        let mut written: Vec<_> = spent.chain(overrides).chain(there).collect();
        written.sort_unstable();
        written
    }
}

impl std::ops::Index<MeterSlot> for Meters {
    type Output = MeterBook;

    fn index(&self, slot: MeterSlot) -> &MeterBook {
        &self.meters[index(slot)]
    }
}

impl std::ops::IndexMut<MeterSlot> for Meters {
    fn index_mut(&mut self, slot: MeterSlot) -> &mut MeterBook {
        &mut self.meters[index(slot)]
    }
}
