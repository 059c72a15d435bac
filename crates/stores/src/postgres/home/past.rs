//! History in tables: what came of attempts and how calls ended, a row for each event, or for an attempt and
//! the end that came with it, and a partition for each day. No call waits for a row of it, and losing it loses none.
//!
//! # Nothing is missing, and nothing is there twice
//! What history is to be told is written in the commit that it tells of, into the table `untold`. About ten times a
//! second a node takes what is there, whoever wrote it, makes rows of it, and removes it there, in one transaction; one
//! node at a time. So rows come in the order of the log, and what a node that was killed left is told by another, or by
//! the same one when it is back. If that is impossible for long, what comes then is dropped and counted.

mod backlog;
mod days;
mod keeper;
mod query;
mod rows;
mod telling;

pub(super) use self::backlog::Backlog;
pub(super) use self::telling::Telling;

use self::keeper::Keeper;
use super::bodies::within_runtime;
use super::clock::Clock;
use super::link::Connector;
use crate::embedded::HistorySettings;
use crate::postgres::pool::Pool;
use crate::postgres::schema::SchemaName;
use crate::store::home::{Doing, Past};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tollgate_core::contract::{Answer, HistoryPage, HistoryQuery};
use tollgate_core::lanes::{CallId, Event};

/// How long a store that is closed waits until what it was told is written. Another node would write it.
const DRAIN: Duration = Duration::from_secs(3);

/// Adds what history is told.
pub(super) const TELL: &str = include_str!("past/tell.sql");

/// What history needs.
pub(super) struct Means {
    pub(super) connector: Connector,
    pub(super) clock: Arc<Clock>,
    pub(super) settings: HistorySettings,
    /// Begins a transaction that has a deadline.
    pub(super) begin: String,
    pub(super) deadline: Duration,
    /// How many may look at a time.
    pub(super) readers: usize,
}

/// The history of a store that is open. Dropped, it writes what it was told and ends.
pub(super) struct History {
    backlog: Arc<Backlog>,
    pool: Arc<Pool>,
    /// How many look at a time: who reads it takes no connection from the bodies of calls that start.
    turns: Semaphore,
    sql: query::Sql,
    deadline: Duration,
    runtime: Handle,
}

impl History {
    /// Begins to keep what it is told.
    pub(super) fn start(
        means: Means,
        schema: &SchemaName,
        pool: Arc<Pool>,
        runtime: &Handle,
    ) -> Self {
        let (backlog, deadline) = (Arc::<Backlog>::default(), means.deadline);
        let turns = Semaphore::new(means.readers.max(1));
        let sql = query::Sql::new(schema, means.begin.clone());
        runtime.spawn(Keeper::new(means, schema, backlog.clone()).run());
        Self { backlog, pool, turns, sql, deadline, runtime: runtime.clone() }
    }

    /// What it has not been told yet.
    pub(super) fn backlog(&self) -> Arc<Backlog> {
        self.backlog.clone()
    }
}

impl Past for History {
    /// Covers all that was answered, by whichever node. If the database does not take it, it is waited for no
    /// longer than a deadline.
    fn flushed(&self) -> Doing<'_, ()> {
        let flushed = self.backlog.flush();
        Box::pin(within_runtime(&self.runtime, async {
            // An end without an answer is an answer: there will be no more.
            let _ = tokio::time::timeout(self.deadline, flushed).await;
        }))
    }

    fn dropped(&self) -> u64 {
        self.backlog.dropped()
    }

    fn find(&self, call: CallId) -> Doing<'_, Answer<Vec<Event>>> {
        Box::pin(within_runtime(&self.runtime, self.within_deadline(self.find_all(call))))
    }

    /// In the order in which they happened.
    fn page<'a>(&'a self, query: &'a HistoryQuery) -> Doing<'a, Answer<HistoryPage>> {
        Box::pin(within_runtime(&self.runtime, self.within_deadline(self.look_for(query))))
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.backlog.close();
        if !self.backlog.has_ended_within(DRAIN) {
            tracing::debug!("the end of history is left to another node");
        }
    }
}
