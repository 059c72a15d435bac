//! A connection of the writer's, and the statements it makes: a round of work is two trips to the
//! server, one that locks, tells the time and catches up, and one that writes and commits.

use super::past::{self, Telling};
use super::tickets::{self, Changes, Kinds, Read};
use crate::postgres::hosts::Hosts;
use crate::postgres::row::system_time;
use crate::postgres::schema::SchemaName;
use crate::shared::cells::Doing;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::AbortHandle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, Socket, Statement};
use tollgate_core::Timestamp;
use tollgate_core::lanes::{CallId, NewCall};

/// How many entries of the log are read at a time, and how many bytes.
const ENTRIES_MAX: usize = 64;
pub(super) const ENTRIES_BYTES: usize = 8 << 20;

/// Makes a connection.
pub(super) type Connector = Arc<dyn Fn() -> Doing<'static, Result<Connected, Error>> + Send + Sync>;

/// A connection, what it is notified of, and what carries its bytes.
pub(super) struct Connected {
    pub(super) client: Client,
    pub(super) heard: UnboundedReceiver<String>,
    _carrying: Carrying,
}

/// It ends with the connection, even if the server never answers.
struct Carrying(AbortHandle);

impl Drop for Carrying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Makes connections as a url says.
pub(super) fn connector<T>(hosts: Arc<Hosts>, tls: T) -> Connector
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Arc::new(move || {
        let (hosts, tls) = (hosts.clone(), tls.clone());
        Box::pin(async move {
            let (client, mut connection) = hosts.connect(tls).await?;
            let (tell, heard) = mpsc::unbounded_channel();
            let carrying = tokio::spawn(async move {
                while let Some(message) = poll_fn(|it| connection.poll_message(it)).await {
                    match message {
                        Ok(AsyncMessage::Notification(note)) => {
                            // Whoever does not listen any more is about to close it.
                            let _ = tell.send(note.payload().to_owned());
                        }
                        Ok(_) => {}
                        Err(error) => {
                            tracing::debug!(%error, "connection to PostgreSQL ended");
                            return;
                        }
                    }
                }
            });
            Ok(Connected { client, heard, _carrying: Carrying(carrying.abort_handle()) })
        })
    })
}

/// What is written in one commit.
#[derive(Default)]
pub(super) struct Batch {
    /// What changed, as [frames](super::frames).
    pub(super) effects: Vec<u8>,
    /// What history is told of it.
    pub(super) telling: Telling,
    /// Calls that were accepted, column by column.
    ids: Vec<i64>,
    queues: Vec<String>,
    lanes: Vec<String>,
    priorities: Vec<i16>,
    not_before: Vec<Option<SystemTime>>,
    payloads: Vec<Box<[u8]>>,
    /// Calls that ended.
    pub(super) ended: Vec<i64>,
    /// What became of tickets.
    pub(super) tickets: Changes,
    bytes: usize,
}

impl Batch {
    pub(super) fn accept(&mut self, id: CallId, call: &NewCall) {
        self.ids.push(number(id.0));
        self.queues.push(shown(call.queue.as_str()));
        self.lanes.push(shown(call.lane.as_str()));
        self.priorities.push(i16::from(call.priority.level()));
        self.not_before.push(call.not_before.map(system_time));
        self.payloads.push(call.payload.as_kept().into());
        self.bytes += call.payload.bytes();
    }

    /// Makes use of the calls that were accepted, column by column, if there are any.
    pub(super) async fn with_rows<T: Default, E>(
        &self,
        make: impl AsyncFnOnce([&(dyn ToSql + Sync); 6]) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.ids.is_empty() {
            return Ok(T::default());
        }
        let Self { ids, queues, lanes, priorities, not_before, payloads, .. } = self;
        let payloads: Vec<&[u8]> = payloads.iter().map(|payload| &**payload).collect();
        make([ids, queues, lanes, priorities, not_before, &payloads]).await
    }

    pub(super) fn end(&mut self, id: CallId) {
        self.ended.push(number(id.0));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.tickets.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.effects.len() + self.telling.bytes()
    }
}

