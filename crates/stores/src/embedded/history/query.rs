//! Looking into history, on the thread of whoever asks.

use super::index;
use super::segment::{self, Summary};
use super::shelf::{Books, Index, Sealed, Shelf};
use crate::embedded::disk::Disk;
use crate::embedded::log::{LogError, SegmentNumber};
use std::collections::VecDeque;
use std::io;
use tollgate_core::contract::{EVENTS_MAX, HistoryCursor, HistoryPage, HistoryQuery};
use tollgate_core::lanes::{CallId, Event};

/// How much is read for one page.
const PAGE_BYTES_MAX: u64 = 64 << 20;
/// How much of reports and envelopes is told on one page.
pub(super) const PAGE_TOLD_MAX: usize = 16 << 20;

impl Shelf {
    /// The events of a call, oldest first. What is sealed is found by its index.
    pub(super) fn find(&self, call: CallId) -> Result<Vec<Event>, LogError> {
        let (sealed, writing) = self.books().with_call(call);
        let mut found = Vec::new();
        for (number, book) in sealed {
            let events = match self.find_indexed(number, book, call).map_err(reading) {
                // Of the index, perhaps: reading the segment tells.
                Err(error) if error.is_damage() => {
                    self.note_index(number, Index::Absent);
                    None
                }
                events => events?,
            };
            match events {
                Some(events) => found.extend(events),
                None => self.scan(number, |_, event| {
                    found.extend(Some(event).filter(|event| event.call == call));
                })?,
            }
        }
        if let Some((number, offsets)) = writing {
            let file = match segment::part(&self.disk, number).open(&segment::log_name()) {
                // Sealed and dropped meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
                file => file.map_err(reading)?,
            };
            for offset in offsets {
                found.extend(segment::events_at(&*file, offset).map_err(reading)?);
            }
        }
        Ok(found)
    }

    /// The events of a call in a sealed segment; `None` if the segment must be read.
    fn find_indexed(
        &self,
        number: SegmentNumber,
        Sealed { summary, index }: Sealed,
        call: CallId,
    ) -> io::Result<Option<Vec<Event>>> {
        if index == Index::Absent {
            return Ok(None);
        }
        let part = segment::part(&self.disk, number);
        let opened =
            part.open(index::NAME).and_then(|it| Ok((it, part.open(&segment::log_name())?)));
        let (file, log) = match opened {
            // Dropped meanwhile, because it is old.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(vec![])),
            opened => opened?,
        };
        if index == Index::Unchecked {
            let is_whole = index::is_whole(&*file, &summary)?;
            self.note_index(number, if is_whole { Index::Whole } else { Index::Absent });
            if !is_whole {
                return Ok(None);
            }
        }
        let offsets = index::find(&*file, &summary, call)?.into_iter();
        let records = offsets.map(|offset| segment::events_at(&*log, offset));
        let records: Vec<_> = records.collect::<io::Result<_>>()?;
        // Another call, or none: something there is broken, and reading it tells what.
        let is_it = |events: &Vec<Event>| events.first().is_some_and(|event| event.call == call);
        Ok(records.iter().all(is_it).then(|| records.into_iter().flatten().collect()))
    }

    /// Some of the events that are asked for, newest first: as many as are asked for, or those of as
    /// many segments as are read at once.
    pub(super) fn page(&self, query: &HistoryQuery) -> Result<HistoryPage, LogError> {
        let most = query.most.min(EVENTS_MAX);
        let mut page = HistoryPage::default();
        let (mut read, mut told) = (0, 0);
        if most == 0 {
            return Ok(page);
        }
        let segments = self.books().newest_first(query);
        for (number, summary) in segments {
            if read >= PAGE_BYTES_MAX || told >= PAGE_TOLD_MAX {
                page.next = Some(cursor(number, u32::MAX));
                return Ok(page);
            }
            read += summary.bytes;
            let room = most - page.events.len();
            let mut last: VecDeque<(u32, Event)> = VecDeque::with_capacity(room.min(1_024));
            let mut is_full = false;
            self.scan(number, |place, event| {
                let is_older = query.after.is_none_or(|after| cursor(number, place) < after);
                if is_older && query.wants(&event) {
                    told += event.bytes();
                    last.push_back((place, event));
                    while last.len() > room || (told > PAGE_TOLD_MAX && last.len() > 1) {
                        let dropped = last.pop_front();
                        told -= dropped.map_or(0, |(_, event)| event.bytes());
                        is_full = true;
                    }
                }
            })?;
            let oldest = last.front().map(|(place, _)| *place);
            is_full |= last.len() == room;
            for (place, event) in last.into_iter().rev() {
                page.events.push(event);
                page.places.push(cursor(number, place));
            }
            if is_full {
                page.next = oldest.map(|place| cursor(number, place));
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// Gives `each` the events of a segment. One that is broken is set aside, and what is before the
    /// damage is told.
    fn scan(&self, number: SegmentNumber, each: impl FnMut(u32, Event)) -> Result<(), LogError> {
        let is_sealed = self.books().sealed.contains_key(&number);
        match segment::read(&self.disk, number, each) {
            Err(error) if segment::is_gone(&error) => Ok(()),
            Err(error) if is_sealed && error.is_damage() => {
                self.set_aside(number, &error).map_err(reading)
            }
            read => read.map(|_| ()),
        }
    }
}

impl Books {
    /// The sealed segments that may have a call, and where it is in the one that is being written.
    #[expect(clippy::type_complexity, reason = "two lists, taken apart at once")]
    fn with_call(
        &self,
        call: CallId,
    ) -> (Vec<(SegmentNumber, Sealed)>, Option<(SegmentNumber, Vec<u32>)>) {
        let sealed = self.sealed.iter().filter(|(_, sealed)| sealed.summary.has_call(call));
        let sealed = sealed.map(|(number, sealed)| (*number, *sealed)).collect();
        let writing = self.writing.as_ref().filter(|writing| writing.summary.has_call(call));
        let writing = writing.map(|writing| {
            let entries = writing.entries.iter().filter(|(other, _)| *other == call);
            (writing.number, entries.map(|(_, offset)| *offset).collect())
        });
        (sealed, writing)
    }

    /// The segments that may have what is asked for.
    fn newest_first(&self, query: &HistoryQuery) -> Vec<(SegmentNumber, Summary)> {
        let writing = self.writing.iter().map(|writing| (writing.number, writing.summary));
        let sealed = self.sealed.iter().rev().map(|(number, sealed)| (*number, sealed.summary));
        let may_have = |(number, summary): &(SegmentNumber, Summary)| {
            let (oldest, newest) = summary.walls;
            summary.records > 0
                && query.from.is_none_or(|from| newest >= from)
                && query.to.is_none_or(|to| oldest < to)
                && query.after.is_none_or(|after| cursor(*number, 0) < after)
        };
        writing.chain(sealed).filter(may_have).collect()
    }
}

/// The place of an event.
fn cursor(number: SegmentNumber, place: u32) -> HistoryCursor {
    HistoryCursor(u64::from(number.as_u32()) << 32 | u64::from(place))
}

fn reading(error: io::Error) -> LogError {
    LogError::failed("reading history", error)
}
