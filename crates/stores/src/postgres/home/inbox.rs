//! What waits for the writer: commands from anywhere, and that another node wrote something.

use crate::store::command::Command;
use crate::store::home::Commands;
use crate::store::together::is_heard_later;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Where commands wait.
#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

#[derive(Default)]
pub(super) struct Waiting {
    pub(super) commands: VecDeque<Box<dyn Command>>,
    /// Another node wrote something.
    pub(super) has_heard: bool,
    /// An application handed in calls.
    pub(super) has_tickets: bool,
    /// Nobody is left who could send commands.
    pub(super) is_closed: bool,
    /// Nobody is left who could do them.
    has_ended: bool,
}

impl Waiting {
    fn is_nothing(&self) -> bool {
        self.commands.is_empty() && !self.has_heard && !self.has_tickets && !self.is_closed
    }
}

impl Commands for Inbox {
    fn take(&self, command: Box<dyn Command>) {
        let mut waiting = self.lock();
        // Dropped, it tells whoever waits that there is no answer.
        if waiting.has_ended {
            return;
        }
        waiting.commands.push_back(command);
        drop(waiting);
        if !is_heard_later(self) {
            self.announce();
        }
    }

    fn announce(&self) {
        self.arrived.notify_one();
    }
}

impl Inbox {
    /// Another node wrote something.
    pub(super) fn hear(&self) {
        self.lock().has_heard = true;
        self.arrived.notify_one();
    }

    /// An application handed in calls.
    pub(super) fn hear_of_tickets(&self) {
        self.lock().has_tickets = true;
        self.arrived.notify_one();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// The writer has ended: whoever waits for an answer is told that there is none.
    pub(super) fn end(&self) {
        let mut waiting = self.lock();
        waiting.has_ended = true;
        waiting.commands.clear();
    }

    /// Puts back what was not done, before all that came since.
    pub(super) fn put_back(&self, commands: VecDeque<Box<dyn Command>>) {
        let mut waiting = self.lock();
        let since = std::mem::replace(&mut waiting.commands, commands);
        waiting.commands.extend(since);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Takes all there is; waits until there is something, or for so long.
    pub(super) async fn wait(&self, at_most: Duration) -> Waiting {
        let arrival = async {
            while self.lock().is_nothing() {
                self.arrived.notified().await;
            }
        };
        // Late or not, what is there is taken.
        let _ = tokio::time::timeout(at_most, arrival).await;
        let mut waiting = self.lock();
        let Waiting { is_closed, has_ended, .. } = *waiting;
        let empty = Waiting { is_closed, has_ended, ..Waiting::default() };
        std::mem::replace(&mut *waiting, empty)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
