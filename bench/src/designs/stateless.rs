//! Stateless nodes: lanes, meters and leases are rows, and a claim leases a range of each lane.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use anyhow::ensure;
use tokio::sync::Mutex;
use tokio_postgres::{Client, Row, Statement};

use super::connection::connect;
use super::work::{BATCH, Call, Claimed, Node, Work};

pub(crate) const TABLES: &str = include_str!("stateless.sql");

/// A claim takes so many calls of a lane at most: four claims at a time find lanes that are free
/// even if there are a hundred, and a lease stands for many calls where a lane is long.
const RANGE_MAX: usize = 80;
/// A bucket that never refuses: what is measured is the way.
const LEVEL_FULL: i64 = 1_000_000_000_000;

// The names come sorted, so that two who enqueue lock their lanes in the same order.
const ALLOCATE: &str = "INSERT INTO lanes AS old (lane, next_seq, cursor, ready)
    SELECT lane, count, 0, true FROM unnest($1::text[], $2::bigint[]) AS new (lane, count)
    ON CONFLICT (lane) DO UPDATE SET next_seq = old.next_seq + excluded.next_seq, ready = true
    RETURNING id, next_seq, xmax = 0";
const METERS: &str = "INSERT INTO meters (lane, level, changed_at)
    SELECT lane, $2, 0 FROM unnest($1::bigint[]) AS new (lane)";
const CALLS: &str = "INSERT INTO calls (lane, seq, accepted, payload)
    SELECT lane, seq, now(), payload
    FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS call (lane, seq, payload)";

const END_LEASES: &str = "DELETE FROM leases USING unnest($1::bigint[], $2::bigint[])
        AS ended (lane, from_seq)
    WHERE leases.lane = ended.lane AND leases.from_seq = ended.from_seq AND leases.token = $3";
const END_CALLS: &str = "DELETE FROM calls USING unnest($1::bigint[], $2::bigint[], $3::bigint[])
        AS ended (lane, from_seq, to_seq)
    WHERE calls.lane = ended.lane AND calls.seq >= ended.from_seq AND calls.seq < ended.to_seq";
const LOCK: &str = "WITH locked AS MATERIALIZED (
        SELECT id, next_seq, cursor FROM lanes WHERE ready AND id > $1
        ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED)
    SELECT locked.id, locked.next_seq, locked.cursor, meters.level, meters.changed_at
    FROM locked JOIN meters ON meters.lane = locked.id
    ORDER BY meters.lane FOR UPDATE OF meters";
const NOW: &str = "SELECT clock_timestamp()";
const MOVE: &str = "UPDATE lanes SET cursor = to_seq, ready = to_seq < next_seq
    FROM unnest($1::bigint[], $2::bigint[]) AS moved (lane, to_seq) WHERE lanes.id = moved.lane";
const PAY: &str = "UPDATE meters SET level = paid.level, changed_at = $3
    FROM unnest($1::bigint[], $2::bigint[]) AS paid (lane, level) WHERE meters.lane = paid.lane";
const LEASE: &str = "INSERT INTO leases (lane, from_seq, to_seq, token, expires)
    SELECT lane, from_seq, to_seq, $4, $5::timestamptz + interval '30 seconds'
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS lease (lane, from_seq, to_seq)";
const PAYLOADS: &str = "SELECT calls.lane, calls.seq, calls.payload
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS lease (lane, from_seq, to_seq)
    JOIN calls ON calls.lane = lease.lane AND calls.seq >= lease.from_seq AND calls.seq < lease.to_seq";

/// One connection; a transaction has it for itself.
pub(crate) struct Stateless {
    connection: Mutex<Connection>,
    lanes_max: i64,
    tokens: Arc<AtomicI64>,
}

struct Connection {
    client: Client,
    statements: Statements,
    /// The lane that was claimed last: the next claim goes on behind it, so that all get their turn.
    after: i64,
}

