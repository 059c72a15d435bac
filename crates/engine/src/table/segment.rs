//! A segment: up to a few hundred meters in an open-addressed array, with their keys.
//!
//! Small on purpose: growing, splitting and clearing a segment takes microseconds, and it is the
//! longest that any call can be held up. Entries leave only when the segment is rebuilt. A slot is
//! half a cache line and holds a key of up to 19 bytes itself, so that a decision at one of millions
//! of meters waits for memory once; longer keys stand aside.

use tollgate_core::Timestamp;
use tollgate_core::meter::plain::Plain;

/// Entries at which a segment is split in two.
pub(super) const SEGMENT_ENTRIES_MAX: usize = 448;
/// Slots a new segment starts with.
const SLOTS_MIN: usize = 4;
/// Counts from here on do not fit a slot. The value itself marks a whole meter.
const COUNT_END: u32 = 0x00ff_ffff;
/// Longest key that a slot holds itself.
const SHORT_MAX: usize = 19;
/// In place of a length: the key stands aside, at the offset that follows.
const ASIDE: u8 = 0xff;
/// In place of a length: there is no entry.
const EMPTY: u8 = 0xfe;

/// One meter: 32 bytes, key included if it is short.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Slot {
    /// The plain meter's instant, or the whole meter's index.
    instant: u64,
    /// Low 24 bits: the plain meter's count, or `COUNT_END`. High 8 bits: a part of the hash.
    word: u32,
    key: Key,
}

/// A key's length and bytes, padded with zeros; or where it stands.
type Key = [u8; SHORT_MAX + 1];

const EMPTY_SLOT: Slot = Slot { instant: 0, word: 0, key: [EMPTY; SHORT_MAX + 1] };

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Two words say all.
    Plain(Plain),
    /// The index of a whole meter.
    Whole(u32),
}

#[derive(Debug)]
pub(super) struct Segment {
    slots: Box<[Slot]>,
    used: usize,
    /// The long keys: their lengths in two bytes, then their bytes.
    aside: Vec<u8>,
    /// How many leading bits of the hash all its keys share.
    pub(super) depth: u32,
}

impl Segment {
    pub(super) fn new(depth: u32) -> Self {
        Self { slots: Box::default(), used: 0, aside: Vec::new(), depth }
    }

    /// A segment with room for `entries`, a little more, and `aside` bytes of long keys.
    fn with_room(depth: u32, entries: usize, aside: usize) -> Self {
        // Seven eighths full at most when these are in, so that probes stay short. In few sizes, so
        // that what one segment outgrows another can use.
        let slots = in_steps((entries * 8 / 7 + entries / 16 + 1).max(SLOTS_MIN), 32);
        Self {
            slots: vec![EMPTY_SLOT; slots].into_boxed_slice(),
            used: 0,
            aside: Vec::with_capacity(in_steps(aside, 512)),
            depth,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Whether one more entry fits.
    pub(super) fn has_room(&self) -> bool {
        self.used < self.slots.len() * 7 / 8
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, key: &[u8]) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let tag = tag(hash);
        let mut place = self.home(hash);
        loop {
            let slot = &self.slots[place];
            if slot.key[0] == EMPTY {
                return None;
            }
            if slot.word & !COUNT_END == tag && is_same(self.key(place), key) {
                return Some(place);
            }
            place = self.following(place);
        }
    }

    /// Adds a key that is not there; the caller has seen to room.
    pub(super) fn insert(&mut self, hash: u64, key: &[u8], kept: Kept) -> usize {
        let mut place = self.home(hash);
        while self.slots[place].key[0] != EMPTY {
            place = self.following(place);
        }
        let key = short(key).unwrap_or_else(|| self.put_aside(key));
        self.slots[place] = Slot { key, ..packed(kept, tag(hash)) };
        self.used += 1;
        place
    }

    #[inline]
    pub(super) fn kept(&self, place: usize) -> Kept {
        unpacked(self.slots[place])
    }

    /// Changes what an entry holds. A plain meter must fit, see [`fits`].
    #[inline]
    pub(super) fn keep(&mut self, place: usize, kept: Kept) {
        let slot = &mut self.slots[place];
        *slot = Slot { key: slot.key, ..packed(kept, slot.word & !COUNT_END) };
    }

    /// All entries: key, and what it holds.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&[u8], Kept)> {
        self.places().map(|place| (self.key(place), self.kept(place)))
    }

