//! `/v1/history`: what came of attempts and how calls ended, as long as that is kept.

use super::Shared;
use super::body::Json;
use super::caller::Caller;
use super::path::{Filter, Listing};
use super::problem::{Problem, kinds};
use super::wire::event::{EventWire, HistoryPageWire};
use super::wire::instant::InstantWire;
use axum::extract::State;
use serde::Deserialize;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollgate::Error;
use tollgate::lanes::{End, HistoryCursor, HistoryQuery, LaneName, QueueName};

/// How many read at a time: each may look at many megabytes.
const READERS_MAX: usize = 2;

/// Which of history is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryFilter {
    queue: Option<String>,
    lane: Option<String>,
    end: Option<EndWire>,
    from: Option<InstantWire>,
    to: Option<InstantWire>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EndWire {
    Done,
    Dead,
    Cancelled,
    Expired,
    Superseded,
    Dropped,
}

impl Filter for HistoryFilter {
    const FIELDS: &'static str = "`queue`, `lane`, `end`, `from`, `to`, `after` and `limit`";

    fn limit(&self) -> Option<usize> {
        self.limit
    }
}

/// Lets a few read history at a time, beside the threads that answer.
#[derive(Debug, Clone)]
pub(crate) struct Readers(Arc<Semaphore>);

impl Default for Readers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS_MAX)))
    }
}

impl Readers {
    /// Reads on a thread of its own, once it is its turn.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        reading: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Problem> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "history was not read");
            Problem::new(kinds::STORE_FAILED, "history could not be read: ask again")
        };
        let turn = self.0.clone().acquire_owned().await.map_err(|error| failed(&error))?;
        let runtime = Handle::current();
        // It goes on when whoever asked has gone, and so does the turn.
        let read = tokio::task::spawn_blocking(move || {
            let read = runtime.block_on(reading);
            drop(turn);
            read
        });
        let read = read.await;
        Ok(read.map_err(|error| failed(&error))??)
    }
}

pub(super) async fn search(
    State(app): Shared,
    caller: Caller,
    Listing(filter, most): Listing<HistoryFilter>,
) -> Result<Json<HistoryPageWire>, Problem> {
    let queue = filter.queue.as_deref().map(|queue| QueueName::new(&caller.inner(queue)));
    let query = HistoryQuery {
        queue: queue.transpose().map_err(Error::from)?,
        lane: filter.lane.as_deref().map(LaneName::new).transpose().map_err(Error::from)?,
        end: filter.end.map(EndWire::end),
        from: filter.from.map(|from| from.0),
        to: filter.to.map(|to| to.0),
        after: filter.after.as_deref().map(cursor).transpose()?,
        most,
    };
    let gate = app.gate.clone();
    let page = app.history.read(async move { gate.history(query).await }).await?;
    let ours = page.events.iter().filter(|event| caller.outer(&event.queue).is_some());
    let events = ours.map(|event| EventWire::new(event, &caller, &app)).collect();
    Ok(Json(HistoryPageWire { events, next: page.next.map(|next| next.0.to_string()) }))
}

fn cursor(text: &str) -> Result<HistoryCursor, Problem> {
    text.parse().map(HistoryCursor).map_err(|_| {
        let detail = "`after` is no place in history: send `next` of the page before";
        Problem::new(kinds::INVALID_QUERY, detail)
    })
}

impl EndWire {
    fn end(self) -> End {
        match self {
            Self::Done => End::Done,
            Self::Dead => End::Dead,
            Self::Cancelled => End::Cancelled,
            Self::Expired => End::Expired,
            Self::Superseded => End::Superseded,
            Self::Dropped => End::Dropped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn who_leaves_keeps_the_turn_until_it_is_read() {
        let (readers, free) = (Readers::default(), Arc::new(Semaphore::new(0)));
        let (begins, mut begun) = mpsc::unbounded_channel();
        for _ in 0..READERS_MAX {
            let (readers, free, begins) = (readers.clone(), free.clone(), begins.clone());
            let reading = async move {
                begins.send(()).unwrap();
                drop(free.acquire().await);
                Ok(())
            };
            let asked = tokio::spawn(async move { readers.read(reading).await });
            begun.recv().await.unwrap();
            asked.abort();
            assert!(asked.await.unwrap_err().is_cancelled());
        }
        let turns = readers.0.available_permits();
        free.add_permits(READERS_MAX);
        assert_eq!(turns, 0);
        assert!(readers.read(async { Ok(()) }).await.is_ok());
    }
}
