//! For which queues someone asks, at which node: turns at a meter hang on it, and nodes tell each other.

use super::frames::Note;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tollgate_core::lanes::Scheduler;
use tollgate_core::{QueueName, Span, Timestamp};

/// How long ahead it is told that someone asks: so long a node that dies keeps the turn of its queues.
const TOLD_AHEAD: Span = Span::from_secs(10);
/// It is told again when less than this is left.
const TOLD_AGAIN: Span = Span::from_secs(3);
/// A node of which nothing was heard for so long is gone.
const GONE: Duration = Duration::from_secs(60);
/// A node that has nothing to write says after so long that it is there.
pub(super) const HERE_EVERY: Duration = Duration::from_secs(20);

/// What this node told, and what it was told.
#[derive(Default)]
pub(super) struct Asks {
    /// Until when someone asks here, and until when the others were told so.
    own: HashMap<QueueName, (Timestamp, Timestamp)>,
    elsewhere: HashMap<QueueName, HashMap<i64, Timestamp>>,
    /// When the other nodes were last heard of.
    nodes: HashMap<i64, Instant>,
}

impl Asks {
    /// Hears of another node. A new one knows nothing yet.
    pub(super) fn hear_of(&mut self, node: i64, now: Instant) {
        if self.nodes.insert(node, now).is_none() {
            // It may have begun after what was told.
            self.own.values_mut().for_each(|(_, told)| *told = Timestamp::default());
        }
    }

    /// Notes what another node said.
    pub(super) fn hear(&mut self, node: i64, note: Note, scheduler: &mut Scheduler) {
        let Note::Asked(queue, until) = note else { return };
        let nodes = self.elsewhere.entry(queue.clone()).or_default();
        nodes.insert(node, until);
        nodes.retain(|_, until| *until > scheduler.latest());
        let latest = nodes.values().max().copied().unwrap_or_default();
        if nodes.is_empty() {
            self.elsewhere.remove(&queue);
        }
        scheduler.asked_elsewhere(&queue, latest);
    }

    /// What the others are to be told when nobody is left who could ask here.
    pub(super) fn leave(&self, now: Timestamp) -> Vec<Note> {
        let told = self.own.iter().filter(|(_, (_, told))| *told > now);
        told.map(|(queue, _)| Note::Asked(queue.clone(), now)).collect()
    }

    /// What the others are to be told now.
    pub(super) fn take_news(
        &mut self,
        changed: Vec<(QueueName, Timestamp)>,
        now: Timestamp,
        at: Instant,
    ) -> Vec<Note> {
        for (queue, until) in changed {
            self.own.entry(queue).or_default().0 = until;
        }
        self.nodes.retain(|_, heard| at.duration_since(*heard) < GONE);
        let has_company = !self.nodes.is_empty();
        let mut notes = Vec::new();
        self.own.retain(|queue, (until, told)| {
            if has_company && is_due(*until, *told, now) {
                *told = (*until).min(now.plus(TOLD_AHEAD));
                notes.push(Note::Asked(queue.clone(), *told));
            }
            *until > now
        });
        notes
    }
}

/// Whether the others believe something else than what is, or soon will.
fn is_due(until: Timestamp, told: Timestamp, now: Timestamp) -> bool {
    if until <= now { told > now } else { told < until.min(now.plus(TOLD_AGAIN)) }
}