    /// The places of all entries; stable until the segment is rebuilt.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|place| self.slots[*place].key[0] != EMPTY)
    }

    pub(super) fn key(&self, place: usize) -> &[u8] {
        match &self.slots[place].key {
            [ASIDE, a, b, c, d, ..] => self.aside_at(u32::from_be_bytes([*a, *b, *c, *d])),
            [length, short @ ..] => &short[..usize::from(*length).min(SHORT_MAX)],
        }
    }

    /// The entries that pass, in new segments: those with the next bit clear, and those with it
    /// set if it splits.
    pub(super) fn rebuilt(
        &self,
        hash: impl Fn(&[u8]) -> u64,
        passes: impl Fn(usize, Kept) -> bool,
        splits: Option<u32>,
    ) -> [Self; 2] {
        let mut sorted: [Vec<(u64, usize)>; 2] = [Vec::new(), Vec::new()];
        for place in self.places().filter(|place| passes(*place, self.kept(*place))) {
            let hash = hash(self.key(place));
            let half = splits.map_or(0, |bit| usize::from(hash >> (63 - bit) & 1 == 1));
            sorted[half].push((hash, place));
        }
        let depth = splits.map_or(self.depth, |bit| bit + 1);
        sorted.map(|entries| {
            let keys = entries.iter().map(|(_, place)| self.key(*place).len() + 2);
            let aside = keys.filter(|bytes| *bytes > SHORT_MAX + 2).sum();
            let mut segment = Self::with_room(depth, entries.len(), aside);
            for (hash, place) in entries {
                segment.insert(hash, self.key(place), self.kept(place));
            }
            segment
        })
    }

    /// Makes room for more entries without dropping any.
    pub(super) fn grow(&mut self, hash: impl Fn(&[u8]) -> u64) {
        let more = self.used + self.used / 8 + 2;
        let aside = self.aside.len() + self.aside.len() / 16;
        let mut grown = Self::with_room(self.depth, more, aside);
        for (key, kept) in self.entries() {
            grown.insert(hash(key), key, kept);
        }
        *self = grown;
    }

    fn home(&self, hash: u64) -> usize {
        // The low half of the hash, scaled to the number of slots: the high half picks the segment.
        let scaled = ((hash & 0xffff_ffff) * self.slots.len() as u64) >> 32;
        usize::try_from(scaled).unwrap_or(0)
    }

    fn following(&self, place: usize) -> usize {
        if place + 1 == self.slots.len() { 0 } else { place + 1 }
    }

    fn aside_at(&self, offset: u32) -> &[u8] {
        match &self.aside[offset as usize..] {
            [high, low, rest @ ..] => &rest[..usize::from(u16::from_be_bytes([*high, *low]))],
            _ => &[],
        }
    }

    /// Puts a long key aside and says in a slot's words where.
    fn put_aside(&mut self, key: &[u8]) -> Key {
        // A segment holds at most 448 keys of at most 512 bytes: every offset fits.
        let offset = u32::try_from(self.aside.len()).unwrap_or(u32::MAX).to_be_bytes();
        let needed = self.aside.len() + key.len() + 2;
        if needed > self.aside.capacity() {
            // By a sixteenth, not by doubling: long keys are most of a meter's memory.
            let wanted = in_steps(needed + self.aside.len() / 16, 512);
            self.aside.reserve_exact(wanted - self.aside.len());
        }
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        self.aside.extend_from_slice(&length.to_be_bytes());
        self.aside.extend_from_slice(key);
        let mut put = [0; SHORT_MAX + 1];
        put[0] = ASIDE;
        put[1..5].copy_from_slice(&offset);
        put
    }
}

#[inline]
fn is_same(text: &[u8], key: &[u8]) -> bool {
    text.len() == key.len() && (key.is_empty() || text == key)
}

/// A key as a slot holds it, if it is short enough.
fn short(key: &[u8]) -> Option<Key> {
    let mut short = [0; SHORT_MAX + 1];
    short.get_mut(1..=key.len())?.copy_from_slice(key);
    short[0] = u8::try_from(key.len()).unwrap_or(ASIDE);
    Some(short)
}

/// Rounds up to a multiple of `step`, unless it is smaller.
fn in_steps(size: usize, step: usize) -> usize {
    if size < step { size } else { size.next_multiple_of(step) }
}

/// Whether a plain meter's count fits a slot.
#[inline]
pub(super) fn fits(plain: Plain) -> bool {
    plain.count < u64::from(COUNT_END)
}

fn tag(hash: u64) -> u32 {
    // Bits that neither the segment nor the home slot depends on much.
    u32::try_from(hash >> 24 & 0xff00_0000).unwrap_or(0)
}

#[inline]
fn packed(kept: Kept, tag: u32) -> Slot {
    match kept {
        Kept::Plain(Plain { instant, count }) => {
            let count = u32::try_from(count).unwrap_or(COUNT_END - 1);
            Slot { instant: instant.as_nanos(), word: tag | count, ..EMPTY_SLOT }
        }
        Kept::Whole(index) => {
            Slot { instant: u64::from(index), word: tag | COUNT_END, ..EMPTY_SLOT }
        }
    }
}

#[inline]
fn unpacked(slot: Slot) -> Kept {
    let count = slot.word & COUNT_END;
    if count == COUNT_END {
        return Kept::Whole(u32::try_from(slot.instant).unwrap_or(u32::MAX));
    }
    Kept::Plain(Plain { instant: Timestamp::from_nanos(slot.instant), count: u64::from(count) })
}
