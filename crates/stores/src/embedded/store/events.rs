//! What happened, told to history and to whoever follows once it lasts.

use super::inbox::Inbox;
use crate::embedded::history::{Intake, Told};
use crate::embedded::log::{BatchPlace, Position};
use crate::store::home::Listeners;
use std::sync::Arc;
use tollgate_core::lanes::Event;

/// Who is told what happened.
#[derive(Clone)]
pub(super) struct Audience {
    pub(super) listeners: Listeners,
    pub(super) history: Option<Arc<Intake>>,
}

impl Audience {
    /// Tells history the events of a batch of so many bytes that lasts, and gives back those that
    /// followers are to be told. Waits for nobody.
    pub(super) fn keep_batch(
        &self,
        events: Vec<Event>,
        place: BatchPlace,
        bytes: usize,
    ) -> Vec<Event> {
        if events.is_empty() {
            return events;
        }
        let followed = self.listeners.stream.is_on().then(|| events.clone());
        self.keep(events, place.position(bytes.saturating_sub(1)));
        followed.unwrap_or_default()
    }

    /// Tells history alone of events that reach up to a position of the journal.
    pub(super) fn keep(&self, mut events: Vec<Event>, until: Position) {
        if let Some(history) = &self.history {
            events.retain(Event::is_history);
            history.tell(Told { events, until });
        }
    }
}

/// Leaves nobody waiting, also if the writer panics.
pub(super) struct Ends(pub(super) Arc<Inbox>, pub(super) Audience);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
        self.1.listeners.end();
    }
}
