//! Events of a store: as they happen, and as they are kept.

use crate::lanes::{End, Event};
use crate::name::{LaneName, QueueName};
use crate::time::Timestamp;
use std::collections::VecDeque;

/// How many of the last events a store keeps for those who follow: at a thousand calls a second
/// enough for one who is away for a quarter of a minute.
pub const EVENTS_KEPT: usize = 65_536;
/// Most bytes of reports and envelopes among them: where answers are long, fewer events are kept.
const EVENT_BYTES_KEPT: usize = 32 << 20;
/// Most events of one page, of either kind.
pub const EVENTS_MAX: usize = 10_000;

/// A place in a store's stream of events: behind one of them. Other runs of the store have others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventCursor(pub u64);

/// Events as they happened, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// Each with the place behind it.
    pub events: Vec<(EventCursor, Event)>,
    /// Where to go on.
    pub next: EventCursor,
    /// Events before these were not told: who asks was away for too long, or the store was opened
    /// again since.
    pub missed: bool,
}

/// The last events of a store, and their places.
#[derive(Debug)]
pub struct EventRing {
    /// The place before the first that is kept.
    first: u64,
    kept: VecDeque<Event>,
    /// Of the reports and envelopes of those that are kept.
    bytes: usize,
}

impl EventRing {
    /// An empty one. `opened` is when the store was opened in limit time, which never goes back: a
    /// run begins its places there, and has fewer events than nanoseconds.
    pub fn new(opened: Timestamp) -> Self {
        Self { first: opened.as_nanos(), kept: VecDeque::new(), bytes: 0 }
    }

    /// The place behind the last event.
    pub fn end(&self) -> EventCursor {
        EventCursor(self.first + self.kept.len() as u64)
    }

    /// Adds events, and forgets the oldest.
    pub fn extend(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.bytes += event.bytes();
            self.kept.push_back(event);
            while self.kept.len() > EVENTS_KEPT || self.bytes > EVENT_BYTES_KEPT {
                let Some(oldest) = self.kept.pop_front() else { return };
                self.bytes -= oldest.bytes();
                self.first += 1;
            }
        }
    }

    /// Up to so many events after a place; `None` if there is nothing to tell yet.
    pub fn page(&self, after: EventCursor, most: usize) -> Option<EventPage> {
        let missed = after < EventCursor(self.first) || after > self.end();
        let from = if missed { self.first } else { after.0 };
        let skipped = usize::try_from(from - self.first).unwrap_or(usize::MAX);
        let events = self.kept.iter().skip(skipped).take(most.min(EVENTS_MAX));
        let events: Vec<_> = (from + 1..).map(EventCursor).zip(events.cloned()).collect();
        if events.is_empty() && !missed && most > 0 {
            return None;
        }
        let next = events.last().map_or(EventCursor(from), |(behind, _)| *behind);
        Some(EventPage { events, next, missed })
    }
}

/// Which of the events that are kept are asked for. All that is said must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryQuery {
    /// Of this queue.
    pub queue: Option<QueueName>,
    /// Of lanes of this name.
    pub lane: Option<LaneName>,
    /// Calls that ended so: their ends, and not their attempts.
    pub end: Option<End>,
    /// From this instant of the wall clock on.
    pub from: Option<Timestamp>,
    /// Before this instant of the wall clock.
    pub to: Option<Timestamp>,
    /// Older than where the last page ended.
    pub after: Option<HistoryCursor>,
    /// At most so many, up to [`EVENTS_MAX`].
    pub most: usize,
}

impl HistoryQuery {
    /// Whether an event is asked for.
    pub fn wants(&self, event: &Event) -> bool {
        let Self { queue, lane, end, from, to, after: _, most: _ } = self;
        event.is_history()
            && queue.as_ref().is_none_or(|queue| *queue == event.queue)
            && lane.as_ref().is_none_or(|lane| *lane == event.lane)
            && end.is_none_or(|end| event.end() == Some(end))
            && from.is_none_or(|from| event.at.wall >= from)
            && to.is_none_or(|to| event.at.wall < to)
    }
}

/// A place in history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HistoryCursor(pub u64);

/// Some of history, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HistoryPage {
    /// What came of attempts, how calls ended, which of the dead were revived, and which calls were
    /// accepted where their queue tells that.
    pub events: Vec<Event>,
    /// The place of each of them: who goes on from there is told what is older.
    pub places: Vec<HistoryCursor>,
    /// Where to go on; `None` if there is no more. A page may be empty and still have a next one: a
    /// store looks at so much at a time.
    pub next: Option<HistoryCursor>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::act::REPORT_BYTES_MAX;
    use crate::lanes::payload::ENVELOPE_BYTES_MAX;
    use crate::lanes::{CallId, Outcome, Payload, What};
    use crate::time::Now;

    fn event(id: u64) -> Event {
        let (queue, lane) = (QueueName::new("q").unwrap(), LaneName::new("a").unwrap());
        let what = What::Enqueued { payload: Payload::default() };
        Event { at: Now::default(), call: CallId(id), queue, lane, what }
    }

    #[test]
    fn who_was_away_for_too_long_is_told_what_is_left_and_that_it_missed_some() {
        let mut ring = EventRing::new(Timestamp::from_nanos(1_000));
        let begin = ring.end();
        assert_eq!(ring.page(begin, 1), None);
        ring.extend((0..EVENTS_KEPT as u64).map(event));
        let page = ring.page(begin, 2).unwrap();
        assert!(!page.missed);
        assert_eq!(page.events.iter().map(|(_, it)| it.call.0).collect::<Vec<_>>(), [0, 1]);
        ring.extend([event(0)]);
        assert!(!ring.page(page.next, 1).unwrap().missed);
        let late = ring.page(begin, 1).unwrap();
        assert!(late.missed);
        assert_eq!(late.events[0].1.call, CallId(1));
    }

    /// As many events as fit are kept with what comes with them, and one more displaces the first.
    fn fills_the_memory(bytes: usize, what: impl Fn(Box<[u8]>) -> What) {
        let mut ring = EventRing::new(Timestamp::from_nanos(1_000));
        let begin = ring.end();
        let told = |id| Event { what: what(vec![7; bytes].into()), ..event(id) };
        let most = (EVENT_BYTES_KEPT / bytes) as u64;
        ring.extend((0..most).map(told));
        assert!(!ring.page(begin, 1).unwrap().missed);
        ring.extend([told(most)]);
        let page = ring.page(begin, EVENTS_MAX).unwrap();
        assert_eq!((page.missed, page.events.len() as u64), (true, most));
    }

    #[test]
    fn long_reports_are_forgotten_before_they_fill_the_memory() {
        fills_the_memory(REPORT_BYTES_MAX, |report| {
            let (waits, started, outcome) = ([].into(), Now::default(), Outcome::Done);
            What::Settled { token: 1, attempt: 1, started, waits, outcome, report }
        });
    }

    #[test]
    fn long_envelopes_are_forgotten_before_they_fill_the_memory() {
        fills_the_memory(ENVELOPE_BYTES_MAX, |envelope| What::Enqueued {
            payload: Payload::new(&envelope, &[]).unwrap(),
        });
    }

    #[test]
    fn a_place_of_another_run_is_none_of_this_one() {
        let mut before = EventRing::new(Timestamp::from_nanos(1_000));
        before.extend((0..10).map(event));
        let after = EventRing::new(Timestamp::from_nanos(2_000));
        for other in [before.end(), EventCursor(u64::MAX)] {
            let page = after.page(other, 1).unwrap();
            assert_eq!((page.missed, page.next), (true, after.end()));
        }
    }
}