struct Statements {
    allocate: Statement,
    meters: Statement,
    calls: Statement,
    end_leases: Statement,
    end_calls: Statement,
    lock: Statement,
    now: Statement,
    advance: Statement,
    pay: Statement,
    lease: Statement,
    payloads: Statement,
}

/// The ranges of a claim, a column each, as statements take them.
#[derive(Default)]
pub(crate) struct Ranges {
    token: i64,
    lanes: Vec<i64>,
    from: Vec<i64>,
    to: Vec<i64>,
    levels: Vec<i64>,
}

impl Stateless {
    pub(crate) async fn open(
        url: &str,
        nodes: usize,
        work: Work,
    ) -> anyhow::Result<Vec<Arc<Self>>> {
        let tokens = Arc::new(AtomicI64::new(1));
        let lanes_max = i64::try_from(BATCH.div_ceil(work.calls_of_each.clamp(1, RANGE_MAX)))?;
        let mut opened = Vec::new();
        for _ in 0..nodes {
            let client = connect(url).await?;
            let statements = Statements::prepare(&client).await?;
            let connection = Mutex::new(Connection { client, statements, after: 0 });
            opened.push(Arc::new(Self { connection, lanes_max, tokens: tokens.clone() }));
        }
        Ok(opened)
    }
}

impl Statements {
    async fn prepare(client: &Client) -> anyhow::Result<Self> {
        Ok(Self {
            allocate: client.prepare(ALLOCATE).await?,
            meters: client.prepare(METERS).await?,
            calls: client.prepare(CALLS).await?,
            end_leases: client.prepare(END_LEASES).await?,
            end_calls: client.prepare(END_CALLS).await?,
            lock: client.prepare(LOCK).await?,
            now: client.prepare(NOW).await?,
            advance: client.prepare(MOVE).await?,
            pay: client.prepare(PAY).await?,
            lease: client.prepare(LEASE).await?,
            payloads: client.prepare(PAYLOADS).await?,
        })
    }
}

impl Node for Stateless {
    type Held = Ranges;

    async fn enqueue(&self, calls: Vec<Call>) -> anyhow::Result<()> {
        let mut of_lanes: BTreeMap<String, Vec<&Call>> = BTreeMap::new();
        for call in &calls {
            of_lanes.entry(call.lane_name()).or_default().push(call);
        }
        self.connection.lock().await.enqueue(of_lanes).await
    }

    async fn claim(&self, ended: Ranges) -> anyhow::Result<Claimed<Ranges>> {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed);
        let mut connection = self.connection.lock().await;
        let (rows, now) = connection.lock(&ended, self.lanes_max).await?;
        let ranges = decide(&rows, token);
        let is_at_the_end = rows.len() < usize::try_from(self.lanes_max)?;
        connection.after = ranges.lanes.last().copied().filter(|_| !is_at_the_end).unwrap_or(0);
        let payloads = connection.start(&ranges, now).await?;
        Ok(Claimed { held: ranges, payloads })
    }
}

impl Connection {
    async fn enqueue(&self, of_lanes: BTreeMap<String, Vec<&Call>>) -> anyhow::Result<()> {
        let (client, statements) = (&self.client, &self.statements);
        let names: Vec<&str> = of_lanes.keys().map(String::as_str).collect();
        let counts = of_lanes.values().map(|calls| i64::try_from(calls.len()));
        let counts = counts.collect::<Result<Vec<i64>, _>>()?;
        let (_, rows) = tokio::try_join!(
            biased;
            client.batch_execute("BEGIN"),
            async { client.query(&statements.allocate, &[&names, &counts]).await },
        )?;
        ensure!(rows.len() == names.len(), "{} lanes of {}", rows.len(), names.len());
        let (mut lanes, mut seqs, mut payloads) = (Vec::new(), Vec::new(), Vec::<&[u8]>::new());
        for ((row, calls), count) in rows.iter().zip(of_lanes.values()).zip(&counts) {
            let (lane, next_seq): (i64, i64) = (row.get(0), row.get(1));
            for (call, seq) in calls.iter().zip(next_seq - count..) {
                lanes.push(lane);
                seqs.push(seq);
                payloads.push(&call.payload);
            }
        }
        let new = rows.iter().filter(|row| row.get(2)).map(|row| row.get(0));
        let new: Vec<i64> = new.collect();
        tokio::try_join!(
            biased;
            async {
                match new.is_empty() {
                    true => Ok(0),
                    false => client.execute(&statements.meters, &[&new, &LEVEL_FULL]).await,
                }
            },
            async { client.execute(&statements.calls, &[&lanes, &seqs, &payloads]).await },
            client.batch_execute("COMMIT"),
        )?;
        Ok(())
    }