/// The types of [`Batch::with_rows`].
pub(super) fn accept_types() -> [Type; 6] {
    [
        Type::INT8_ARRAY,
        Type::TEXT_ARRAY,
        Type::TEXT_ARRAY,
        Type::INT2_ARRAY,
        Type::TIMESTAMPTZ_ARRAY,
        Type::BYTEA_ARRAY,
    ]
}

/// A number as the server has it.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A name as people read it: the server's text has no zeros.
pub(super) fn shown(name: &str) -> String {
    if name.contains('\0') { name.replace('\0', "\u{2400}") } else { name.to_owned() }
}

/// One commit, as it is read.
pub(super) struct Entry {
    pub(super) seq: i64,
    pub(super) node: i64,
    pub(super) limit_time: Timestamp,
    /// `None` for the one that is known already.
    pub(super) effects: Option<Vec<u8>>,
}

/// A transaction that holds the lock.
pub(super) struct Begun {
    pub(super) server: SystemTime,
    /// The last one that was known, and those after it.
    pub(super) entries: Vec<Entry>,
}

/// The statements.
#[derive(Clone)]
pub(super) struct Sql {
    begin: String,
    lock: String,
    read: String,
    log: String,
    accept: String,
    end: String,
    tell: String,
    notify: String,
    tickets: tickets::Sql,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName, begin: String) -> Self {
        let named = |text: &str| schema.put_into(text);
        // A commit lets go of the lock before it is on disk: see [`Link::write`].
        let begin = format!("{begin}; SET LOCAL synchronous_commit = off");
        Self {
            begin,
            lock: named("LOCK TABLE :\"schema\".turn IN EXCLUSIVE MODE"),
            read: named(include_str!("read.sql")),
            log: named(include_str!("append.sql")),
            accept: named(include_str!("accept.sql")),
            end: named("DELETE FROM :\"schema\".calls WHERE id = ANY ($1)"),
            tell: named(past::TELL),
            notify: named("SELECT pg_notify(:'schema', $1)"),
            tickets: tickets::Sql::new(schema),
        }
    }
}

/// A connection with its statements prepared.
pub(super) struct Link {
    connected: Connected,
    begin: String,
    lock: Statement,
    clock: Statement,
    read: Statement,
    log: Statement,
    accept: Statement,
    end: Statement,
    tell: Statement,
    notify: Statement,
    flush: Statement,
    tickets: tickets::Statements,
}

