//! Leases that a worker holds: renewed on a task of its own, and what to do when one is lost.

use crate::calls::Lease;
use crate::client::Client;
use crate::clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout};
use tollgate_core::Span;

/// Leases are renewed so many times before they would end.
const HEARTBEATS: u32 = 3;
/// A heartbeat that failed is tried again this many times as soon.
const SOONER: u32 = 4;
/// Most leases in one request.
const RENEW_MAX: usize = 1_000;

/// The leases of a worker.
#[derive(Debug, Default)]
pub(super) struct Held {
    leases: Mutex<HashMap<Lease, Holding>>,
}

#[derive(Debug)]
struct Holding {
    /// The handler, while it runs.
    handler: Option<AbortHandle>,
    /// Until when it is held for certain.
    ends: Instant,
}

impl Held {
    fn leases(&self) -> MutexGuard<'_, HashMap<Lease, Holding>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hold(&self, lease: Lease, handler: AbortHandle, ends: Instant) {
        self.leases().insert(lease, Holding { handler: Some(handler), ends });
    }

    /// Its handler has ended: it is held until that is settled.
    pub(super) fn handler_ended(&self, lease: &Lease) {
        if let Some(holding) = self.leases().get_mut(lease) {
            holding.handler = None;
        }
    }

    pub(super) fn let_go(&self, lease: &Lease) {
        self.leases().remove(lease);
    }

    /// Until when the last of them is held for certain.
    pub(super) fn last_ends(&self) -> Option<Instant> {
        self.leases().values().map(|holding| holding.ends).max()
    }

    fn all(&self) -> Vec<Lease> {
        self.leases().keys().cloned().collect()
    }

    fn renewed(&self, lease: &Lease, ends: Instant) {
        if let Some(holding) = self.leases().get_mut(lease) {
            holding.ends = ends;
        }
    }

    /// Another worker may have the call: its handler is dropped. What has ended is settled all the same:
    /// the server knows best.
    fn lose(&self, lease: &Lease) {
        let mut leases = self.leases();
        if let Some(Holding { handler: Some(handler), .. }) = leases.get(lease) {
            tracing::warn!(?lease, "a lease was lost: another worker may have the call");
            handler.abort();
            leases.remove(lease);
        }
    }

    fn lose_expired(&self, now: Instant) {
        let all = self.leases();
        let expired = all.iter().filter(|(_, holding)| holding.ends <= now);
        let expired: Vec<_> = expired.map(|(lease, _)| lease.clone()).collect();
        drop(all);
        for lease in &expired {
            self.lose(lease);
        }
    }
}

/// Renews what is held, for as long as it is polled.
pub(super) async fn beat(client: Client, held: Arc<Held>, lease: Span) {
    let every = Duration::from(lease) / HEARTBEATS;
    let mut next = clock::now() + every;
    loop {
        clock::rest_until(next).await;
        let began = clock::now();
        held.lose_expired(began);
        next = began + every;
        for leases in held.all().chunks(RENEW_MAX) {
            let renewing = timeout(every, client.renew(leases, lease)).await;
            match renewing {
                Ok(Ok(renewed)) => {
                    for (one, is_held) in leases.iter().zip(renewed) {
                        match is_held {
                            true => held.renewed(one, began + lease.into()),
                            false => held.lose(one),
                        }
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "leases could not be renewed yet");
                    next = clock::now() + every / SOONER;
                }
                Err(_) => next = clock::now(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    #[tokio::test]
    async fn a_handler_whose_lease_ended_is_dropped_and_others_are_not() {
        let held = Held::default();
        let now = clock::now();
        let lease = |name: &str| Lease(name.into());
        let [late, kept] = [(); 2].map(|()| tokio::spawn(pending::<()>()));
        held.hold(lease("late"), late.abort_handle(), now);
        held.hold(lease("kept"), kept.abort_handle(), now + Duration::from_secs(1));
        held.lose_expired(now);
        assert!(late.await.unwrap_err().is_cancelled());
        assert_eq!(held.all(), [lease("kept")]);
    }

    #[tokio::test]
    async fn what_has_ended_is_held_until_it_is_settled() {
        let held = Held::default();
        let lease = Lease("ended".into());
        let handler = tokio::spawn(pending::<()>());
        held.hold(lease.clone(), handler.abort_handle(), clock::now());
        held.handler_ended(&lease);
        held.lose_expired(clock::now());
        assert_eq!(held.all(), [lease]);
    }
}
