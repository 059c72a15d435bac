//! Calls that applications hand in by SQL, within their own transactions: tickets, until a node takes
//! them in a round.

use super::link::shown;
use crate::postgres::row::timestamp;
use crate::postgres::schema::SchemaName;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::SystemTime;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row, Statement};
use tollgate_core::lanes::{ActError, NewCall, Payload};
use tollgate_core::{Key, LaneName, LimitName, NameError, Partition, Priority, QueueName, Toll};

/// What whoever hands a call in says to all nodes when that is committed.
pub(super) const NOTE: &str = "inbox";

/// Most tickets of a kind that are tried in one round, and how many bytes of bodies are enough.
const TICKETS_MAX: i64 = 1_000;
const BYTES_MAX: i64 = 8 << 20;
/// Of tickets that wait for room: how many of a queue, and of how many queues. Together as many as of
/// any other kind.
const OF_QUEUE_MAX: i64 = 100;
const QUEUES_MAX: i64 = 10;

/// Notes the names of queues, which `enqueue` looks for.
pub(super) const QUEUES: &str =
    "INSERT INTO :\"schema\".queue_names (queue) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";

/// The statements.
#[derive(Clone)]
pub(super) struct Sql {
    look: String,
    new: String,
    held: String,
    refused: String,
    take: String,
    refuse: String,
    name: String,
    forget: String,
}

impl Sql {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let named = |text: &str| schema.put_into(text);
        Self {
            look: named(include_str!("tickets/look.sql")),
            new: named(include_str!("tickets/new.sql")),
            held: named(include_str!("tickets/held.sql")),
            refused: named(include_str!("tickets/refused.sql")),
            take: named("DELETE FROM :\"schema\".inbox WHERE ticket = ANY ($1)"),
            refuse: named(include_str!("tickets/refuse.sql")),
            name: named(QUEUES),
            forget: named("DELETE FROM :\"schema\".queue_names WHERE queue = ANY ($1)"),
        }
    }
}

/// The statements of a connection.
pub(super) struct Statements {
    look: Statement,
    new: Statement,
    held: Statement,
    refused: Statement,
    take: Statement,
    refuse: Statement,
    name: Statement,
    forget: Statement,
}

impl Statements {
    pub(super) async fn prepare(client: &Client, sql: &Sql) -> Result<Self, Error> {
        let refuse_types = [Type::INT8_ARRAY, Type::TEXT_ARRAY, Type::BOOL_ARRAY];
        let three = [Type::INT8, Type::INT8, Type::INT8];
        let (look, new, held, refused, take, refuse, name, forget) = tokio::try_join!(
            biased;
            client.prepare(&sql.look),
            client.prepare_typed(&sql.new, &[Type::INT8, Type::INT8]),
            client.prepare_typed(&sql.held, &three),
            client.prepare_typed(&sql.refused, &three),
            client.prepare_typed(&sql.take, &[Type::INT8_ARRAY]),
            client.prepare_typed(&sql.refuse, &refuse_types),
            client.prepare_typed(&sql.name, &[Type::TEXT_ARRAY]),
            client.prepare_typed(&sql.forget, &[Type::TEXT_ARRAY]),
        )?;
        Ok(Self { look, new, held, refused, take, refuse, name, forget })
    }

    /// Of which kinds there are tickets. In a transaction of its own, begun so.
    pub(super) async fn look(&self, client: &Client, begin: &str) -> Result<Kinds, Error> {
        let (begun, found, ended) = tokio::join!(
            biased;
            client.batch_execute(begin),
            client.query_one(&self.look, &[]),
            client.batch_execute("ROLLBACK"),
        );
        begun?;
        let found = found?;
        ended?;
        Ok(Kinds { new: found.try_get(0)?, held: found.try_get(1)?, refused: found.try_get(2)? })
    }

