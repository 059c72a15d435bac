//! Calls that were started for a worker, until it has the answer that says so.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tollgate::Tollgate;
use tollgate::lanes::{Claimed, Lease};

/// Calls that were started. Dropped before the answer is on its way, they wait again at once: nobody would
/// settle them.
pub(crate) struct HandedOut {
    gate: Tollgate,
    leases: Vec<Lease>,
    has_arrived: AtomicBool,
}

impl HandedOut {
    /// Holds on to what was claimed, if anything was.
    pub(crate) fn new(gate: &Tollgate, claimed: &[Claimed]) -> Option<Arc<Self>> {
        if claimed.is_empty() {
            return None;
        }
        let leases = claimed.iter().map(|claimed| claimed.started.lease).collect();
        Some(Arc::new(Self { gate: gate.clone(), leases, has_arrived: AtomicBool::new(false) }))
    }

    /// The system has taken the whole answer: they are the worker's now.
    pub(crate) fn arrived(&self) {
        self.has_arrived.store(true, Ordering::Relaxed);
    }
}

impl Drop for HandedOut {
    fn drop(&mut self) {
        let leases = std::mem::take(&mut self.leases);
        if !*self.has_arrived.get_mut() {
            tracing::debug!(
                calls = leases.len(),
                "an answer did not arrive, and its calls wait again"
            );
            self.gate.release(leases);
        }
    }
}

impl fmt::Debug for HandedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandedOut").field("calls", &self.leases.len()).finish_non_exhaustive()
    }
}
