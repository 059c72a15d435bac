//! Limits and their meters, and who stands at each.

use super::Hashing;
use super::calls::{LaneSlot, MeterSlot, Rank, index, slot};
use super::overrides::Overrides;
use super::sorted::Sorted;
use super::standing::Refusals;
use crate::contract::{LimitTotals, Tally};
use crate::limit::Definition;
use crate::meter::Meter;
use crate::name::{LimitName, Partition};
use crate::time::{Now, Timestamp};
use crate::turn::Place;
use hashbrown::HashTable;
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeSet, VecDeque};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Where a limit is kept.
pub(super) type LimitSlot = u32;
/// Where a queue is kept.
pub(super) type QueueSlot = u32;

/// How many definitions are compared with a new one.
const RECENT_MAX: usize = 16;

/// A limit, also one that was removed: calls may still owe there.
#[derive(Debug, Clone)]
pub(super) struct LimitBook {
    pub(super) name: LimitName,
    pub(super) definition: Option<Arc<Definition>>,
    /// The one its meters were last used with.
    pub(super) last: Option<Arc<Definition>>,
    pub(super) is_paused: bool,
    /// It came along with calls, and goes with them.
    pub(super) is_transient: bool,
    /// One, if it has no partitions.
    pub(super) meters: SmallVec<[MeterSlot; 4]>,
    /// Partitions with rules of their own.
    pub(super) overrides: Overrides,
    pub(super) totals: LimitTotals,
}

impl LimitBook {
    /// The rules that a meter of it follows; `None` if it was removed.
    pub(super) fn definition_of(&self, partition: Option<&Partition>) -> Option<&Definition> {
        let common = self.definition.as_deref()?;
        Some(self.own(partition).unwrap_or(common))
    }

    /// The rules that a meter of it was last used with.
    pub(super) fn last_of(&self, partition: Option<&Partition>) -> Option<&Definition> {
        self.own(partition).or(self.last.as_deref())
    }

    fn own(&self, partition: Option<&Partition>) -> Option<&Definition> {
        self.overrides.get(partition?)
    }
}

/// A meter, and who is at it.
#[derive(Debug, Clone)]
pub(super) struct MeterBook {
    pub(super) limit: LimitSlot,
    /// Its place among the meters of its limit.
    place: u32,
    /// Counts the meters that were ever made.
    pub(super) birth: u32,
    /// How many sets of tolls name it.
    pub(super) owed: u32,
    /// It is among those that may be forgotten.
    pub(super) is_listed: bool,
    /// How many went from here in the claim that is being served.
    pub(super) granted: u32,
    pub(super) partition: Option<Partition>,
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
    by_name: HashTable<LimitSlot>,
    meters: Slab<MeterBook>,
    by_partition: HashTable<MeterSlot>,
    hashing: Hashing,
    births: u32,
    /// The definitions that came last.
    recent: VecDeque<Arc<Definition>>,
    /// Heads that are set aside, by meter.
    parked: BTreeSet<(MeterSlot, LaneSlot)>,
    /// What happened at all limits, also those that are gone.
    pub(super) all_totals: LimitTotals,
}

impl Meters {
    pub(super) fn limit(&self, name: &str) -> Option<LimitSlot> {
        let is_it = |slot: &LimitSlot| self.limits[index(*slot)].name.as_str() == name;
        self.by_name.find(self.hashing.hash_one(name), is_it).copied()
    }

    pub(super) fn limits(&self) -> impl Iterator<Item = &LimitBook> {
        self.limits.iter().map(|(_, book)| book)
    }

    pub(super) fn book(&self, limit: LimitSlot) -> &LimitBook {
        &self.limits[index(limit)]
    }

    pub(super) fn book_mut(&mut self, limit: LimitSlot) -> &mut LimitBook {
        &mut self.limits[index(limit)]
    }

    #[inline]
    pub(super) fn definition(&self, meter: MeterSlot) -> Option<&Definition> {
        let book = &self[meter];
        self.limits[index(book.limit)].definition_of(book.partition.as_ref())
    }

