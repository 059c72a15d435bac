//! What a worker's handlers hold: each runs only while its lease is held for certain.

use std::collections::HashMap;
use tokio::task::{AbortHandle, Id};
use tollgate_core::Timestamp;
use tollgate_core::lanes::Lease;

/// The starts whose handlers run.
#[derive(Default)]
pub(super) struct Held {
    by_task: HashMap<Id, Holding>,
}

struct Holding {
    handler: AbortHandle,
    lease: Lease,
    /// Until when it is held for certain, whatever becomes of the store.
    ends: Timestamp,
}

/// What came of renewing leases.
pub(super) struct Renewed {
    /// Which of them are held.
    pub(super) leases: Vec<(Lease, bool)>,
    /// Until when those are.
    pub(super) ends: Timestamp,
}

impl Held {
    pub(super) fn hold(&mut self, handler: AbortHandle, lease: Lease, ends: Timestamp) {
        self.by_task.insert(handler.id(), Holding { handler, lease, ends });
    }

    /// Its handler has ended.
    pub(super) fn let_go(&mut self, task: Id) -> Option<Lease> {
        self.by_task.remove(&task).map(|holding| holding.lease)
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = Lease> {
        self.by_task.values().map(|holding| holding.lease)
    }

    /// When the first of them ends, unless it is renewed.
    pub(super) fn first_ends(&self) -> Option<Timestamp> {
        self.by_task.values().map(|holding| holding.ends).min()
    }

    pub(super) fn renewed(&mut self, renewed: Renewed) {
        let held: HashMap<Lease, bool> = renewed.leases.into_iter().collect();
        for holding in self.by_task.values_mut() {
            match held.get(&holding.lease) {
                Some(true) => holding.ends = holding.ends.max(renewed.ends),
                Some(false) => holding.lose(),
                // It began after they were asked for.
                None => {}
            }
        }
    }

    /// Drops handlers whose leases could not be renewed in time.
    pub(super) fn lose_expired(&mut self, now: Timestamp) {
        let expired = self.by_task.values_mut().filter(|holding| holding.ends <= now);
        expired.for_each(Holding::lose);
    }
}

impl Holding {
    /// Another worker may have the call: its handler is dropped. One that ended meanwhile is settled all the same,
    /// for the store knows best.
    fn lose(&mut self) {
        let call = self.lease.call.0;
        tracing::warn!(call, "a lease was lost: another worker may have the call");
        self.handler.abort();
        // Nothing more is to be done about it.
        self.ends = Timestamp::MAX;
    }
}
