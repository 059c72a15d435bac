//! Events of a store: told one by one as they happen, and found in history.

use super::pulse::ended;
use super::{Engine, Parts};
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::Arc;
use tollgate_core::contract::{EventCursor, HistoryPage, HistoryQuery, Lanes};
use tollgate_core::lanes::{CallId, Event};

/// How many events are fetched at once.
const PAGE: usize = 1_000;

/// What comes next in a stream of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// Something happened to a call. The place is behind it: go on from there another time.
    Event(EventCursor, Event),
    /// Events before the next one are not told: whoever follows was away for too long, or the store was
    /// opened again since. History may have them.
    Missed,
}

/// A store's events from a place on, in order. Passes that wait are calls, too: they are told like all
/// others, in a queue of their own.
pub struct Events<S> {
    parts: Arc<Parts<S>>,
    /// The place behind what was told last; `None` before anyone asked.
    after: Option<EventCursor>,
    fetched: VecDeque<(EventCursor, Event)>,
}

impl<S> std::fmt::Debug for Events<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("after", &self.after).finish_non_exhaustive()
    }
}

impl<S: Lanes + 'static> Engine<S> {
    /// Events after a place, or with `None` from when they are first asked for.
    pub fn events(&self, after: Option<EventCursor>) -> Events<S> {
        Events { parts: self.parts.clone(), after, fetched: VecDeque::new() }
    }

    /// What came of a call's attempts and how it ended, oldest first, as long as that is kept.
    pub async fn history_of(&self, call: CallId) -> Result<Vec<Event>, Error> {
        Ok(self.histories(vec![call]).await?.pop().unwrap_or_default())
    }

    /// The same of each of these.
    pub async fn histories(&self, calls: Vec<CallId>) -> Result<Vec<Vec<Event>>, Error> {
        match calls.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(self.parts.store.histories(calls).await?),
        }
    }

    /// What came of attempts and how calls ended, newest first and page by page, as long as that is
    /// kept.
    pub async fn history(&self, query: HistoryQuery) -> Result<HistoryPage, Error> {
        Ok(self.parts.store.history(query).await?)
    }
}

impl<S: Lanes> Events<S> {
    /// The place behind what was told last. What happens after this was asked is told, whenever that is
    /// asked for.
    pub async fn place(&mut self) -> Result<EventCursor, Error> {
        if let Some(after) = self.after {
            return Ok(after);
        }
        let present = self.parts.store.events(None, 0).await?.next;
        Ok(*self.after.insert(present))
    }

    /// Waits for the next event. Dropped before it is ready, it has told nothing, and nothing is lost.
    pub async fn next(&mut self) -> Result<Told, Error> {
        let after = self.place().await?;
        loop {
            if let Some((behind, event)) = self.fetched.pop_front() {
                self.after = Some(behind);
                return Ok(Told::Event(behind, event));
            }
            let page = tokio::select! {
                page = self.parts.store.events(Some(after), PAGE) => page?,
                () = self.parts.pulse.until_ended() => return Err(ended().into()),
            };
            // What was fetched is told before the place moves on; without any, there is nothing behind.
            if page.events.is_empty() {
                self.after = Some(page.next);
            }
            self.fetched = page.events.into();
            if page.missed {
                return Ok(Told::Missed);
            }
        }
    }
}