impl Link {
    pub(super) async fn open(connector: &Connector, sql: &Sql) -> Result<Self, Error> {
        let connected = connector().await?;
        let client = &connected.client;
        // Planned where small tables are not read whole: they grow.
        client.batch_execute(&sql.begin).await?;
        let accept = accept_types();
        let (lock, clock, read, log, accept, end, tell, notify, flush, tickets, ended) = tokio::try_join!(
            biased;
            client.prepare(&sql.lock),
            client.prepare("SELECT clock_timestamp()"),
            client.prepare_typed(&sql.read, &[Type::INT8, Type::INT8, Type::INT8]),
            client.prepare_typed(&sql.log, &[Type::INT8, Type::INT8, Type::INT8, Type::BYTEA]),
            client.prepare_typed(&sql.accept, &accept),
            client.prepare_typed(&sql.end, &[Type::INT8_ARRAY]),
            client.prepare_typed(&sql.tell, &[Type::INT8, Type::BYTEA_ARRAY]),
            client.prepare_typed(&sql.notify, &[Type::TEXT]),
            client.prepare("SELECT pg_logical_emit_message(true, 'tollgate', '')"),
            tickets::Statements::prepare(client, &sql.tickets),
            client.batch_execute("COMMIT"),
        )?;
        let () = ended;
        let begin = sql.begin.clone();
        Ok(Self {
            connected,
            begin,
            lock,
            clock,
            read,
            log,
            accept,
            end,
            tell,
            notify,
            flush,
            tickets,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connected.client.is_closed()
    }

    /// Locks out all other nodes, reads the clock, and then what happened since.
    pub(super) async fn begin(&self, since: i64) -> Result<Begun, Error> {
        let client = &self.connected.client;
        let (begun, locked, clock, entries) = tokio::join!(
            biased;
            client.batch_execute(&self.begin),
            client.query(&self.lock, &[]),
            client.query_one(&self.clock, &[]),
            self.read(since),
        );
        begun?;
        locked?;
        let server = clock?.try_get(0)?;
        Ok(Begun { server, entries: entries? })
    }

    /// What happened since, the last one that was known first.
    pub(super) async fn read(&self, since: i64) -> Result<Vec<Entry>, Error> {
        let (most, bytes) = (number(ENTRIES_MAX as u64), number(ENTRIES_BYTES as u64));
        let rows = self.connected.client.query(&self.read, &[&since, &most, &bytes]).await?;
        rows.iter().map(entry).collect()
    }

    /// Whether there may be more than these.
    pub(super) fn may_have_more(entries: &[Entry]) -> bool {
        let effects = entries.iter().filter_map(|entry| entry.effects.as_ref());
        entries.len() >= ENTRIES_MAX || effects.map(Vec::len).sum::<usize>() >= ENTRIES_BYTES
    }

    /// Of which kinds there are tickets, outside of a round.
    pub(super) async fn look_for_tickets(&self) -> Result<Kinds, Error> {
        self.tickets.look(&self.connected.client, &self.begin).await
    }

    /// Tickets of these kinds; of those that were refused, what comes after one.
    pub(super) async fn tickets(&self, kinds: Kinds, after: i64) -> Result<Read, Error> {
        self.tickets.read(&self.connected.client, kinds, after).await
    }

    /// Writes and commits, and waits until that is safe. The lock is held until the commit alone: whoever comes
    /// next builds on what is not safe yet, and is safe only after it.
    pub(super) async fn write(
        &self,
        (seq, node): (i64, i64),
        limit_time: Timestamp,
        batch: &Batch,
    ) -> Result<(), Error> {
        let client = &self.connected.client;
        let limit_time = number(limit_time.as_nanos());
        let note = format!("{node} {seq}");
        let (logged, accepted, ended, told, settled, notified, committed, flushed) = tokio::join!(
            biased;
            async { client.execute(&self.log, &[&seq, &node, &limit_time, &batch.effects]).await },
            batch.with_rows(async |rows| client.execute(&self.accept, &rows).await),
            async {
                if batch.ended.is_empty() {
                    return Ok(0);
                }
                client.execute(&self.end, &[&batch.ended]).await
            },
            async {
                if batch.telling.is_empty() {
                    return Ok(0);
                }
                client.execute(&self.tell, &[&seq, &batch.telling.parts()]).await
            },
            self.tickets.write(client, &batch.tickets),
            async { client.query(&self.notify, &[&note]).await },
            client.batch_execute("COMMIT"),
            self.flush(),
        );
        // The first that failed is why: a transaction that failed is rolled back by its commit.
        logged?;
        accepted?;
        ended?;
        told?;
        settled?;
        notified?;
        committed?;
        flushed
    }

    /// Waits until all that was committed before is as safe as the server's `synchronous_commit` has it: a
    /// transaction of its own, which is behind all others in the server's log. It must write something there:
    /// the commit of one that does not waits for nothing.
    pub(super) async fn flush(&self) -> Result<(), Error> {
        self.connected.client.query(&self.flush, &[]).await.map(|_| ())
    }

    /// Lets go of the lock, and of what was done.
    pub(super) async fn roll_back(&self) -> Result<(), Error> {
        self.connected.client.batch_execute("ROLLBACK").await
    }
}

fn entry(row: &Row) -> Result<Entry, Error> {
    let limit_time: i64 = row.try_get(2)?;
    let limit_time = Timestamp::from_nanos(limit_time.unsigned_abs());
    Ok(Entry { seq: row.try_get(0)?, node: row.try_get(1)?, limit_time, effects: row.try_get(3)? })
}
