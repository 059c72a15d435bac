//! One shard of a limit's meters: a table that grows a segment at a time and forgets meters that
//! are as good as new, never all at once.

mod segment;

pub(crate) use segment::Kept;

use crate::direct::Direct;
use segment::{SEGMENT_ENTRIES_MAX, Segment, fits};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tollgate_core::meter::plain::Plain;
use tollgate_core::turn::Company;
use tollgate_core::{Definition, Meter, Now, Timestamp};

/// Insertions after which the next segment is cleared of meters that are as good as new.
const INSERTS_PER_PURGE: u32 = 64;

/// How keys are hashed: seeded, so that no one can choose keys that collide.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashing(foldhash::fast::RandomState);

impl Hashing {
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        // The one meter without a key is alone in its shard.
        if key.is_empty() {
            return 0;
        }
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

/// What all shards of a limiter share.
#[derive(Debug, Default)]
pub(crate) struct Commons {
    pub(crate) hashing: Hashing,
    /// How many meters they keep together.
    meters: AtomicUsize,
}

impl Commons {
    pub(crate) fn meters(&self) -> usize {
        self.meters.load(Ordering::Relaxed)
    }
}

/// A meter that two words cannot tell: with receipts, waiters, slots or several rules.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) meter: Meter,
    /// Who waits here.
    pub(crate) company: Company,
    /// The weight of all who wait here.
    pub(crate) ahead: u64,
}

/// Where an entry is, until the next insertion into its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spot {
    segment: usize,
    place: usize,
}

/// Some of a limit's meters, under one lock.
#[derive(Debug)]
pub(crate) struct Shard {
    commons: Arc<Commons>,
    /// `None`: the limit was removed.
    definition: Option<Arc<Definition>>,
    /// Keys with a definition of their own.
    overrides: HashMap<Box<str>, Arc<Definition>>,
    /// The leading bits of a hash tell the segment; as many entries as 2 to the power of `bits`.
    directory: Vec<u32>,
    bits: u32,
    segments: Vec<Segment>,
    wholes: Vec<Option<Box<Whole>>>,
    free: Vec<u32>,
    inserts: u32,
    purged: usize,
    len: usize,
    /// The latest instant at which something was decided here.
    pub(crate) latest: Timestamp,
}

impl Shard {
    pub(crate) fn new(commons: Arc<Commons>, definition: Option<Arc<Definition>>) -> Self {
        Self {
            commons,
            definition,
            overrides: HashMap::new(),
            directory: Vec::new(),
            bits: 0,
            segments: Vec::new(),
            wholes: Vec::new(),
            free: Vec::new(),
            inserts: 0,
            purged: 0,
            len: 0,
            latest: Timestamp::default(),
        }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.len
    }

