//! What cells hold, as bytes, the same in every store: flat arrays of MessagePack, and of meters, which are
//! read and written all the time, fixed places.
//!
//! A number of 64 bits is two entries, billions and the rest, for scripts that know no more than doubles;
//! of an instant these are its seconds and nanoseconds. The first entry is the format, for good.
//!
//! A meter is one byte, the format; the text of its rules; the last change of them that it has gone along with;
//! until when it is closed, and why; and its words. A text is its length in two bytes and then itself, a
//! number five bytes for the billions and four for the rest, all with the highest byte first.

use super::rules;
use rmp::{decode, encode};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use tollgate_core::lanes::{Record, Revision};
use tollgate_core::till::{KeptMeter, Timeline, Turn};
use tollgate_core::{Definition, Meter, Now, Timestamp};

const FORMAT: u64 = 1;
const METER_FORMAT: u8 = 1;
/// Words of most meters: one rule, and a few low points.
const WORDS_USUAL: usize = 16;
const BILLION: u64 = 1_000_000_000;

/// A value that cannot be read: another version wrote it, or it was damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Definitions by their text: meters by the thousand share a few.
#[derive(Debug, Default)]
pub(super) struct Definitions(HashMap<Box<str>, Arc<Definition>>);

/// Most that are kept: a process uses few at a time.
const DEFINITIONS_MAX: usize = 1_024;

impl Definitions {
    fn read(&mut self, text: &str) -> Result<Arc<Definition>, Unreadable> {
        if let Some(known) = self.0.get(text) {
            return Ok(known.clone());
        }
        let definition = Arc::new(rules::read(text).ok_or(Unreadable)?);
        if self.0.len() >= DEFINITIONS_MAX {
            self.0.clear();
        }
        self.0.insert(text.into(), definition.clone());
        Ok(definition)
    }
}

/// Since when a store remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch {
    /// When it was begun: names it.
    pub(super) begun: Timestamp,
    /// All that was there before was lost at this instant.
    pub(super) lost: Option<Now>,
}

impl Epoch {
    pub(super) fn written(self) -> Vec<u8> {
        let lost = self.lost.unwrap_or_default();
        let mut out = Writer::new(6);
        out.numbers([self.begun, lost.at, lost.wall].map(Timestamp::as_nanos));
        out.bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut from = Reader::new(bytes)?;
        let (begun, at, wall) = (from.instant()?, from.instant()?, from.instant()?);
        let lost = (at > Timestamp::default()).then_some(Now { at, wall });
        Ok(Self { begun, lost })
    }
}

pub(super) fn timeline_written(timeline: &Timeline) -> Vec<u8> {
    let turns = timeline.turns();
    let mut out = Writer::new(5 + 7 * turns.len());
    let has_own = u64::from(timeline.has_own);
    out.number(timeline.changed);
    out.number(timeline.own);
    out.small(has_own);
    for Turn { number, since, definition } in turns {
        out.number(*number);
        out.number(since.at.as_nanos());
        out.number(since.wall.as_nanos());
        out.text(
            &definition.as_ref().map_or(String::new(), |definition| rules::written(definition)),
        );
    }
    out.bytes
}

pub(super) fn timeline_read(
    bytes: &[u8],
    definitions: &mut Definitions,
) -> Result<Timeline, Unreadable> {
    let mut from = Reader::new(bytes)?;
    let (changed, own, has_own) = (from.number()?, from.number()?, from.small()? > 0);
    let mut turns = Vec::new();
    while from.entries > 0 {
        let number = from.number()?;
        let since = Now { at: from.instant()?, wall: from.instant()? };
        let text = from.text()?;
        let definition = if text.is_empty() { None } else { Some(definitions.read(text)?) };
        turns.push(Turn { number, since, definition });
    }
    let mut timeline = Timeline::of(turns);
    (timeline.changed, timeline.own, timeline.has_own) = (changed, own, has_own);
    Ok(timeline)
}

/// What the value of a meter begins with that was left under these rules, and has gone along with so many
/// changes of them.
pub(crate) fn meter_head(rules: &str, seen: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(128 + rules.len());
    out.push(METER_FORMAT);
    put_text(&mut out, rules);
    put_word(&mut out, seen);
    out
}

/// A meter, and its closure unless that is over.
pub(super) fn meter_written(kept: &KeptMeter, now: Timestamp) -> Vec<u8> {
    let KeptMeter { meter, definition, seen } = kept;
    let mut out = meter_head(&rules::written(definition), *seen);
    let (until, reason) = meter.closed(now).unwrap_or_default();
    put_word(&mut out, until.as_nanos());
    put_text(&mut out, reason);
    meter.to_words().into_iter().for_each(|word| put_word(&mut out, word));
    out
}

