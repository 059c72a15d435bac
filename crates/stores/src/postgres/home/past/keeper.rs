//! The keeper: one task that writes what history is told, makes the days that it needs and drops the old.

use super::days::{self, Day};
use super::intake::{Intake, Taken};
use super::rows::{Rows, TYPES};
use super::{History, Means};
use crate::postgres::fault;
use crate::postgres::home::link::Connected;
use crate::postgres::schema::SchemaName;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Statement};
use tollgate_core::contract::{Answer, StoreError};
use tollgate_core::lanes::Event;

/// How long a server that is out of reach is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often events are tried that the server refuses: a day that was there may have been dropped.
const REFUSALS_MAX: u32 = 3;
/// How often it is looked for what is old, and for what is needed soon.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How many events are written at a time, and how long their reports and payloads may be, so that a
/// statement is done well within its deadline.
const EVENTS_AT_ONCE: usize = 4_096;
const BYTES_AT_ONCE: usize = 4 << 20;

/// The statements.
struct Sql {
    lock: &'static str,
    keep: String,
    is_kept: String,
}

/// A connection with its statements prepared.
struct Link {
    connected: Connected,
    lock: Statement,
    keep: Statement,
    is_kept: Statement,
}

pub(super) struct Keeper {
    means: Means,
    intake: Arc<Intake>,
    sql: Sql,
    days: days::Sql,
    link: Option<Link>,
    /// Days that are there, as far as is known.
    made: BTreeSet<Day>,
    /// On which day and when it was last looked for what is old.
    looked: Option<(Day, Instant)>,
}

impl Keeper {
    pub(super) fn new(means: Means, schema: &SchemaName, intake: Arc<Intake>) -> Self {
        let sql = Sql {
            lock: "SELECT pg_advisory_xact_lock($1)",
            keep: schema.put_into(include_str!("keep.sql")),
            is_kept: schema.put_into(
                "SELECT EXISTS (SELECT FROM :\"schema\".history \
                 WHERE at = $1 AND call = $2 AND event = $3)",
            ),
        };
        let days = days::Sql::new(schema, means.begin.clone());
        Self { means, intake, sql, days, link: None, made: BTreeSet::new(), looked: None }
    }

    pub(super) async fn run(mut self) {
        let _ends = Ends(self.intake.clone());
        loop {
            let Taken { events, flushes, is_closed } = self.intake.take(LOOK_EVERY).await;
            let mut left = events.as_slice();
            while let Some((now, later)) = left.split_at_checked(together(left))
                && !now.is_empty()
            {
                self.keep(now).await;
                left = later;
            }
            for flush in flushes {
                // Whoever asked may have gone.
                let _ = flush.send(());
            }
            if is_closed {
                return;
            }
            self.look_after().await;
        }
    }

    /// Writes events, however long the server is out of reach. They are dropped if it refuses them, or
    /// if the store is closed meanwhile.
    async fn keep(&mut self, events: &[Event]) {
        let rows = Rows::of(events);
        let (mut refusals, mut is_again, mut is_closed) = (0, false, false);
        loop {
            let was_linked = self.link.is_some();
            let Err(error) = self.try_to_keep(&rows, is_again).await else {
                return self.intake.note_kept(events);
            };
            self.put_down(&error);
            is_again = true;
            refusals += u32::from(matches!(error, StoreError::Failed { .. }));
            if is_closed || refusals >= REFUSALS_MAX {
                tracing::warn!(%error, events = events.len(), "history has a gap");
                return self.intake.note_dropped(events);
            }
            // A connection that is not new may have been broken for long.
            if !was_linked {
                is_closed = self.intake.pause(RETRY).await;
            }
        }
    }

    async fn try_to_keep(&mut self, rows: &Rows, is_again: bool) -> Answer<()> {
        self.make(rows.days.iter().copied()).await?;
        let (node, begin, patience) = (self.means.node, &self.means.begin, self.patience());
        let link = linked(&mut self.link, &self.sql, &self.means).await?;
        within(patience, link.write(begin, node, rows, is_again)).await
    }

    /// Makes the days that are not known to be there.
    async fn make(&mut self, wanted: impl Iterator<Item = Day>) -> Answer<()> {
        let patience = self.patience();
        for day in wanted.filter(|day| !self.made.contains(day)).collect::<Vec<_>>() {
            let link = linked(&mut self.link, &self.sql, &self.means).await?;
            within(patience, self.days.make(&link.connected.client, day)).await?;
            self.made.insert(day);
        }
        Ok(())
    }

