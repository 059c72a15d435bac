//! The task that owns a node's lanes: what is asked while a commit is under way is the next commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use anyhow::anyhow;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, Statement};

use super::effects::{Effect, Waiting};
use super::lanes::Lanes;
use super::{ASKS_MAX, Keep};
use crate::designs::connection::connect;
use crate::designs::work::{BATCH, Call};

/// Commits after which a node deletes what every node has read of the log.
const COMMITS_PER_TRIM: u64 = 16;

const LOCK: &str = "SELECT pg_advisory_xact_lock(7101)";
const NOW: &str = "SELECT clock_timestamp()";
const NEWS: &str = "SELECT seq, node, effects FROM log WHERE seq > $1 ORDER BY seq";
const APPEND: &str = "INSERT INTO log (seq, node, effects) VALUES ($1, $2, $3)";
const TRIM: &str = "DELETE FROM log WHERE seq <= $1";
const NOTIFY: &str = "SELECT pg_notify('tollgate_designs', '')";
const ROWS: &str = "INSERT INTO calls (id, queue, lane, accepted, payload)
    SELECT id, 'bench', lane, $4, payload
    FROM unnest($1::bigint[], $2::text[], $3::bytea[]) AS call (id, lane, payload)";
const PARCEL: &str = "INSERT INTO parcels (seq, payloads) VALUES ($1, $2)";
const END_ROWS: &str = "DELETE FROM calls WHERE id = ANY ($1)";
const END_PARCELS: &str = "DELETE FROM parcels WHERE seq = ANY ($1)";

/// What a client asks of its node.
pub(crate) enum Ask {
    Enqueue { calls: Vec<Call>, answer: oneshot::Sender<anyhow::Result<()>> },
    Claim { ended: Vec<Waiting>, answer: oneshot::Sender<anyhow::Result<Vec<Waiting>>> },
}

pub(crate) struct Owner {
    client: Client,
    statements: Statements,
    keep: Keep,
    node: usize,
    /// How far each node has read; for good this would be a table.
    positions: Arc<[AtomicI64]>,
    position: i64,
    lanes: Lanes,
    commits: u64,
}

struct Statements {
    lock: Statement,
    now: Statement,
    news: Statement,
    append: Statement,
    trim: Statement,
    notify: Statement,
    insert: Statement,
    delete: Statement,
}

/// What one commit writes.
#[derive(Default)]
struct Commit {
    seq: i64,
    effects: Vec<u8>,
    ids: Vec<i64>,
    calls: Vec<Call>,
    ended: Vec<i64>,
    parcels_over: Vec<i64>,
}

/// An answer that is due when the commit is on disk.
enum Due {
    Enqueued(oneshot::Sender<anyhow::Result<()>>),
    Claimed(oneshot::Sender<anyhow::Result<Vec<Waiting>>>, Vec<Waiting>),
}

impl Owner {
    pub(crate) async fn open(
        url: &str,
        keep: Keep,
        node: usize,
        positions: Arc<[AtomicI64]>,
    ) -> anyhow::Result<Self> {
        let client = connect(url).await?;
        let (insert, delete) = match keep {
            Keep::Rows => (ROWS, END_ROWS),
            Keep::Parcels => (PARCEL, END_PARCELS),
        };
        let statements = Statements {
            lock: client.prepare(LOCK).await?,
            now: client.prepare(NOW).await?,
            news: client.prepare(NEWS).await?,
            append: client.prepare(APPEND).await?,
            trim: client.prepare(TRIM).await?,
            notify: client.prepare(NOTIFY).await?,
            insert: client.prepare(insert).await?,
            delete: client.prepare(delete).await?,
        };
        let lanes = Lanes::default();
        Ok(Self { client, statements, keep, node, positions, position: 0, lanes, commits: 0 })
    }

