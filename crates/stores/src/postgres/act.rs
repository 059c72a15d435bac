//! What is asked of the database: a change, and the names of cells.

use super::PostgresCells;
use super::fault::{First, Tries, Trouble};
use super::pool::Session;
use super::row::{Keys, letter, system_time, timestamp};
use super::sweeper::{LastCell, SWEEP_CELLS};
use crate::shared::cells::{Change, Decide, Found, Kind, Wanted};
use std::sync::PoisonError;
use std::time::SystemTime;
use tokio_postgres::{Error, Row};
use tollgate_core::Now;
use tollgate_core::contract::{Answer, StoreError};

/// Cells as they are, and the time.
struct Look {
    now: Now,
    found: Found,
    /// Of [`Wanted::change`]: whether there is a row that counts for nothing.
    is_blank: Vec<bool>,
    /// How many rows were added so that they could be locked.
    added: usize,
}

/// What is written, column by column.
#[derive(Default)]
struct Writes<'a> {
    kept: Keys<'a>,
    values: Vec<&'a [u8]>,
    expiries: Vec<Option<SystemTime>>,
    removed: Keys<'a>,
}

impl PostgresCells {
    /// Makes a change, as often as it is undone by others or meets a connection that has broken.
    pub(super) async fn change_until_done(
        &self,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Answer<()> {
        let mut tries = Tries::new(self.settings.connections);
        loop {
            let mut session = self.pool.session().await?;
            match self.change_once(&mut session, wanted, decide).await {
                Ok(()) => {
                    session.keep();
                    return Ok(());
                }
                Err(trouble) => {
                    drop(session);
                    self.again_after(trouble, &mut tries).await?;
                }
            }
        }
    }

    /// Sees to what an operation lacked, or says that it cannot be done. A schema that is gone is made
    /// again: the database came back empty.
    async fn again_after(&self, trouble: Trouble, tries: &mut Tries) -> Answer<()> {
        match tries.again_after(trouble)? {
            First::Nothing => Ok(()),
            First::Make => {
                tracing::warn!(
                    schema = self.settings.schema,
                    "the schema is gone: it is made again"
                );
                self.prepare().await
            }
        }
    }

    async fn change_once(
        &self,
        session: &mut Session<'_>,
        wanted: Wanted<'_>,
        decide: &mut dyn Decide,
    ) -> Result<(), Trouble> {
        session.prepare(&self.scripts).await.map_err(Trouble::before_commit)?;
        let look = self.look(session, wanted).await.map_err(Trouble::before_commit)?;
        let changes = decide.decide(look.now, &look.found);
        if wanted.change.is_empty() {
            return Ok(());
        }
        if changes.is_empty() {
            // The rows that were added go with it.
            let undone = session.client().batch_execute("ROLLBACK").await;
            return undone.map_err(Trouble::before_commit);
        }
        let writes = writes(wanted, &look, &changes);
        self.write(session, &writes, &look).await.map_err(Trouble::at_commit)
    }

    /// Locks what may be changed, and reads it all: one round trip. If nothing is changed, the
    /// transaction is over, too.
    async fn look(&self, session: &Session<'_>, wanted: Wanted<'_>) -> Result<Look, Error> {
        let (locked, keys) =
            (Keys::of(wanted.change), Keys::of(wanted.change.iter().chain(wanted.read)));
        let is_change = !locked.is_empty();
        let (begun, added, rows, ended) = tokio::join!(
            biased;
            session.client().batch_execute(&self.scripts.begin),
            async {
                if !is_change {
                    return Ok(Vec::new());
                }
                let arguments = [&locked.kinds as _, &locked.names as _, &locked.parts as _];
                session.run(&self.scripts.lock, &arguments).await
            },
            async {
                let arguments = [&keys.kinds as _, &keys.names as _, &keys.parts as _];
                session.run(&self.scripts.read, &arguments).await
            },
            async {
                if is_change {
                    return Ok(());
                }
                session.client().batch_execute("COMMIT").await
            },
        );
        begun?;
        let added = added?.len();
        let rows = rows?;
        ended?;
        self.found(&rows, wanted, added)
    }

    /// What rows say: those that may be changed come first.
    fn found(&self, rows: &[Row], wanted: Wanted<'_>, added: usize) -> Result<Look, Error> {
        let time = match rows.first() {
            Some(row) => timestamp(row.try_get(0)?),
            None => timestamp(SystemTime::UNIX_EPOCH),
        };
        let now = self.settings.time.as_ref().map_or_else(|| Now::both(time), |time| time());
        let mut look = Look { now, found: Found::default(), is_blank: Vec::new(), added };
        let wanted_rows = wanted.change.len() + wanted.read.len();
        for (place, row) in rows.iter().take(wanted_rows).enumerate() {
            let value: Option<Vec<u8>> = row.try_get(1)?;
            let expires: Option<SystemTime> = row.try_get(2)?;
            let is_over = expires.is_some_and(|expires| timestamp(expires) <= now.at);
            let live = if is_over { None } else { value };
            if place < wanted.change.len() {
                look.found.change.push(live);
                look.is_blank.push(is_over);
            } else {
                look.found.read.push(live);
            }
        }
        Ok(look)
    }

    /// Writes and commits in one round trip, and sweeps behind that if it is time.
    async fn write(
        &self,
        session: &Session<'_>,
        writes: &Writes<'_>,
        look: &Look,
    ) -> Result<(), Error> {
        let after = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).due(look.added);
        let (kept, removed) = (&writes.kept, &writes.removed);
        let (written, taken, committed, swept) = tokio::join!(
            biased;
            async {
                if kept.is_empty() {
                    return Ok(Vec::new());
                }
                let (values, expiries) = (&writes.values, &writes.expiries);
                let arguments = [
                    &kept.kinds as _,
                    &kept.names as _,
                    &kept.parts as _,
                    values as _,
                    expiries as _,
                ];
                session.run(&self.scripts.write, &arguments).await
            },
            async {
                if removed.is_empty() {
                    return Ok(Vec::new());
                }
                let arguments = [&removed.kinds as _, &removed.names as _, &removed.parts as _];
                session.run(&self.scripts.remove, &arguments).await
            },
            session.client().batch_execute("COMMIT"),
            async {
                match after {
                    Some(after) => self.sweep(session, &after, look.now).await,
                    None => Ok(()),
                }
            },
        );
        // A commit of what failed succeeds, as a rollback.
        written?;
        taken?;
        committed?;
        if let Err(error) = swept {
            tracing::debug!(%error, "expired cells were not swept");
        }
        Ok(())
    }

