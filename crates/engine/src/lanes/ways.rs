//! What is done one way in a store with lanes, and another way in one of limits alone.

use super::audit::Altered;
use super::consume::Asked;
use super::holds::{Doing, Told};
use super::{Engine, Parts};
use crate::error::{AskError, Error};
use crate::pass::Pass;
use tollgate_core::contract::{Lanes, Meters};
use tollgate_core::lanes::{Act, Lease, Settle, Settlement, Write};
use tollgate_core::{LimitName, Span, Timestamp};

/// How an engine does what depends on whether its store has lanes.
pub(super) trait Ways<S>: Send + Sync {
    /// Waits until an ask is granted, in turn.
    fn acquire(
        &self,
        engine: Engine<S>,
        asked: Asked,
        max_wait: Option<Span>,
    ) -> Doing<'static, Result<Pass, Error>>;

    /// Whether who waits goes on waiting while the store cannot be reached.
    fn is_patient(&self) -> bool;

    /// Looks up a limit of which nothing is known here.
    fn look_up<'a>(
        &'a self,
        parts: &'a Parts<S>,
        limit: &'a LimitName,
    ) -> Doing<'a, Result<(), Error>>;

    /// Holds leases for so long from now; says of each whether it was still held.
    fn renew_leases<'a>(
        &'a self,
        store: &'a S,
        leases: Vec<Lease>,
        life: Span,
    ) -> Doing<'a, Result<Vec<bool>, Error>>;

    /// Settles the lease of a pass.
    fn settle_lease<'a>(
        &'a self,
        parts: &'a Parts<S>,
        lease: Lease,
        told: Told,
    ) -> Doing<'a, Result<(), Error>>;

    /// What writes a change of a limit down in the audit log.
    fn audit_writes<'a>(
        &'a self,
        parts: &'a Parts<S>,
        who: &'a str,
        at: Timestamp,
        what: Altered,
    ) -> Doing<'a, Result<Vec<Write>, Error>>;

    /// Learns how far the audit log goes.
    fn load_audit<'a>(&'a self, parts: &'a Parts<S>) -> Doing<'a, Result<(), Error>>;
}

/// In a store with lanes, who waits is a call in one.
pub(super) struct ByLanes;

impl<S: Lanes + 'static> Ways<S> for ByLanes {
    fn acquire(
        &self,
        engine: Engine<S>,
        asked: Asked,
        max_wait: Option<Span>,
    ) -> Doing<'static, Result<Pass, Error>> {
        Box::pin(async move { engine.wait_in_lane(asked, max_wait).await })
    }

    fn is_patient(&self) -> bool {
        false
    }

    fn look_up<'a>(&'a self, _: &'a Parts<S>, _: &'a LimitName) -> Doing<'a, Result<(), Error>> {
        // All was learned at the start, but for limits that come along with calls and go.
        Box::pin(async { Ok(()) })
    }

    fn renew_leases<'a>(
        &'a self,
        store: &'a S,
        leases: Vec<Lease>,
        life: Span,
    ) -> Doing<'a, Result<Vec<bool>, Error>> {
        Box::pin(async move { Ok(store.renew_leases(leases, life).await?) })
    }

    fn settle_lease<'a>(
        &'a self,
        parts: &'a Parts<S>,
        lease: Lease,
        told: Told,
    ) -> Doing<'a, Result<(), Error>> {
        Box::pin(async move {
            let (settlement, actual, cancel) = match told {
                Told::Cost(actual) => (Settlement::Done, actual, vec![]),
                // Handed back it would wait again: it is taken back, too.
                Told::NeverStarted => (Settlement::Release, vec![], vec![lease.call]),
            };
            let settle = vec![Settle { actual, ..Settle::new(lease, settlement) }];
            let _ = parts.act(Act { settle, cancel, ..Act::default() }).await?;
            Ok(())
        })
    }

    fn audit_writes<'a>(
        &'a self,
        parts: &'a Parts<S>,
        who: &'a str,
        at: Timestamp,
        what: Altered,
    ) -> Doing<'a, Result<Vec<Write>, Error>> {
        Box::pin(parts.audit_writes(who, at, what))
    }

    fn load_audit<'a>(&'a self, parts: &'a Parts<S>) -> Doing<'a, Result<(), Error>> {
        Box::pin(parts.load_audit())
    }
}

/// In a store of limits alone, who waits stands in line in this process.
pub(super) struct ByTurns;

impl<S: Meters + 'static> Ways<S> for ByTurns {
    fn acquire(
        &self,
        engine: Engine<S>,
        asked: Asked,
        max_wait: Option<Span>,
    ) -> Doing<'static, Result<Pass, Error>> {
        Box::pin(async move { engine.wait_in_turn(asked, max_wait).await })
    }

    fn is_patient(&self) -> bool {
        true
    }

    fn look_up<'a>(
        &'a self,
        parts: &'a Parts<S>,
        limit: &'a LimitName,
    ) -> Doing<'a, Result<(), Error>> {
        Box::pin(parts.look_up(limit))
    }

    fn renew_leases<'a>(
        &'a self,
        _: &'a S,
        leases: Vec<Lease>,
        _: Span,
    ) -> Doing<'a, Result<Vec<bool>, Error>> {
        Box::pin(async move { Ok(vec![false; leases.len()]) })
    }

    fn settle_lease<'a>(
        &'a self,
        _: &'a Parts<S>,
        _: Lease,
        _: Told,
    ) -> Doing<'a, Result<(), Error>> {
        // It is of another store.
        Box::pin(async { Err(AskError::ReceiptSpent.into()) })
    }

    fn audit_writes<'a>(
        &'a self,
        _: &'a Parts<S>,
        _: &'a str,
        _: Timestamp,
        _: Altered,
    ) -> Doing<'a, Result<Vec<Write>, Error>> {
        // Its records are found by their keys alone: each limit's own says who changed it.
        Box::pin(async { Ok(Vec::new()) })
    }

    fn load_audit<'a>(&'a self, _: &'a Parts<S>) -> Doing<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }
}
