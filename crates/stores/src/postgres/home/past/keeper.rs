//! The keeper: one task that makes rows of what history is to be told, makes the days that it needs and drops the old.

use super::backlog::{Asked, Backlog};
use super::days::{self, Day};
use super::rows::{Rows, TYPES};
use super::{History, Means};
use crate::embedded::codec;
use crate::postgres::fault;
use crate::postgres::home::frames;
use crate::postgres::home::link::{Connected, number};
use crate::postgres::schema::SchemaName;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row, Statement};
use tollgate_core::contract::{Answer, StoreError};

/// How long a server that is out of reach is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How often rows are tried that the server refuses before they are given up: a day that was there may have been dropped.
const REFUSALS_MAX: u32 = 3;
/// How often it is looked for what is old, for what is needed soon, and for what another node left.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// How many parts are told at a time, and how many bytes: some thousand events, which are read on the thread that
/// carries everyone's connections.
const PARTS_AT_ONCE: u64 = 1_024;
const BYTES_AT_ONCE: u64 = 256 << 10;

/// A part of what is to be told: its entry of the log, and its number.
type Part = (i64, i64);

/// The statements.
struct Sql {
    begin: String,
    lock: String,
    newest: String,
    untold: String,
    keep: String,
    remove: String,
}

/// A connection with its statements prepared.
struct Link {
    connected: Connected,
    begin: String,
    lock: Statement,
    newest: Statement,
    untold: Statement,
    keep: Statement,
    remove: Statement,
    /// The last part that is known to have been told: what was removed before it is not looked at.
    known: Part,
}

/// What came of telling some of it.
enum Told {
    /// All up to here, and so many events that were given up.
    Upto(Part, usize),
    /// There was nothing.
    Nothing,
    /// Nothing was done, for there are rows of these days, which are to be made.
    Needs(BTreeSet<Day>),
}

pub(super) struct Keeper {
    means: Means,
    backlog: Arc<Backlog>,
    sql: Sql,
    days: days::Sql,
    link: Option<Link>,
    /// Days that are there, as far as is known.
    made: BTreeSet<Day>,
    /// On which day and when it was last looked for what is old.
    looked: Option<(Day, Instant)>,
}

impl Keeper {
    pub(super) fn new(means: Means, schema: &SchemaName, backlog: Arc<Backlog>) -> Self {
        let named = |sql: &str| schema.put_into(sql);
        let sql = Sql {
            // What a crash of the server takes back it takes back on both sides, and then it is told again.
            begin: format!("{}; SET LOCAL synchronous_commit = off", means.begin),
            lock: named("SELECT pg_advisory_xact_lock(hashtextextended(:'schema', 8658))"),
            newest: named(
                "SELECT seq, part FROM :\"schema\".untold WHERE (seq, part) > ($1, $2) \
                 ORDER BY seq DESC, part DESC LIMIT 1",
            ),
            untold: named(include_str!("untold.sql")),
            keep: named(include_str!("keep.sql")),
            remove: named(
                "DELETE FROM :\"schema\".untold \
                 WHERE (seq, part) > ($1, $2) AND (seq, part) <= ($3, $4)",
            ),
        };
        let days = days::Sql::new(schema, means.begin.clone());
        Self { means, backlog, sql, days, link: None, made: BTreeSet::new(), looked: None }
    }

    pub(super) async fn run(mut self) {
        let _ends = Ends(self.backlog.clone());
        // First what a node left that was killed, perhaps this one.
        let mut asked = Asked::default();
        loop {
            self.tell_all().await;
            for flush in asked.flushes {
                // Whoever asked may have gone.
                let _ = flush.send(());
            }
            if asked.is_closed {
                return;
            }
            self.look_after().await;
            asked = self.backlog.take(LOOK_EVERY).await;
        }
    }

    /// Tells all that there is now, however long the server is out of reach, unless the store is closed meanwhile: then
    /// another node does.
    async fn tell_all(&mut self) {
        let (mut goal, mut failures, mut refusals) = (None, 0, 0);
        loop {
            let error = match self.tell_some(&mut goal, refusals >= REFUSALS_MAX).await {
                Ok(true) => return self.backlog.note_told(),
                Ok(false) => {
                    (failures, refusals) = (0, 0);
                    continue;
                }
                Err(error) => error,
            };
            self.put_down(&error);
            failures += 1;
            refusals += u32::from(matches!(error, StoreError::Failed { .. }));
            // The first time, the connection may just have been broken for long.
            if failures == 1 {
                continue;
            }
            if failures == 2 && !matches!(error, StoreError::Unreachable { .. }) {
                tracing::warn!(%error, "history is not written, and is tried again");
            }
            if self.backlog.pause(RETRY).await {
                return;
            }
            // What is old may be what is in the way.
            self.look_after().await;
        }
    }