    /// Runs until all clients are gone or a commit fails: then no one can say what was written.
    pub(crate) async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut group = Vec::new();
        while asks.recv_many(&mut group, ASKS_MAX).await > 0 {
            let mut due = Vec::new();
            let result = self.commit(group.drain(..), &mut due).await;
            let failure = result.err().map(|error| format!("{error:#}"));
            for due in due {
                due.send(failure.as_deref());
            }
            if failure.is_some() {
                return;
            }
        }
    }

    async fn commit(
        &mut self,
        group: impl Iterator<Item = Ask>,
        due: &mut Vec<Due>,
    ) -> anyhow::Result<()> {
        let now = self.catch_up().await?;
        let mut commit = Commit { seq: self.position + 1, ..Commit::default() };
        for ask in group {
            due.push(match ask {
                Ask::Enqueue { calls, answer } => {
                    self.enqueue(calls, &mut commit)?;
                    Due::Enqueued(answer)
                }
                Ask::Claim { ended, answer } => {
                    Due::Claimed(answer, self.claim(&ended, &mut commit)?)
                }
            });
        }
        if commit.effects.is_empty() {
            self.client.batch_execute("COMMIT").await?;
        } else {
            self.write(&commit, now).await?;
            self.position = commit.seq;
        }
        if let Some(own) = self.positions.get(self.node) {
            own.store(self.position, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The first round trip: has the log alone, and all that others have written.
    async fn catch_up(&mut self) -> anyhow::Result<SystemTime> {
        let (client, statements) = (&self.client, &self.statements);
        let (_, _, now, news) = tokio::try_join!(
            biased;
            client.batch_execute("BEGIN"),
            async { client.query_one(&statements.lock, &[]).await },
            async { client.query_one(&statements.now, &[]).await },
            async { client.query(&statements.news, &[&self.position]).await },
        )?;
        for row in news {
            let mut effects: &[u8] = row.get(2);
            while !effects.is_empty() {
                self.lanes.apply(Effect::read(&mut effects)?)?;
            }
            self.position = row.get(0);
        }
        Ok(now.get(0))
    }

    fn enqueue(&mut self, calls: Vec<Call>, commit: &mut Commit) -> anyhow::Result<()> {
        for call in calls {
            let place = u32::try_from(commit.calls.len())?;
            let waiting = Waiting { id: self.lanes.next_id(), parcel: commit.seq, place };
            self.apply(Effect::Enqueued { lane: call.lane, call: waiting }, commit)?;
            commit.ids.push(waiting.id);
            commit.calls.push(call);
        }
        Ok(())
    }

    fn claim(&mut self, ended: &[Waiting], commit: &mut Commit) -> anyhow::Result<Vec<Waiting>> {
        for call in ended {
            self.apply(Effect::Ended { id: call.id, parcel: call.parcel }, commit)?;
            commit.ended.push(call.id);
        }
        let mut started = Vec::new();
        while started.len() < BATCH
            && let Some((lane, call)) = self.lanes.next()
        {
            self.apply(Effect::Started { lane, id: call.id }, commit)?;
            started.push(call);
        }
        Ok(started)
    }

    fn apply(&mut self, effect: Effect, commit: &mut Commit) -> anyhow::Result<()> {
        commit.parcels_over.extend(self.lanes.apply(effect)?);
        effect.write(&mut commit.effects);
        Ok(())
    }

    /// The second round trip.
    async fn write(&mut self, commit: &Commit, now: SystemTime) -> anyhow::Result<()> {
        self.commits += 1;
        let (client, statements) = (&self.client, &self.statements);
        let node = i64::try_from(self.node)?;
        tokio::try_join!(
            biased;
            async { client.execute(&statements.append, &[&commit.seq, &node, &commit.effects]).await },
            self.insert(commit, now),
            self.delete(commit),
            self.trim(),
            async { client.query_one(&statements.notify, &[]).await },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    async fn insert(&self, commit: &Commit, now: SystemTime) -> Result<u64, tokio_postgres::Error> {
        let (client, insert, calls) = (&self.client, &self.statements.insert, &commit.calls);
        if calls.is_empty() {
            return Ok(0);
        }
        match self.keep {
            Keep::Rows => {
                let lanes: Vec<String> = calls.iter().map(Call::lane_name).collect();
                let payloads: Vec<&[u8]> =
                    calls.iter().map(|call| call.payload.as_slice()).collect();
                client.execute(insert, &[&commit.ids, &lanes, &payloads, &now]).await
            }
            Keep::Parcels => {
                let payloads: Vec<u8> =
                    calls.iter().flat_map(|call| call.payload.iter().copied()).collect();
                client.execute(insert, &[&commit.seq, &payloads]).await
            }
        }
    }

    async fn delete(&self, commit: &Commit) -> Result<u64, tokio_postgres::Error> {
        let over = match self.keep {
            Keep::Rows => &commit.ended,
            Keep::Parcels => &commit.parcels_over,
        };
        match over.is_empty() {
            true => Ok(0),
            false => self.client.execute(&self.statements.delete, &[over]).await,
        }
    }

    async fn trim(&self) -> Result<u64, tokio_postgres::Error> {
        if !self.commits.is_multiple_of(COMMITS_PER_TRIM) {
            return Ok(0);
        }
        let read = self.positions.iter().map(|position| position.load(Ordering::Relaxed));
        self.client.execute(&self.statements.trim, &[&read.min().unwrap_or(0)]).await
    }
}

impl Due {
    fn send(self, failure: Option<&str>) {
        let failure = failure.map(|failure| anyhow!("a commit failed: {failure}"));
        // Who asked may have gone; what it asked for is done all the same.
        match self {
            Self::Enqueued(answer) => drop(answer.send(failure.map_or(Ok(()), Err))),
            Self::Claimed(answer, started) => {
                drop(answer.send(failure.map_or(Ok(started), Err)));
            }
        }
    }
}