    /// The limit and the partition of a meter.
    pub(super) fn name(&self, meter: MeterSlot) -> (&LimitName, Option<&Partition>) {
        let book = &self[meter];
        (&self.limits[index(book.limit)].name, book.partition.as_ref())
    }

    pub(super) fn is_paused(&self, meter: MeterSlot) -> bool {
        self.limits[index(self[meter].limit)].is_paused
    }

    /// Defines or removes a limit: its meters go over to the new rules.
    pub(super) fn define(
        &mut self,
        name: &LimitName,
        definition: Option<Definition>,
        now: Now,
    ) -> Option<LimitSlot> {
        let definition = definition.map(|definition| self.shared(definition));
        let found = self.limit(name);
        let limit = found.or_else(|| definition.as_ref().map(|_| self.make_limit(name)))?;
        let book = &mut self.limits[index(limit)];
        if let (Some(last), Some(new)) = (&book.last, &definition)
            && last != new
        {
            for meter in &book.meters {
                let MeterBook { meter, partition, .. } = &mut self.meters[index(*meter)];
                if let (Some(meter), None) = (meter, book.own(partition.as_ref())) {
                    meter.carry(last, new, now);
                }
            }
        }
        if definition.is_some() {
            book.last.clone_from(&definition);
        }
        book.definition = definition;
        Some(limit)
    }

    /// A definition that limits share: where keys come by the million, they are alike.
    fn shared(&mut self, definition: Definition) -> Arc<Definition> {
        if let Some(known) = self.recent.iter().find(|known| ***known == definition) {
            return known.clone();
        }
        let new = Arc::new(definition);
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(new.clone());
        new
    }

    /// Gives a partition rules of its own, or takes them away: its meter goes over to what it follows
    /// then.
    pub(super) fn override_partition(
        &mut self,
        limit: LimitSlot,
        partition: &Partition,
        definition: Option<Definition>,
        now: Now,
    ) {
        let found = self.find_at(limit, Some(partition));
        let book = &mut self.limits[index(limit)];
        let before = book.last_of(Some(partition)).cloned();
        book.overrides.set(partition, definition);
        let after = book.last_of(Some(partition));
        let meter = found.and_then(|slot| self.meters[index(slot)].meter.as_mut());
        if let (Some(meter), Some(before), Some(after)) = (meter, &before, after)
            && before != after
        {
            meter.carry(before, after, now);
        }
    }

    pub(super) fn set_paused(&mut self, limit: LimitSlot, is_paused: bool) {
        self.limits[index(limit)].is_paused = is_paused;
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
        self.limits[index(limit)].meters.to_vec()
    }

    /// The meter of a limit for a partition, made if there is none.
    pub(super) fn at(&mut self, limit: LimitSlot, partition: Option<&Partition>) -> MeterSlot {
        let hash = self.hashing.hash_one((limit, partition));
        if let Some(found) = self.found(hash, limit, partition) {
            return found;
        }
        self.births = self.births.wrapping_add(1);
        let (meters, hashing) = (&mut self.meters, &self.hashing);
        let made = slot(meters.insert(MeterBook {
            limit,
            place: slot(self.limits[index(limit)].meters.len()),
            birth: self.births,
            owed: 0,
            is_listed: false,
            granted: 0,
            partition: partition.cloned(),
            meter: None,
            vtime: 0,
            round: 0,
            farthest: 0,
            crowds: SmallVec::new(),
            senior: None,
            admitted: Tally::default(),
        }));
        self.by_partition.insert_unique(hash, made, |slot| {
            let book = &meters[index(*slot)];
            hashing.hash_one((book.limit, book.partition.as_ref()))
        });
        self.limits[index(limit)].meters.push(made);
        made
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
        self.found(self.hashing.hash_one((limit, partition)), limit, partition)
    }