    /// Tickets of these kinds, in the transaction that is open: those that wait for room first, the
    /// others of their queue come after them.
    pub(super) async fn read(
        &self,
        client: &Client,
        kinds: Kinds,
        after: i64,
    ) -> Result<Read, Error> {
        let read = |is_wanted: bool, statement, most: i64, third: Option<i64>| async move {
            match third {
                _ if !is_wanted => Ok(Vec::new()),
                None => client.query(statement, &[&most, &BYTES_MAX]).await,
                Some(third) => client.query(statement, &[&most, &BYTES_MAX, &third]).await,
            }
        };
        let (held, refused, new) = tokio::join!(
            biased;
            read(kinds.held, &self.held, OF_QUEUE_MAX, Some(QUEUES_MAX)),
            read(kinds.refused, &self.refused, TICKETS_MAX, Some(after)),
            read(kinds.new, &self.new, TICKETS_MAX, None),
        );
        let tickets = |rows: Vec<Row>| rows.iter().map(ticket).collect::<Result<Vec<_>, _>>();
        Ok(Read { held: tickets(held?)?, refused: tickets(refused?)?, new: tickets(new?)? })
    }

    /// Writes what became of tickets, and which queues there are.
    pub(super) async fn write(&self, client: &Client, changes: &Changes) -> Result<(), Error> {
        let Changes { taken, refused, reasons, held, queues } = changes;
        let names = |is_there: bool| {
            let named = queues.iter().filter(|(_, it)| **it == is_there);
            named.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        let (named, forgotten) = (names(true), names(false));
        let (took, refused, named, forgot) = tokio::join!(
            biased;
            async {
                if taken.is_empty() { Ok(0) } else { client.execute(&self.take, &[taken]).await }
            },
            async {
                match refused.is_empty() {
                    true => Ok(0),
                    false => client.execute(&self.refuse, &[refused, reasons, held]).await,
                }
            },
            async {
                if named.is_empty() { Ok(0) } else { client.execute(&self.name, &[&named]).await }
            },
            async {
                match forgotten.is_empty() {
                    true => Ok(0),
                    false => client.execute(&self.forget, &[&forgotten]).await,
                }
            },
        );
        took.and(refused).and(named).and(forgot).map(|_| ())
    }
}

/// Kinds of tickets: whether there are some, or whether they are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Kinds {
    /// Not tried yet.
    pub(super) new: bool,
    /// They wait for room in their queue.
    pub(super) held: bool,
    /// Refused for any other reason.
    pub(super) refused: bool,
}

impl Read {
    /// Whether there may be more that were not tried.
    pub(super) fn may_have_more(&self) -> bool {
        let bytes: usize = self.new.iter().map(|ticket| ticket.body.len()).sum();
        let is_many =
            |count: usize, most: i64| i64::try_from(count).is_ok_and(|count| count >= most);
        is_many(self.new.len(), TICKETS_MAX) || is_many(bytes, BYTES_MAX)
    }
}

impl Kinds {
    pub(super) fn any(self) -> bool {
        self.new || self.held || self.refused
    }
}

/// Tickets that were read, by kind.
#[derive(Default)]
pub(super) struct Read {
    pub(super) held: Vec<Ticket>,
    pub(super) refused: Vec<Ticket>,
    pub(super) new: Vec<Ticket>,
}

/// A call that was handed in.
pub(super) struct Ticket {
    pub(super) number: i64,
    pub(super) queue: String,
    lane: String,
    body: Vec<u8>,
    tolls: String,
    priority: i16,
    not_before: Option<SystemTime>,
    dedupe: Option<String>,
    supersedes: Option<String>,
    /// Why it was not taken before.
    pub(super) refused: Option<String>,
    /// It waits for room in its queue.
    pub(super) is_held: bool,
    /// Others of its queue wait for room, and it waits behind them.
    pub(super) is_behind: bool,
}

