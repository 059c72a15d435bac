//! Reporting: one node at a time writes what it has in memory into tables, for people who look at the
//! database. Nothing reads them to decide.
//!
//! It looks once a second, writes what changed since it last did, and writes nothing if nothing did.

mod tables;

use self::tables::{Change, Survey, Table, Tables};
use super::clock::Clock;
use super::inbox::Inbox;
use super::link::{Connected, Connector};
use crate::postgres::schema::SchemaName;
use crate::store::command::{Kind, Task};
use crate::store::home::Commands;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::MissedTickBehavior;
use tokio_postgres::Error;
use tokio_postgres::types::{ToSql, Type};

/// How often it looks.
const EVERY: Duration = Duration::from_secs(1);
/// How many looks it leaves out after one that took longer than this: the writer waits meanwhile.
const LOOK_MAX: Duration = Duration::from_millis(20);
const LEFT_OUT: u32 = 9;
/// For how long a node reports unless it says so again, and how often it does: a node that dies is
/// followed by another.
const LEASE_SECONDS: i32 = 10;
const RENEW_EVERY: Duration = Duration::from_secs(3);

/// What a reporter needs.
pub(super) struct Means {
    pub(super) node: i64,
    pub(super) connector: Connector,
    /// Begins a transaction.
    pub(super) begin: String,
    pub(super) inbox: Weak<Inbox>,
    pub(super) clock: Arc<Clock>,
}

/// The statements.
pub(super) struct Sql {
    lease: String,
    is_mine: String,
    empty: String,
    tables: Vec<(String, String)>,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let named = |text: &str| schema.put_into(text);
        let empty = Table::ALL.map(|table| format!("DELETE FROM :\"schema\".{};", table.name()));
        Self {
            lease: named(include_str!("report/lease.sql")),
            is_mine: named("SELECT node FROM :\"schema\".reporter WHERE node = $1 FOR UPDATE"),
            empty: named(&empty.concat()),
            tables: Table::ALL.map(|it| (named(it.upsert()), named(&it.delete()))).to_vec(),
        }
    }
}

/// Why nothing was reported.
enum Silence {
    Database(Error),
    /// The writer has gone.
    Closed,
    /// Another node does it.
    Elsewhere,
}

impl From<Error> for Silence {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

struct Reporter {
    means: Means,
    sql: Sql,
    connected: Option<Connected>,
    /// When it last said that it reports, if it does.
    renewed: Option<Instant>,
    /// What is in the tables, if that is known.
    written: Option<Tables>,
}

/// Reports until the writer has gone.
pub(super) async fn report(means: Means, sql: Sql) {
    let mut reporter = Reporter { means, sql, connected: None, renewed: None, written: None };
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match reporter.pass().await {
            Ok(took) if took > LOOK_MAX => {
                for _ in 0..LEFT_OUT {
                    ticks.tick().await;
                    reporter.renew_in_time().await;
                }
            }
            Ok(_) => {}
            Err(Silence::Closed) => return,
            Err(silence) => reporter.forget(&silence),
        }
    }
}

impl Reporter {
    /// Looks, and writes what changed; says how long the writer was kept.
    async fn pass(&mut self) -> Result<Duration, Silence> {
        self.renew().await?;
        let (survey, took) = self.look().await?;
        let (now, written) = (self.means.clock.now(), self.written.take());
        // Not here: the one thread that carries all connections is not to wait for it.
        let comparing = tokio::task::spawn_blocking(move || {
            let tables = Tables::of(survey, now);
            let changes = tables.since(written.as_ref());
            (tables, changes, written.is_none())
        });
        let (tables, changes, is_first) = comparing.await.map_err(|_| Silence::Closed)?;
        if is_first || !changes.is_empty() {
            self.write(changes, is_first).await?;
        }
        self.written = Some(tables);
        Ok(took)
    }

    /// It cannot say what is in the tables, or that is another's now.
    fn forget(&mut self, silence: &Silence) {
        if let Silence::Database(error) = silence {
            tracing::debug!(%error, "what is in memory is not reported");
            self.connected = None;
        }
        (self.renewed, self.written) = (None, None);
    }

    async fn renew_in_time(&mut self) {
        if let Err(silence) = self.renew().await {
            self.forget(&silence);
        }
    }

    /// Becomes the one who reports, or stays so.
    async fn renew(&mut self) -> Result<(), Silence> {
        if self.means.inbox.strong_count() == 0 {
            return Err(Silence::Closed);
        }
        let now = elapsing();
        if self.renewed.is_some_and(|at| now.duration_since(at) < RENEW_EVERY) {
            return Ok(());
        }
        let connected = match self.connected.take().filter(|it| !it.client.is_closed()) {
            Some(connected) => connected,
            None => (self.means.connector)().await?,
        };
        let client = &self.connected.insert(connected).client;
        let is_new = self.renewed.is_none();
        let arguments: [(&(dyn ToSql + Sync), Type); 3] =
            [(&self.means.node, Type::INT8), (&LEASE_SECONDS, Type::INT4), (&is_new, Type::BOOL)];
        let leased = client.query_typed(&self.sql.lease, &arguments).await?;
        if leased.is_empty() {
            return Err(Silence::Elsewhere);
        }
        self.renewed = Some(now);
        Ok(())
    }

    /// Asks the writer, as anybody would who only looks.
    async fn look(&self) -> Result<(Survey, Duration), Silence> {
        let inbox = self.means.inbox.upgrade().ok_or(Silence::Closed)?;
        let permit = Arc::new(Semaphore::new(1)).acquire_owned().await;
        let permit = permit.map_err(|_| Silence::Closed)?;
        let (reply, answer) = oneshot::channel();
        let act = |state: &mut crate::store::state::State, now| {
            let began = elapsing();
            let survey = Survey::of(&state.scheduler, now);
            (survey, elapsing().duration_since(began))
        };
        inbox.take(Box::new(Task { kind: Kind::Look, act, reply, permit }));
        drop(inbox);
        match answer.await {
            Ok(Ok(looked)) => Ok(looked),
            // It says itself why it cannot be asked.
            Ok(Err(_)) => Err(Silence::Elsewhere),
            Err(_) => Err(Silence::Closed),
        }
    }

    /// Writes changes, into empty tables the first time, if this is still the one who reports.
    async fn write(&self, changes: Vec<(usize, Change)>, is_first: bool) -> Result<(), Silence> {
        let Some(connected) = &self.connected else { return Err(Silence::Elsewhere) };
        let client = &connected.client;
        client.batch_execute(&self.means.begin).await?;
        let node = (&self.means.node as &(dyn ToSql + Sync), Type::INT8);
        if client.query_typed(&self.sql.is_mine, &[node]).await?.is_empty() {
            client.batch_execute("ROLLBACK").await?;
            return Err(Silence::Elsewhere);
        }
        if is_first {
            client.batch_execute(&self.sql.empty).await?;
        }
        for (table, change) in changes {
            let Some((upsert, delete)) = self.sql.tables.get(table) else { continue };
            for (sql, rows) in [(delete, change.gone), (upsert, change.new)] {
                if let Some(rows) = rows {
                    client.query_typed(sql, &[(&rows, Type::TEXT)]).await?;
                }
            }
        }
        client.batch_execute("COMMIT").await?;
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "no decision hangs on when it is reported")]
fn elapsing() -> Instant {
    Instant::now()
}
