//! History in tables: what came of attempts and how calls ended, a row for each event, or for an attempt and
//! the end that came with it, and a partition for each day. It never delays a call, and losing it loses none.
//!
//! # What may be lost
//! Events come after their commit, wait in memory for about a tenth of a second, and are written
//! together. A node that is killed loses what waits. While the database is out of reach they wait longer,
//! up to a bound; what comes then is dropped and counted.

mod days;
mod intake;
mod keeper;
mod query;
mod rows;

pub(super) use self::intake::Intake;

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

/// How long a store that is closed waits until what it was told is written.
const DRAIN: Duration = Duration::from_secs(3);

/// What history needs.
pub(super) struct Means {
    pub(super) node: i64,
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
    intake: Arc<Intake>,
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
        let (intake, deadline) = (Arc::<Intake>::default(), means.deadline);
        let turns = Semaphore::new(means.readers.max(1));
        let sql = query::Sql::new(schema, means.begin.clone());
        runtime.spawn(Keeper::new(means, schema, intake.clone()).run());
        Self { intake, pool, turns, sql, deadline, runtime: runtime.clone() }
    }

    /// Where it is told what happened.
    pub(super) fn intake(&self) -> Arc<Intake> {
        self.intake.clone()
    }
}

impl Past for History {
    /// Covers what this node was told. What other nodes were told within the last moment may not be
    /// there yet. If the database does not take it, it is waited for no longer than a deadline.
    fn flushed(&self) -> Doing<'_, ()> {
        let flushed = self.intake.flush();
        Box::pin(within_runtime(&self.runtime, async {
            // An end without an answer is an answer: there will be no more.
            let _ = tokio::time::timeout(self.deadline, flushed).await;
        }))
    }

    fn dropped(&self) -> u64 {
        self.intake.dropped()
    }

    fn find(&self, call: CallId) -> Doing<'_, Answer<Vec<Event>>> {
        Box::pin(within_runtime(&self.runtime, self.within_deadline(self.find_all(call))))
    }

    /// In the order in which they were written, which among nodes is nearly that in which they happened.
    fn page<'a>(&'a self, query: &'a HistoryQuery) -> Doing<'a, Answer<HistoryPage>> {
        Box::pin(within_runtime(&self.runtime, self.within_deadline(self.look_for(query))))
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.intake.close();
        if !self.intake.has_ended_within(DRAIN) {
            tracing::warn!("history has a gap: the database did not take all of it before the end");
        }
    }
}
