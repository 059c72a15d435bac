//! The store itself: nodes of Tollgate on one database, with all that it does besides.

use std::sync::Arc;

use anyhow::Context as _;
use tollgate_core::contract::Lanes as _;
use tollgate_core::lanes::{
    Act, Claim, Lease, NewCall, Order, Payload, QueueSpec, Settle, Settlement,
};
use tollgate_core::{LaneName, QueueName, Span};
use tollgate_stores::postgres::DatabaseSettings;
use tollgate_stores::store::Store;

use super::work::{BATCH, Call, Claimed, Node};

pub(crate) const TABLES: &str = "DROP SCHEMA IF EXISTS tollgate_designs_store CASCADE";
/// The schema and table where rows are left if calls are.
pub(crate) const ROWS: &str = "tollgate_designs_store.calls";

/// Calls of a lane that may be in flight at a time.
const PARALLEL: u32 = 1_000;

/// A node.
pub(crate) struct Real {
    store: Store,
    queue: QueueName,
}

impl Real {
    pub(crate) async fn open(url: &str, nodes: usize) -> anyhow::Result<Vec<Arc<Self>>> {
        let queue = QueueName::new("q")?;
        let schema = "tollgate_designs_store".to_owned();
        let settings = DatabaseSettings { schema, ..DatabaseSettings::default() };
        let mut opened = Vec::new();
        for _ in 0..nodes {
            let store = Store::connect(url, settings.clone()).await?;
            opened.push(Arc::new(Self { store, queue: queue.clone() }));
        }
        let spec = QueueSpec { order: Order::Parallel(PARALLEL), ..QueueSpec::default() };
        let first = opened.first().context("there is a node")?;
        first.store.define_queue(queue, spec).await??;
        Ok(opened)
    }
}

impl Node for Real {
    type Held = Vec<Lease>;

    async fn enqueue(&self, calls: Vec<Call>) -> anyhow::Result<()> {
        let new = |call: Call| {
            let lane = LaneName::new(&call.lane_name())?;
            let payload = Payload::body_alone(&call.payload);
            Ok(NewCall { payload, ..NewCall::new(self.queue.clone(), lane) })
        };
        let enqueue = calls.into_iter().map(new).collect::<anyhow::Result<_>>()?;
        let acted = self.store.act(vec![Act { enqueue, ..Act::default() }]).await?;
        acted.into_iter().try_for_each(|acted| acted.map(|_| ()))?;
        Ok(())
    }

    async fn claim(&self, ended: Vec<Lease>) -> anyhow::Result<Claimed<Vec<Lease>>> {
        let settle: Vec<_> =
            ended.into_iter().map(|lease| Settle::new(lease, Settlement::Done)).collect();
        let claim = Claim { queue: self.queue.clone(), most: BATCH, lease: None, asks: Span::ZERO };
        let act = Act { settle, ..Act::default() };
        // Both go to the store together, as a server's claim with settlements does.
        let (acted, claimed) =
            tokio::try_join!(biased; self.store.act(vec![act]), self.store.claim(claim))?;
        acted.into_iter().try_for_each(|acted| acted.map(|_| ()))?;
        let held = claimed.iter().map(|claimed| claimed.started.lease).collect();
        let payloads = claimed.iter().map(|claimed| claimed.payload.body().to_vec()).collect();
        Ok(Claimed { held, payloads })
    }
}