    /// The definition in force for a key.
    #[inline]
    pub(crate) fn definition(&self, key: &str) -> Option<&Arc<Definition>> {
        let definition = self.definition.as_ref()?;
        if self.overrides.is_empty() {
            return Some(definition);
        }
        Some(self.overrides.get(key).unwrap_or(definition))
    }

    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &str) -> Option<Spot> {
        let segment = self.segment_of(hash)?;
        let place = self.segments[segment].find(hash, key.as_bytes())?;
        Some(Spot { segment, place })
    }

    #[inline]
    pub(crate) fn kept(&self, spot: Spot) -> Kept {
        self.segments[spot.segment].kept(spot.place)
    }

    /// Adds a meter that is as good as new; the key is not there.
    pub(crate) fn insert(&mut self, hash: u64, key: &str, now: Now) -> Spot {
        self.inserts = self.inserts.wrapping_add(1);
        if self.inserts.is_multiple_of(INSERTS_PER_PURGE) {
            self.purge_next(now);
        }
        if self.segments.is_empty() {
            self.segments.push(Segment::new(0));
            self.directory.push(0);
        }
        while self.segment_of(hash).is_some_and(|segment| !self.segments[segment].has_room()) {
            self.make_room(hash, now);
        }
        let segment = self.segment_of(hash).unwrap_or(0);
        let kept = Kept::Plain(Plain::default());
        let place = self.segments[segment].insert(hash, key.as_bytes(), kept);
        self.len += 1;
        self.commons.meters.fetch_add(1, Ordering::Relaxed);
        Spot { segment, place }
    }

    /// Takes over the state of the one meter without a key, which was decided elsewhere.
    pub(crate) fn take_back(&mut self, plain: Plain) {
        if let Some(spot) = self.find(0, "") {
            self.segments[spot.segment].keep(spot.place, Kept::Plain(plain));
        }
    }

    /// Lends the word of the one meter without a key, if its limit allows.
    pub(crate) fn lend(&self, direct: &Direct) {
        if let (Some(spot), Some(definition)) = (self.find(0, ""), &self.definition)
            && let Kept::Plain(plain) = self.kept(spot)
        {
            direct.lend(plain, definition);
        }
    }

    /// Stores a plain meter, as a whole one if it does not fit.
    #[inline]
    pub(crate) fn keep_plain(&mut self, spot: Spot, key: &str, plain: Plain, now: Now) {
        if fits(plain) {
            self.segments[spot.segment].keep(spot.place, Kept::Plain(plain));
        } else if let Some(definition) = self.definition(key).cloned() {
            let meter = Meter::from_plain(&definition, plain, now.at);
            self.keep_whole(spot, meter);
        }
    }

    /// The whole meter at a spot, made from the plain one if need be.
    pub(crate) fn whole(&mut self, spot: Spot, key: &str, now: Now) -> Option<&mut Whole> {
        let index = match self.kept(spot) {
            Kept::Whole(index) => index,
            Kept::Plain(plain) => {
                let definition = self.definition(key)?.clone();
                self.keep_whole(spot, Meter::from_plain(&definition, plain, now.at))
            }
        };
        self.wholes.get_mut(index as usize)?.as_deref_mut()
    }

    /// The whole meter at a spot, if it is one.
    pub(crate) fn peek_whole(&self, spot: Spot) -> Option<&Whole> {
        match self.kept(spot) {
            Kept::Whole(index) => self.wholes.get(index as usize)?.as_deref(),
            Kept::Plain(_) => None,
        }
    }

    /// Goes over to another definition, keeping what was spent.
    pub(crate) fn redefine(&mut self, definition: Option<Arc<Definition>>, now: Now) {
        let (Some(old), Some(new)) = (self.definition.clone(), &definition) else {
            // Removed, or defined after it was: what was spent went with the definition.
            *self = Self::new(self.commons.clone(), definition);
            return;
        };
        for spot in self.spots() {
            let key = std::str::from_utf8(self.segments[spot.segment].key(spot.place));
            if !key.is_ok_and(|key| self.overrides.contains_key(key)) {
                self.carry(spot, &old, new, now);
            }
        }
        self.definition = definition;
    }

    /// Gives one key a definition of its own, or takes it away.
    pub(crate) fn override_key(
        &mut self,
        hash: u64,
        key: &str,
        definition: Option<Arc<Definition>>,
        now: Now,
    ) {
        let old = self.definition(key).cloned();
        match definition {
            Some(definition) => self.overrides.insert(key.into(), definition),
            None => self.overrides.remove(key),
        };
        let new = self.definition(key).cloned();
        if let (Some(spot), Some(old), Some(new)) = (self.find(hash, key), old, new) {
            self.carry(spot, &old, &new, now);
        }
    }

    /// The keys with a definition of their own.
    pub(crate) fn overridden(&self) -> impl Iterator<Item = (&str, &Arc<Definition>)> {
        self.overrides.iter().map(|(key, definition)| (&**key, definition))
    }

    /// All keys, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = self.segments.iter().flat_map(Segment::entries);
        entries.filter_map(|(key, _)| std::str::from_utf8(key).ok())
    }

    /// All keys, in no order, each with its meter if that is a whole one.
    pub(crate) fn meters(&self) -> impl Iterator<Item = (&str, Option<&Whole>)> {
        let entries = self.segments.iter().flat_map(Segment::entries);
        entries.filter_map(|(key, kept)| {
            let whole = match kept {
                Kept::Whole(index) => self.wholes.get(index as usize)?.as_deref(),
                Kept::Plain(_) => None,
            };
            Some((std::str::from_utf8(key).ok()?, whole))
        })
    }

    /// Clears the next segment of meters that are as good as new. Says how many there were.
    pub(crate) fn purge_next(&mut self, now: Now) -> usize {
        if self.segments.is_empty() {
            return 0;
        }
        self.purged = (self.purged + 1) % self.segments.len();
        self.purge(self.purged, now)
    }

    fn purge(&mut self, segment: usize, now: Now) -> usize {
        let stale: Vec<usize> = self.segments[segment]
            .places()
            .filter(|place| self.is_fresh(segment, *place, now))
            .collect();
        // Rebuilding for one or two entries would cost more than they do.
        if stale.len() * 8 < self.segments[segment].len() || stale.is_empty() {
            return 0;
        }
        for place in &stale {
            if let Kept::Whole(index) = self.segments[segment].kept(*place) {
                self.wholes[index as usize] = None;
                self.free.push(index);
            }
        }
        let hash = |key: &[u8]| self.commons.hashing.hash(key);
        let stays = |place: usize, _| stale.binary_search(&place).is_err();
        let [kept, _] = self.segments[segment].rebuilt(hash, stays, None);
        self.segments[segment] = kept;
        self.len -= stale.len();
        self.commons.meters.fetch_sub(stale.len(), Ordering::Relaxed);
        stale.len()
    }

    fn is_fresh(&self, segment: usize, place: usize, now: Now) -> bool {
        match self.segments[segment].kept(place) {
            Kept::Plain(plain) => plain.is_fresh(now.at),
            Kept::Whole(index) => {
                let key = std::str::from_utf8(self.segments[segment].key(place)).unwrap_or("");
                let whole = self.wholes[index as usize].as_deref();
                whole.zip(self.definition(key)).is_some_and(|(whole, definition)| {
                    whole.company == Company::default()
                        && whole.ahead == 0
                        && whole.meter.is_forgettable(definition, now)
                })
            }
        }
    }

    fn make_room(&mut self, hash: u64, now: Now) {
        let Some(segment) = self.segment_of(hash) else { return };
        if self.purge(segment, now) > 0 {
            return;
        }
        if self.segments[segment].len() < SEGMENT_ENTRIES_MAX {
            let hashing = &self.commons.hashing;
            self.segments[segment].grow(|key| hashing.hash(key));
        } else {
            self.split(segment);
        }
    }

    fn split(&mut self, segment: usize) {
        let bit = self.segments[segment].depth;
        if bit == self.bits {
            self.directory = self.directory.iter().flat_map(|target| [*target, *target]).collect();
            self.bits += 1;
        }
        let hash = |key: &[u8]| self.commons.hashing.hash(key);
        let [low, high] = self.segments[segment].rebuilt(hash, |_, _| true, Some(bit));
        let new = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        self.segments[segment] = low;
        self.segments.push(high);
        let shift = self.bits - 1 - bit;
        for (index, target) in self.directory.iter_mut().enumerate() {
            if *target as usize == segment && index >> shift & 1 == 1 {
                *target = new;
            }
        }
    }

    #[inline]
    fn segment_of(&self, hash: u64) -> Option<usize> {
        // With no bits the shift would be by 64: the only entry is the first.
        let index = hash.checked_shr(64 - self.bits).unwrap_or(0);
        self.directory.get(usize::try_from(index).ok()?).map(|segment| *segment as usize)
    }

    fn spots(&self) -> Vec<Spot> {
        let each = self.segments.iter().enumerate();
        each.flat_map(|(segment, kept)| kept.places().map(move |place| Spot { segment, place }))
            .collect()
    }

    fn carry(&mut self, spot: Spot, old: &Definition, new: &Definition, now: Now) {
        if old == new {
            return;
        }
        match self.kept(spot) {
            Kept::Whole(index) => {
                if let Some(whole) = &mut self.wholes[index as usize] {
                    whole.meter.carry(old, new, now);
                }
            }
            Kept::Plain(plain) => {
                let mut meter = Meter::from_plain(old, plain, now.at);
                meter.carry(old, new, now);
                match meter.to_plain(new).filter(|plain| fits(*plain)) {
                    Some(plain) => self.segments[spot.segment].keep(spot.place, Kept::Plain(plain)),
                    None => {
                        self.keep_whole(spot, meter);
                    }
                }
            }
        }
    }

    fn keep_whole(&mut self, spot: Spot, meter: Meter) -> u32 {
        let whole = Some(Box::new(Whole { meter, company: Company::default(), ahead: 0 }));
        let index = match self.free.pop() {
            Some(index) => {
                self.wholes[index as usize] = whole;
                index
            }
            None => {
                self.wholes.push(whole);
                u32::try_from(self.wholes.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.segments[spot.segment].keep(spot.place, Kept::Whole(index));
        index
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.commons.meters.fetch_sub(self.len, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use tollgate_core::{Limit, Span};

    fn shard(limit: Limit) -> (Hashing, Shard) {
        let commons = Arc::new(Commons::default());
        let definition = Definition::new(limit).unwrap();
        (commons.hashing.clone(), Shard::new(commons, Some(Arc::new(definition))))
    }

    fn at(seconds: u64) -> Now {
        Now::both(Timestamp::default().plus(Span::from_secs(seconds)))
    }

    /// Pays one unit and returns what is left.
    fn pay(shard: &mut Shard, hashing: &Hashing, key: &str, now: Now) -> i64 {
        let hash = hashing.hash(key.as_bytes());
        let spot = shard.find(hash, key).unwrap_or_else(|| shard.insert(hash, key, now));
        let Kept::Plain(mut plain) = shard.kept(spot) else { panic!("plain") };
        let rule = shard.definition(key).unwrap().plain().unwrap();
        rule.admit(&mut plain, 1, now.at).unwrap();
        let left = rule.standing(plain, now.at).remaining;
        shard.keep_plain(spot, key, plain, now);
        left
    }

    proptest! {
        /// Whatever is inserted, grown, split and cleared, each key finds its own meter.
        #[test]
        fn every_key_finds_its_own_meter(
            visits in proptest::collection::vec((0_u32..3_000, 0_usize..200), 1..4_000),
        ) {
            let (hashing, mut shard) = shard(Limit::per_day(1_000_000));
            let mut model: HashMap<String, i64> = HashMap::new();
            for (number, length) in visits {
                let key = format!("{number}{}", "x".repeat(length % 150));
                let left = model.entry(key.clone()).or_insert(1_000_000);
                *left -= 1;
                prop_assert_eq!(pay(&mut shard, &hashing, &key, at(1_000_000)), *left);
            }
            prop_assert_eq!(shard.len(), model.len());
            let mut keys: Vec<_> = shard.keys().map(str::to_owned).collect();
            keys.sort();
            let mut expected: Vec<_> = model.into_keys().collect();
            expected.sort();
            prop_assert_eq!(keys, expected);
        }
    }

    #[test]
    fn meters_as_good_as_new_are_forgotten_and_spent_ones_are_not() {
        let (hashing, mut shard) = shard(Limit::per_second(2));
        for number in 0..10_000 {
            pay(&mut shard, &hashing, &format!("old {number}"), at(1_000));
        }
        for number in 0..10_000 {
            pay(&mut shard, &hashing, &format!("new {number}"), at(2_000));
        }
        assert!(shard.len() < 12_000, "{} are kept", shard.len());
        let new = shard.keys().filter(|key| key.starts_with("new")).count();
        assert_eq!(new, 10_000);
    }

    #[test]
    fn a_change_of_the_limit_leaves_plain_meters_plain() {
        let (hashing, mut shard) = shard(Limit::per_minute(10));
        pay(&mut shard, &hashing, "key", at(1_000));
        for limit in [Limit::per_hour(20), Limit::fixed_window(30, Span::from_hours(1))] {
            let capacity =
                i64::try_from(Definition::new(limit.clone()).unwrap().capacity()).unwrap();
            shard.redefine(Some(Arc::new(Definition::new(limit).unwrap())), at(1_000));
            let spot = shard.find(hashing.hash(b"key"), "key").unwrap();
            let Kept::Plain(plain) = shard.kept(spot) else { panic!("it became whole") };
            let rule = shard.definition("key").unwrap().plain().unwrap();
            assert_eq!(rule.standing(plain, at(1_000).at).remaining, capacity - 1);
        }
    }

    #[test]
    fn a_meter_whose_count_does_not_fit_a_slot_is_kept_whole() {
        // Neither shares a factor with the other: fractions up to the limit occur.
        let (hashing, mut shard) = shard(Limit::per(999_999_937, Span::from_secs(7)).burst(5));
        for _ in 0..3 {
            let hash = hashing.hash(b"key");
            let spot = shard.find(hash, "key");
            let spot = spot.unwrap_or_else(|| shard.insert(hash, "key", at(1_000)));
            let definition = shard.definition("key").unwrap().clone();
            let meter = &mut shard.whole(spot, "key", at(1_000)).unwrap().meter;
            let _ = meter.pay(&definition, 1, (at(1_000), at(1_000).at), None);
        }
        let spot = shard.find(hashing.hash(b"key"), "key").unwrap();
        let whole = shard.peek_whole(spot).unwrap();
        let definition = shard.definition("key").unwrap();
        assert_eq!(whole.meter.standing(definition, at(1_000)).remaining, 2);
    }
}