    /// The first round trip: ends the claim before, locks lanes and their meters, reads the time.
    async fn lock(&self, ended: &Ranges, lanes_max: i64) -> anyhow::Result<(Vec<Row>, SystemTime)> {
        let (client, statements) = (&self.client, &self.statements);
        let (_, (), rows, now) = tokio::try_join!(
            biased;
            client.batch_execute("BEGIN"),
            self.end(ended),
            async { client.query(&statements.lock, &[&self.after, &lanes_max]).await },
            async { client.query_one(&statements.now, &[]).await },
        )?;
        Ok((rows, now.get(0)))
    }

    async fn end(&self, ended: &Ranges) -> Result<(), tokio_postgres::Error> {
        let (client, statements) = (&self.client, &self.statements);
        let Ranges { token, lanes, from, to, .. } = ended;
        if lanes.is_empty() {
            return Ok(());
        }
        tokio::try_join!(
            biased;
            async { client.execute(&statements.end_leases, &[lanes, from, token]).await },
            async { client.execute(&statements.end_calls, &[lanes, from, to]).await },
        )?;
        Ok(())
    }

    /// The second: moves the cursors, pays, leases, reads the payloads.
    async fn start(&self, ranges: &Ranges, now: SystemTime) -> anyhow::Result<Vec<Vec<u8>>> {
        let (client, statements) = (&self.client, &self.statements);
        let Ranges { token, lanes, from, to, levels } = ranges;
        if lanes.is_empty() {
            client.batch_execute("COMMIT").await?;
            return Ok(Vec::new());
        }
        let now_micros = now.duration_since(SystemTime::UNIX_EPOCH)?.as_micros();
        let now_micros = i64::try_from(now_micros)?;
        let (_, _, _, rows, ()) = tokio::try_join!(
            biased;
            async { client.execute(&statements.advance, &[lanes, to]).await },
            async { client.execute(&statements.pay, &[lanes, levels, &now_micros]).await },
            async { client.execute(&statements.lease, &[lanes, from, to, token, &now]).await },
            async { client.query(&statements.payloads, &[lanes, from, to]).await },
            client.batch_execute("COMMIT"),
        )?;
        Ok(rows.iter().map(|row| row.get(2)).collect())
    }
}

/// As many of each lane as wait there, up to a range's bound and the batch's.
fn decide(rows: &[Row], token: i64) -> Ranges {
    let mut ranges = Ranges { token, ..Ranges::default() };
    let mut free = i64::try_from(BATCH).unwrap_or(i64::MAX);
    let range_max = i64::try_from(RANGE_MAX).unwrap_or(i64::MAX);
    for row in rows {
        let [lane, next_seq, cursor, level] = [0, 1, 2, 3].map(|column| row.get::<_, i64>(column));
        let taken = (next_seq - cursor).min(range_max).min(free);
        if taken == 0 {
            break;
        }
        free -= taken;
        ranges.lanes.push(lane);
        ranges.from.push(cursor);
        ranges.to.push(cursor + taken);
        ranges.levels.push(level - taken);
    }
    ranges
}
