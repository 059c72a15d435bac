//! The folder of a store: one thread does its commands in memory, and a log keeps what they did. An
//! answer of success is sent after the sync.

mod backup;
mod check;
mod checkpoint;
mod events;
mod export;
mod inbox;
mod lingering;
mod no_room;
mod open;
mod records;
mod replay;
mod segments;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;

pub use backup::{Copied, CopyError, backup, restore};
pub use check::{CheckError, Checked, CheckedCheckpoint, Contents, check, contents};
#[cfg(feature = "postgres")]
pub(crate) use export::each_fact;
pub use export::{ExportError, Exported, ImportError, Imported, export, import};
pub use open::{OpenError, Opened, StoreSettings};

use self::events::Audience;
use self::inbox::Inbox;
use super::history::History;
use super::log::{LogError, Position, Reader};
use crate::store::TimeSource;
use crate::store::home::{Body, Commands, Doing, Home, Listeners, Past};
use std::future::ready;
use std::sync::Arc;
use std::thread::JoinHandle;
use tollgate_core::contract::{Answer, HistoryPage, HistoryQuery, StoreError};
use tollgate_core::lanes::{CallId, Event};
use tollgate_core::{Now, Span};

/// A folder, as the home of a store.
struct Folder {
    inbox: Arc<Inbox>,
    audience: Audience,
    reader: Reader,
    now: TimeSource,
    /// Taken only by `drop`.
    thread: Option<JoinHandle<()>>,
    /// After the thread, which tells it what happens.
    history: Option<History>,
}

impl Home for Folder {
    fn commands(&self) -> Arc<dyn Commands> {
        self.inbox.clone()
    }

    fn now(&self) -> Now {
        (self.now)()
    }

    fn time(&self) -> TimeSource {
        self.now.clone()
    }

    fn listeners(&self) -> &Listeners {
        &self.audience.listeners
    }

    fn read<'a>(
        &'a self,
        wanted: &'a [(CallId, u64)],
        bytes_max: usize,
    ) -> Doing<'a, Vec<Answer<Body>>> {
        Box::pin(ready(self.read_now(wanted, bytes_max)))
    }

    fn past(&self) -> Option<&dyn Past> {
        self.history.as_ref().map(|history| history as &dyn Past)
    }

    fn undoes(&self) -> bool {
        false
    }

    fn oldest_transaction(&self) -> Option<Span> {
        None
    }
}

impl Folder {
    fn read_now(&self, wanted: &[(CallId, u64)], bytes_max: usize) -> Vec<Answer<Body>> {
        let (mut bodies, mut bytes) = (Vec::new(), 0);
        for (_, at) in wanted {
            if bytes >= bytes_max && !bodies.is_empty() {
                break;
            }
            let body = match records::payload(&self.reader, Position::from_bits(*at)) {
                Ok(body) => Ok(Body::There(body)),
                // It moved, and the segment it was in is gone.
                Err(LogError::Absent { .. }) => Ok(Body::Gone),
                Err(error) if error.is_damage() => Ok(Body::Damaged(error.to_string())),
                // Such as that no more files can be opened.
                Err(error) => Err(unread(error)),
            };
            bytes += body.as_ref().map_or(0, Body::bytes);
            bodies.push(body);
        }
        bodies
    }
}

impl Past for History {
    fn flushed(&self) -> Doing<'_, ()> {
        Box::pin(self.flushed())
    }

    fn dropped(&self) -> u64 {
        self.dropped()
    }

    fn find(&self, call: CallId) -> Doing<'_, Answer<Vec<Event>>> {
        Box::pin(ready(self.find(call).map_err(unread)))
    }

    fn page<'a>(&'a self, query: &'a HistoryQuery) -> Doing<'a, Answer<HistoryPage>> {
        Box::pin(ready(self.page(query).map_err(unread)))
    }
}

/// What cannot be read now: the store goes on, and the calls are as they were.
fn unread(error: LogError) -> StoreError {
    StoreError::Unreachable { reason: error.to_string() }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.inbox.close();
        if let Some(thread) = self.thread.take() {
            // It ends when all is written; if it panicked, there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}
