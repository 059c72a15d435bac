//! Many asks at once: one clock reading and one round of locks for each batch.

use super::{Inner, Limiter};
use crate::ask::{Asking, Named, Toll};
use crate::error::TryError;
use crate::limits::{Address, Entry};
use crate::pass::Pass;
use crate::table::Spot;
use smallvec::SmallVec;
use std::sync::Arc;

/// Tolls that are decided under one round of locks: enough that memory is fetched for many at once,
/// few enough that nobody waits for microseconds.
const BATCH: usize = 32;

impl Limiter {
    /// Decides each toll on its own, in their order; faster than one by one, above all when there
    /// are many meters. The answers are in the order of the tolls.
    pub fn consume_many(&self, tolls: &[Toll<'_>]) -> Vec<Result<Pass, TryError>> {
        let mut answers = Vec::with_capacity(tolls.len());
        let is_same = |a: &Toll<'_>, b: &Toll<'_>| match (a.limit, b.limit) {
            (Named::Ref(a), Named::Ref(b)) => Arc::ptr_eq(&a.entry, &b.entry),
            _ => a.name() == b.name(),
        };
        for run in tolls.chunk_by(is_same) {
            for batch in run.chunks(BATCH) {
                self.consume_batch(batch, &mut answers);
            }
        }
        answers
    }

    fn consume_batch(&self, batch: &[Toll<'_>], answers: &mut Vec<Result<Pass, TryError>>) {
        let entry = match batch.first().map(|toll| toll.limit) {
            Some(Named::Ref(limit)) => Some(limit.entry.clone()),
            Some(Named::Name(name)) => self.inner.limits.find(name),
            None => None,
        };
        let first = answers.len();
        if let Some(entry) = entry {
            self.inner.decide_batch(&entry, batch, answers);
        }
        // What is not decided in place, if anything, is decided on its own.
        for (index, toll) in batch.iter().enumerate() {
            if answers.get(first + index).is_none() {
                answers.push(self.try_consume(*toll));
            }
        }
    }
}

impl Inner {
    /// Decides tolls at plain meters of one limit, up to the first that is not so simple. None, if
    /// another thread is at one of them: then waiting for all would cost more than it saves.
    fn decide_batch(
        &self,
        entry: &Entry,
        batch: &[Toll<'_>],
        answers: &mut Vec<Result<Pass, TryError>>,
    ) {
        let each = batch.iter().map(|toll| entry.address(toll.partition));
        let addresses: SmallVec<[Address<'_>; BATCH]> = each.collect();
        let Some(mut guards) = entry.try_lock_many(&addresses) else { return };
        let now = self.dial.now();
        // Looked up before any is decided, so that the processor fetches many from memory at once.
        let spots: SmallVec<[Option<Spot>; BATCH]> = addresses
            .iter()
            .map(|address| guards.shard(entry, *address)?.find(address.hash, address.key))
            .collect();
        let mut are_valid = true;
        for ((toll, address), spot) in batch.iter().zip(addresses).zip(spots) {
            let Some(shard) = guards.shard(entry, address) else { return };
            if toll.single().is_none() {
                return;
            }
            let spot = spot.filter(|_| are_valid);
            are_valid &= spot.is_some();
            let (weight, now) = (toll.weight, shard.moment(now));
            answers.push(match self.decide_in(shard, (address, spot), weight, now) {
                Some((stand, Ok(()))) => Ok(Pass::free(stand)),
                Some((_, Err(wait))) => Err(TryError::Refused { retry_after: Some(wait) }),
                None => return,
            });
        }
    }
}