    /// Tells some of what there was at first; says whether that is all of it.
    async fn tell_some(&mut self, goal: &mut Option<Part>, gives_up: bool) -> Answer<bool> {
        let patience = self.patience();
        let link = linked(&mut self.link, &self.sql, &self.means).await?;
        let goal = match *goal {
            Some(goal) => goal,
            None => match within(patience, link.newest()).await? {
                Some(newest) => *goal.insert(newest),
                None => return Ok(true),
            },
        };
        let made = (!gives_up).then_some(&self.made);
        match link.tell(made, patience).await? {
            Told::Nothing => Ok(true),
            Told::Upto(last, dropped) => {
                if dropped > 0 {
                    tracing::warn!(dropped, "history has a gap: the database refused it");
                    self.backlog.note_dropped(dropped);
                }
                Ok(last >= goal)
            }
            Told::Needs(days) => {
                self.make(days.into_iter()).await?;
                let link = linked(&mut self.link, &self.sql, &self.means).await?;
                let told = link.tell(Some(&self.made), patience).await?;
                Ok(matches!(told, Told::Upto(last, _) if last >= goal))
            }
        }
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
async fn linked<'a>(link: &'a mut Option<Link>, sql: &Sql, means: &Means) -> Answer<&'a mut Link> {
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
        let (lock, newest, untold, keep, remove) = tokio::try_join!(
            biased;
            client.prepare(&sql.lock),
            client.prepare_typed(&sql.newest, &[const { Type::INT8 }; 2]),
            client.prepare_typed(&sql.untold, &[const { Type::INT8 }; 4]),
            client.prepare_typed(&sql.keep, &TYPES),
            client.prepare_typed(&sql.remove, &[const { Type::INT8 }; 4]),
        )?;
        let begin = sql.begin.clone();
        Ok(Self { connected, begin, lock, newest, untold, keep, remove, known: (0, 0) })
    }

    /// The last part that there is.
    async fn newest(&self) -> Result<Option<Part>, Error> {
        let (client, (seq, part)) = (&self.connected.client, self.known);
        let (begun, newest, committed) = tokio::join!(
            biased;
            client.batch_execute(&self.begin),
            async { client.query_opt(&self.newest, &[&seq, &part]).await },
            client.batch_execute("COMMIT"),
        );
        begun?;
        let newest = newest?;
        committed?;
        newest.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    /// Makes rows of the next that is to be told, and removes it there: both or neither. Other nodes wait meanwhile, so
    /// that nothing is told twice. Without days it is given up.
    async fn tell(&mut self, made: Option<&BTreeSet<Day>>, patience: Duration) -> Answer<Told> {
        let parts = within(patience, self.begin()).await?;
        let Untold { rows, days, last } = Untold::of(&parts).map_err(fault::of)?;
        let needed: BTreeSet<Day> =
            made.map(|made| days.difference(made).copied().collect()).unwrap_or_default();
        let Some(last) = last.filter(|_| needed.is_empty()) else {
            within(patience, self.connected.client.batch_execute("ROLLBACK")).await?;
            return Ok(if needed.is_empty() { Told::Nothing } else { Told::Needs(needed) });
        };
        let (kept, dropped) = if made.is_some() { (Some(&rows), 0) } else { (None, rows.len()) };
        within(patience, self.commit(kept, last)).await?;
        self.known = last;
        Ok(Told::Upto(last, dropped))
    }

    /// Keeps all others from it, and reads what is to be told.
    async fn begin(&self) -> Result<Vec<Row>, Error> {
        let (client, (seq, part)) = (&self.connected.client, self.known);
        let (most, enough) = (number(PARTS_AT_ONCE), number(BYTES_AT_ONCE));
        let (begun, locked, parts) = tokio::join!(
            biased;
            client.batch_execute(&self.begin),
            client.query(&self.lock, &[]),
            async { client.query(&self.untold, &[&seq, &part, &most, &enough]).await },
        );
        begun?;
        locked?;
        parts
    }

    /// Writes rows, and removes what they were made of.
    async fn commit(&self, rows: Option<&Rows<'_>>, (seq, part): Part) -> Result<(), Error> {
        let (client, (known, known_part)) = (&self.connected.client, self.known);
        let (kept, removed, committed) = tokio::join!(
            biased;
            async {
                match rows.filter(|rows| rows.len() > 0) {
                    Some(rows) => client.execute(&self.keep, &rows.columns()).await,
                    None => Ok(0),
                }
            },
            async { client.execute(&self.remove, &[&known, &known_part, &seq, &part]).await },
            client.batch_execute("COMMIT"),
        );
        // The first that failed is why: a transaction that failed is rolled back by its commit.
        kept?;
        removed?;
        committed
    }
}

/// Parts of what is to be told, as rows of history.
#[derive(Default)]
struct Untold<'a> {
    rows: Rows<'a>,
    /// The days they are of.
    days: BTreeSet<Day>,
    /// The last part.
    last: Option<Part>,
}

impl<'a> Untold<'a> {
    fn of(parts: &'a [Row]) -> Result<Self, Error> {
        let mut untold = Self::default();
        for part in parts {
            untold.last = Some((part.try_get(0)?, part.try_get(1)?));
            untold.push(part.try_get(2)?);
        }
        Ok(untold)
    }

    fn push(&mut self, events: &'a [u8]) {
        for record in frames::records(events) {
            let told = record.and_then(|record| Ok((record, codec::decode_events(record)?)));
            match told {
                Ok((record, (event, end))) => {
                    self.days.insert(Day::of(event.at.wall));
                    self.rows.push(record, &event, end.as_ref());
                }
                // One that a newer node wrote hides no other.
                Err(error) => tracing::warn!(%error, "an event cannot be read: history has a gap"),
            }
        }
    }
}

async fn within<T>(patience: Duration, doing: impl Future<Output = Result<T, Error>>) -> Answer<T> {
    match tokio::time::timeout(patience, doing).await {
        Ok(done) => done.map_err(fault::of),
        Err(_) => Err(History::unanswered(patience)),
    }
}

/// Leaves nobody waiting, also if the keeper panics.
struct Ends(Arc<Backlog>);

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
