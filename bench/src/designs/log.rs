//! One log for all nodes: each has the lanes in memory, and reads on before it adds to the log.

mod effects;
mod lanes;
mod owner;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use anyhow::Context as _;
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::{Client, Statement};

use super::connection::connect;
use super::work::{Call, Claimed, Node, PAYLOAD_BYTES};
use effects::Waiting;
use owner::{Ask, Owner};

pub(crate) const TABLES: &str = include_str!("log.sql");

/// Asks that wait for a node, and that it combines at most.
const ASKS_MAX: usize = 64;

const ROWS: &str = "SELECT id, payload FROM calls WHERE id = ANY ($1)";
const PARCELS: &str = "SELECT seq, payloads FROM parcels WHERE seq = ANY ($1)";

/// How payloads are kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    /// A row a call.
    Rows,
    /// A row a commit, with the payloads of all its calls.
    Parcels,
}

/// What the clients of a node share: the way to its owner, and a connection to read payloads.
pub(crate) struct Log {
    asks: mpsc::Sender<Ask>,
    keep: Keep,
    reader: Client,
    payloads: Statement,
}

impl Log {
    pub(crate) async fn open(
        url: &str,
        nodes: usize,
        keep: Keep,
    ) -> anyhow::Result<Vec<Arc<Self>>> {
        let positions: Arc<[AtomicI64]> = (0..nodes).map(|_| AtomicI64::new(0)).collect();
        let mut opened = Vec::new();
        for node in 0..nodes {
            let owner = Owner::open(url, keep, node, positions.clone()).await?;
            let reader = connect(url).await?;
            // Nothing here waits for news, but the server is to have the work of sending it.
            reader.batch_execute("LISTEN tollgate_designs").await?;
            let payloads = reader.prepare(match keep {
                Keep::Rows => ROWS,
                Keep::Parcels => PARCELS,
            });
            let payloads = payloads.await?;
            let (asks, asked) = mpsc::channel(ASKS_MAX);
            tokio::spawn(owner.run(asked));
            opened.push(Arc::new(Self { asks, keep, reader, payloads }));
        }
        Ok(opened)
    }

    async fn read(&self, calls: &[Waiting]) -> anyhow::Result<Vec<Vec<u8>>> {
        if calls.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys: Vec<i64> = match self.keep {
            Keep::Rows => calls.iter().map(|call| call.id).collect(),
            Keep::Parcels => calls.iter().map(|call| call.parcel).collect(),
        };
        keys.dedup();
        let rows = self.reader.query(&self.payloads, &[&keys]).await?;
        if let Keep::Rows = self.keep {
            return Ok(rows.iter().map(|row| row.get(1)).collect());
        }
        let parcels: HashMap<i64, &[u8]> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        let payload = |call: &Waiting| {
            let begin = usize::try_from(call.place).ok()? * PAYLOAD_BYTES;
            Some(parcels.get(&call.parcel)?.get(begin..begin + PAYLOAD_BYTES)?.to_vec())
        };
        calls.iter().map(|call| payload(call).context("a parcel lacks a call")).collect()
    }
}

impl Node for Log {
    type Held = Vec<Waiting>;

    async fn enqueue(&self, calls: Vec<Call>) -> anyhow::Result<()> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(Ask::Enqueue { calls, answer }).await.ok().context("the node is gone")?;
        answered.await?
    }

    async fn claim(&self, ended: Vec<Waiting>) -> anyhow::Result<Claimed<Vec<Waiting>>> {
        let (answer, answered) = oneshot::channel();
        self.asks.send(Ask::Claim { ended, answer }).await.ok().context("the node is gone")?;
        let held = answered.await??;
        let payloads = self.read(&held).await?;
        Ok(Claimed { held, payloads })
    }
}