pub(super) fn meter_read(
    bytes: &[u8],
    definitions: &mut Definitions,
) -> Result<KeptMeter, Unreadable> {
    let mut from = Places(bytes);
    if from.take::<1>()? != [METER_FORMAT] {
        return Err(Unreadable);
    }
    let definition = definitions.read(from.text()?)?;
    let (seen, until, reason) = (from.word()?, from.word()?, from.text()?);
    let mut words = SmallVec::<[u64; WORDS_USUAL]>::new();
    while !from.0.is_empty() {
        words.push(from.word()?);
    }
    let closed = (until > 0).then_some((Timestamp::from_nanos(until), reason));
    let meter = Meter::from_words(&definition, &words, closed).ok_or(Unreadable)?;
    Ok(KeptMeter { meter, definition, seen })
}

fn put_word(out: &mut Vec<u8>, word: u64) {
    // The billions of 64 bits fit into five bytes, and the rest into four.
    out.extend_from_slice(&(word / BILLION).to_be_bytes()[3..]);
    out.extend_from_slice(&(word % BILLION).to_be_bytes()[4..]);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    // Rules and reasons are far shorter: both are bounded.
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// Reads fixed places.
struct Places<'a>(&'a [u8]);

impl<'a> Places<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Unreadable)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn word(&mut self) -> Result<u64, Unreadable> {
        let [a, b, c, d, e] = self.take()?;
        let high = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        let low = u32::from_be_bytes(self.take()?);
        high.checked_mul(BILLION).and_then(|high| high.checked_add(low.into())).ok_or(Unreadable)
    }

    fn text(&mut self) -> Result<&'a str, Unreadable> {
        let length = usize::from(u16::from_be_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(length).ok_or(Unreadable)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| Unreadable)
    }
}

/// A record, or the revision of one that was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kept {
    Record(Record),
    Removed(Revision),
}

impl Kept {
    pub(super) fn revision(&self) -> Revision {
        match self {
            Self::Record(record) => record.revision,
            Self::Removed(revision) => *revision,
        }
    }

    pub(super) fn record(&self) -> Option<&Record> {
        match self {
            Self::Record(record) => Some(record),
            Self::Removed(_) => None,
        }
    }

    pub(super) fn written(&self) -> Vec<u8> {
        let bytes = self.record().map(|record| &record.bytes);
        let mut out = Writer::new(2 + usize::from(bytes.is_some()));
        out.number(self.revision().0);
        if let Some(bytes) = bytes {
            out.text_bytes(bytes);
        }
        out.bytes
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        let mut from = Reader::new(bytes)?;
        let revision = Revision(from.number()?);
        if from.entries == 0 {
            return Ok(Self::Removed(revision));
        }
        Ok(Self::Record(Record { revision, bytes: from.bytes()?.into() }))
    }
}

/// Writes one array.
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Of so many entries after the format.
    fn new(entries: usize) -> Self {
        let mut out = Self { bytes: Vec::with_capacity(8 + 5 * entries) };
        let entries = u32::try_from(entries + 1).unwrap_or(u32::MAX);
        // Memory has room, and nothing else can fail.
        let _ = encode::write_array_len(&mut out.bytes, entries);
        out.small(FORMAT);
        out
    }

    fn small(&mut self, number: u64) {
        let _ = encode::write_uint(&mut self.bytes, number);
    }

    fn number(&mut self, number: u64) {
        self.small(number / BILLION);
        self.small(number % BILLION);
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.number(number));
    }

    fn text(&mut self, text: &str) {
        self.text_bytes(text.as_bytes());
    }

    fn text_bytes(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let _ = encode::write_str_len(&mut self.bytes, length);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Reads one array.
struct Reader<'a> {
    rest: &'a [u8],
    /// How many are left.
    entries: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, Unreadable> {
        let mut rest = bytes;
        let entries = decode::read_array_len(&mut rest).map_err(|_| Unreadable)?;
        let mut from = Self { rest, entries: entries as usize };
        if from.small()? != FORMAT {
            return Err(Unreadable);
        }
        Ok(from)
    }

    fn next(&mut self) -> Result<(), Unreadable> {
        self.entries = self.entries.checked_sub(1).ok_or(Unreadable)?;
        Ok(())
    }

    fn small(&mut self) -> Result<u64, Unreadable> {
        self.next()?;
        decode::read_int(&mut self.rest).map_err(|_| Unreadable)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        let (high, low) = (self.small()?, self.small()?);
        high.checked_mul(BILLION).and_then(|high| high.checked_add(low)).ok_or(Unreadable)
    }

    fn instant(&mut self) -> Result<Timestamp, Unreadable> {
        self.number().map(Timestamp::from_nanos)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Unreadable> {
        self.next()?;
        let length = decode::read_str_len(&mut self.rest).map_err(|_| Unreadable)? as usize;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Unreadable)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Unreadable)
    }
}