    /// Removes expired cells after one.
    async fn sweep(&self, session: &Session<'_>, after: &LastCell, now: Now) -> Result<(), Error> {
        let time = system_time(now.at);
        let arguments =
            [&after.kind as _, &after.name as _, &after.part as _, &SWEEP_CELLS as _, &time as _];
        let (begun, rows, ended) = tokio::join!(
            biased;
            session.client().batch_execute(&self.scripts.begin),
            session.run(&self.scripts.sweep, &arguments),
            session.client().batch_execute("COMMIT"),
        );
        begun?;
        let rows = rows?;
        ended?;
        let last = match rows.first() {
            Some(row) => Some(LastCell {
                kind: row.try_get(0)?,
                name: row.try_get(1)?,
                part: row.try_get(2)?,
            }),
            None => None,
        };
        self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).swept(last);
        Ok(())
    }

    /// Reads names, as often as it meets a connection that has broken.
    pub(super) async fn names_until_read(
        &self,
        kind: Kind,
        after: Option<&str>,
        most: usize,
    ) -> Answer<Vec<Box<str>>> {
        // No name is between one and the same with a zero byte behind it.
        let least = after.map_or_else(Vec::new, |after| [after.as_bytes(), &[0]].concat());
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut tries = Tries::new(self.settings.connections);
        loop {
            let session = self.pool.session().await?;
            match self.names_once(&session, letter(kind), &least, most).await {
                Ok(rows) => {
                    session.keep();
                    return rows.iter().map(name).collect();
                }
                Err(error) => {
                    drop(session);
                    self.again_after(Trouble::before_commit(error), &mut tries).await?;
                }
            }
        }
    }

    async fn names_once(
        &self,
        session: &Session<'_>,
        kind: i8,
        least: &[u8],
        most: i64,
    ) -> Result<Vec<Row>, Error> {
        let time = self.settings.time.as_ref().map(|time| system_time(time().at));
        let arguments = [&kind as _, &least as _, &most as _, &time as _];
        let (begun, rows, ended) = tokio::join!(
            biased;
            session.client().batch_execute(&self.scripts.begin),
            session.run(&self.scripts.names, &arguments),
            session.client().batch_execute("COMMIT"),
        );
        begun?;
        let rows = rows?;
        ended?;
        Ok(rows)
    }
}

fn name(row: &Row) -> Answer<Box<str>> {
    let name = row.try_get::<_, Vec<u8>>(0).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.map(String::into_boxed_str).ok_or_else(|| StoreError::Failed {
        reason: "the table of cells has a name that Tollgate did not write: remove that row".into(),
    })
}

/// What changes come to. A row that counts for nothing, and still does, goes.
fn writes<'a>(wanted: Wanted<'a>, look: &Look, changes: &'a [Change]) -> Writes<'a> {
    let mut writes = Writes::default();
    let mut is_done = vec![false; wanted.change.len()];
    for change in changes {
        let (Some(key), Some(is_done)) = (wanted.change.get(change.at), is_done.get_mut(change.at))
        else {
            continue;
        };
        *is_done = true;
        match &change.value {
            Some(value) => {
                writes.kept.push(key);
                writes.values.push(value);
                let expires = change.life.map(|life| system_time(look.now.at.plus(life)));
                writes.expiries.push(expires);
            }
            None => writes.removed.push(key),
        }
    }
    let rows = wanted.change.iter().zip(&look.is_blank).zip(&is_done);
    for ((key, is_blank), is_done) in rows {
        if *is_blank && !is_done {
            writes.removed.push(key);
        }
    }
    writes
}