    /// Drops what is old and makes what is needed soon, if it is time.
    async fn look_after(&mut self) {
        let (today, instant) = (Day::of(self.means.clock.now().wall), elapsing());
        let is_recent = self.looked.is_some_and(|(day, at)| {
            day == today && instant.saturating_duration_since(at) < LOOK_EVERY
        });
        if is_recent {
            return;
        }
        self.looked = Some((today, instant));
        if let Err(error) = self.try_to_look_after(today).await {
            self.put_down(&error);
            tracing::debug!(%error, "old history was not removed, and will be");
        }
    }

    async fn try_to_look_after(&mut self, today: Day) -> Answer<()> {
        // Before it is needed, so that the first event of a day does not wait for it.
        self.make([today.next()].into_iter()).await?;
        let patience = self.patience();
        let link = linked(&mut self.link, &self.sql, &self.means).await?;
        let client = &link.connected.client;
        let there = within(patience, self.days.list(client)).await?;
        for day in days::old(&there, self.means.settings, self.means.clock.now().wall) {
            within(patience, self.days.drop(client, day)).await?;
            self.made.remove(&day);
        }
        Ok(())
    }

    /// Nothing is sure any more of what the server has.
    fn put_down(&mut self, error: &StoreError) {
        tracing::debug!(%error, "history could not be written");
        self.link = None;
        self.made.clear();
    }

    /// How long an answer is waited for: the server ends what takes longer than a deadline, if it can
    /// be reached.
    fn patience(&self) -> Duration {
        self.means.deadline.saturating_mul(2)
    }
}

/// The connection, made if there is none.
async fn linked<'a>(link: &'a mut Option<Link>, sql: &Sql, means: &Means) -> Answer<&'a Link> {
    let open = match link.take().filter(|link| !link.connected.client.is_closed()) {
        Some(open) => open,
        None => within(means.deadline, Link::open(means, sql)).await?,
    };
    Ok(link.insert(open))
}

impl Link {
    async fn open(means: &Means, sql: &Sql) -> Result<Self, Error> {
        let connected = (means.connector)().await?;
        let client = &connected.client;
        let first = [Type::TIMESTAMPTZ, Type::INT8, Type::BYTEA];
        let (lock, keep, is_kept) = tokio::try_join!(
            biased;
            client.prepare_typed(sql.lock, &[Type::INT8]),
            client.prepare_typed(&sql.keep, &TYPES),
            client.prepare_typed(&sql.is_kept, &first),
        )?;
        Ok(Self { connected, lock, keep, is_kept })
    }

    /// Writes rows, once: whether those that are tried again were written before is looked at under a
    /// lock of the node's, so that the try before is over.
    async fn write(
        &self,
        begin: &str,
        node: i64,
        rows: &Rows,
        is_again: bool,
    ) -> Result<(), Error> {
        let client = &self.connected.client;
        if is_again && let Some(first) = rows.first() {
            client.batch_execute(begin).await?;
            client.query(&self.lock, &[&node]).await?;
            let is_kept = client.query_one(&self.is_kept, &first).await?.try_get(0)?;
            client.batch_execute("COMMIT").await?;
            if is_kept {
                return Ok(());
            }
        }
        let columns = rows.columns();
        let (begun, locked, kept, committed) = tokio::join!(
            biased;
            client.batch_execute(begin),
            async { client.query(&self.lock, &[&node]).await },
            client.execute(&self.keep, &columns),
            client.batch_execute("COMMIT"),
        );
        // The first that failed is why: a transaction that failed is rolled back by its commit.
        begun?;
        locked?;
        kept?;
        committed
    }
}

/// How many of these are written together: at least one.
fn together(events: &[Event]) -> usize {
    let mut bytes = 0;
    let fits = |event: &&Event| {
        bytes += event.bytes();
        bytes <= BYTES_AT_ONCE
    };
    let fitting = events.iter().take(EVENTS_AT_ONCE).take_while(fits).count();
    fitting.max(1).min(events.len())
}

async fn within<T>(patience: Duration, doing: impl Future<Output = Result<T, Error>>) -> Answer<T> {
    match tokio::time::timeout(patience, doing).await {
        Ok(done) => done.map_err(fault::of),
        Err(_) => Err(History::unanswered(patience)),
    }
}

/// Leaves nobody waiting, also if the keeper panics.
struct Ends(Arc<Intake>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// How often history is looked after is the machine's time, not the limits'.
#[expect(clippy::disallowed_methods, reason = "no decision hangs on it")]
fn elapsing() -> Instant {
    Instant::now()
}
