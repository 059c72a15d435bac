//! Events of calls: told as they happen, and found in history.

use super::Tollgate;
use crate::store::Store;
use tollgate_core::contract::{EventCursor, HistoryPage, HistoryQuery};
use tollgate_core::lanes::{CallId, Event};
use tollgate_engine::{Error, Told};

impl Tollgate {
    /// Events after a place, or with `None` from when they are first asked for. Other runs of the
    /// process have other places: whoever comes with one of them is told that events were missed.
    pub fn events(&self, after: Option<EventCursor>) -> Events {
        Events { inner: self.engine().map(|engine| engine.events(after)) }
    }

    /// What came of a call's attempts and how it ended, oldest first, as long as that is kept. One that
    /// was dead and is revived, cancelled or dropped has an end for each.
    pub async fn history_of(&self, call: CallId) -> Result<Vec<Event>, Error> {
        self.engine()?.history_of(call).await
    }

    /// The same of each of these, on one way to the store.
    pub async fn histories(&self, calls: Vec<CallId>) -> Result<Vec<Vec<Event>>, Error> {
        self.engine()?.histories(calls).await
    }

    /// What came of attempts and how calls ended, newest first and page by page, as long as that is
    /// kept.
    pub async fn history(&self, query: HistoryQuery) -> Result<HistoryPage, Error> {
        self.engine()?.history(query).await
    }
}

/// A gate's events from a place on, in order. Passes that wait are calls, too: they are told like all
/// others, in a queue of their own.
#[derive(Debug)]
#[must_use = "nothing is told until it is asked for"]
pub struct Events {
    inner: Result<tollgate_engine::Events<Store>, Error>,
}

impl Events {
    /// The place behind what was told last. What happens after this was asked is told, whenever that is
    /// asked for.
    pub async fn place(&mut self) -> Result<EventCursor, Error> {
        self.inner.as_mut().map_err(|error| error.clone())?.place().await
    }

    /// Waits for the next event. Dropped before it is ready, it has told nothing, and nothing is lost.
    pub async fn next(&mut self) -> Result<Told, Error> {
        self.inner.as_mut().map_err(|error| error.clone())?.next().await
    }
}
