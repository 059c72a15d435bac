//! The queue that everybody writes: one table, a status, `SKIP LOCKED`. No order in lanes, no limits.

use std::sync::Arc;

use tokio_postgres::{Client, Statement};

use super::connection::connect;
use super::work::{BATCH, Call, Claimed, Node};

pub(crate) const TABLES: &str = include_str!("plain.sql");

const INSERT: &str = "INSERT INTO jobs (lane, status, accepted, payload)
    SELECT lane, 'waiting', now(), payload
    FROM unnest($1::text[], $2::bytea[]) AS call (lane, payload)";
const CLAIM: &str = "WITH picked AS MATERIALIZED (
        SELECT id FROM jobs WHERE status = 'waiting' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE jobs SET status = 'running', started = now() FROM picked WHERE jobs.id = picked.id
    RETURNING jobs.id, jobs.lane, jobs.payload";
const ACK: &str = "DELETE FROM jobs WHERE id = ANY ($1)";

/// One connection. Each statement is a transaction, so that clients may send theirs at any time.
pub(crate) struct Plain {
    client: Client,
    insert: Statement,
    claim: Statement,
    ack: Statement,
}

impl Plain {
    pub(crate) async fn open(url: &str, nodes: usize) -> anyhow::Result<Vec<Arc<Self>>> {
        let mut opened = Vec::new();
        for _ in 0..nodes {
            let client = connect(url).await?;
            let insert = client.prepare(INSERT).await?;
            let claim = client.prepare(CLAIM).await?;
            let ack = client.prepare(ACK).await?;
            opened.push(Arc::new(Self { client, insert, claim, ack }));
        }
        Ok(opened)
    }
}

impl Node for Plain {
    type Held = Vec<i64>;

    async fn enqueue(&self, calls: Vec<Call>) -> anyhow::Result<()> {
        let lanes: Vec<String> = calls.iter().map(Call::lane_name).collect();
        let payloads: Vec<&[u8]> = calls.iter().map(|call| call.payload.as_slice()).collect();
        self.client.execute(&self.insert, &[&lanes, &payloads]).await?;
        Ok(())
    }

    async fn claim(&self, ended: Vec<i64>) -> anyhow::Result<Claimed<Vec<i64>>> {
        let max = i64::try_from(BATCH)?;
        let (_, rows) = tokio::try_join!(
            biased;
            async {
                match ended.is_empty() {
                    true => Ok(0),
                    false => self.client.execute(&self.ack, &[&ended]).await,
                }
            },
            async { self.client.query(&self.claim, &[&max]).await },
        )?;
        Ok(Claimed {
            held: rows.iter().map(|row| row.get(0)).collect(),
            payloads: rows.iter().map(|row| row.get(2)).collect(),
        })
    }
}