fn ticket(row: &Row) -> Result<Ticket, Error> {
    Ok(Ticket {
        number: row.try_get(0)?,
        queue: row.try_get(1)?,
        lane: row.try_get(2)?,
        body: row.try_get(3)?,
        tolls: row.try_get(4)?,
        priority: row.try_get(5)?,
        not_before: row.try_get(6)?,
        dedupe: row.try_get(7)?,
        supersedes: row.try_get(8)?,
        refused: row.try_get(9)?,
        is_held: row.try_get(10)?,
        is_behind: row.try_get(11)?,
    })
}

/// What a call owes at one meter, as over HTTP.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TollWire {
    limit: String,
    partition: Option<String>,
    weight: Option<u64>,
    feedback: Option<bool>,
}

impl TollWire {
    fn toll(&self) -> Result<Toll, NameError> {
        Ok(Toll {
            limit: LimitName::new(&self.limit)?,
            partition: self.partition.as_deref().map(Partition::new).transpose()?,
            weight: self.weight.unwrap_or(1),
            hears_feedback: self.feedback.unwrap_or(false),
        })
    }
}

impl Ticket {
    /// The call that is meant, or why there is none: a row can be written by anyone who may.
    pub(super) fn call(&self) -> Result<NewCall, String> {
        let wrong = |error: NameError| error.to_string();
        let key = |text: &Option<String>| text.as_deref().map(Key::new).transpose().map_err(wrong);
        let tolls: Vec<TollWire> = serde_json::from_str(&self.tolls)
            .map_err(|error| format!("its tolls cannot be read: {error}"))?;
        let tolls = tolls.iter().map(TollWire::toll).collect::<Result<_, _>>().map_err(wrong)?;
        let level = u64::try_from(self.priority).unwrap_or(u64::MAX);
        Ok(NewCall {
            queue: QueueName::new(&self.queue).map_err(wrong)?,
            lane: LaneName::new(&self.lane).map_err(wrong)?,
            tolls,
            priority: Priority::new(level).map_err(|error| error.to_string())?,
            not_before: self.not_before.map(timestamp),
            expires: None,
            dedupe: key(&self.dedupe)?,
            supersedes: key(&self.supersedes)?,
            payload: Payload::body_alone(&self.body),
        })
    }
}

/// Why a ticket is not taken, for whoever looks at it.
pub(super) fn reason(error: &ActError) -> String {
    match error {
        // There is one call alone, so its number says nothing.
        ActError::UnknownQueue { queue, .. } => {
            format!("there is no queue {queue}: define it first")
        }
        ActError::Toll { error, .. } => error.to_string(),
        ActError::QueueFull { queue, depth } => {
            format!("queue {queue} holds {depth} calls, the most it may: it is tried again")
        }
        error => error.to_string(),
    }
}

/// What is written of tickets and queues in one commit.
#[derive(Default)]
pub(super) struct Changes {
    taken: Vec<i64>,
    /// Those that are not taken, column by column.
    refused: Vec<i64>,
    reasons: Vec<String>,
    held: Vec<bool>,
    /// Queues that are there from now on, or not any more.
    queues: BTreeMap<String, bool>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.refused.is_empty() && self.queues.is_empty()
    }

    pub(super) fn take(&mut self, ticket: &Ticket) {
        self.taken.push(ticket.number);
    }

    /// Says why a ticket is not taken, unless that is what it says.
    pub(super) fn refuse(&mut self, ticket: &Ticket, reason: &str, is_held: bool) {
        // It may name a limit, which is called anything.
        let reason = shown(reason);
        if ticket.refused.as_ref() != Some(&reason) {
            self.refused.push(ticket.number);
            self.reasons.push(reason);
            self.held.push(is_held);
        }
    }

    pub(super) fn name_queue(&mut self, queue: &QueueName, is_there: bool) {
        self.queues.insert(shown(queue.as_str()), is_there);
    }
}

/// What is said of a ticket that waits behind others.
pub(super) fn behind(queue: &str) -> String {
    format!("queue {queue} is full, and others wait for room before it")
}