    fn found(
        &self,
        hash: u64,
        limit: LimitSlot,
        partition: Option<&Partition>,
    ) -> Option<MeterSlot> {
        let is_it = |slot: &MeterSlot| {
            let book = &self.meters[index(*slot)];
            book.limit == limit && book.partition.as_ref() == partition
        };
        self.by_partition.find(hash, is_it).copied()
    }

    /// Whether a meter could be forgotten without anyone noticing.
    pub(super) fn is_forgettable(&self, meter: MeterSlot, now: Now) -> bool {
        let book = &self[meter];
        let last = self.limits[index(book.limit)].last_of(book.partition.as_ref());
        let is_fresh = match (&book.meter, last) {
            (Some(meter), Some(last)) => meter.is_forgettable(last, now),
            _ => true,
        };
        is_fresh && book.is_left()
    }

    /// Forgets a meter that nobody has anything to do with.
    pub(super) fn forget(&mut self, meter: MeterSlot) {
        let MeterBook { limit, partition, place, .. } = self.meters.remove(index(meter));
        let hash = self.hashing.hash_one((limit, partition.as_ref()));
        if let Ok(found) = self.by_partition.find_entry(hash, |other| *other == meter) {
            found.remove();
        }
        let book = &mut self.limits[index(limit)];
        book.meters.swap_remove(index(place));
        if let Some(&moved) = book.meters.get(index(place)) {
            self.meters[index(moved)].place = place;
        }
        if book.meters.is_empty() && book.goes_with_calls() {
            let hash = self.hashing.hash_one(book.name.as_str());
            if let Ok(found) = self.by_name.find_entry(hash, |other| *other == limit) {
                found.remove();
            }
            self.limits.remove(index(limit));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.meters.len()
    }

    /// The meter in a place, if there is one.
    pub(super) fn get(&self, meter: MeterSlot) -> Option<&MeterBook> {
        self.meters.get(index(meter))
    }

    /// Changes a meter under the rules it was last used with.
    pub(super) fn change<T>(
        &mut self,
        meter: MeterSlot,
        now: Now,
        change: impl FnOnce(&mut Meter, &Definition) -> T,
    ) -> Option<T> {
        let book = &mut self.meters[index(meter)];
        let definition = self.limits[index(book.limit)].last_of(book.partition.as_ref())?;
        let fresh = || Box::new(Meter::new(definition, now.at));
        let meter = book.meter.get_or_insert_with(fresh);
        Some(change(meter, definition))
    }

    /// The meters that are not as new, by name: what they let pass, and when. How that is written
    /// down may differ, for one that was as new in between may have been forgotten.
    #[cfg(test)]
    pub(super) fn lasting(&self, now: Now) -> Vec<String> {
        let spent = self.meters.iter().filter_map(|(slot, book)| {
            let last = self.limits[index(book.limit)].last_of(book.partition.as_ref())?;
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
            limit
                .overrides
                .iter()
                .map(|(partition, own)| format!("{} {partition} {own:?}", limit.name))
        });
        let there = self.limits().filter(|limit| !self.has_gone(limit, now)).map(|limit| {
            let LimitBook { name, definition, is_paused, is_transient, .. } = limit;
            format!("{name} {definition:?} {is_paused} {is_transient}")
        });
        let mut written: Vec<_> = spent.chain(overrides).chain(there).collect();
        written.sort_unstable();
        written
    }

    /// A limit without rules.
    pub(super) fn make_limit(&mut self, name: &LimitName) -> LimitSlot {
        let limit = slot(self.limits.insert(LimitBook {
            name: name.clone(),
            definition: None,
            last: None,
            is_paused: false,
            is_transient: false,
            meters: SmallVec::new(),
            overrides: Overrides::default(),
            totals: LimitTotals::default(),
        }));
        let (limits, hashing) = (&self.limits, &self.hashing);
        let hash = |slot: &LimitSlot| hashing.hash_one(limits[index(*slot)].name.as_str());
        self.by_name.insert_unique(hash(&limit), limit, hash);
        limit
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
